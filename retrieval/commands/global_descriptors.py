"""The command global."""

from typing import Annotated

import typer

from index.errors import CairnError
from index.text import printable_name
from retrieval.commands.console import say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Folder, Workers, WorkOptions

_LISTED = 5  # names that are printed


@grouped
def describe(
    *,
    collection: Folder,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE",
            help="Name of a global descriptor from an installed package; or a file with a matrix: an .npz with names "
            "and vectors, or an .npy next to a text file of the same name with the names, one per line.",
            show_default=False,
        ),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="List the photos that look most like these words; only for global descriptors that can describe words "
            "too.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="With --find, number of photos to list.", min=1)] = 20,
    remove: Annotated[bool, typer.Option("--remove", help="Remove them from the collection.")] = False,
    workers: Workers = 0,
    run: WorkOptions,
) -> None:
    """Add global descriptors to photos: one vector per photo, of what it looks like as a whole.

    cairn query --global-descriptors then uses them. If an installed package computes them, cairn index adds those of
    new photos, and files, uploads and boxes can be searched for with them too. Descriptors from a file replace all
    others, and only cover the photos that they name. To continue an interrupted run, run the same command again.
    """
    if (source is not None) + (find is not None) + remove != 1:
        raise CairnError("Name a global descriptor or a file, or give {--find} or {--remove}.")
    with run.open(collection) as opened:
        if find is not None:
            found = [(photo.name, likeness) for photo, likeness in opened.photos_like(find, top=top)]
            results = [{"name": name, "likeness": likeness} for name, likeness in found]
            if not run.print_json(collection, words=find, results=results):
                for name, likeness in found:
                    say(f"{likeness:7.4f}  {printable_name(name)}")
            return
        if source is None:
            opened.remove_global_descriptors()
            if not run.print_json(collection, removed=True):
                say(f"{collection}: global descriptors are removed.")
            return
        done = opened.add_global_descriptors(source, workers=workers, progress=run.progress)
    if run.print_json(collection, **done.to_dict()):
        return
    say(f"{collection}: {done.described} photos described, {done.photos} of {done.images} photos have a row.")
    for one in done.failed:
        say(f"failed: {printable_name(one['name'])}: {one['reason']}")
    if done.unknown:
        names = ", ".join(map(printable_name, done.unknown[:_LISTED]))
        say(f"{len(done.unknown)} names in the file match no photo of the collection, or several, such as {names}.")
