"""Nearest-neighbour matching of unquantised descriptors."""

import numpy as np
from numpy.typing import NDArray

BLOCK = 256
"""Features of the query that are compared at a time: their distances to a photo's stay in the processor's cache."""


def match_descriptors(
    query: NDArray[np.floating], image: NDArray[np.floating], ratio: float = 0.9
) -> NDArray[np.int32]:
    """Match descriptors that are each other's nearest, and clearly nearer than the second nearest.

    Parameters
    ----------
    query : ndarray, shape (N, D)
        Descriptors of the query.
    image : ndarray, shape (M, D)
        Descriptors of the photo.
    ratio : float
        Largest ratio of the distances to the nearest and the second nearest of the photo (Lowe, IJCV 2004,
        section 7.1).

    Returns
    -------
    ndarray, shape (K, 2), int32
        Feature of the query, feature of the photo; each at most once.
    """
    if len(query) == 0 or len(image) < 2:
        return np.zeros((0, 2), np.int32)
    query, image = query.astype(np.float32), image.astype(np.float32)
    # Minus the squared distance as one product: [2q, 1, -q·q] [d, -d·d, 1]ᵀ.
    ones = np.ones((max(len(query), len(image)), 1), np.float32)
    left = np.hstack([2 * query, ones[: len(query)], -np.einsum("nd,nd->n", query, query)[:, None]])
    right = np.hstack([image, -np.einsum("md,md->m", image, image)[:, None], ones[: len(image)]]).T
    nearest = np.empty(len(query), np.intp)
    first, second = np.empty((2, len(query)), np.float32)
    best = np.full(len(image), -np.inf, np.float32)  # of each feature of the photo, over the query's
    for start in range(0, len(query), BLOCK):
        rows = slice(start, start + BLOCK)
        closeness = left[rows] @ right
        there = np.arange(len(closeness)), closeness.argmax(axis=1)
        nearest[rows], first[rows] = there[1], closeness[there]
        np.maximum(best, closeness.max(axis=0), out=best)
        closeness[there] = -np.inf
        second[rows] = closeness.max(axis=1)
    # Strictly nearer: of two that are both the same as the query's, neither is its match.
    clear = np.maximum(-first, 0) < ratio * ratio * np.maximum(-second, 0)
    chosen = np.flatnonzero(clear & (first == best[nearest]))
    # Two of the query that are as near to one of the photo: the first has it.
    chosen = np.sort(chosen[np.unique(nearest[chosen], return_index=True)[1]])
    return np.stack([chosen, nearest[chosen]], axis=1).astype(np.int32)
