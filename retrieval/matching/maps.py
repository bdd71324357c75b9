"""Maps of the plane that single matches stand for, and how many other matches agree with each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.regions.geometry import Frames

_MIDDLE = np.float32(0.5)  # of a photo, about
_SPREAD = 0.1  # of what a map counts for beside the matches that it is fitted to, as a part of the longer side
_APART = 0.03  # of two matches that make a map, at least, as a part of the longer sides: a short line tells little
_DRAWS = 4  # pairs of matches that are looked at for a map that is tried
_BLOCK = 64  # maps at a time: their errors stay in the second-level cache


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
    return np.asarray(np.log(np.maximum(scale, np.float32(1e-20))))


def agreement_forms(maps: Maps, limits: tuple[float, float]) -> NDArray[np.float32]:
    """Coefficients (H, 18) of maps for the `agreement_products` of matches: their product is below 1 where both agree.

    A match agrees where error / threshold² + (log scale difference / limit)² < 1, a little stricter than the test that
    decides on inliers. That is a quadratic form in the match's coordinates: its coefficients times the products of
    those coordinates give all errors in one matrix product.

    Parameters
    ----------
    maps : Maps
        Not singular.
    limits : (float, float)
        Square of the threshold; largest difference of logarithms of scale.
    """
    shift = maps.shift + _MIDDLE * (maps.linear[:, :, 0] + maps.linear[:, :, 1] - 1)
    own = maps.log_scale / np.float32(limits[1])
    forms = np.empty((18, len(maps)), np.float32)
    np.divide(_error_forms(maps.linear, shift), np.float32(limits[0]), out=forms[:15])
    forms[15], forms[16], forms[17] = own * own, -2 * own, 1
    return np.ascontiguousarray(forms.T)


def agreement_products(
    source: NDArray[np.float32], target: NDArray[np.float32], scales: NDArray[np.float32], limits: tuple[float, float]
) -> NDArray[np.float32]:
    """Products (18, K) of the coordinates of matches, for `agreement_forms`.

    Parameters
    ----------
    source, target : ndarray, shape (K, 2)
        Places in the query and in the photo.
    scales : ndarray, shape (K,)
        Logarithms of the matches' scales.
    limits : (float, float)
        As there.
    """
    # Centred coordinates keep the sums of products within the precision of float32.
    (x, y), (u, v) = ((side - _MIDDLE).T.copy() for side in (source, target))
    scale = scales / np.float32(limits[1])
    products = np.empty((18, len(scales)), np.float32)
    pairs = ((x, x), (x, y), (y, y), (u, u), (u, v), (v, v), (x, u), (x, v), (y, u), (y, v))
    for row, (one, other) in enumerate(pairs):
        np.multiply(one, other, out=products[row])
    products[10], products[11], products[12], products[13], products[14] = x, y, u, v, 1
    products[15], products[16] = 1, scale
    np.multiply(scale, scale, out=products[17])
    return products


def count_votes(
    maps: Maps,
    source: NDArray[np.float32],
    target: NDArray[np.float32],
    scales: NDArray[np.float32],
    share: NDArray[np.floating],
    limits: tuple[float, float],
) -> NDArray[np.float32]:
    """Sum the shares (K,) of the matches that agree with each map: (H,) float32; the other arguments are as above."""
    if len(maps) <= _BLOCK:
        error = agreement_forms(maps, limits) @ agreement_products(source, target, scales, limits)
        return np.asarray(np.less(error, 1, out=error, casting="unsafe") @ share.astype(np.float32))
    # Sorted by scale, a block of maps has to be compared with a stretch of the matches alone.
    matches, order = np.argsort(scales, kind="stable"), np.argsort(maps.log_scale, kind="stable")
    scales, share, ordered = scales[matches], share[matches].astype(np.float32), maps.at(order)
    forms = agreement_forms(ordered, limits)
    products = agreement_products(source[matches], target[matches], scales, limits)
    votes = np.empty(len(maps), np.float32)
    for start in range(0, len(maps), _BLOCK):
        block = ordered.log_scale[start : start + _BLOCK]
        near = slice(*np.searchsorted(scales, (block[0] - limits[1], block[-1] + limits[1])))
        error = forms[start : start + _BLOCK] @ products[:, near]
        votes[order[start : start + _BLOCK]] = np.less(error, 1, out=error, casting="unsafe") @ share[near]
    return votes


def _error_forms(linear: NDArray[np.float32], shift: NDArray[np.float32]) -> NDArray[np.float32]:
    """Coefficients (15, H) of the squared symmetric transfer errors of maps, in the order of `agreement_products`.

    With the residual r = L q + t - d, |r|² + |L⁻¹r|² = rᵀ F r for F = I + L⁻ᵀL⁻¹.
    """
    l00, l01, l10, l11 = linear.reshape(-1, 4).T.copy()
    weight = 1 / np.maximum((l00 * l11 - l01 * l10) ** 2, np.float32(1e-24))
    f00, f01, f11 = 1 + (l10**2 + l11**2) * weight, -(l00 * l10 + l01 * l11) * weight, 1 + (l00**2 + l01**2) * weight
    columns = ((l00, l10), (l01, l11), shift.T.copy())
    (x0, y0), (x1, y1), (xt, yt) = columns
    (u0, v0), (u1, v1), (ut, vt) = ((f00 * x + f01 * y, f01 * x + f11 * y) for x, y in columns)
    quadratic = [x0 * u0 + y0 * v0, 2 * (x0 * u1 + y0 * v1), x1 * u1 + y1 * v1, f00, 2 * f01, f11]
    mixed = [-2 * u0, -2 * v0, -2 * u1, -2 * v1]
    linear_terms = [2 * (x0 * ut + y0 * vt), 2 * (x1 * ut + y1 * vt), -2 * ut, -2 * vt]
    return np.stack([*quadratic, *mixed, *linear_terms, xt * ut + yt * vt])


def fit_maps(maps: Maps, moments: NDArray[np.floating], middles: NDArray[np.float32]) -> Maps:
    """Fit affine maps to the matches that agree with some maps, by least squares; a few matches change a map little.

    Parameters
    ----------
    maps : Maps
        Where the fit starts.
    moments : ndarray, shape (H, 15)
        Sums of the first fifteen `agreement_products` over the matches that agree with each.
    middles : ndarray, shape (H, 2)
        Places in the query of the matches that the maps stand for.
    """
    xx, xy, yy, _, _, _, xu, xv, yu, yv, x, y, u, v, n = moments.T.astype(np.float64)
    l00, l01, l10, l11 = maps.linear.reshape(-1, 4).T.astype(np.float64)
    a, b = (middles.T - _MIDDLE).astype(np.float64)
    shift = (maps.shift + _MIDDLE * (maps.linear[:, :, 0] + maps.linear[:, :, 1] - 1)).T.astype(np.float64)
    # A map counts for one match, spread around its middle, that agrees with it to the point: its sums of products.
    own = a * a + _SPREAD**2, a * b, b * b + _SPREAD**2, a, b
    xx, xy, yy, x, y, n = xx + own[0], xy + own[1], yy + own[2], x + own[3], y + own[4], n + 1
    goals = []
    for first, second, offset, ox, oy, o in ((l00, l01, shift[0], xu, yu, u), (l10, l11, shift[1], xv, yv, v)):
        goals.append(
            (
                ox + first * own[0] + second * own[1] + offset * own[3],
                oy + first * own[1] + second * own[2] + offset * own[4],
                o + first * own[3] + second * own[4] + offset,
            )
        )
    # The inverse of the symmetric matrix of sums by its cofactors.
    c00, c01, c02 = yy * n - y * y, x * y - xy * n, xy * y - yy * x
    c11, c12, c22 = xx * n - x * x, xy * x - xx * y, xx * yy - xy * xy
    inverse = 1 / (xx * c00 + xy * c01 + x * c02)
    linear, moved = np.empty((len(maps), 2, 2)), np.empty((len(maps), 2))
    for row, (first, second, third) in enumerate(goals):
        linear[:, row, 0] = (c00 * first + c01 * second + c02 * third) * inverse
        linear[:, row, 1] = (c01 * first + c11 * second + c12 * third) * inverse
        moved[:, row] = (c02 * first + c12 * second + c22 * third) * inverse
    moved -= float(_MIDDLE) * (linear.sum(axis=2) - 1)
    area = np.abs(linear[:, 0, 0] * linear[:, 1, 1] - linear[:, 0, 1] * linear[:, 1, 0])
    scale = 0.5 * np.log(np.maximum(area, 1e-20))
    return Maps(*(array.astype(np.float32) for array in (linear, moved, scale)))
