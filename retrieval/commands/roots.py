"""Command: roots."""

from pathlib import Path
from typing import Annotated

import typer

from index.errors import CairnError
from index.text import printable_name
from retrieval.commands.console import say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Folder, WorkOptions

_SHOWN = 20


@grouped
def roots(
    *,
    collection: Folder,
    moved: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--moved",
            metavar="OLD NEW",
            help="The photos that were in the folder OLD are now in the folder NEW.",
            show_default=False,
        ),
    ] = None,
    names_from: Annotated[
        Path | None,
        typer.Option(
            "--names-from", metavar="FOLDER", help="Name photos below this folder by their paths from this folder."
        ),
    ] = None,
    run: WorkOptions,
) -> None:
    """List the folders that photos were indexed from, or say where such a folder is now.

    With --moved, nothing is indexed again: a file with the recorded size and time is taken to be the photo; any other
    file is read and compared. Photos that are not found stay as they are. With --names-from, photos that were indexed
    from several folders are named by their paths from a common one, such as 2020/cat.jpg instead of cat.jpg.
    """
    if moved and names_from:
        raise CairnError("Give either {--moved} or {--names-from}.")
    with run.open(collection) as opened:
        if moved:
            report = opened.move_root(*moved, progress=run.progress)
        renamed = opened.name_from(names_from) if names_from else {}
        folders = opened.roots()
    listed = [one.to_dict() for one in folders]
    summary = {**(report.to_dict() if moved else {}), **({"renamed": renamed} if names_from else {})}
    if run.print_json(collection, **summary, roots=listed):
        return
    if moved:
        for name in report.left if len(report.left) <= _SHOWN else []:
            say(f"not found: {printable_name(name)}")
        say(f"{collection}: {len(report.moved)} photos moved, {len(report.left)} not found.")
    if names_from:
        for before, name in renamed.items() if len(renamed) <= _SHOWN else []:
            say(f"{printable_name(before)} is {printable_name(name)} now")
        say(f"{collection}: {len(renamed)} photos have other names.")
    for one in folders:
        say(f"{one.photos:8d} photos  {printable_name(one.folder)}{'' if one.there else '  (not there, or empty)'}")
