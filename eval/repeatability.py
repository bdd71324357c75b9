"""How many regions a detector finds again in another view: the overlap-error protocol.

Mikolajczyk, Tuytelaars, Schmid, Zisserman, Matas, Schaffalitzky, Kadir, Van Gool, *A Comparison of Affine Region
Detectors*, IJCV 2005, sections 4.1 and 4.2.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

NORMALISED_RADIUS = 30.0  # pixels: the size that every reference region is brought to before errors are computed
_REACH = 4.0  # centres further apart than this many radii of the reference region are no candidates
_ANGLES = 90  # rays of the overlap integral: errors below 0.5 come out within 0.001, all others within 0.01
_CHUNK = 20_000  # pairs integrated at a time, for the memory they need


@dataclass(frozen=True)
class Repeatability:
    """What a detector found again."""

    repeatability: float  # correspondences / min(regions1, regions2); 0 where one image has no region
    correspondences: int  # pairs of regions, one-to-one, with less than the largest overlap error
    regions1: int  # regions of the first image whose centre is seen in the second one
    regions2: int  # and of the second in the first
    matches: np.ndarray  # (correspondences, 2) int32: rows of the regions given, by rising overlap error
    errors: np.ndarray  # (correspondences,) float64: their overlap errors


def transfer_ellipses(regions: np.ndarray, homography: np.ndarray) -> np.ndarray:
    """Map ellipses to another image by the homography's affine approximation at each centre.

    Parameters
    ----------
    regions : ndarray, shape (N, 5)
        Rows ``x, y, a, b, c`` of a(u-x)² + 2b(u-x)(v-y) + c(v-y)² = 1, in pixels.
    homography : ndarray, shape (3, 3)
        Maps (x, y, 1) of the regions' image to the other one.

    Returns
    -------
    ndarray, shape (N, 5), float64
        NaN where a centre maps to infinity.
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
    regions1: np.ndarray, regions2: np.ndarray, pairs: np.ndarray, radius: float | None = NORMALISED_RADIUS
) -> np.ndarray:
    """Overlap error of pairs of ellipses of one image: 1 - intersection / union of their areas.

    Both sizes are first multiplied by what brings the first ellipse to the normalised radius, the centres stay where
    they are: as in the authors' program. The area is a sum over rays from the first ellipse's centre, in the frame
    where that ellipse is the unit circle.

    Parameters
    ----------
    regions1, regions2 : ndarray, shape (N, 5) and (M, 5)
        Ellipses ``x, y, a, b, c`` in pixels; the first ones are the reference.
    pairs : ndarray, shape (K, 2), int
        Rows of the one and of the other.
    radius : float, optional
        Normalised radius in pixels (geometric mean of the semi-axes); None compares the regions as they are.

    Returns
    -------
    ndarray, shape (K,), float64
        0 for the same ellipse, 1 for disjoint ones. Within 0.01 of the exact value.
    """
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    errors = np.empty(len(pairs))
    for start in range(0, len(pairs), _CHUNK):
        first, second = pairs[start : start + _CHUNK].T
        errors[start : start + _CHUNK] = _overlap_error(
            np.asarray(regions1, np.float64)[first], np.asarray(regions2, np.float64)[second], radius
        )
    return errors


