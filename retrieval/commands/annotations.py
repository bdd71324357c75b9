"""The command annotations."""

from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.console import say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Folder, WorkOptions


@grouped
def annotations(
    collection: Folder,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write (.jsonld or .json; .xml: TEI).")],
    run: WorkOptions,
) -> None:
    """Write the matches within groups as W3C Web Annotations, for the viewers of libraries.

    The groups are those of the last run of cairn group. Each pair of linked photos becomes an annotation: the regions
    that match in both, the probability that they show the same object, and the transformation between them. A photo
    that was fetched by IIIF is identified by its canvas, any other photo by its name in the collection. A file that
    ends in .xml is written as TEI: a zone for each region, and links between zones.
    """
    with run.open(collection) as opened:
        count = opened.save_annotations(out, progress=run.progress)
    if run.print_json(collection, out=str(out), annotations=count):
        return
    say(f"{out}: {count} annotations.")
