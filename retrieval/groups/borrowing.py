"""Borrowed features: those of linked photos that map into a photo, and that it lacks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class BorrowOptions:
    """Options of borrowing features."""

    inliers: int = 20  # fewest of a link that features are borrowed through
    neighbours: int = 10  # photos that one borrows from, at most: those with most inliers
    share: float = 0.25  # most borrowed features of a photo, as a part of its own
    # Features of one word that lie so near each other are one: the tolerance of verification, as a part of the photo's
    # longer side.
    tolerance: float = 0.025


@dataclass(frozen=True)
class Located:
    """Features by word and place."""

    words: NDArray[np.integer]  # (n,)
    centres: NDArray[np.floating]  # (n, 2) float: in units of the longer side of the photo that they are placed in


def borrow(
    own: Located, neighbours: Sequence[Located], size: tuple[float, float], options: BorrowOptions
) -> list[NDArray[np.int64]]:
    """Choose the features, ascending, that a photo borrows from each neighbour: those that map strictly inside it
    (spatial database-side feature augmentation; Arandjelović & Zisserman, CVPR 2012, section 5). Beyond the paper,
    features that the photo or a better neighbour has at the same place are left out, and those that most neighbours
    agree on come first.

    `size`: width and height of the photo, in units of its longer side.
    """
    from scipy.spatial import cKDTree

    inside = [np.flatnonzero(((one.centres > 0) & (one.centres < size)).all(axis=1)) for one in neighbours]
    which = np.repeat(np.arange(len(neighbours)), [len(rows) for rows in inside])
    rows = np.concatenate([np.zeros(0, np.int64), *inside])
    # Words are a third axis, on which different words are farther apart than the radius.
    apart = 4 * options.tolerance
    points = np.concatenate(
        [np.zeros((0, 3)), *(_points(one, apart)[some] for one, some in zip(neighbours, inside, strict=True))]
    )
    if len(own.words) and len(points):
        distances, _ = cKDTree(_points(own, apart)).query(points, distance_upper_bound=options.tolerance)
        lacking = np.isinf(distances)
        which, rows, points = which[lacking], rows[lacking], points[lacking]
    pairs = (
        cKDTree(points).query_pairs(options.tolerance, output_type="ndarray") if len(points) else np.zeros((0, 2), int)
    )
    pairs = pairs[which[pairs[:, 0]] != which[pairs[:, 1]]]  # first < second, and so neighbours ascend
    agreeing = np.unique(
        np.concatenate(
            [pairs[:, 0] * len(neighbours) + which[pairs[:, 1]], pairs[:, 1] * len(neighbours) + which[pairs[:, 0]]]
        )
    )
    support = np.bincount(agreeing // max(len(neighbours), 1), minlength=len(rows))
    first = np.ones(len(rows), bool)
    first[pairs[:, 1]] = False
    # Sorting is stable: of equal support the better neighbour's come first.
    order = np.argsort(-support, kind="stable")
    order = order[first[order]][: int(options.share * len(own.words))]
    return [np.sort(rows[order[which[order] == number]]) for number in range(len(neighbours))]


def _points(features: Located, apart: float) -> NDArray[np.float64]:
    """Features as points (n, 3): place and word."""
    return np.column_stack([features.centres, features.words * apart]).astype(np.float64)
