"""Maps of the plane defined by single matches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.regions.geometry import Frames

_APART = 0.03  # least distance of two matches that define a map, in parts of the longer sides: shorter is inexact
_MATRIX = [0, 1, 4, 2, 3, 5]  # places of the elements of a matrix in a row
_DRAWS = 4  # pairs of matches drawn for each map that is tried


@dataclass(frozen=True)
class Maps:
    """Affine maps from a query to photos, in units of the two longer sides."""

    rows: NDArray[np.float32]  # (H, 7) float32: linear part, row by row, shift, and logarithm of the scale

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def transforms(self) -> NDArray[np.float32]:
        """The maps as matrices (H, 2, 3) float32."""
        return self.rows.take(_MATRIX, axis=1).reshape(-1, 2, 3)

    def at(self, some: NDArray[np.integer] | slice) -> "Maps":
        """Select maps, in the given order."""
        return Maps(self.rows[some])


def single_match_maps(query: Frames, image: Frames, freedom: int) -> Maps:
    """The map of each match: the one that takes its frame in the query to that in the photo. `freedom`: 3 (scale and
    shift), 4 (and rotation) or 5 (affine; "down" is kept where the frames keep it).
    """
    from retrieval.matching.map_kernels import own_maps

    return Maps(own_maps(*query.plain, *image.plain, np.arange(len(query.centres)), freedom))


def two_match_maps(source: NDArray[np.floating], target: NDArray[np.floating], most: int, max_zoom: float) -> Maps:
    """Similarities each defined by two matches of places (K, 2), in units of the longer sides: at most `most`. Half of
    them are the drawn ones nearest to the identity in turn and zoom, half arbitrary. Deterministic.
    """
    count = len(source)
    order = np.random.default_rng(0).permutation(count)
    shifts = range(1, min(-(-_DRAWS * most // max(count, 1)), count - 1) + 1)
    first = np.tile(order, len(shifts))
    second = np.concatenate([np.zeros(0, np.int64), *(np.roll(order, shift) for shift in shifts)])
    (q, d) = (np.ascontiguousarray(side, np.float32).view(np.complex64)[:, 0] for side in (source, target))
    apart, there = q[second] - q[first], d[second] - d[first]
    far = np.flatnonzero((np.abs(apart) > _APART) & (np.abs(there) > _APART))
    first, turn = first[far], np.log(there[far] / apart[far])  # its real part is the zoom, its imaginary one the turn
    usable = np.flatnonzero(np.abs(turn.real) <= np.log(max_zoom))
    if len(usable) > most:
        rank = np.argpartition(np.abs(turn[usable]), most // 2)
        rest = rank[most // 2 :]
        usable = usable[np.concatenate([rank[: most // 2], rest[:: -(-len(rest) // (most - most // 2))]])]
    first, turn = first[usable], turn[usable]
    factor = np.exp(turn)
    moved = d[first] - factor * q[first]
    rows = [factor.real, -factor.imag, factor.imag, factor.real, moved.real, moved.imag, turn.real]
    return Maps(np.stack(rows, axis=1).astype(np.float32, copy=False))


def points_and_scales(query: Frames, image: Frames) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Places (4, K), x and y in query and photo, and logarithms of scales (K,) of the matches' own maps."""
    from retrieval.matching import map_kernels

    return map_kernels.points_and_scales(*query.plain, *image.plain)
