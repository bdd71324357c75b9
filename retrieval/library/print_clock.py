"""The print clock of `import cairn`: in which order impressions of one block were printed, and when."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from index.attributes import some_of
from index.docstrings import documented
from index.errors import CairnError
from index.reports import Report
from retrieval.catalogue.metadata_store import values_by_number
from retrieval.catalogue.schema import FROM_FILE, Setting
from retrieval.catalogue.settings import keep_setting, setting_of
from retrieval.collection.collection import Collection
from retrieval.impressions.clock import (
    CLOCKS,
    LineReadings,
    calibrate_years,
    earlier_probabilities,
    interval,
    overrule,
    read_lines,
    sample_clock,
)
from retrieval.impressions.frames import AlignedImpression, Frame
from retrieval.impressions.pictures import draw_lines
from retrieval.library.impressions import AlignedPhotos, Impression, save_files
from retrieval.library.motifs import table_text

CLOCK_COLUMNS = (
    "place",
    "least_place",
    "most_place",
    "photo",
    "breaks",
    "line_width",
    "year",
    "counts",
    "read",
    "from",
    "to",
)
"""Columns of a table of the clock."""
_TAKEN = "taken"
_MOST_SAID = 500  # most regions, pairs and photos in decisions


@documented
@dataclass(frozen=True)
class ClockDecisions:
    """Decisions about the print clock of some impressions, given by number or name."""

    clock: Annotated[str, "``breaks``, of woodcuts, or ``widths`` of lines, of engravings."] = CLOCKS[0]
    leave_out: Annotated[Sequence[int | str], "Impressions that are not read."] = ()
    undated: Annotated[Sequence[int | str], "Impressions whose imported date does not count."] = ()
    dated: Annotated[Sequence[int | str], "Impressions whose date counts although it comes from the photo's file."] = ()
    regions: Annotated[
        Sequence[Sequence[float]], "Boxes that are not read: x0, y0, x1, y1 in pixels of the upright reference."
    ] = ()
    before: Annotated[
        Sequence[Sequence[int | str]],
        "Pairs of impressions; the first was printed before the second, whatever the clock says.",
    ] = ()

    def __post_init__(self) -> None:
        if self.clock not in CLOCKS:
            raise CairnError("A print clock is {clocks}, not {clock}.", clocks=" or ".join(CLOCKS), clock=self.clock)
        decisions = (self.leave_out, self.undated, self.dated, self.regions, self.before)
        if any(len(some) > _MOST_SAID for some in decisions):
            raise CairnError("There are too many decisions about these impressions: {most} at most.", most=_MOST_SAID)
        for box in self.regions:
            if len(box) != 4 or not all(map(math.isfinite, box)) or not (box[0] < box[2] and box[1] < box[3]):
                raise CairnError("A region that is left out is four numbers x0, y0, x1, y1.")
        if any(len(pair) != 2 or isinstance(pair, str) for pair in self.before):
            raise CairnError("An order that is overruled names two impressions, the earlier first.")


@dataclass(frozen=True)
class ClockReading(Report):
    """The print clock's result for an impression."""

    name: Annotated[str, "Of the photo."]
    number: Annotated[int | None, "Its number in the collection."]
    breaks: Annotated[int, "Of the lines that all impressions have."]
    line_width: Annotated[float, "Their mean width, pixels of the frame."]
    place: Annotated[int, "In the order of printing, from 1."]
    places: Annotated[tuple[int, int], "Interval that holds its place with a probability of 90%."]
    year: Annotated[float | None, "Of its date in the catalogue."]
    counts: Annotated[bool, "Whether that date calibrates the clock."]
    from_file: Annotated[
        bool, "Whether it comes from the photo's file: such dates count only by `ClockDecisions.dated`."
    ]
    read: Annotated[
        float | None,
        "Year that the clock says: None where no two impressions of different years are dated, or they contradict it.",
    ]
    years: Annotated[tuple[float, float] | None, "Interval that holds it with a probability of 90%."]


