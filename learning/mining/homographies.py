"""The map between two photos that show the same plane: matched, verified, refined (Simonyan14, section 9)."""

from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import one_thread
from retrieval.features.encoding import frames_of
from retrieval.features.extraction import Features
from retrieval.matching.nearest import match_descriptors
from retrieval.matching.verification import VerificationOptions, verify
from retrieval.regions.geometry import fit_affine

MODELS = ("projective", "affine")
_ROUNDS = 5  # of refinement: inliers, least squares, inliers again
_FEWEST = 12  # matches that fix a projective map


@dataclass(frozen=True)
class MapOptions:
    """Options of accepting two photos of the same plane, and of the map between them."""

    inliers: int = 50  # fewest matches that agree on an affine map (Simonyan14, section 9)
    model: str = "projective"  # type of the refined map; "affine" refines it to a closer affine one
    tolerance: float = 0.01  # largest error of an inlier of the refined map, relative to the photos' longer sides
    strongest: int = 3000  # number of the strongest features of a photo to match; 0: all
    verification: VerificationOptions = field(default_factory=VerificationOptions)  # of the affine map

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise CairnError(f"There is no map {self.model!r}; choose one of {', '.join(MODELS)}.")
        if self.inliers < 4:
            raise CairnError(f"A map needs 4 matches that agree on it at least, not {self.inliers}.")
        if not 0 < self.tolerance < 1:
            raise CairnError(f"The tolerance is a part of the photo's longer side, and cannot be {self.tolerance}.")
        if self.strongest < 0:
            raise CairnError("The number of features that are matched cannot be negative.")


@dataclass(frozen=True)
class PhotoPoints:
    """Points and descriptors of one photo."""

    features: Features  # in pixels of the upright original, the strongest first
    width: int  # pixels of the upright original
    height: int

    @property
    def side(self) -> int:
        """Longer side, pixels."""
        return max(self.width, self.height)


@dataclass(frozen=True)
class PhotoMap:
    """A map between two photos."""

    homography: NDArray[np.float64]  # (3, 3) float64: pixels of the first upright original to those of the second
    inliers: int  # matches that agree on the affine map


def find_map(first: PhotoPoints, second: PhotoPoints, options: MapOptions) -> PhotoMap | None:
    """Find the map between two photos from matches of their descriptors; None if too few agree.

    Mutual nearest neighbours are verified by an affine map, as in the paper, which fits a plane only roughly at close
    range or at a slant. A projective one, estimated from the matches near the affine one, gives a fifth more features a
    positive, with a quarter fewer wrong ones.
    """
    limit = options.strongest or None
    rows1, rows2 = first.features.descriptors[:limit], second.features.descriptors[:limit]
    with one_thread():
        pairs = match_descriptors(rows1, rows2)
        if len(pairs) < options.inliers:
            return None
        frames1 = frames_of(_take(first.features, pairs[:, 0]), first.side)
        frames2 = frames_of(_take(second.features, pairs[:, 1]), second.side)
        verified = verify(frames1, frames2, pairs, options.verification)
        if verified.transform is None or verified.inliers < options.inliers:
            return None
        # Pairs are one-to-one and sorted by the first photo's feature, and inliers are some of them.
        agreed = np.searchsorted(pairs[:, 0], verified.matches[:, 0])
        source, target = frames1.centres.astype(np.float64), frames2.centres.astype(np.float64)
        matrix = refine_map(source, target, verified.transform, agreed, options)
    # Verification works in units of the longer side, with the corner of the top-left pixel at the origin.
    into = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, first.side]]) / first.side
    out = np.array([[second.side, 0, -0.5], [0, second.side, -0.5], [0, 0, 1]])
    matrix = out @ matrix @ into
    return PhotoMap(matrix / matrix[2, 2], verified.inliers)


def refine_map(
    source: NDArray[np.float64],
    target: NDArray[np.float64],
    affine: NDArray[np.float64],
    agreed: NDArray[np.int64],
    options: MapOptions,
) -> NDArray[np.float64]:
    """Refine the affine map (2, 3) of a plane to the map (3, 3) with most inliers among all tentative matches (N, 2).

    Returns the affine one if no other is better. `agreed` (K,) are its inliers by verification's larger tolerance.
    """
    best = np.vstack([affine, [0, 0, 1]])
    most = int(np.count_nonzero(_agreeing(best, source, target, options.tolerance)))
    models = ("affine", "projective") if options.model == "projective" else ("affine",)
    for model in models:
        matrix = _consensus(model, source[agreed], target[agreed], options.tolerance)
        for _ in range(_ROUNDS):
            if matrix is None:
                break
            inliers = _agreeing(matrix, source, target, options.tolerance)
            count = int(np.count_nonzero(inliers))
            if count <= most or not _is_view(matrix, source[inliers]):
                break
            best, most = matrix, count
            matrix = _least_squares(model, source[inliers], target[inliers])
    return best


def _take(features: Features, rows: NDArray[np.int32]) -> Features:
    return Features(features.ellipses[rows], features.angles[rows], features.descriptors[rows])


def _consensus(
    model: str, source: NDArray[np.float64], target: NDArray[np.float64], tolerance: float
) -> NDArray[np.float64] | None:
    """Map (3, 3) with most inliers (RANSAC with a fixed seed)."""
    if model == "projective":
        if len(source) < _FEWEST:
            return None
        estimate: NDArray[Any] | None = cv2.findHomography(
            source, target, cv2.RANSAC, tolerance, maxIters=2000, confidence=0.999
        )[0]
        return estimate
    matrix = cv2.estimateAffine2D(
        source, target, method=cv2.RANSAC, ransacReprojThreshold=tolerance, maxIters=2000, confidence=0.999
    )[0]
    return None if matrix is None else np.vstack([matrix, [0, 0, 1]])


def _least_squares(model: str, source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64] | None:
    if model == "projective":
        estimate: NDArray[Any] | None = cv2.findHomography(source, target, 0)[0]
        return estimate
    matrix = fit_affine(source, target)
    return None if matrix is None else np.vstack([matrix, [0, 0, 1]])


def _agreeing(
    matrix: NDArray[np.float64], source: NDArray[np.float64], target: NDArray[np.float64], tolerance: float
) -> NDArray[np.bool_]:
    """Mask (N,) of the matches whose error is within the tolerance in both directions."""
    if not np.isfinite(matrix).all() or abs(np.linalg.det(matrix)) < 1e-12:
        return np.zeros(len(source), bool)
    agree = np.ones(len(source), bool)
    for each, points, goal in ((matrix, source, target), (np.linalg.inv(matrix), target, source)):
        mapped = np.column_stack([points, np.ones(len(points))]) @ each.T
        with np.errstate(divide="ignore", invalid="ignore"):
            error = mapped[:, :2] / mapped[:, 2:] - goal
            agree &= (error**2).sum(axis=1) < tolerance**2  # false for NaN
    return agree


def _is_view(matrix: NDArray[np.float64], source: NDArray[np.float64]) -> bool:
    """Whether a map is a possible view of a plane: not mirrored, and all matched points before the camera."""
    x0, y0 = source.min(axis=0)
    x1, y1 = source.max(axis=0)
    depth = matrix[2] @ np.array([[x0, x1, x1, x0], [y0, y0, y1, y1], [1, 1, 1, 1]])
    depth = depth * np.sign(depth[0])
    return bool(depth.min() * 10 >= depth.max() and np.linalg.det(matrix) * np.sign(matrix[2, 2]) > 0)
