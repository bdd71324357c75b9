"""How the answers of several parts of a collection become that of all, exactly."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.search.scoreboard import Candidates

Counted = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Distinct values, ascending, and how often each is there."""


def merge_candidates(parts: Sequence[Candidates], views: int) -> Candidates:
    """Put the candidates of several parts together, by ascending number."""
    numbers = np.concatenate([np.zeros(0, np.uint32), *(part.numbers for part in parts)])
    table = np.concatenate([np.zeros((views, 0), np.float32), *(part.table for part in parts)], axis=1)
    order = np.argsort(numbers)
    return Candidates(numbers[order], table[:, order])


def merge_lowest(parts: Sequence[Candidates], most: int) -> list[int]:
    """Numbers, ascending, of the lowest scores of several parts, from the lowest of each: see `lowest`."""
    merged = merge_candidates(parts, 1)
    first = np.lexsort((merged.numbers, merged.table[0]))[:most]
    numbers: list[int] = np.sort(merged.numbers[first]).tolist()
    return numbers


def count_high(scores: NDArray[np.float32]) -> Counted:
    """Count the upper 16 bits of the scores above 0: as numbers they are in the order of the scores."""
    counts = np.bincount(_bits(scores) >> 16)
    values = np.flatnonzero(counts)
    return values, counts[values]


def count_low(scores: NDArray[np.float32], high: int) -> Counted:
    """Count the lower 16 bits of the scores above 0 that have some upper ones."""
    bits = _bits(scores)
    counts = np.bincount(bits[bits >> 16 == high] & 0xFFFF)
    values = np.flatnonzero(counts)
    return values, counts[values]


def merge_counted(parts: Sequence[Counted]) -> Counted:
    """Sum the counts of several parts."""
    values = np.concatenate([np.zeros(0, np.int64), *(one for one, _ in parts)])
    counts = np.concatenate([np.zeros(0, np.int64), *(one for _, one in parts)])
    distinct, which = np.unique(values, return_inverse=True)
    return distinct, np.bincount(which, counts, minlength=len(distinct)).astype(np.int64)


def middle(high: Counted) -> list[tuple[int, int]]:
    """Locate the one or two scores whose mean is the median: upper 16 bits, and ranks among scores with these."""
    values, counts = high
    total = int(counts.sum())
    if not total:
        return []
    ends = np.cumsum(counts)
    places = []
    for rank in sorted({(total - 1) // 2, total // 2}):
        place = int(np.searchsorted(ends, rank, side="right"))
        places.append((int(values[place]), int(rank - (ends[place] - counts[place]))))
    return places


def median(places: Sequence[tuple[int, int]], low: dict[int, Counted]) -> float:
    """Return the median of the scores above 0 of all parts; 0 if all are 0."""
    if not places:
        return 0.0
    bits = []
    for high, rank in places:
        values, counts = low[high]
        bits.append((high << 16) + int(values[np.searchsorted(np.cumsum(counts), rank, side="right")]))
    return float(np.median(np.array(bits, np.uint32).view(np.float32)))


def _bits(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    return np.ascontiguousarray(scores[scores > 0]).view(np.uint32).astype(np.int64)
