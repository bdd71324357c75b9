"""Repeatability of a detector in another view, by overlap error (Mikolajczyk et al., IJCV 2005, sections 4.1, 4.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from retrieval.regions.overlap import inside_image, mean_radii, overlap_error, transfer_ellipses

NORMALISED_RADIUS = 30.0  # pixels: normalised size of reference regions for computing errors
_REACH = 4.0  # centres further apart than this many radii of the reference region are no candidates


@dataclass(frozen=True)
class Repeatability:
    """Repeatability of a detector."""

    repeatability: float  # correspondences / min(regions1, regions2); 0 if one image has no region
    correspondences: int  # pairs of regions, one-to-one, with less than the largest overlap error
    regions1: int  # regions of the first image whose centre is visible in the second
    regions2: int  # and of the second in the first
    matches: NDArray[np.int32]  # (correspondences, 2) int32: rows of the regions, by rising overlap error
    errors: NDArray[np.float64]  # (correspondences,) float64: their overlap errors


def repeatability(
    regions1: NDArray[np.floating],
    regions2: NDArray[np.floating],
    homography: NDArray[np.floating],
    shape1: tuple[int, int],
    shape2: tuple[int, int],
    max_error: float = 0.4,
) -> Repeatability:
    """Count the regions (N, 5), (M, 5) repeated in a second view of a plane; ellipses ``x, y, a, b, c`` in pixels,
    centres at integers. Only regions whose *centre* falls inside the other image count; pairs are taken by rising
    overlap error, each region at most once. Repeatability rises with the density of regions: compare detectors at
    similar counts. Raises ValueError unless 0 < `max_error` < 0.5: the search for candidates depends on it.

    `homography`: maps points of the first image to the second.
    """
    if not 0 < max_error < 0.5:
        raise ValueError(f"max_error must lie between 0 and 0.5, and is {max_error}.")
    inverse = np.linalg.inv(homography)
    mapped = transfer_ellipses(regions2, inverse)
    kept1 = np.flatnonzero(inside_image(transfer_ellipses(regions1, homography), shape2))
    kept2 = np.flatnonzero(inside_image(mapped, shape1))
    reference, others = np.asarray(regions1, np.float64)[kept1], mapped[kept2]
    pairs = _candidates(reference, others, max_error)
    errors = overlap_error(reference, others, pairs, NORMALISED_RADIUS)
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


def _candidates(regions1: NDArray[np.floating], regions2: NDArray[np.floating], max_error: float) -> NDArray[np.int64]:
    """Pairs that can have less than the largest error, max_error < 0.5: (K, 2) int64 and sorted.

    With e < 0.5 the intersection I covers more than half of both ellipses, since I >= (1-e) union. Then I and its
    mirror image in an ellipse's centre share a point p of that ellipse; p lies in the other ellipse as placed at +d and
    at -d, and by its convexity d is one of its vectors. So each centre lies within both normalised ellipses.
    """
    if not len(regions1) or not len(regions2):
        return np.zeros((0, 2), np.int64)
    radii1, radii2 = mean_radii(regions1), mean_radii(regions2)
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
    return np.asarray(pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])
