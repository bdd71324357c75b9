"""Commands: check, repair."""

import typer

from retrieval.care_commands import Folder
from retrieval.commands import CatalogueAddress
from retrieval.console import FAILED, Json, Quiet, print_json, printable_name, progress_bars, say


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
    from retrieval.integrity import check_collection, report_json

    with progress_bars(quiet or json, {"check": "Reading (MB)"}) as tell:
        report = check_collection(collection, catalogue=catalogue, progress=tell)
    if json:
        print_json(report_json(collection, report))
    else:
        for one in report.damaged:
            say(f"damaged: {printable_name(one.file)}: {one.what} {one.remedy}")
        for note in report.notes:
            say(f"note: {note}")
        size = f"{report.files} files, {report.bytes / 1e6:.1f} MB in {report.seconds:.1f} s"
        say(f"{collection}: {'sound' if report.ok else f'{len(report.damaged)} damaged'}; {size}.")
    if not report.ok:
        raise typer.Exit(FAILED)
