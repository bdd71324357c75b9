"""Commands: check, repair, backup."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from index.text import printable_name
from retrieval.commands.console import FAILED, say
from retrieval.commands.described import FeaturesAgain
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Folder, Workers, WorkOptions

if TYPE_CHECKING:
    from retrieval.integrity.report import Damage


@grouped
def check(
    collection: Folder,
    run: WorkOptions,
) -> None:
    """Read all files of a collection, and report what is damaged and how to repair it.

    Nothing is changed, and other commands may run at the same time. It takes as long as reading the collection from the
    disk. The exit code is 1 if anything is damaged.
    """
    from retrieval.library.health import check as check_collection

    report = check_collection(collection, catalogue=run.catalogue, progress=run.progress)
    if not run.print_json(collection, **report.to_dict()):
        _say_damage(report.damaged, report.notes)
        size = f"{report.files} files, {report.bytes / 1e6:.1f} MB in {report.seconds:.1f} s"
        say(f"{collection}: {'sound' if report.ok else f'{len(report.damaged)} damaged'}; {size}.")
    if not report.ok:
        raise typer.Exit(FAILED)


@grouped
def repair(
    *,
    collection: Folder,
    photos: Annotated[
        list[Path] | None,
        typer.Option(help="Folder in which to look for photos that are no longer where they were; may be repeated."),
    ] = None,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing",
            help="Remove photos of damaged segments from the collection if their files cannot be found.",
        ),
    ] = False,
    features: FeaturesAgain = None,
    workers: Workers = 0,
    run: WorkOptions,
) -> None:
    """Repair what cairn check finds damaged.

    Small files are restored from copies; a damaged catalogue from its snapshot, the rows that can still be read, and
    the segments (the parts of the index); damaged segments from their photos. If such photos are found neither where
    they were nor under --photos, no segment is changed, unless --drop-missing allows these photos to be removed from
    the collection, which is reported. To continue an interrupted repair, run the same command again. The exit code is 1
    if anything is still damaged, or if something was lost.
    """
    from retrieval.library.health import repair as repair_collection

    report = repair_collection(
        collection,
        photos=photos or [],
        drop_missing=drop_missing,
        features=features,
        workers=workers,
        catalogue=run.catalogue,
        progress=run.progress,
    )
    if not run.print_json(collection, **report.to_dict()):
        for entry in report.repaired:
            say(f"repaired: {printable_name(entry['file'])}: {entry['how']}")
        for entry in report.lost:
            say(f"lost: {printable_name(entry['name'])}: {entry['reason']}")
        for sentence in report.lapses:
            say(f"lost: {sentence}")
        _say_damage(report.damaged, report.notes)
        state = "the rest is sound" if report.lapses else "sound"
        state = state if not report.damaged else f"{len(report.damaged)} still damaged"
        say(f"{collection}: {len(report.repaired)} repaired, {len(report.lost)} photos lost; {state}.")
    if not report.ok:
        raise typer.Exit(FAILED)


@grouped
def backup(
    *,
    collection: Folder,
    target: Annotated[
        Path, typer.Argument(help="A new folder, or an earlier backup of the collection, which is brought up to date.")
    ],
    link: Annotated[
        bool,
        typer.Option(
            "--link",
            help="Make hard links to segments and vocabulary instead of copying them: on the same disk this takes no "
            "space, but damage to one is damage to both.",
        ),
    ] = False,
    run: WorkOptions,
) -> None:
    """Copy a collection to another folder, even while it is in use, and check the whole copy.

    The copy is a working collection, as it was at one moment: it can be opened and searched, and restored with cairn
    backup from the copy to a new folder. The same command again copies only what is new, and at the very end removes
    what the collection no longer has; a run that is stopped leaves the earlier backup intact. Thumbnails, jobs and the
    work of interrupted runs are left out. A catalogue in PostgreSQL is copied to an SQLite file. The exit code is 1 if
    anything in the copy is damaged.
    """
    with run.open(collection) as opened:
        report = opened.backup(target, link=link, progress=run.progress)
    if not run.print_json(collection, target=str(target), **report.to_dict()):
        _say_damage(report.damaged)
        size = (
            f"{report.copied} files, {report.bytes / 1e6:.1f} MB copied, {report.kept} kept, {report.removed} removed"
        )
        state = "sound" if report.ok else f"{len(report.damaged)} damaged"
        say(f"{target}: {report.images} photos, {state}; {size} in {report.seconds:.1f} s.")
    if not report.ok:
        raise typer.Exit(FAILED)


def _say_damage(damaged: "Sequence[Damage]", notes: Sequence[str] = ()) -> None:
    for one in damaged:
        say(f"damaged: {printable_name(one.file)}: {one.what} {one.remedy}")
    for note in notes:
        say(f"note: {note}")
