"""Command: improve."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from learning.library.choices import ImproveOptions
from retrieval.commands.console import print_json, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import CatalogueAddress, Json, Quiet


@grouped
def improve(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    options: Annotated[dict[str, Any], OptionsOf(ImproveOptions)],
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Improve search in a collection: learn from its own photos, without any labels, how to find more.

    Cairn looks for photos that show the same object, and learns a descriptor (a way to compare details of photos) from
    the matches between them. It then searches for parts of scenes that it did not learn from, with the new descriptor
    and with the one in use. Only if the new one finds more, beyond chance, all photos are indexed with it; otherwise
    nothing changes. Searches use the old index until the new one replaces it, all at once. Photos keep their numbers,
    names, dates, tags and albums. To continue an interrupted run, run the same command again.
    """
    from index.errors import CairnError
    from index.options.declaration import build
    from learning.library.improving import improve as improve_search

    if not (quiet or json):
        from retrieval.library.opening import open_named
        from retrieval.library.sameness import look
        from retrieval.library.searches import Searches

        with open_named(collection, catalogue=catalogue) as opened, suppress(CairnError):  # reported by the run itself
            say(look(Searches(opened.opened)).sentence)
    done = improve_search(
        collection,
        build(ImproveOptions, options),
        catalogue=catalogue,
        progress=not (quiet or json),
    )
    if json:
        print_json({"collection": str(collection), "dry_run": options["dry_run"], **done.to_dict()})
        return
    say(done.sentence)
    if done.searches is not None and done.after is not None and done.searches["queries"]:
        for which, title in (("words", "by words"), ("verified", "verified")):
            one, two = done.before["map"][which], done.after["map"][which]
            say(
                f"mAP {title} {100 * two:.1f}, was {100 * one:.1f}; {done.searches[which]['won']} searches found more, "
                f"{done.searches[which]['lost']} less"
            )
    for entry in done.dropped:
        say(f"dropped: {entry['name']}: {entry['reason']}")
    say(f"{done.seconds['total']:.0f} s")
