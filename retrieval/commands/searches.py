"""Commands: searches save, ask, found, categorise, list, change and delete."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from index.errors import CairnError
from index.options.declaration import build
from index.text import likely
from retrieval.commands.console import DONE, FAILED, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Folder, MatchAll, QueryBox, ReadOptions, WorkOptions
from retrieval.metadata.fields import FieldFilter
from retrieval.search.options import LOCAL, SearchOptions

if TYPE_CHECKING:
    from retrieval.library.collection import Collection
    from retrieval.library.reports import SavedSearch

searches = typer.Typer(help="Save searches, and repeat them on new photos or on all photos.", no_args_is_help=True)


Search = Annotated[str, typer.Argument(help="Name of the search, or its id, as listed by cairn searches list --json.")]


@searches.command()
@grouped
def ask(
    *,
    collection: Folder,
    search: Annotated[
        str | None, typer.Argument(metavar="[SEARCH]", help="Name or id of a search, which then runs on all photos.")
    ] = None,
    run: WorkOptions,
) -> None:
    """Run the standing searches on the photos that were added since they last ran, or run one search on all photos.

    Searches are saved, and made standing ones, with cairn searches save or in the browser. Their results are stored,
    listed there as new, and tagged if the search has a tag. Each standing search looks only at the new photos. A search
    whose query photo is gone is reported, and runs again at the next call; the exit code is then 1.

    A search that is named runs on all photos, and its results include likely ones, at most 1,000: see cairn searches
    found.
    """
    with run.open(collection) as opened:
        runs = opened.ask_searches(_meant(opened, search), progress=run.progress)
    if not run.print_json(collection, searches=[one.to_dict() for one in runs]):
        if not runs:
            say(f"{collection}: there are no standing searches.")
        for asking in runs:
            if asking.problem:
                say(f"{asking.name}: could not be run: {asking.problem}")
            else:
                new = "" if search else "new "
                say(f"{asking.name}: found in {len(asking.found)} of {asking.asked} {new}photos.")
            for name in asking.found:
                say(f"  {name}")
    raise typer.Exit(FAILED if any(asking.problem for asking in runs) else DONE)


@searches.command()
@grouped
def found(
    *,
    collection: Folder,
    search: Search,
    category: Annotated[
        str | None, typer.Option(help='Only results in this category; "": only results without a category.')
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a table (CSV): book, page, date, place, probability, category, region, photo; or TEI (.xml).",
        ),
    ] = None,
    run: ReadOptions,
) -> None:
    """List the results of a search: book and page, date and place, probability, and category.

    The book comes from the IIIF manifest or METS file, the column Item of an imported table, the file with several
    pages, or the folder. To run a search on all photos first, use cairn searches ask.
    """
    with run.open(collection) as opened:
        listed = opened.occurrences(_meant(opened, search), category=category, out=out)
    occurrences = [one.to_dict() for one in listed]
    if run.print_json(collection, search=search, occurrences=occurrences, out=str(out) if out else None):
        return
    for one in listed:
        probability = "–" if one.probability is None else likely(one.probability)
        facts = [one.date or "–", one.place or "–", f"{one.book}, {one.page}", one.category or "–"]
        say(f"{probability:>4}  " + " | ".join(facts))
    say(f"{search}: {len(listed)} photos.")
    if out is not None:
        say(f"{'TEI' if out.suffix.lower() == '.xml' else 'Table'}: {out}")


@searches.command()
@grouped
def categorise(
    collection: Folder,
    search: Search,
    category: Annotated[
        str, typer.Argument(help='Such as "same block", copy, "same motif", "not related", or any other; "": none.')
    ],
    photos: Annotated[list[str], typer.Argument(metavar="PHOTO...", help="Names of photos in the collection.")],
    run: ReadOptions,
) -> None:
    """Put results of a search into a category; photos that it has not found are added to its results."""
    with run.open(collection) as opened:
        opened.categorise(_meant(opened, search), photos, category)
    if not run.print_json(collection, search=search, category=category, photos=photos):
        say(f"{search}: {len(photos)} photos are in {category!r}." if category else f"{search}: no category.")


@searches.command("list")
@grouped
def list_searches(
    collection: Folder,
    run: ReadOptions,
) -> None:
    """List the saved searches, favourites first."""
    with run.open(collection) as opened:
        saved = opened.saved_searches()
    if run.print_json(collection, searches=[one.to_dict() for one in saved]):
        return
    if not saved:
        say(f"{collection}: there are no saved searches.")
    for one in saved:
        words = ["favourite"] * one.favourite + ["standing"] * one.standing
        finds = [f"{one.found} found, {one.new} new"] if one.standing or one.found else []
        say(", ".join([one.name, *words, *finds]))


@dataclass(frozen=True)
class SearchUse:
    """Query and use of a saved search, as options of the command line."""

    box: QueryBox = None
    standing: Annotated[bool, typer.Option("--standing", help="Run it on photos that are added from now on.")] = False
    first: Annotated[bool, typer.Option("--first", help="Mark it as a favourite, which is listed first.")] = False
    give_tag: Annotated[
        str | None, typer.Option(metavar="TAG", help="With --standing, tag that is added to the photos that it finds.")
    ] = None


@searches.command()
@grouped
def save(
    *,
    collection: Folder,
    called: Annotated[str, typer.Argument(metavar="NAME", help="Name of the search.")],
    photos: Annotated[
        list[str],
        typer.Argument(metavar="PHOTO...", help="Query photos: names in the collection; one may be a file."),
    ],
    use: SearchUse,
    options: Annotated[dict[str, Any], OptionsOf(SearchOptions, leave=LOCAL)],
    match_all: MatchAll = False,
    filters: Annotated[dict[str, Any], OptionsOf(FieldFilter)],
    run: ReadOptions,
) -> None:
    """Save a search under a name; a standing search also runs on photos that are added later: see cairn searches
    ask.
    """
    from retrieval.catalogue.filters import PhotoFilter

    where, purpose = build(PhotoFilter, filters), {"standing": use.standing, "favourite": use.first}
    with run.open(collection) as opened:
        saved = opened.save_search(
            called, photos, use.box, where=where, match_all=match_all, tag=use.give_tag, **purpose, **options
        )
    _tell(run, collection, "is kept", saved)


@searches.command()
@grouped
def change(
    *,
    collection: Folder,
    search: Search,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    standing: Annotated[
        bool | None, typer.Option("--standing/--not-standing", help="Run it on photos that are added from now on.")
    ] = None,
    first: Annotated[
        bool | None, typer.Option("--first/--not-first", help="Mark it as a favourite, which is listed first.")
    ] = None,
    give_tag: Annotated[
        str | None,
        typer.Option(metavar="TAG", help='Tag that is added to the photos that a standing search finds; "": none.'),
    ] = None,
    run: ReadOptions,
) -> None:
    """Rename a saved search, make it a standing one or a favourite, or change its tag."""
    values: dict[str, Any] = {"name": name, "standing": standing, "favourite": first, "tag": give_tag}
    if all(value is None for value in values.values()):
        raise CairnError("Say what to change: give {--name}, {--standing}, {--first} or {--give-tag}.")
    with run.open(collection) as opened:
        _tell(run, collection, "is changed", opened.change_search(_meant(opened, search), **values))


@searches.command()
@grouped
def delete(collection: Folder, search: Search, run: ReadOptions) -> None:
    """Delete a saved search and its results."""
    with run.open(collection) as opened:
        _tell(run, collection, "is forgotten", opened.delete_search(_meant(opened, search)))


def _meant(opened: "Collection", search: Any) -> Any:
    """The name of a search, or its id if no search has this name; None for None."""
    is_number = search is not None and search.isascii() and search.isdecimal() and len(search) < 19
    return int(search) if is_number and all(one.name != search for one in opened.saved_searches()) else search


def _tell(run: ReadOptions, collection: Path, what: str, one: "SavedSearch") -> None:
    if not run.print_json(collection, search=one.to_dict()):
        say(f"{collection}: the search {one.name!r} {what}.")
