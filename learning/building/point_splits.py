"""Divide points among training, validation and test, and draw each split's pairs."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 50  # of drawing non-matches, before giving up


def split_points(points: NDArray[np.int64], sizes: Sequence[int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Divide points (N,) of patches at random, in proportion to the splits' sizes; return each patch's split (N,)."""
    distinct, of_patch = np.unique(points, return_inverse=True)
    bounds = np.rint(np.cumsum(sizes) / np.sum(sizes) * len(distinct)).astype(np.int64)
    ranks = rng.permutation(len(distinct))
    return np.searchsorted(bounds, ranks, side="right")[of_patch]


def draw_matches(matches: NDArray[np.int64], wanted: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the wanted number of the matches (M, 2), or take all."""
    return matches[np.sort(rng.permutation(len(matches))[:wanted])]


def draw_non_matches(
    candidates: NDArray[np.int64],
    groups: NDArray[np.int64],
    different: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]],
    wanted: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw distinct pairs (M, 2) of `candidates` of one group that do not match; fewer if hardly any are left.

    `different` returns the mask (A,) of non-matches among pairs of numbers (A,), (A,).
    """
    candidates = candidates[np.argsort(groups[candidates], kind="stable")]
    _, start, of_candidate, count = np.unique(
        groups[candidates], return_index=True, return_inverse=True, return_counts=True
    )
    drawn = np.zeros((0, 2), np.int64)
    if not len(candidates):
        return drawn
    for _ in range(_ROUNDS):
        if len(drawn) >= wanted:
            break
        # A few more than missing, as some will be rejected.
        one = rng.integers(len(candidates), size=int(1.2 * (wanted - len(drawn))) + 10)
        group = of_candidate[one]
        two = start[group] + rng.integers(count[group])
        pairs = np.stack([candidates[one], candidates[two]], axis=1)
        pairs = np.concatenate([drawn, pairs[different(pairs[:, 0], pairs[:, 1])]])
        ordered = np.sort(pairs, axis=1)
        # np.unique keeps the first of each, so earlier draws stay; its sorted order would not be random.
        _, first = np.unique(ordered[:, 0] * len(groups) + ordered[:, 1], return_index=True)
        drawn = pairs[np.sort(first)]
    return drawn[:wanted]
