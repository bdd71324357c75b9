"""The command annotations."""

from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.console import print_json, say
from retrieval.commands.options import CatalogueAddress, Json, Quiet


def annotations(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write them here (.jsonld or .json; .xml: TEI).")],
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Write the matches within groups as W3C Web Annotations, for viewers of libraries.

    Groups are those of cairn group, as it found them last. Each pair of photos that is linked is an annotation: the
    regions that match in both, with the probability that they show the same, and the map between them. A photo that
    came by IIIF is named by its canvas; another by its name in the collection. A file that ends in .xml is TEI: a zone
    for each region, and links between them.
    """
    from retrieval.library.opening import open_named

    with open_named(collection, catalogue=catalogue) as opened:
        count = opened.save_annotations(out, progress=not (quiet or json))
    if json:
        print_json({"collection": str(collection), "out": str(out), "annotations": count})
        return
    say(f"{out}: {count} annotations.")
