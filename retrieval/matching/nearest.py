"""Nearest-neighbour matching of unquantised descriptors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CELLS = 1 << 19
"""Distances that are worked on at a time: 2 MB, which stay in the processor's cache."""

ROWS = 128
"""Features of the query that are compared at a time, at least: the product of fewer is slower for each."""


@dataclass(frozen=True)
class PreparedQuery:
    """Descriptors of a query, ready to be matched with those of many photos."""

    # (N, D + 2) float32: rows [2q, 1, -q·q]: the first factor of the product that computes distances
    left: NDArray[np.float32]


def prepare_query(query: NDArray[np.floating]) -> PreparedQuery:
    """Prepare the descriptors (N, D) of a query."""
    rows = query.astype(np.float32)
    left = np.empty((len(rows), rows.shape[1] + 2), np.float32)
    np.multiply(rows, 2, out=left[:, :-2])
    left[:, -2] = 1
    left[:, -1] = -np.einsum("nd,nd->n", rows, rows)
    return PreparedQuery(left)


def match_descriptors(
    query: NDArray[np.floating] | PreparedQuery, image: NDArray[np.floating], ratio: float = 0.9
) -> NDArray[np.int32]:
    """Match descriptors (N, D) and (M, D) that are each other's nearest, and clearly nearer than the second nearest:
    features (K, 2) of query and photo, each at most once.

    `query`: descriptors of the query, prepared if there are many photos to match. `ratio`: largest ratio of the
    distances to the nearest and the second nearest of the photo (Lowe, IJCV 2004, section 7.1).
    """
    left = (query if isinstance(query, PreparedQuery) else prepare_query(query)).left
    if len(left) == 0 or len(image) < 2:
        return np.zeros((0, 2), np.int32)
    right = _right(image)
    nearest = np.empty(len(left), np.intp)
    first, second = np.empty((2, len(left)), np.float32)
    best = np.full(len(image), -np.inf, np.float32)  # of each feature of the photo, over the query's
    step = max(ROWS, CELLS // len(image))
    cells = np.empty((min(step, len(left)), len(image)), np.float32)
    for start in range(0, len(left), step):
        rows = slice(start, start + step)
        closeness = np.matmul(left[rows], right, out=cells[: len(left[rows])])
        there = np.arange(len(closeness)), closeness.argmax(axis=1)
        nearest[rows], first[rows] = there[1], closeness[there]
        np.maximum(best, closeness.max(axis=0), out=best)
        closeness[there] = -np.inf
        second[rows] = closeness.max(axis=1)
    # Strictly nearer: if two descriptors equal the query's, neither is its match.
    clear = np.maximum(-first, 0) < ratio * ratio * np.maximum(-second, 0)
    chosen = np.flatnonzero(clear & (first == best[nearest]))
    # If two of the query are equally near to one of the photo, the first is matched.
    chosen = np.sort(chosen[np.unique(nearest[chosen], return_index=True)[1]])
    return np.stack([chosen, nearest[chosen]], axis=1).astype(np.int32)


def _right(image: NDArray[np.floating]) -> NDArray[np.float32]:
    """Columns [d, -d·d, 1]: with the query's rows, minus the squared distances as one product."""
    rows = image.astype(np.float32)
    right = np.empty((rows.shape[1] + 2, len(rows)), np.float32)  # with contiguous rows, which makes the product faster
    right[:-2] = rows.T
    right[-2] = -np.einsum("md,md->m", rows, rows)
    right[-1] = 1
    return right
