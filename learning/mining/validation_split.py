"""Split image pairs into training and validation, so that few photos are in both."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from index.errors import CairnError


def split_image_pairs(
    pairs: NDArray[np.integer], sizes: NDArray[np.number], share: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split image pairs (K, 2) with weights `sizes` (K,) into training and a `share` for validation, neither empty.

    Connected photos go to one side. Only if one group has nearly all pairs, it is divided: photos grown from one of
    them, with the pairs among these, are for validation, and pairs across are for training.
    """
    if len(pairs) < 2:
        raise CairnError(
            f"Validation is by image pair, and {len(pairs)} was mined: mine a source with more photos that overlap."
        )
    if not 0 < share < 1:
        raise ValueError(f"the share for validation must lie between 0 and 1, and is {share}")
    photos = int(pairs.max()) + 1
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(photos, photos))
    of_photo = connected_components(links, directed=False)[1]
    groups, of_pair = np.unique(of_photo[pairs[:, 0]], return_inverse=True)
    weight = np.bincount(of_pair, weights=sizes)
    wanted, total = share * weight.sum(), weight.sum()

    chosen = np.zeros(len(groups), bool)
    for group in rng.permutation(len(groups)):
        if weight[chosen].sum() + weight[group] <= wanted:
            chosen[group] = True
    held_out = chosen[of_pair]
    if weight[chosen].sum() < wanted / 2:
        # All remaining groups are larger than the missing amount.
        remaining = np.flatnonzero(~chosen)
        smallest, largest = remaining[weight[remaining].argmin()], remaining[weight[remaining].argmax()]
        if len(remaining) > 1 and weight[chosen].sum() + weight[smallest] <= total / 2:
            held_out |= of_pair == smallest
        else:
            members = np.flatnonzero(of_pair == largest)
            held_out[_grow(pairs, sizes, members, wanted - weight[chosen].sum(), rng)] = True
    if not held_out.any() or held_out.all():  # pairs without weight
        held_out[:] = False
        held_out[rng.integers(len(pairs))] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _grow(
    pairs: NDArray[np.integer],
    sizes: NDArray[np.number],
    members: NDArray[np.int64],
    wanted: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Pairs of a group among photos added one by one, each a neighbour of earlier ones."""
    edges = pairs[members]
    inside = np.zeros(int(pairs.max()) + 1, bool)
    inside[rng.choice(np.unique(edges))] = True
    within = np.zeros(len(members), bool)
    while sizes[members[within]].sum() < wanted:
        ends = inside[edges]
        across = edges[ends[:, 0] != ends[:, 1]]
        if not len(across):
            break
        inside[across[rng.integers(len(across))]] = True
        grown = inside[edges].all(axis=1)
        if grown.all():
            break
        within = grown
    # A complete group would be added at once: then a single pair is held out.
    return members[within] if within.any() else members[:1]
