"""The command books."""

from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.console import first_of, say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Folder, ReadOptions

_LISTED = 20  # pairs of books that are printed for people


@grouped
def books(
    *,
    collection: Folder,
    category: Annotated[
        str | None,
        typer.Option(help="Count only results of saved searches in this category, such as 'same block'."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a table (CSV) of how many pictures each two books share."),
    ] = None,
    pages: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a table (CSV) with a row for each two pages that match.")
    ] = None,
    run: ReadOptions,
) -> None:
    """Show which books share pictures, from groups and from the results of saved searches.

    The groups are those of the last run of cairn group. Results of saved searches count if cairn searches ask was sure
    of them, or if they are in a category other than "not related". Pages that match each other count as one picture.
    """
    with run.open(collection) as opened:
        shared = opened.shared_books(category=category, out=out, pages=pages)
    files = [str(path) for path in (out, pages) if path is not None]
    if run.print_json(collection, **shared.to_dict(), files=files):
        return
    for line in first_of([f"{one.pictures:4}  {one.first} | {one.second}" for one in shared.pairs], _LISTED, "  "):
        say(line)
    say(f"{collection}: {len(shared.books)} books share pictures.")
    if not shared.grouped:
        say("Groups have not been searched for: run cairn group to see what else the books share.")
    for path in files:
        say(f"Table: {path}")
