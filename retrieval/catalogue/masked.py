"""Photos with masked printed text: stored as one setting, as nearly all pages of a book are among them."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.photos import names_of
from retrieval.catalogue.schema import INDEXED, ImageRow
from retrieval.catalogue.settings import keep_setting, setting_of

KEY = "text.masked"
"""Setting with the numbers of the photos, ascending, as ranges: ``3-7,9``."""

_Ranges = list[tuple[int, int]]


def note_masked(session: Session, numbers: Iterable[int]) -> None:
    """Add photos with masked text to the stored ones."""
    merged: _Ranges = []
    for first, last in sorted({*_ranges(session), *((one, one) for one in numbers)}):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    text = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in merged)
    keep_setting(session, KEY, text)


def count_masked(session: Session) -> int:
    """Count the photos of the collection with masked text."""
    ranges = _ranges(session)
    return len(_within(session.scalars(_indexed()), ranges)) if ranges else 0


def names_of_text_alone(session: Session) -> list[str]:
    """Names of photos with only text, in order."""
    numbers = _within(session.scalars(_indexed().where(ImageRow.features == 0)), _ranges(session))
    return sorted(names_of(session, numbers).values())


def _indexed() -> sa.Select[Any]:
    return sa.select(ImageRow.number).where(ImageRow.state == INDEXED)


def _within(numbers: Iterable[int], ranges: _Ranges) -> list[int]:
    firsts, lasts = [first for first, _ in ranges], [-1, *(last for _, last in ranges)]
    return [one for one in numbers if one <= lasts[bisect_right(firsts, one)]]


def _ranges(session: Session) -> _Ranges:
    """First and last numbers, ascending; empty for a text that `note_masked` did not write."""
    ranges = []
    for part in (setting_of(session, KEY) or "").split(","):
        first, _, last = part.partition("-")
        ends = first, last or first
        if all(one.isascii() and one.isdigit() and len(one) < 19 for one in ends):
            ranges.append((int(ends[0]), int(ends[1])))
    is_sound = all(first <= last for first, last in ranges) and all(
        one[1] < next_[0] for one, next_ in pairwise(ranges)
    )
    return ranges if is_sound else []
