"""Homography from a query to a photo that it was verified with: from pixels of one upright original to the other's."""

import numpy as np
from numpy.typing import NDArray

from index.segments.segment import ImageFeatures
from retrieval.catalogue.schema import ImageRow
from retrieval.features.encoding import decode_centres
from retrieval.regions.geometry import into_sides, out_of_sides
from retrieval.search.query import Query
from retrieval.search.ranking import Hit

TOLERANCE = 0.005  # largest error of a match that fixes the homography, as a part of the photo's longer side
FEWEST = 12  # matches that fix one
# Draws of four matches: if half of all agree, as required, 107 draws miss four agreeing ones once in a thousand times.
_DRAWS = 500
_MOST = 500  # matches used, evenly spread by their words: more make the fit slower, not visibly better


def may_fix(hit: Hit) -> bool:
    """Whether a hit has enough matches to fix a homography; otherwise the features of the photo are not needed."""
    return len(hit.verification.matches) >= FEWEST


def homography(hit: Hit, query: Query, row: ImageRow, image: ImageFeatures | None) -> NDArray[np.float64] | None:
    """Map (3, 3) from a query's pixels to a photo's; None if the hit is not verified.

    Verification fits an affine map, with a tolerance for flat objects seen at a slant, so its inliers suffice to fit a
    homography (RANSAC and least squares; Hartley & Zisserman, *Multiple View Geometry*, section 4.8). Returns the
    affine map if the inliers fix no homography that keeps the query in front of the camera. `image`: the photo's
    features; may be None unless `may_fix(hit)`.
    """
    transform = hit.verification.transform
    if transform is None:
        return None
    side = float(max(row.width or 1, row.height or 1))
    fitted = _projective(hit, query, image) if image is not None and may_fix(hit) else None
    if fitted is None:
        fitted = np.vstack([transform, [0, 0, 1]])
    matrix = in_pixels(fitted, query.side, side) @ query.mirroring
    return np.asarray(matrix / matrix[2, 2])


def in_pixels(found: NDArray[np.float64], query_side: float, side: float) -> NDArray[np.float64]:
    """Convert a homography (3, 3) from units of the longer sides of query and photo to pixels of both."""
    matrix = out_of_sides(side) @ found @ into_sides(query_side)
    return np.asarray(matrix / matrix[2, 2])


def _projective(hit: Hit, query: Query, image: ImageFeatures) -> NDArray[np.float64] | None:
    """Homography (3, 3) that most inliers agree on, in units of the longer sides."""
    matches = hit.verification.matches
    matches = matches[_some(len(matches))]
    view = query.views[hit.view]
    centres, places = view.frames.centres[matches[:, 0]], decode_centres(image.columns, matches[:, 1])
    if view.elongation == image.elongation == 1:
        return projective_map(centres, places)
    fitted = projective_map(centres * view.elongation, places * image.elongation)
    if fitted is None:
        return None
    into, out = np.diag([view.elongation, view.elongation, 1]), np.diag([1, 1, image.elongation])
    return np.asarray(out @ fitted @ into)


def _some(matches: int) -> NDArray[np.int64]:
    """Numbers of a sample of the matches."""
    return np.arange(min(matches, _MOST)) * matches // max(min(matches, _MOST), 1)


def projective_map(source: NDArray[np.floating], target: NDArray[np.floating]) -> NDArray[np.float64] | None:
    """Homography (3, 3) of inliers (K, 2) of an affine map, in units of the longer sides; None if they are fewer than
    `FEWEST`, agree on no homography, or it is no view of the area they cover: behind the camera, or mirrored.
    """
    if len(source) < FEWEST:
        return None
    from retrieval.search.homography_kernels import most_agreed  # imported here, as Numba loads slowly

    some = _some(len(source))
    here, there = (np.ascontiguousarray(points[some], np.float64) for points in (source, target))
    matrix = np.empty((3, 3))
    if most_agreed(here, there, TOLERANCE, _DRAWS, matrix) < max(FEWEST, len(here) / 2):
        return None
    return matrix
