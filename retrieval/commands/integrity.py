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
    """Read every file of a collection again, and tell what is damaged and what to do about it.

    Nothing is changed, and other commands may be at work meanwhile. It takes as long as the disk needs to read the
    collection. Ends with code 1 if anything is damaged.
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
        typer.Option(help="Look here for photos that are no longer where they were; may be repeated."),
    ] = None,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing", help="Let photos of damaged segments that cannot be found leave the collection."
        ),
    ] = False,
    features: FeaturesAgain = None,
    workers: Workers = 0,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Make again what cairn check finds damaged.

    Small files are restored from copies; a damaged catalogue from its snapshot, its rows that can be read, and the
    segments; and damaged segments from their photos. Where such photos cannot be found, here or under --photos, no
    segment is changed, unless --drop-missing lets them leave the collection: they are reported then. An interrupted
    repair is picked up by running the same command again. Ends with code 1 if anything is still damaged, or something
    was lost.
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
        Path, typer.Argument(help="A new folder, or an earlier backup of the collection that is brought up to date.")
    ],
    link: Annotated[
        bool,
        typer.Option(
            "--link",
            help="Link segments and vocabulary instead of copying them: on the same disk they take no room, but damage "
            "to one is damage to both.",
        ),
    ] = False,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Copy a collection to another folder, while others use it, and read the whole copy again.

    The copy is a collection of one moment: it opens, answers the same, and is brought back by cairn backup in the other
    direction, to a new folder. The same command again copies only what is new, and removes what the collection no
    longer has when all else is done; one that is stopped leaves the earlier backup whole. Thumbnails, jobs and the work
    of stopped runs are left out. A catalogue in PostgreSQL is copied to an SQLite file. Ends with code 1 if anything in
    the copy is damaged.
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
