"""The command impressions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrieval.commands.console import print_json, say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import QueryBox, WorkOptions

if TYPE_CHECKING:
    from retrieval.library.impressions import Impressions


@grouped
def impressions(
    *,
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    photos: Annotated[
        list[str], typer.Argument(metavar="PHOTO...", help="Photos of one block or plate: names in the collection.")
    ],
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="PHOTO",
            help="Photo whose frame the others are brought into: a name or a file (default: the first).",
        ),
    ] = None,
    box: QueryBox = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Pixels within which ink counts as there (default: half the width of a line, one at least).",
            min=0,
            max=64,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the aligned photos, overlays and what differs as PNG there."),
    ] = None,
    run: WorkOptions,
) -> None:
    """Compare impressions of one printed block or plate: bring photos into one frame, and tell what differs.

    Each photo is brought into the frame of the reference by its match, and then by its pixels. Of each two it is told
    what share of the ink of each the other lacks, and whether one block has printed both, or two that are cut alike,
    by how far lines are displaced. Photos that do not match the reference are told and left out. What is compared is
    what matches, or the box in the reference.
    """
    from time import perf_counter

    from retrieval.library.opening import open_named

    began = perf_counter()
    with open_named(collection, catalogue=run.catalogue) as opened:
        found = opened.impressions(photos, reference, box, tolerance=tolerance, progress=run.progress)
    files = found.save(out) if out is not None else []
    if run.json:
        told = {"collection": str(collection)} | found.to_dict()
        told |= {"files": [str(path) for path in files], "seconds": round(perf_counter() - began, 3)}
        print_json(told)
        return
    _tell(found)
    if files:
        say(f"Written: {len(files)} files in {out}")


def _tell(found: "Impressions") -> None:
    """Print what differs, a line for each two."""
    for pair in found.pairs:
        moved = "" if pair.displacement is None else f", lines displaced by {pair.displacement:.2f} of their width"
        say(f"{pair.first} and {pair.second}: {pair.verdict}{moved}")
        for name, other, share, breaks in (
            (pair.first, pair.second, pair.missing[0], pair.breaks[0]),
            (pair.second, pair.first, pair.missing[1], pair.breaks[1]),
        ):
            say(f"  {share:.1%} of the ink of {name} is not in {other}; breaks: {len(breaks)}")
    for one in found.left_out:
        say(f"{one['name']} is left out: {one['reason']}.")
