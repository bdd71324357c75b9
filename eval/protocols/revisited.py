"""Ground truths of Revisited Oxford and Paris, ``gnd_r*.pkl``, as published (Radenović et al., CVPR 2018)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eval.protocols.pickles import read_pickle
from index.errors import CairnError
from index.text import shown
from retrieval.photos.listing import PHOTO_SUFFIXES

LABELS = ("easy", "hard", "junk")
_MOST_LISTED = 10_000_000  # most indices in all lists of a file


@dataclass(frozen=True)
class RevisitedQuery:
    """One query: photos by their stems."""

    stem: str  # the query photo, not in the database
    box: tuple[float, float, float, float]  # x0, y0, x1, y1 in pixels: the query is this crop
    # photos of the database: easy, hard, and ignored ones
    easy: frozenset[str]
    hard: frozenset[str]
    junk: frozenset[str]


@dataclass(frozen=True)
class Revisited:
    """A ground truth: its queries, and the stems of the photos of the database."""

    queries: tuple[RevisitedQuery, ...]
    database: tuple[str, ...]


def read_revisited(path: Path) -> Revisited:
    """Read a ground truth: a dict of ``imlist``, ``qimlist`` and ``gnd``, a dict of lists of indices for each query."""
    contents = read_pickle(path)
    if not isinstance(contents, dict) or not {"gnd", "imlist", "qimlist"} <= contents.keys():
        raise _wrong(path, "it is not a dict of gnd, imlist and qimlist")
    database = _names(path, contents["imlist"], "imlist")
    query_names = _names(path, contents["qimlist"], "qimlist")
    entries = _listed(contents["gnd"])
    if entries is None or len(entries) != len(query_names):
        raise _wrong(path, "gnd does not have one entry a name of qimlist")
    if not entries:
        raise _wrong(path, "it has no query")
    if len(set(database)) < len(database):
        raise _wrong(path, "imlist names a photo twice")
    places = sum(
        len(_listed(entry.get(label, ())) or ()) for entry in entries if isinstance(entry, dict) for label in LABELS
    )
    if places > _MOST_LISTED:
        raise _wrong(path, f"it lists {places} places")
    return Revisited(
        tuple(_query(path, stem, entry, database) for stem, entry in zip(query_names, entries, strict=True)), database
    )


def _query(path: Path, stem: str, entry: Any, database: Sequence[str]) -> RevisitedQuery:
    if not isinstance(entry, dict) or not {"bbx", "easy", "hard"} <= entry.keys():
        raise _wrong(path, f"the query {shown(stem)} has no bbx, easy and hard, as a ground truth of Revisited has")
    lists = {label: frozenset(_photos(path, stem, entry.get(label, ()), database)) for label in LABELS}
    for one, other in (("easy", "hard"), ("easy", "junk"), ("hard", "junk")):
        if both := lists[one] & lists[other]:
            raise _wrong(path, f"the query {shown(stem)} lists {shown(min(both))} as {one} and as {other}")
    return RevisitedQuery(stem, _box(path, stem, entry["bbx"]), **lists)


def _photos(path: Path, stem: str, places: Any, database: Sequence[str]) -> list[str]:
    listed = _listed(places)
    if listed is None or not all(_is_whole(place) and 0 <= place < len(database) for place in listed):
        raise _wrong(path, f"the query {shown(stem)} has what is no place of imlist")
    return [database[int(place)] for place in listed]


def _box(path: Path, stem: str, value: Any) -> tuple[float, float, float, float]:
    numbers = _listed(value)
    if numbers is None or len(numbers) != 4 or not all(_is_number(one) for one in numbers):
        raise _wrong(path, f"the box of the query {shown(stem)} is not four numbers")
    x0, y0, x1, y1 = (float(one) for one in numbers)
    x0, x1 = sorted((x0, x1))
    y0, y1 = sorted((y0, y1))
    if not all(map(math.isfinite, (x0, y0, x1, y1))) or x0 == x1 or y0 == y1:
        raise _wrong(path, f"the box of the query {shown(stem)} has no area")
    return x0, y0, x1, y1


def _names(path: Path, value: Any, what: str) -> tuple[str, ...]:
    listed = _listed(value)
    if listed is None:
        raise _wrong(path, f"{what} is not a list")
    names = [one.decode("latin-1") if isinstance(one, bytes) else one for one in listed]
    if not all(isinstance(one, str) and one and one.isprintable() for one in names):
        raise _wrong(path, f"{what} holds what is no name")
    return tuple(_stem(name) for name in names)


def _stem(name: str) -> str:
    """Name of a photo without folder and ending; the published names have neither."""
    last = Path(name)
    return last.stem if last.suffix.lower() in PHOTO_SUFFIXES else last.name


def _listed(value: Any) -> list[Any] | None:
    """A list, a tuple, or an array with one axis longer than 1 at most, as a list; None for anything else."""
    if isinstance(value, np.ndarray):
        return list(value.reshape(-1).tolist()) if value.size == max(value.shape, default=0) else None
    return list(value) if isinstance(value, list | tuple) else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _wrong(path: Path, why: str) -> CairnError:
    return CairnError(f"{str(path)!r} is not a ground truth of Revisited: {why}.")