@documented
@dataclass(frozen=True, eq=False)
class PrintClock:
    """The order in which impressions of one block or plate were printed, estimated from their wear."""

    photos: Annotated[list[ClockReading], "The earliest first."]
    earlier: Annotated[
        NDArray[np.float64],
        "(N, N)",
        "Probability that the photo of a row was printed before that of a column.",
    ] = field(repr=False)
    decisions: Annotated[ClockDecisions, "That were followed."]
    left_out: Annotated[list[dict[str, str]], "Name and reason of photos that were not read."]
    box: Annotated[tuple[float, float, float, float], "Of the frame, see `Impressions`."]
    size: Annotated[tuple[int, int], "Its width and height in pixels."]
    _readings: LineReadings = field(repr=False)
    _region: NDArray[np.bool_] = field(repr=False)
    _aligned: list[AlignedImpression] = field(repr=False)

    def picture(self, place: int) -> NDArray[np.uint8]:
        """Draw one of `photos`, from 0: the lines that were taken in blue, its breaks ringed, what is not read in grey.

        Parameters
        ----------
        place : int

        Returns
        -------
        ndarray, shape (H, W, 3), uint8
            RGB.
        """
        readings = self._readings
        broken = readings.places[readings.broken[:, place]]
        return draw_lines(self._aligned[place], self._region, readings.lines, broken, readings.width)

    def to_dict(self) -> dict[str, Any]:
        """Return it as the command prints it."""
        breaks = [
            {"x": round(float(x), 1), "y": round(float(y), 1), "broken": np.flatnonzero(broken).tolist()}
            for (x, y), broken in zip(self._readings.places, self._readings.broken, strict=True)
        ]
        return {
            **some_of(self, "box", "size"),
            "decisions": asdict(self.decisions),
            "photos": [one.to_dict() for one in self.photos],
            "earlier": np.round(self.earlier, 4).tolist(),
            "breaks": breaks,
            "left_out": self.left_out,
        }

    def rows(self) -> list[Sequence[str]]:
        """Return a table: `CLOCK_COLUMNS`, then the probability that a photo is earlier than each, in their order."""
        table: list[Sequence[str]] = [(*CLOCK_COLUMNS, *(f"before {one.name}" for one in self.photos))]
        for one, earlier in zip(self.photos, self.earlier, strict=True):
            counts = None if one.year is None else "yes" if one.counts else "no"
            facts = (one.place, *one.places, one.name, one.breaks, one.line_width, one.year, counts, one.read)
            cells = (*facts, *(one.years or (None, None)), *(round(float(value), 4) for value in earlier))
            table.append(["" if cell is None else str(cell) for cell in cells])
        return table

    def save(self, folder: str | Path) -> list[Path]:
        """Write ``clock.csv``, ``clock.json`` and pictures ``lines-1.png``, …, in the order of printing, into a folder.

        Parameters
        ----------
        folder : path-like
            It is created if missing; existing files of these names are replaced.

        Returns
        -------
        list of Path
            What was written.

        Raises
        ------
        CairnError
            It cannot be written there.
        """
        pictures = {f"lines-{place + 1}.png": self.picture(place) for place in range(len(self.photos))}
        table = table_text(self.rows()).encode()
        return save_files(folder, pictures, "clock.json", self.to_dict(), **{"clock.csv": table})


class PhotoDate(NamedTuple):
    """What the catalogue says when a photo, or what it shows, was made."""

    taken: str | None  # such as 1497-05
    from_file: bool = False  # not imported or typed in


def read_clock(found: AlignedPhotos, decisions: ClockDecisions, dates: Mapping[int, PhotoDate]) -> PrintClock:
    """Read the print clock of photos in one frame, with their dates by numbers; decisions about other photos are
    ignored.

    Raises CairnError if fewer than two are left, they have too few lines in common, or decisions contradict each other.
    """
    every = range(len(found.photos))
    out = {place for one in decisions.leave_out for place in _meant(found.photos, one)}
    places = [place for place in every if place not in out]
    if len(places) < 2:
        raise CairnError("A print clock needs at least two impressions: leave fewer out.")
    aligned = [found.aligned[place] for place in places]
    region = np.logical_and.reduce([one.region for one in aligned]) & ~_boxes(found.frame, decisions.regions)
    readings = read_lines([one.ink for one in aligned], region)
    shown, samples = sample_clock(readings, decisions.clock)
    before = [
        (places.index(one), places.index(other))
        for first, second in decisions.before
        for one in _meant(found.photos, first)
        for other in _meant(found.photos, second)
        if one in places and other in places
    ]
    samples = overrule(samples, before)
    known = _known_years(found.photos, decisions, dates)
    earlier = earlier_probabilities(samples)
    order = np.argsort(-earlier.sum(axis=1), kind="stable")
    ranks = interval(1 + samples.argsort(axis=1).argsort(axis=1)).T
    calibrated = calibrate_years(shown, samples, [known[place][0] if known[place][1] else None for place in places])
    ordered = readings.take(order)
    breaks, widths = ordered.broken.sum(axis=0), ordered.values("widths")
    photos = []
    for place, which in enumerate(order):
        one, read = found.photos[places[which]], None if calibrated is None else calibrated[:, which]
        year, counts, from_file = known[places[which]]
        low, high = (math.floor(ranks[which, 0]), math.ceil(ranks[which, 1]))
        facts = (one.name, one.number, int(breaks[place]), round(float(widths[place]), 3), place + 1)
        read_year = None if read is None else round(float(np.median(read)), 1)
        held = None if read is None else tuple(round(float(year), 1) for year in interval(read[:, None])[:, 0])
        photos.append(ClockReading(*facts, (low, high), year, counts, from_file, read_year, held))  # type: ignore[arg-type]
    left_out = found.left_out + [
        {"name": found.photos[place].name, "reason": "it was left out by hand"} for place in sorted(out)
    ]
    box, size = found.frame.box, found.frame.size
    shown_photos = [aligned[which] for which in order]
    return PrintClock(
        photos, earlier[np.ix_(order, order)], decisions, left_out, box, size, ordered, region, shown_photos
    )


