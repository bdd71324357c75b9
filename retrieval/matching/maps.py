"""Maps of the plane that single matches stand for, and how many other matches agree with each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.regions.geometry import Frames

_APART = 0.03  # of two matches that make a map, at least, as a part of the longer sides: a short line tells little
_DRAWS = 4  # pairs of matches that are looked at for a map that is tried
_STEPS = 1 << 15  # in a vote of one


@dataclass(frozen=True)
class Maps:
    """Affine maps from a query to photos, in units of the two longer sides."""

    linear: NDArray[np.float32]  # (H, 2, 2)
    shift: NDArray[np.float32]  # (H, 2)
    log_scale: NDArray[np.float32]  # (H,)

    def __len__(self) -> int:
        return len(self.linear)

    @property
    def transforms(self) -> NDArray[np.float32]:
        """The maps as matrices (H, 2, 3) float32."""
        return np.concatenate([self.linear, self.shift[:, :, None]], axis=2)

    @property
    def rows(self) -> NDArray[np.float32]:
        """The maps as rows (H, 7) float32: linear part, shift, logarithm of the scale."""
        rows = np.concatenate([self.linear.reshape(-1, 4), self.shift, self.log_scale[:, None]], axis=1)
        return rows.astype(np.float32, copy=False)

    @classmethod
    def of(cls, rows: NDArray[np.float32]) -> "Maps":
        """Read `rows` back."""
        linear, shift, log_scale = np.split(rows, [4, 6], axis=1)
        return cls(linear.reshape(-1, 2, 2), np.ascontiguousarray(shift), np.ascontiguousarray(log_scale[:, 0]))

    def at(self, rows: NDArray[np.integer] | slice) -> "Maps":
        """Take some, in the order given."""
        return Maps(self.linear[rows], self.shift[rows], self.log_scale[rows])

    def joined(self, others: "Maps") -> "Maps":
        """Put other maps behind these."""
        mine, theirs = ((one.linear, one.shift, one.log_scale) for one in (self, others))
        return Maps(*(np.concatenate(parts) for parts in zip(mine, theirs, strict=True)))


def single_match_maps(query: Frames, image: Frames, freedom: int) -> Maps:
    """Give the map of each match: the one that takes its frame in the query to that in the photo.

    Parameters
    ----------
    query, image : Frames
        Row k of both is a match.
    freedom : int
        3 (scale and shift), 4 (and rotation) or 5 (affine; "down" is kept where the frames keep it).
    """
    (s00, s01, s10, s11), (t00, t01, t10, t11) = (
        np.ascontiguousarray(side.linear.reshape(-1, 4).T) for side in (query, image)
    )
    source_area, target_area = np.abs(s00 * s11 - s01 * s10), np.abs(t00 * t11 - t01 * t10)
    source_area = np.maximum(source_area, np.float32(1e-20))
    scale = np.sqrt(target_area / source_area)
    log_scale = np.log(np.maximum(scale, np.float32(1e-20)))
    # Lower-triangular frames: s01 and t01 are 0, and so is the map's own entry; turned ones are full.
    if freedom == 3:
        l00 = l11 = scale
        l01 = l10 = np.zeros_like(scale)
    else:
        inverse = 1 / source_area
        l00, l01 = (t00 * s11 - t01 * s10) * inverse, (t01 * s00 - t00 * s01) * inverse
        l10, l11 = (t10 * s11 - t11 * s10) * inverse, (t11 * s00 - t10 * s01) * inverse
    if freedom == 4:
        angle = np.arctan2(l10 - l01, l00 + l11)
        l00, l10 = scale * np.cos(angle), scale * np.sin(angle)
        l01, l11 = -l10, l00
    linear, shift = np.empty((len(scale), 2, 2), np.float32), np.empty((len(scale), 2), np.float32)
    linear[:, 0, 0], linear[:, 0, 1], linear[:, 1, 0], linear[:, 1, 1] = l00, l01, l10, l11
    x, y = query.centres[:, 0], query.centres[:, 1]
    shift[:, 0] = image.centres[:, 0] - (l00 * x + l01 * y)
    shift[:, 1] = image.centres[:, 1] - (l10 * x + l11 * y)
    return Maps(linear, shift, log_scale)


def two_match_maps(source: NDArray[np.floating], target: NDArray[np.floating], most: int, max_zoom: float) -> Maps:
    """Give similarities, each of two matches of places: 4 degrees of freedom.

    Parameters
    ----------
    source, target : ndarray, shape (K, 2)
        Places in the query and in the photo, in units of the longer sides.
    most : int
        Maps at most: of those that are drawn, half are the nearest to a photo that was neither turned nor enlarged, as
        most are, and half are any. The same matches give the same maps, always.
    max_zoom : float
        Largest enlargement or reduction.
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
    linear = np.stack([np.stack([factor.real, -factor.imag], -1), np.stack([factor.imag, factor.real], -1)], -2)
    shift = np.stack([moved.real, moved.imag], axis=-1)
    return Maps(linear.astype(np.float32), shift.astype(np.float32), turn.real.astype(np.float32))


def log_scales(query: NDArray[np.float32], image: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logarithms (K,) of the scales of the maps that take frames (K, 2, 2) of the query to those of the photo."""
    areas = [np.abs(one[:, 0, 0] * one[:, 1, 1] - one[:, 0, 1] * one[:, 1, 0]) for one in (query, image)]
    scale = np.sqrt(areas[1] / np.maximum(areas[0], np.float32(1e-20)))
    return np.log(np.maximum(scale, np.float32(1e-20))).astype(np.float32, copy=False)


def points_of(source: NDArray[np.float32], target: NDArray[np.float32]) -> NDArray[np.float32]:
    """Write places of matches (K, 2) in the query and in the photo as rows (4, K): x and y in both."""
    points = np.empty((4, len(source)), np.float32)
    points[:2], points[2:] = source.T, target.T
    return points


def count_votes(
    maps: Maps,
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    share: NDArray[np.floating],
    limits: tuple[float, float],
) -> NDArray[np.int64]:
    """Sum the shares (K,) of the matches that agree with each map, (H,) int64 in equal steps."""
    from retrieval.matching import vote_kernels

    steps = np.rint(share * _STEPS).astype(np.int32)
    return vote_kernels.count_votes(maps.rows, points, scales, steps, *limits)
