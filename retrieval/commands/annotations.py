"""The command annotations."""

from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.console import print_json, say
from retrieval.commands.options import CatalogueAddress, Json, Quiet


def annotations(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write (.jsonld or .json; .xml: TEI).")],
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Write the matches within groups as W3C Web Annotations, for the viewers of libraries.

    The groups are those of the last run of cairn group. Each pair of linked photos becomes an annotation: the regions
    that match in both, the probability that they show the same object, and the transformation between them. A photo
    that was fetched by IIIF is identified by its canvas, any other photo by its name in the collection. A file that
    ends in .xml is written as TEI: a zone for each region, and links between zones.
    """
    from retrieval.library.opening import open_named

    with open_named(collection, catalogue=catalogue) as opened:
        count = opened.save_annotations(out, progress=not (quiet or json))
    if json:
        print_json({"collection": str(collection), "out": str(out), "annotations": count})
        return
    say(f"{out}: {count} annotations.")
