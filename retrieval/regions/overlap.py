"""Overlap of elliptical regions, and which features of two photos of a plane show the same part of it by overlap alone.

Appearance is never consulted. The overlap error is that of Mikolajczyk, Tuytelaars, Schmid, Zisserman, Matas,
Schaffalitzky, Kadir, Van Gool, *A Comparison of Affine Region Detectors*, IJCV 2005, section 4.1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

_ANGLES = 90  # rays of the overlap integral: errors below 0.5 come out within 0.001, all others within 0.01
_PAIRS = 20_000  # pairs integrated at a time, for the memory they need
_INTEGRATION = 0.01  # largest error of `overlap_error`: pairs nearer to a threshold are candidates too
_CHUNK = 1000  # regions whose candidates are looked up at a time, for the memory they need
# The part of a disc beyond a line at the distance z from its centre: falls from 1 at z = -1 to 0 at z = 1.
_CUTS = np.linspace(1, -1, 2001)
_SEGMENTS = (np.arccos(_CUTS) - _CUTS * np.sqrt(1 - _CUTS**2)) / np.pi


@dataclass(frozen=True)
class OverlapSets:
    """The sets P(x) and N(x) of the features x of a first image; see `overlap_sets`.

    The rows of each array are sorted. Every pair that is in neither is a negative one.
    """

    positives: NDArray[np.int64]  # (K, 2) int64: x, and a member of P(x)
    ambiguous: NDArray[np.int64]  # (A, 2) int64: x, and regions neither in P(x) nor in N(x)


def overlap_sets(
    regions1: NDArray[np.floating],
    regions2: NDArray[np.floating],
    homography: NDArray[np.floating],
    shape2: tuple[int, int],
    high: float = 0.6,
    low: float = 0.3,
) -> OverlapSets:
    """Positive and negative matches of each feature of the first image (Simonyan14, section 9).

    The second image's measurement regions (M, 5), ``x, y, a, b, c`` in pixels, centres at integers, are projected to
    the first by the affine approximation at each centre of the homography from the first. Overlap is intersection over
    union of areas: above ``high`` a match is positive, below ``low`` negative, between them ambiguous. Only features
    whose centre is seen in the second image have positive or ambiguous matches.
    """
    regions1, regions2 = np.asarray(regions1, np.float64), np.asarray(regions2, np.float64)
    inverse = np.linalg.inv(homography)
    mapped = transfer_ellipses(regions2, inverse)
    kept1 = np.flatnonzero(
        inside_image(transfer_ellipses(regions1, homography), shape2) & _in_front(regions1, homography)
    )
    # A region may overlap the first photo although its centre is outside, and is no negative then.
    kept2 = np.flatnonzero(np.isfinite(mapped).all(axis=1) & _in_front(regions2, inverse))
    one, other = regions1[kept1], mapped[kept2]
    pairs = overlap_candidates(one, other, low)
    overlap = 1 - overlap_error(one, other, pairs)
    rows = np.column_stack([kept1[pairs[:, 0]], kept2[pairs[:, 1]]])
    return OverlapSets(rows[overlap > high], rows[(overlap >= low) & (overlap <= high)])


def overlap_candidates(
    regions1: NDArray[np.floating], regions2: NDArray[np.floating], least: float
) -> NDArray[np.int64]:
    """Sorted pairs (K, 2) of ellipses (N, 5), (M, 5) whose overlap, intersection over union, can reach t: no pair is
    missed; about half reach it.

    Let the areas be A and qA. Then t <= q <= 1/t, and the intersection is at least t/(1+t) (1+q) A. So much of either
    ellipse must lie in any strip that holds the other one: with d from centre to centre and an ellipse's half width
    h(u) = √(uᵀΣu) across the strip's direction u, uᵀd <= h₁ + z h₂, where z is how far from its centre a disc may be
    cut to keep that part. And in the frame where the first ellipse is the unit disc, the other is at most 4/(πt) long,
    for it may leave no more than a strip of its area in the disc.
    """
    found = [np.zeros((0, 2), np.int64)]
    least = max(least - _INTEGRATION, 0.9 * least)
    covariances1, covariances2 = _covariances(regions1), _covariances(regions2)
    radii1, radii2 = (np.linalg.det(each) ** 0.25 for each in (covariances1, covariances2))
    reach = 1 + max(float(_cut(np.array(least))), 0) * 4 / (np.pi * least)
    # Half an octave at a time, so that the search only covers regions of similar size.
    bands = np.floor(2 * np.log2(radii1)).astype(np.int64)
    for band in np.unique(bands):
        members1 = np.flatnonzero(bands == band)
        root = np.sqrt(least)
        like = (radii2 >= radii1[members1].min() * root) & (radii2 <= radii1[members1].max() / root)
        members2 = np.flatnonzero(like)
        if not len(members2):
            continue
        tree = cKDTree(regions2[members2, :2])
        longest = np.sqrt(np.linalg.eigvalsh(covariances1[members1])[:, 1])
        for start in range(0, len(members1), _CHUNK):
            part = members1[start : start + _CHUNK]
            near = tree.query_ball_point(regions1[part, :2], reach * longest[start : start + _CHUNK])
            first = np.repeat(part, [len(row) for row in near])
            second = members2[np.concatenate([np.asarray(row, np.int64) for row in near])]
            can = _can_reach(
                least,
                regions2[second, :2] - regions1[first, :2],
                covariances1[first],
                covariances2[second],
                (radii2[second] / radii1[first]) ** 2,
            )
            found.append(np.column_stack([first, second])[can])
    pairs = np.concatenate(found)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def transfer_ellipses(regions: NDArray[np.floating], homography: NDArray[np.floating]) -> NDArray[np.float64]:
    """Map ellipses (N, 5), rows ``x, y, a, b, c`` of a(u-x)² + 2b(u-x)(v-y) + c(v-y)² = 1 in pixels, to another image
    by the homography's affine approximation at each centre; NaN where a centre maps to infinity.
    """
    regions = np.asarray(regions, np.float64)
    h = np.asarray(homography, np.float64)
    x, y = regions[:, 0], regions[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v, w = (np.column_stack([x, y, np.ones_like(x)]) @ h.T).T
        w = np.where(w == 0, np.nan, w)
        u, v = u / w, v / w
        # Jacobian of the map at each centre, and its inverse up to the determinant.
        xx, xy = (h[0, 0] - h[2, 0] * u) / w, (h[0, 1] - h[2, 1] * u) / w
        yx, yy = (h[1, 0] - h[2, 0] * v) / w, (h[1, 1] - h[2, 1] * v) / w
        squared = (xx * yy - xy * yx) ** 2
        a, b, c = regions[:, 2:].T
        # M' = J⁻ᵀ M J⁻¹
        return np.column_stack(
            [
                u,
                v,
                (a * yy**2 - 2 * b * yy * yx + c * yx**2) / squared,
                (-a * yy * xy + b * (xx * yy + xy * yx) - c * yx * xx) / squared,
                (a * xy**2 - 2 * b * xy * xx + c * xx**2) / squared,
            ]
        )


def overlap_error(
    regions1: NDArray[np.floating],
    regions2: NDArray[np.floating],
    pairs: NDArray[np.int64],
    radius: float | None = None,
) -> NDArray[np.float64]:
    """Overlap error (K,) of pairs of ellipses of one image, 1 - intersection / union, within 0.01: 0 for the same one,
    1 for disjoint ones. With a `radius` (geometric mean of the semi-axes) both sizes are first multiplied by what
    brings the first ellipse to it; the centres stay, as in the authors' program. The area is a sum over rays from the
    first ellipse's centre, in the frame where it is the unit circle.

    `regions1`, `regions2`: ellipses ``x, y, a, b, c`` in pixels; the first ones are the reference.
    """
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    errors = np.empty(len(pairs))
    for start in range(0, len(pairs), _PAIRS):
        first, second = pairs[start : start + _PAIRS].T
        errors[start : start + _PAIRS] = _overlap_error(
            np.asarray(regions1, np.float64)[first], np.asarray(regions2, np.float64)[second], radius
        )
    return errors


def mean_radii(regions: NDArray[np.floating]) -> NDArray[np.float64]:
    """Geometric mean (N,) of the semi-axes of ellipses (N, 5), in pixels."""
    return np.asarray((regions[:, 2] * regions[:, 4] - regions[:, 3] ** 2) ** -0.25)


def inside_image(regions: NDArray[np.floating], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Whether centres (N,) lie on the pixels of an image of that (height, width); NaN does not."""
    x, y = regions[:, 0], regions[:, 1]
    return (x >= -0.5) & (x < shape[1] - 0.5) & (y >= -0.5) & (y < shape[0] - 0.5)


