"""Commands: check, repair, backup."""

from pathlib import Path
from typing import Annotated

import typer

from index.text import printable_name
from retrieval.commands.care import Folder
from retrieval.commands.console import FAILED, print_json, say
from retrieval.commands.described import FeaturesAgain
from retrieval.commands.options import CatalogueAddress, Json, Quiet, Workers


def check(
    collection: Folder,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Read all files of a collection, and report what is damaged and how to repair it.

    Nothing is changed, and other commands may run at the same time. It takes as long as reading the collection from the
    disk. The exit code is 1 if anything is damaged.
    """
    from retrieval.library.health import check as check_collection

    report = check_collection(collection, catalogue=catalogue, progress=not (quiet or json))
    if json:
        print_json({"collection": str(collection), **report.to_dict()})
    else:
        for one in report.damaged:
            say(f"damaged: {printable_name(one.file)}: {one.what} {one.remedy}")
        for note in report.notes:
            say(f"note: {note}")
        size = f"{report.files} files, {report.bytes / 1e6:.1f} MB in {report.seconds:.1f} s"
        say(f"{collection}: {'sound' if report.ok else f'{len(report.damaged)} damaged'}; {size}.")
    if not report.ok:
        raise typer.Exit(FAILED)


def repair(
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
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
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
        catalogue=catalogue,
        progress=not (quiet or json),
    )
    if json:
        print_json({"collection": str(collection), **report.to_dict()})
    else:
        for entry in report.repaired:
            say(f"repaired: {printable_name(entry['file'])}: {entry['how']}")
        for entry in report.lost:
            say(f"lost: {printable_name(entry['name'])}: {entry['reason']}")
        for sentence in report.lapses:
            say(f"lost: {sentence}")
        for one in report.damaged:
            say(f"damaged: {printable_name(one.file)}: {one.what} {one.remedy}")
        for note in report.notes:
            say(f"note: {note}")
        state = "the rest is sound" if report.lapses else "sound"
        state = state if not report.damaged else f"{len(report.damaged)} still damaged"
        say(f"{collection}: {len(report.repaired)} repaired, {len(report.lost)} photos lost; {state}.")
    if not report.ok:
        raise typer.Exit(FAILED)


def backup(
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
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Copy a collection to another folder, even while it is in use, and check the whole copy.

    The copy is a working collection, as it was at one moment: it can be opened and searched, and restored with cairn
    backup from the copy to a new folder. The same command again copies only what is new, and at the very end removes
    what the collection no longer has; a run that is stopped leaves the earlier backup intact. Thumbnails, jobs and the
    work of interrupted runs are left out. A catalogue in PostgreSQL is copied to an SQLite file. The exit code is 1 if
    anything in the copy is damaged.
    """
    from retrieval.library.opening import open_named

    with open_named(collection, catalogue=catalogue) as opened:
        report = opened.backup(target, link=link, progress=not (quiet or json))
    if json:
        print_json({"collection": str(collection), "target": str(target), **report.to_dict()})
    else:
        for one in report.damaged:
            say(f"damaged: {printable_name(one.file)}: {one.what} {one.remedy}")
        size = (
            f"{report.copied} files, {report.bytes / 1e6:.1f} MB copied, {report.kept} kept, {report.removed} removed"
        )
        state = "sound" if report.ok else f"{len(report.damaged)} damaged"
        say(f"{target}: {report.images} photos, {state}; {size} in {report.seconds:.1f} s.")
    if not report.ok:
        raise typer.Exit(FAILED)
