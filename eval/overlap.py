"""Which features of two photos of a plane show the same part of it: sets by overlap, appearance never consulted."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from eval.repeatability import overlap_error, transfer_ellipses

_INTEGRATION = 0.01  # largest error of `overlap_error`: what is nearer to a threshold is a candidate too
_CHUNK = 1000  # regions whose candidates are looked up at a time, for the memory they need
# The part of a disc beyond a line at the distance z from its centre: falls from 1 at z = -1 to 0 at z = 1.
_CUTS = np.linspace(1, -1, 2001)
_SEGMENTS = (np.arccos(_CUTS) - _CUTS * np.sqrt(1 - _CUTS**2)) / np.pi


@dataclass(frozen=True)
class OverlapSets:
    """The sets P(x) and N(x) of the features x of a first image; see `overlap_sets`.

    The rows of each array are sorted. Every pair that is in neither is a negative one.
    """

    positives: np.ndarray  # (K, 2) int64: x, and a member of P(x)
    ambiguous: np.ndarray  # (A, 2) int64: x, and what belongs neither to P(x) nor to N(x)


def overlap_sets(
    regions1: np.ndarray,
    regions2: np.ndarray,
    homography: np.ndarray,
    shape2: tuple[int, int],
    high: float = 0.6,
    low: float = 0.3,
) -> OverlapSets:
    """Give the positive and the negative matches of each feature of the first image (Simonyan14, section 9).

    The second image's measurement regions are projected to the first, by the homography's affine approximation at each
    centre. Overlap is intersection over union of areas: above ``high`` a match is positive, below ``low`` negative,
    between them ambiguous. Only features whose centre is seen in the second image have positive or ambiguous matches.

    Parameters
    ----------
    regions1, regions2 : ndarray, shape (N, 5) and (M, 5)
        Measurement regions ``x, y, a, b, c``, pixels of their images, pixel centres at integers.
    homography : ndarray, shape (3, 3)
        Maps points of the first image to the second. Not singular.
    shape2 : tuple of int
        (height, width) of the second image.
    high, low : float
        Thresholds, 0 < low <= high < 1. Overlaps are computed to within 0.01.

    Returns
    -------
    OverlapSets
    """
    regions1, regions2 = np.asarray(regions1, np.float64), np.asarray(regions2, np.float64)
    inverse = np.linalg.inv(homography)
    mapped = transfer_ellipses(regions2, inverse)
    kept1 = np.flatnonzero(_inside(transfer_ellipses(regions1, homography), shape2) & _in_front(regions1, homography))
    # A region may overlap what is in the first photo though its own centre is not, and is no negative then.
    kept2 = np.flatnonzero(np.isfinite(mapped).all(axis=1) & _in_front(regions2, inverse))
    one, other = regions1[kept1], mapped[kept2]
    pairs = overlap_candidates(one, other, low)
    overlap = 1 - overlap_error(one, other, pairs, radius=None)
    rows = np.column_stack([kept1[pairs[:, 0]], kept2[pairs[:, 1]]])
    return OverlapSets(rows[overlap > high], rows[(overlap >= low) & (overlap <= high)])


def overlap_candidates(regions1: np.ndarray, regions2: np.ndarray, least: float) -> np.ndarray:
    """Find the pairs of ellipses whose overlap, intersection over union, can reach a value.

    Parameters
    ----------
    regions1, regions2 : ndarray, shape (N, 5) and (M, 5), float64
        Ellipses of one image.
    least : float
        Between 0 and 1.

    Returns
    -------
    ndarray, shape (K, 2), int64
        Rows of the one and of the other, sorted. None is missed; about half of them do reach the value.

    Notes
    -----
    Let the areas be A and qA, their overlap at least t. Then t <= q <= 1/t, and the intersection is at least
    t/(1+t) (1+q) A. So much of either ellipse must lie in any strip that holds the other one: with d from centre to
    centre and an ellipse's half width h(u) = √(uᵀΣu) across the strip's direction u, uᵀd <= h₁ + z h₂, where z is how
    far from its centre a disc may be cut to keep that part. And in the frame where the first ellipse is the unit
    disc, the other is at most 4/(πt) long, for it may leave no more than a strip of its area in the disc.
    """
    found = [np.zeros((0, 2), np.int64)]
    least = max(least - _INTEGRATION, 0.9 * least)
    covariances1, covariances2 = _covariances(regions1), _covariances(regions2)
    radii1, radii2 = (np.linalg.det(each) ** 0.25 for each in (covariances1, covariances2))
    reach = 1 + max(float(_cut(np.array(least))), 0) * 4 / (np.pi * least)
    # Half an octave at a time, so that the search meets only regions of a like size.
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


def _can_reach(
    least: float, d: np.ndarray, covariances1: np.ndarray, covariances2: np.ndarray, areas: np.ndarray
) -> np.ndarray:
    """Whether ellipses can overlap that much, by the notes of `overlap_candidates`; areas: second over first."""
    part = least / (1 + least)
    total = covariances1 + covariances2
    determinant = total[:, 0, 0] * total[:, 1, 1] - total[:, 0, 1] ** 2
    # The direction in which two ellipses are best told apart: u = (Σ₁ + Σ₂)⁻¹ d.
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
    return (
        (areas >= least)
        & (areas <= 1 / least)
        & (apart <= half1 + cut2 * half2 + 1e-9)
        & (apart <= half2 + cut1 * half1 + 1e-9)
    )


def _cut(part: np.ndarray) -> np.ndarray:
    """How far from a unit disc's centre a line may run that leaves this part of its area beyond it."""
    return np.interp(part, _SEGMENTS, _CUTS) + 1e-3  # never less than the true value, for all the table's steps


def _covariances(regions: np.ndarray) -> np.ndarray:
    """Matrices Σ (N, 2, 2) of ellipses: dᵀ Σ⁻¹ d = 1 is the boundary."""
    a, b, c = regions[:, 2], regions[:, 3], regions[:, 4]
    return np.stack([np.stack([c, -b], -1), np.stack([-b, a], -1)], -2) / (a * c - b * b)[:, None, None]


def _in_front(regions: np.ndarray, homography: np.ndarray) -> np.ndarray:
    """Whether centres lie on the side of the horizon that a camera sees, where the map mirrors nothing."""
    depth = regions[:, :2] @ homography[2, :2] + homography[2, 2]
    return depth * np.linalg.det(homography) > 0  # the Jacobian's determinant is det(H) / depth³


def _inside(regions: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Whether centres lie on the pixels of an image of that (height, width); NaN does not."""
    x, y = regions[:, 0], regions[:, 1]
    return (x >= -0.5) & (x < shape[1] - 0.5) & (y >= -0.5) & (y < shape[0] - 0.5)
