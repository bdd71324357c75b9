"""Nearest-neighbour matching of unquantised descriptors."""

import numpy as np


def match_descriptors(query: np.ndarray, image: np.ndarray, ratio: float = 0.9) -> np.ndarray:
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
    closeness = query @ image.T
    closeness *= 2
    closeness -= np.einsum("nd,nd->n", query, query)[:, None]
    closeness -= np.einsum("md,md->m", image, image)  # minus the squared distance
    rows = np.arange(len(query))
    nearest = closeness.argmax(axis=1)
    mutual = closeness.argmax(axis=0)[nearest] == rows
    first = np.maximum(-closeness[rows, nearest], 0)
    closeness[rows, nearest] = -np.inf
    second = np.maximum(-closeness.max(axis=1), 0)
    # Strictly nearer: of two that are both the same as the query's, neither is its match.
    chosen = np.nonzero(mutual & (first < ratio * ratio * second))[0]
    return np.stack([chosen, nearest[chosen]], axis=1).astype(np.int32)
