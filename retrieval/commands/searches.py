"""Commands: searches ask, searches list."""

from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.console import DONE, FAILED, print_json, say
from retrieval.commands.options import CatalogueAddress, Json, Quiet

searches = typer.Typer(help="Searches that are kept, and asked of photos that are added.", no_args_is_help=True)


@searches.command()
def ask(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Ask the standing searches of the photos that were added since they were asked last.

    Searches are saved, and made standing ones, in the browser: see cairn serve. What they find is kept, listed there as
    new, and given the tag of the search where it has one. Each is a single search, of the new photos alone. One whose
    photo has gone is told, and asked again by the next call; the command ends with code 1 then.
    """
    from retrieval.catalogue.photos import names_of
    from retrieval.collection.sealing import sealed_afterwards
    from retrieval.library.standing import ask_standing
    from retrieval.library.opening import open_named
    from retrieval.library.progress import telling

    titles = {"searches": "Asking (searches)"}
    with open_named(collection, catalogue=catalogue) as opened:
        with sealed_afterwards(opened.opened), telling(not (quiet or json), titles) as tell:
            told = ask_standing(opened.opened, progress=tell)
        names = opened.opened.catalogue.read(names_of, sorted({number for asking in told for number in asking.found}))
    failed = any(asking.problem for asking in told)
    if json:
        print_json(
            {
                "collection": str(collection),
                "searches": [
                    {
                        "id": asking.search.id,
                        "name": asking.search.name,
                        "asked": asking.asked,
                        "found": [names[number] for number in asking.found if number in names],
                        "problem": asking.problem or None,
                    }
                    for asking in told
                ],
            }
        )
    else:
        if not told:
            say(f"{collection}: there are no standing searches.")
        for asking in told:
            if asking.problem:
                say(f"{asking.search.name}: could not be asked: {asking.problem}")
            else:
                say(f"{asking.search.name}: found in {len(asking.found)} of {asking.asked} new photos.")
            for number in asking.found:
                say(f"  {names.get(number, number)}")
    raise typer.Exit(FAILED if failed else DONE)


@searches.command("list")
def list_searches(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    catalogue: CatalogueAddress = None,
    json: bool = Json,
) -> None:
    """List the searches that are kept, favourites first."""
    from retrieval.catalogue.curation.saved import saved_searches
    from retrieval.library.opening import open_named

    with open_named(collection, catalogue=catalogue) as opened:
        kept = opened.opened.catalogue.read(saved_searches)
    if json:
        fields = ("id", "name", "query", "favourite", "standing", "tag", "created", "found", "new")
        print_json(
            {
                "collection": str(collection),
                "searches": [{name: getattr(one, name) for name in fields} for one in kept],
            }
        )
        return
    if not kept:
        say(f"{collection}: no searches are kept.")
    for one in kept:
        words = ["favourite"] * one.favourite + ["standing"] * one.standing
        finds = [f"{one.found} found, {one.new} new"] if one.standing or one.found else []
        say(", ".join([one.name, *words, *finds]))
