"""The command global."""

from pathlib import Path
from typing import Annotated

import typer

from index.errors import CairnError
from index.text import printable_name
from retrieval.commands.console import print_json, say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Workers, WorkOptions

_LISTED = 5  # names that are printed


@grouped
def describe(
    *,
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE",
            help="A global descriptor that an installed package brings; or a matrix: an .npz of names and vectors, or "
            "an .npy with the names in a text file of its name, one a line.",
            show_default=False,
        ),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="Tell which photos look like what these words say, where what described them describes words, too.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="With --find: most photos.", min=1)] = 20,
    remove: Annotated[bool, typer.Option("--remove", help="Remove them from the collection.")] = False,
    workers: Workers = 0,
    run: WorkOptions,
) -> None:
    """Give photos global descriptors: a row for each photo, of what it looks like as a whole.

    cairn query --global-descriptors then takes them into account. Rows that a package computes are kept up by cairn
    index, and files, uploads and boxes are searched for with them, too. Those of a file replace all others; they say
    nothing of other photos. An interrupted run is picked up by running the same command again.
    """
    from retrieval.library.opening import open_named

    if (source is not None) + (find is not None) + remove != 1:
        raise CairnError("Name a global descriptor or a file, or give {--find} or {--remove}.")
    with open_named(collection, catalogue=run.catalogue) as opened:
        if find is not None:
            found = [(photo.name, likeness) for photo, likeness in opened.photos_like(find, top=top)]
            if run.json:
                results = [{"name": name, "likeness": likeness} for name, likeness in found]
                print_json({"collection": str(collection), "words": find, "results": results})
            for name, likeness in () if run.json else found:
                say(f"{likeness:7.4f}  {printable_name(name)}")
            return
        if source is None:
            opened.remove_global_descriptors()
            if run.json:
                print_json({"collection": str(collection), "removed": True})
            else:
                say(f"{collection}: global descriptors are removed.")
            return
        done = opened.add_global_descriptors(source, workers=workers, progress=run.progress)
    if run.json:
        print_json({"collection": str(collection), **done.to_dict()})
        return
    say(f"{collection}: {done.described} photos described, {done.photos} of {done.images} photos have a row.")
    for one in done.failed:
        say(f"failed: {printable_name(one['name'])}: {one['reason']}")
    if done.unknown:
        names = ", ".join(map(printable_name, done.unknown[:_LISTED]))
        say(f"{len(done.unknown)} names of the file are those of no photo here, or of several, such as {names}.")
