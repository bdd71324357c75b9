"""Exact search for the nearest candidates of features, among all of P(x) and N(x)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from index.parallel import one_thread, run
from learning.latent.described_patches import Described
from learning.mining.matches import MinedMatches

_BLOCK = 2_048  # features compared with all their candidates at a time: 200 MB with 8,000 candidates


@dataclass(frozen=True)
class Nearest:
    """The nearest candidates of each of some features, among all its candidates."""

    positive: NDArray[np.float32]  # (F,) float32: least squared distance to P(x)
    negative: NDArray[np.float32]  # (F,) float32: least squared distance to N(x); infinite if that is empty
    hardest: NDArray[np.int32]  # (F, k) int32: patches of the nearest of N(x), padded with -1

    @property
    def recall(self) -> float:
        """Share of the features whose nearest candidate is a positive (equation 15)."""
        return float((self.positive < self.negative).mean())


def candidates_of(matches: MinedMatches, features: NDArray[np.int64]) -> NDArray[np.int32]:
    """Patches (V,), ascending, of features and of all features of the second photos of their image pairs."""
    targets = [matches.targets(int(pair)) for pair in np.unique(matches.pair[features])]
    return np.unique(np.concatenate([matches.reference[features], *targets]))


def find_nearest(
    matches: MinedMatches,
    features: NDArray[np.int64],
    described: Described,
    projection: NDArray[np.float64] | None = None,
    *,
    count: int = 0,
    workers: int = 1,
) -> Nearest:
    """Compare features (ascending) with all candidates, projected by W (m, n); return `count` nearest negatives."""
    bounds = np.flatnonzero(np.diff(matches.pair[features], prepend=-1, append=-1))
    groups = [
        features[start : min(start + _BLOCK, last)]
        for first, last in pairwise(bounds.tolist())
        for start in range(first, last, _BLOCK)
    ]
    across = None if projection is None else projection.T.astype(np.float32)
    with one_thread():
        jobs = (partial(_nearest, matches, group, described, across, count) for group in groups)
        parts = list(run(jobs, workers, threads=True))
    return Nearest(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _nearest(
    matches: MinedMatches,
    features: NDArray[np.int64],
    described: Described,
    across: NDArray[np.float32] | None,
    count: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """Compare features, all of one image pair."""
    targets = matches.targets(int(matches.pair[features[0]]))

    def read(patches: NDArray[np.int32]) -> NDArray[np.float32]:
        part = described.take(patches)
        return part if across is None else part @ across

    near, far = read(matches.reference[features]), read(targets)
    table = near @ far.T
    table *= -2
    table += np.einsum("ij,ij->i", far, far)
    table += np.einsum("ij,ij->i", near, near)[:, None]
    positive = np.full(len(features), np.inf, np.float32)
    for starts, members in (
        (matches.positive_starts, matches.positive_patches),
        (matches.ambiguous_starts, matches.ambiguous_patches),
    ):
        lengths = starts[features + 1] - starts[features]
        owner = np.repeat(np.arange(len(features)), lengths)
        place = np.concatenate([np.zeros(0, np.int64), *_ranges(starts[features], lengths)])
        column = np.searchsorted(targets, members[place])
        if starts is matches.positive_starts:
            np.minimum.at(positive, owner, table[owner, column])
        table[owner, column] = np.inf
    negative = table.min(axis=1)
    hardest = np.full((len(features), count), -1, np.int32)
    some = min(count, len(targets))
    if some:
        order = np.argpartition(table, some - 1, axis=1)[:, :some]
        there = np.isfinite(np.take_along_axis(table, order, axis=1))
        hardest[:, :some] = np.where(there, targets[order], -1)
    return positive, negative, hardest


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (np.arange(start, start + length) for start, length in zip(starts.tolist(), lengths.tolist(), strict=True))
