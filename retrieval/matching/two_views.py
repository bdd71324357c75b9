"""Matches of two photos for structure from motion: pairs of features and their epipolar geometry."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from index.hamming.voting import VotingOptions
from index.parallel import one_thread

RATIO = 0.8  # of the distances to the nearest and the second nearest descriptor (Lowe, IJCV 2004, section 7.1)
FEWEST = 15  # inliers of a geometry, as in COLMAP
PLANE = 0.8  # part of the inliers explained by one homography from which the geometry is planar, as in COLMAP
_ERROR = 4.0, 0.002  # largest epipolar distance: in pixels, or as a part of the longer side if that is more
_CONFIDENCE, _DRAWS = 0.9999, 10_000


@dataclass(frozen=True)
class TwoViews:
    """Geometry of two photos."""

    inliers: NDArray[np.int32]  # (M, 2) int32: matches that agree with it
    fundamental: NDArray[np.float64]  # (3, 3) float64: x₂ᵀ F x₁ = 0 for pixels of the first and the second photo
    # (3, 3) float64: maps pixels of the first photo to the second's, if a plane or a rotation of the camera explains
    # the inliers
    homography: NDArray[np.float64] | None


def match_signed(
    words: tuple[NDArray[np.integer], NDArray[np.integer]],
    signatures: tuple[NDArray[np.uint8], NDArray[np.uint8]] | None,
) -> NDArray[np.int32]:
    """Match features (K, 2) of equal words, one to one: those whose signatures are mutual nearest neighbours.
    `signatures`: of the same features. Without them, only words that occur once in each photo are matched.
    """
    matches = []
    by_word = [_by_word(one) for one in words]
    for word in by_word[0].keys() & by_word[1].keys():
        one, other = by_word[0][word], by_word[1][word]
        if signatures is None:
            if len(one) == len(other) == 1:
                matches.append((one[0], other[0]))
            continue
        bits = np.bitwise_count(signatures[0][one][:, None] ^ signatures[1][other][None]).sum(axis=2, dtype=np.int64)
        nearest = bits.argmin(axis=1)
        limit = round(VotingOptions.radius * 8 * signatures[0].shape[1])
        matches += [
            (one[row], other[column])
            for row, column in enumerate(nearest.tolist())
            if bits[row, column] <= limit and bits[:, column].argmin() == row
        ]
    return np.array(sorted(matches), np.int32).reshape(-1, 2)


def _by_word(words: NDArray[np.integer]) -> dict[int, NDArray[np.int64]]:
    order = np.argsort(words, kind="stable")
    distinct, starts = np.unique(words[order], return_index=True)
    return dict(zip(distinct.tolist(), np.split(order, starts[1:]), strict=True)) if len(words) else {}


def two_views(
    matches: NDArray[np.int32], first: NDArray[np.float32], second: NDArray[np.float32], side: float
) -> TwoViews | None:
    """Epipolar geometry of two photos by tentative matches (K, 2) of places in pixels (RANSAC; Hartley & Zisserman,
    *Multiple View Geometry*, chapter 11); None if fewer than `FEWEST` agree. `side`: longer side of the larger photo.
    """
    if len(matches) < FEWEST:
        return None
    one, other = (
        np.ascontiguousarray(side[rows], np.float64) for side, rows in zip((first, second), matches.T, strict=True)
    )
    error = max(_ERROR[0], _ERROR[1] * side)
    with one_thread():
        matrix, mask = cv2.findFundamentalMat(one, other, cv2.USAC_MAGSAC, error, _CONFIDENCE, _DRAWS)
        if matrix is None or matrix.shape != (3, 3) or mask is None:
            return None
        agree = mask.ravel() != 0
        if agree.sum() < FEWEST:
            return None
        plane, on_plane = cv2.findHomography(one[agree], other[agree], cv2.RANSAC, error)
    is_plane = plane is not None and on_plane is not None and on_plane.mean() >= PLANE
    return TwoViews(matches[agree], np.asarray(matrix, np.float64), np.asarray(plane, np.float64) if is_plane else None)