def _can_reach(
    least: float,
    d: NDArray[np.float64],
    covariances1: NDArray[np.float64],
    covariances2: NDArray[np.float64],
    areas: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Whether ellipses can overlap that much, by the notes of `overlap_candidates`; areas: second over first."""
    part = least / (1 + least)
    total = covariances1 + covariances2
    determinant = total[:, 0, 0] * total[:, 1, 1] - total[:, 0, 1] ** 2
    # The direction in which two ellipses are best separated: u = (Σ₁ + Σ₂)⁻¹ d.
    u = np.column_stack(
        [
            total[:, 1, 1] * d[:, 0] - total[:, 0, 1] * d[:, 1],
            total[:, 0, 0] * d[:, 1] - total[:, 0, 1] * d[:, 0],
        ]
    )
    u /= determinant[:, None]
    apart = (u * d).sum(axis=1)
    half1, half2 = (np.sqrt(np.einsum("ki,kij,kj->k", u, each, u)) for each in (covariances1, covariances2))
    cut1, cut2 = _cut(part * (1 + areas)), _cut(part * (1 + 1 / areas))
    return np.asarray(
        (areas >= least)
        & (areas <= 1 / least)
        & (apart <= half1 + cut2 * half2 + 1e-9)
        & (apart <= half2 + cut1 * half1 + 1e-9)
    )


def _cut(part: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far from a unit disc's centre a line may run that leaves this part of its area beyond it."""
    return np.interp(part, _SEGMENTS, _CUTS) + 1e-3  # never less than the true value, for all the table's steps


def _covariances(regions: NDArray[np.floating]) -> NDArray[np.float64]:
    """Matrices Σ (N, 2, 2) of ellipses: dᵀ Σ⁻¹ d = 1 is the boundary."""
    a, b, c = regions[:, 2], regions[:, 3], regions[:, 4]
    return np.asarray(np.stack([np.stack([c, -b], -1), np.stack([-b, a], -1)], -2) / (a * c - b * b)[:, None, None])


def _in_front(regions: NDArray[np.floating], homography: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether centres lie on the visible side of the horizon, where the map does not mirror."""
    depth = regions[:, :2] @ homography[2, :2] + homography[2, 2]
    return np.asarray(depth * np.linalg.det(homography) > 0)  # the Jacobian's determinant is det(H) / depth³


def _overlap_error(
    regions1: NDArray[np.float64], regions2: NDArray[np.float64], radius: float | None
) -> NDArray[np.float64]:
    """Overlap errors of ellipses row by row, (K, 5) and (K, 5)."""
    d = regions2[:, :2] - regions1[:, :2]
    if radius is not None:
        d = d * (mean_radii(regions1) / radius)[:, None]
    # M1 = Lᵀ L; in the frame u = L (p - centre) the first ellipse is the unit circle, the second L⁻ᵀ M2 L⁻¹ at L d.
    a, b, c = regions1[:, 2:].T
    l11 = np.sqrt(a)
    l12 = b / l11
    l22 = np.sqrt(c - l12**2)
    dx, dy = l11 * d[:, 0] + l12 * d[:, 1], l22 * d[:, 1]
    i11, i12, i22 = 1 / l11, -l12 / (l11 * l22), 1 / l22
    a2, b2, c2 = regions2[:, 2:].T
    a, b, c = i11**2 * a2, i11 * (i12 * a2 + i22 * b2), i12**2 * a2 + 2 * i12 * i22 * b2 + i22**2 * c2

    # Along the ray r (cos t, sin t) the second ellipse is p r² - 2 q r + s <= 0.
    angles = (np.arange(_ANGLES) + 0.5) * (2 * np.pi / _ANGLES)
    cos, sin = np.cos(angles), np.sin(angles)
    p = np.multiply.outer(a, cos**2) + np.multiply.outer(b, 2 * cos * sin) + np.multiply.outer(c, sin**2)
    q = np.multiply.outer(a * dx + b * dy, cos) + np.multiply.outer(b * dx + c * dy, sin)
    s = a * dx**2 + 2 * b * dx * dy + c * dy**2 - 1
    root = np.sqrt(np.maximum(q**2 - p * s[:, None], 0))
    near, far = ((q - root) / p).clip(0, 1), ((q + root) / p).clip(0, 1)
    intersection = (far**2 - near**2).sum(axis=1) * (np.pi / _ANGLES)
    area1, area2 = np.pi, np.pi / np.sqrt(a * c - b**2)
    intersection = np.minimum(intersection, np.minimum(area1, area2))
    return np.asarray(1 - intersection / (area1 + area2 - intersection))