def dates_of(collection: Collection, found: AlignedPhotos) -> dict[int, PhotoDate]:
    """Dates of photos in the catalogue, by their numbers."""
    numbers = [one.number for one in found.photos if one.number is not None]
    stored = collection.catalogue.read(values_by_number, numbers, [_TAKEN])
    return {
        number: PhotoDate(texts[0], source == FROM_FILE)
        for number, values in stored.items()
        for (source, _), texts in sorted(values.items())  # imported ones last, as they override those of files
    }


def clock_key(number: int | None, box: Sequence[float] | None) -> str | None:
    """Key under which decisions about a reference, or a box in it, are stored; None outside the collection."""
    within = "" if box is None else "." + ",".join(str(round(value)) for value in box)
    return None if number is None else f"cairn.print_clock.{number}{within}"


def kept_decisions(session: Session, key: str | None) -> ClockDecisions:
    """Return the decisions stored under a key; the defaults if there are none, or if they are damaged."""
    text = setting_of(session, key) if key is not None else None
    try:
        return decisions_of(json.loads(text)) if text else ClockDecisions()
    except (CairnError, TypeError, ValueError):
        return ClockDecisions()


def decisions_of(values: Any) -> ClockDecisions:
    """Make decisions from the result of `to_dict`; raises CairnError, TypeError or ValueError if it is not valid."""
    if not isinstance(values, Mapping):
        raise TypeError("decisions are an object")
    leave_out, undated, dated = (tuple(values.get(name, ())) for name in ("leave_out", "undated", "dated"))
    regions, before = (tuple(map(tuple, values.get(name, ()))) for name in ("regions", "before"))
    return ClockDecisions(str(values.get("clock", CLOCKS[0])), leave_out, undated, dated, regions, before)


def named_in(found: AlignedPhotos, decisions: ClockDecisions) -> ClockDecisions:
    """Replace the names of impressions in decisions by their numbers, as names may change."""
    numbers: dict[int | str, int | str] = {
        one.name: one.number if one.number is not None else one.name for one in found.photos
    }
    known = {*numbers.values(), *numbers, *(one["name"] for one in found.left_out)}

    def number(one: int | str) -> int | str:
        if one not in known:
            raise CairnError("{name} is not among the impressions that are compared.", name=str(one))
        return numbers.get(one, one)

    return ClockDecisions(
        decisions.clock,
        tuple(map(number, decisions.leave_out)),
        tuple(map(number, decisions.undated)),
        tuple(map(number, decisions.dated)),
        tuple(map(tuple, decisions.regions)),
        tuple((number(first), number(second)) for first, second in decisions.before),
    )


def keep_decisions(session: Session, key: str | None, decisions: ClockDecisions) -> None:
    """Store decisions under a key; the defaults are not stored."""
    if key is None:
        raise CairnError(
            "Decisions are stored with a reference photo that is in the collection: choose one of its photos."
        )
    if decisions == ClockDecisions():
        session.execute(sa.delete(Setting).where(Setting.key == key))
    else:
        keep_setting(session, key, json.dumps(asdict(decisions)))


def _meant(photos: Sequence[Impression], one: int | str) -> list[int]:
    return [place for place, photo in enumerate(photos) if one in (photo.number, photo.name)]


def _known_years(
    photos: Sequence[Impression], decisions: ClockDecisions, dates: Mapping[int, PhotoDate]
) -> list[tuple[float | None, bool, bool]]:
    """Of each photo the year of its date, whether it counts, and whether it comes from the file."""
    undated, dated = (
        {place for one in some for place in _meant(photos, one)} for some in (decisions.undated, decisions.dated)
    )
    known = []
    for place, photo in enumerate(photos):
        said = PhotoDate(None) if photo.number is None else dates.get(photo.number, PhotoDate(None))
        year = _year(said.taken)
        counts = year is not None and place not in undated and (place in dated or not said.from_file)
        known.append((year, counts, said.from_file))
    return known


def _boxes(frame: Frame, boxes: Iterable[Sequence[float]]) -> NDArray[np.bool_]:
    """Pixels (H, W) of a frame within boxes in pixels of the reference."""
    mask = np.zeros(frame.size[::-1], bool)
    scale, off = np.diag(frame.matrix)[:2], frame.matrix[:2, 2]
    for box in boxes:
        low, high = (np.clip((np.array(box[side : side + 2]) - off) / scale, 0, frame.size) for side in (0, 2))
        (x0, y0), (x1, y1) = np.floor(low).astype(int), np.ceil(high).astype(int) + 1
        mask[y0:y1, x0:x1] = True
    return mask


def _year(taken: str | None) -> float | None:
    """Year of a date such as 1497, 1497-05 or 1497-05-17, with its month as a part of it."""
    try:
        year, *rest = (taken or "").partition("T")[0].split("-")
        return int(year) + (int(rest[0]) - 1) / 12 if rest else float(int(year))
    except ValueError:
        return None