def repeatability(
    regions1: np.ndarray,
    regions2: np.ndarray,
    homography: np.ndarray,
    shape1: tuple[int, int],
    shape2: tuple[int, int],
    max_error: float = 0.4,
) -> Repeatability:
    """Count the regions found again in a second view of a plane.

    Only regions whose *centre* falls inside the other image count. The second image's regions are mapped to the first
    one; pairs are taken by rising overlap error, each region at most once.

    Parameters
    ----------
    regions1, regions2 : ndarray, shape (N, 5) and (M, 5)
        Ellipses ``x, y, a, b, c`` in pixels of their images, pixel centres at integers.
    homography : ndarray, shape (3, 3)
        Maps points of the first image to the second.
    shape1, shape2 : tuple of int
        (height, width) of the images.
    max_error : float
        Largest overlap error of a correspondence, above 0 and below 0.5.

    Raises
    ------
    ValueError
        If ``max_error`` is out of range: the search for candidates rests on it.

    Notes
    -----
    After normalisation a small region may lie several pixels away and still count, so that the repeatability of a
    detector rises with the density of its regions. Compare detectors at similar counts.
    """
    if not 0 < max_error < 0.5:
        raise ValueError(f"max_error must lie between 0 and 0.5, and is {max_error}.")
    inverse = np.linalg.inv(homography)
    mapped = transfer_ellipses(regions2, inverse)
    kept1 = np.flatnonzero(_inside(transfer_ellipses(regions1, homography), shape2))
    kept2 = np.flatnonzero(_inside(mapped, shape1))
    reference, others = np.asarray(regions1, np.float64)[kept1], mapped[kept2]
    pairs = _candidates(reference, others, max_error)
    errors = overlap_error(reference, others, pairs)
    order = np.argsort(errors, kind="stable")
    order = order[errors[order] < max_error]

    free1, free2 = np.ones(len(kept1), bool), np.ones(len(kept2), bool)
    chosen = []
    for pair in order:
        first, second = pairs[pair]
        if free1[first] and free2[second]:
            free1[first] = free2[second] = False
            chosen.append(pair)
    matches = np.column_stack([kept1[pairs[chosen, 0]], kept2[pairs[chosen, 1]]]).astype(np.int32)
    fewer = min(len(kept1), len(kept2))
    return Repeatability(
        repeatability=len(chosen) / fewer if fewer else 0.0,
        correspondences=len(chosen),
        regions1=len(kept1),
        regions2=len(kept2),
        matches=matches,
        errors=errors[chosen],
    )


def _inside(regions: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Whether centres lie on the pixels of an image of that (height, width); NaN does not."""
    x, y = regions[:, 0], regions[:, 1]
    return (x >= -0.5) & (x < shape[1] - 0.5) & (y >= -0.5) & (y < shape[0] - 0.5)


def _radii(regions: np.ndarray) -> np.ndarray:
    """Geometric mean of each ellipse's semi-axes, in pixels."""
    return (regions[:, 2] * regions[:, 4] - regions[:, 3] ** 2) ** -0.25


def _candidates(regions1: np.ndarray, regions2: np.ndarray, max_error: float) -> np.ndarray:
    """Pairs that can have less than the largest error, max_error < 0.5: (K, 2) int64 and sorted.

    With e < 0.5 the intersection I covers more than half of both ellipses, since I >= (1-e) union. Then I and its
    mirror image in an ellipse's centre share a point p of that ellipse; p lies in the other ellipse as placed at +d and
    at -d, and by its convexity d is one of its vectors. So each centre lies within both normalised ellipses.
    """
    if not len(regions1) or not len(regions2):
        return np.zeros((0, 2), np.int64)
    radii1, radii2 = _radii(regions1), _radii(regions2)
    half_trace = (regions1[:, 2] + regions1[:, 4]) / 2
    smaller = half_trace - np.sqrt(np.maximum(half_trace**2 - radii1**-4, 0))
    longest = NORMALISED_RADIUS / radii1 / np.sqrt(np.maximum(smaller, 1e-300))
    near = cKDTree(regions2[:, :2]).query_ball_point(regions1[:, :2], np.minimum(longest, _REACH * radii1))
    first = np.repeat(np.arange(len(regions1)), [len(row) for row in near])
    second = np.concatenate([np.asarray(row, np.int64) for row in near])
    ratio = (radii2[second] / radii1[first]) ** 2
    d = regions2[second, :2] - regions1[first, :2]
    keep = (ratio > 1 - max_error) & (ratio < 1 / (1 - max_error))
    for ellipses in (regions1[first], regions2[second]):
        form = ellipses[:, 2] * d[:, 0] ** 2 + 2 * ellipses[:, 3] * d[:, 0] * d[:, 1] + ellipses[:, 4] * d[:, 1] ** 2
        keep &= form <= (NORMALISED_RADIUS / radii1[first]) ** 2
    pairs = np.column_stack([first, second])[keep]
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _overlap_error(regions1: np.ndarray, regions2: np.ndarray, radius: float | None) -> np.ndarray:
    """Overlap errors of ellipses row by row, (K, 5) and (K, 5)."""
    d = regions2[:, :2] - regions1[:, :2]
    if radius is not None:
        d = d * (_radii(regions1) / radius)[:, None]
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
    return 1 - intersection / (area1 + area2 - intersection)
