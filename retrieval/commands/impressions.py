"""The command impressions."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from index.errors import CairnError
from retrieval.commands.console import say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Folder, QueryBox, WorkOptions

if TYPE_CHECKING:
    from retrieval.library.impressions import Impressions
    from retrieval.library.print_clock import ClockDecisions, PrintClock


@dataclass(frozen=True)
class ClockOptions:
    """The print clock, and decisions about it."""

    clock: Annotated[
        Literal["breaks", "widths"] | None,
        typer.Option(
            help="Estimate the order of printing, by breaks of lines (woodcuts) or widths of lines (engravings)."
        ),
    ] = None
    leave_out: Annotated[
        list[str] | None,
        typer.Option(metavar="PHOTO", help="Leave this photo out of the print clock; may be repeated."),
    ] = None
    undated: Annotated[
        list[str] | None,
        typer.Option(metavar="PHOTO", help="Ignore the date of this photo; may be repeated."),
    ] = None
    dated: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PHOTO",
            help="Count the date in the file of this photo, that of a scan perhaps; may be repeated.",
        ),
    ] = None
    leave_region: Annotated[
        list[str] | None,
        typer.Option(metavar="X0,Y0,X1,Y1", help="Ignore this region of the reference; may be repeated."),
    ] = None
    order: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PHOTO", help="This photo is known to have been printed before the photo of the next {--order}."
        ),
    ] = None
    keep: Annotated[
        bool, typer.Option("--keep", help="Store these decisions about the print clock in the collection.")
    ] = False

    @property
    def decisions(self) -> "ClockDecisions | None":
        """The decisions; None: the stored ones."""
        from retrieval.library.print_clock import ClockDecisions

        if not any((self.keep, self.leave_out, self.undated, self.dated, self.leave_region, self.order)):
            return None
        try:
            boxes = tuple(tuple(float(corner) for corner in one.split(",")) for one in self.leave_region or ())
        except ValueError:
            raise CairnError("A region that is left out is four numbers x0,y0,x1,y1.") from None
        before = tuple(pairwise(self.order or ()))
        photos = (self.leave_out or (), self.undated or (), self.dated or ())
        return ClockDecisions(self.clock or "breaks", *photos, boxes, before)


@grouped
def impressions(
    *,
    collection: Folder,
    photos: Annotated[
        list[str],
        typer.Argument(metavar="PHOTO...", help="Photos of one block or plate: names in the collection."),
    ],
    reference: Annotated[
        str | None,
        typer.Option(metavar="PHOTO", help="Photo to align the others with: a name or a file (default: the first)."),
    ] = None,
    box: QueryBox = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Pixels within which ink counts as present (default: half the width of a line, at least one).",
            min=0,
            max=64,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write aligned photos, overlays and differences to this folder (PNG)."),
    ] = None,
    read: ClockOptions,
    run: WorkOptions,
) -> None:
    """Compare impressions of one printed block or plate: align the photos, and show what differs.

    Each photo is aligned with the reference by its match first, and then by its pixels. For each two photos, the result
    says what share of the ink of one is missing in the other, and, from how far lines are displaced, whether both were
    printed from one block or from two that are cut alike. Photos that do not match the reference are reported and left
    out. The comparison covers the area that matches, or the box in the reference.

    With {--clock} the order of printing is estimated, and the years if some impressions are dated, from breaks or
    widths of the lines that all have in common, with intervals of 90%. Decisions stored with the reference are used
    unless this command makes others; {--keep} alone removes them.
    """
    from time import perf_counter

    from retrieval.library.print_clock import PrintClock

    began = perf_counter()
    result: Impressions | PrintClock
    with run.open(collection) as opened:
        if read.clock is not None:
            result = opened.print_clock(
                photos,
                reference,
                box,
                clock=read.clock,
                decisions=read.decisions,
                keep=read.keep,
                progress=run.progress,
            )
        elif read.decisions is not None:
            raise CairnError("Decisions about the print clock need {--clock} breaks or widths.")
        else:
            result = opened.impressions(photos, reference, box, tolerance=tolerance, progress=run.progress)
    files = result.save(out) if out is not None else []
    facts = {"files": [str(path) for path in files], "seconds": round(perf_counter() - began, 3)}
    if run.print_json(collection, **(result.to_dict() | facts)):
        return
    _tell_clock(result) if isinstance(result, PrintClock) else _tell(result)
    if files:
        say(f"Written: {len(files)} files in {out}")


def _tell(result: "Impressions") -> None:
    """Print the differences, a line for each pair."""
    for pair in result.pairs:
        moved = "" if pair.displacement is None else f", lines displaced by {pair.displacement:.2f} of their width"
        say(f"{pair.first} and {pair.second}: {pair.verdict}{moved}")
        for name, other, share, breaks in (
            (pair.first, pair.second, pair.missing[0], pair.breaks[0]),
            (pair.second, pair.first, pair.missing[1], pair.breaks[1]),
        ):
            say(f"  {share:.1%} of the ink of {name} is not in {other}; breaks: {len(breaks)}")
    _tell_left_out(result.left_out)


def _tell_clock(result: "PrintClock") -> None:
    """Print the order of printing, a line for each photo, the earliest first."""
    for one in result.photos:
        known = "" if one.year is None else f", dated {one.year:g}{'' if one.counts else ', which does not count'}"
        read = "" if one.years is None else f", by the clock {one.read:.0f} ({one.years[0]:.0f} to {one.years[1]:.0f})"
        places = f"place {one.places[0]} to {one.places[1]}"
        say(f"{one.place}. {one.name}: {places}; breaks: {one.breaks}, width {one.line_width:.2f}{known}{read}")
    for place, (one, after) in enumerate(pairwise(result.photos)):
        say(f"{one.name} is earlier than {after.name}: {result.earlier[place, place + 1]:.0%}")
    _tell_left_out(result.left_out)


def _tell_left_out(photos: list[dict[str, str]]) -> None:
    for one in photos:
        say(f"{one['name']} is left out: {one['reason']}.")
