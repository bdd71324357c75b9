"""Matches between the features of two images, and the map of the plane that they agree on."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.docstrings import documented
from index.errors import CairnError
from index.parallel import one_thread
from retrieval.features.encoding import frames_of
from retrieval.features.extraction import Features
from retrieval.library.parts.arguments import as_array, checked_count, checked_indices, checked_regions, checked_rows
from retrieval.matching.evidence import probability
from retrieval.matching.nearest import match_descriptors
from retrieval.matching.verification import TWO_MATCHES, VerificationOptions
from retrieval.matching.verification import verify as verify_frames
from retrieval.matching.word_matches import QueryWords
from retrieval.regions.geometry import Frames, fit_affine
from retrieval.search.homography import in_pixels, projective_map

_FREEDOMS = {"places": TWO_MATCHES, "similarity": 4, "affine": 5, "scale": 3}
_MOST_TRIED = VerificationOptions().max_counted
_KEPT = 0.95  # of the inliers that a map fitted to them explains, at least


@documented
@dataclass(frozen=True, eq=False)
class Verified:
    """Result of verifying two images."""

    inliers: Annotated[
        NDArray[np.int32],
        "(M, 2)",
        "Matches that agree on one map, each feature at most once: number of the region in the first "
        "image, and in the second. Empty if the images are not verified.",
    ]
    transform: Annotated[
        NDArray[np.float64] | None,
        "(2, 3)",
        "Affine map of the first image's pixels to the second's; None: not verified.",
    ]
    homography: Annotated[
        NDArray[np.float64] | None,
        "(3, 3)",
        "The same as a homography, which fits a plane at a slant more closely, if the inliers determine one.",
    ]
    log_odds: Annotated[float, "Log odds that both images show the same, only by the matches; -inf without evidence."]
    unsure: Annotated[int, "Matches that agree on a map, perhaps by chance or as a line of text; 0 if verified."]

    @property
    def verified(self) -> bool:
        """Whether both images show the same, judging by the matches."""
        return self.transform is not None

    @property
    def probability(self) -> float:
        """Probability that both images show the same, only by the matches: 0 to 1."""
        return probability(self.log_odds) if np.isfinite(self.log_odds) else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as lists and plain numbers, for JSON."""
        return {
            "verified": self.verified,
            "probability": self.probability,
            "inliers": self.inliers.tolist(),
            "transform": self.transform.tolist() if self.transform is not None else None,
            "homography": self.homography.tolist() if self.homography is not None else None,
            "unsure": self.unsure,
        }


def nearest_matches(descriptors_a: ArrayLike, descriptors_b: ArrayLike, ratio: float = 0.8) -> NDArray[np.int32]:
    """Match descriptors that are each other's nearest, and clearly nearer than the second nearest.

    Parameters
    ----------
    descriptors_a, descriptors_b : array_like, shape (N, D) and (M, D)
        From `describe`; N and M may be 0.
    ratio : float
        Largest ratio of the distances to the nearest and the second nearest of the second image (Lowe, IJCV 2004,
        section 7.1); above 0, at most 1.

    Returns
    -------
    ndarray, shape (K, 2), int32
        Row of the first, row of the second; each at most once. Empty if the second image has fewer than two.

    Raises
    ------
    CairnError
        The descriptors differ in length, or are no rows of finite numbers; or the ratio is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import cairn
    >>> rows = np.eye(4, dtype=np.float32)
    >>> cairn.nearest_matches(rows[:2], rows[::-1])
    array([[0, 3],
           [1, 2]], dtype=int32)
    """
    rows = [checked_rows(descriptors_a, "descriptors_a"), checked_rows(descriptors_b, "descriptors_b")]
    if not 0 < ratio <= 1:
        raise CairnError(f"The ratio must be above 0 and at most 1, not {ratio}.")
    if not (len(rows[0]) and len(rows[1])):
        return np.zeros((0, 2), np.int32)
    if rows[0].shape[1] != rows[1].shape[1]:
        raise CairnError(
            f"Descriptors of {rows[0].shape[1]} and of {rows[1].shape[1]} numbers cannot be compared: describe both "
            "images by the same."
        )
    with one_thread():
        return match_descriptors(rows[0], rows[1], ratio)


def word_matches(words_a: ArrayLike, words_b: ArrayLike, most: int = 1500) -> NDArray[np.int32]:
    """Match features that have the same visual word.

    Parameters
    ----------
    words_a, words_b : array_like, shape (N,) and (M,), int
        From `Vocabulary.assign`; N and M may be 0.
    most : int
        Largest number of matches; if there are more, those of the words with the fewest are returned.

    Returns
    -------
    ndarray, shape (K, 2), int32
        Feature of the first, feature of the second; one may have several matches.

    Raises
    ------
    CairnError
        The words are no whole numbers from 0 on.

    Examples
    --------
    >>> import cairn
    >>> cairn.word_matches([7, 3, 9], [3, 3, 7]).tolist()
    [[1, 0], [1, 1], [0, 2]]
    """
    first, second = checked_indices(words_a, "words_a"), checked_indices(words_b, "words_b")
    order = np.argsort(second, kind="stable")
    pairs = QueryWords(first).match(second[order], checked_count(most, "most", 0))
    return np.stack([pairs[:, 0], order[pairs[:, 1]]], axis=1).astype(np.int32)


def verify(
    regions_a: ArrayLike,
    regions_b: ArrayLike,
    matches: ArrayLike,
    shape_a: tuple[int, ...],
    shape_b: tuple[int, ...],
    *,
    angles_a: ArrayLike | None = None,
    angles_b: ArrayLike | None = None,
    hypotheses: str = "affine",
    threshold: float = 0.025,
    min_inliers: int = 4,
) -> Verified:
    """Verify matches by geometry: find a map of the plane that explains many of them.

    Every match defines a hypothesis, as two ellipses determine a map of the plane up to a rotation (Philbin et al.,
    CVPR 2007); the best are refined (Chum, Matas & Kittler, DAGM 2003). Maps that as many matches would agree on by
    chance are rejected. Searches of a collection are stricter, as the rarity of words is known.

    Parameters
    ----------
    regions_a, regions_b : array_like, shape (N, 5) and (M, 5)
        Regions of the two images, see `detect`.
    matches : array_like, shape (K, 2), int
        Tentative matches, such as those of `nearest_matches`: row of `regions_a`, row of `regions_b`.
    shape_a, shape_b : tuple of int
        Of the images: ``image.shape``, height and width first. Thresholds are parts of the longer side.
    angles_a, angles_b : array_like, shape (N,) and (M,), optional
        From `orientations`, if patches were rotated; by default "down" is assumed to be down in both images.
    hypotheses : str
        Map defined by one match: ``affine`` (5 degrees of freedom, "down" kept, or rotated by the angles),
        ``similarity`` (scale, rotation and shift), ``scale`` (scale and shift); or ``places``: two matches define a
        similarity, whatever the shapes of their regions.
    threshold : float
        Largest symmetric transfer error of an inlier, as a part of the images' longer sides.
    min_inliers : int
        Fewest inliers that verify.

    Returns
    -------
    Verified

    Raises
    ------
    CairnError
        An array has another shape or values that are not finite, a match names a missing region, or an option is out
        of range.

    Examples
    --------
    >>> import skimage.data
    >>> import cairn
    >>> photo = skimage.data.coins()
    >>> first, second = photo[20:180, 10:170], photo[30:190, 25:185]  # moved by 15 and 10 pixels
    >>> regions = [cairn.detect(image) for image in (first, second)]
    >>> rows = [cairn.describe(image, found) for image, found in zip((first, second), regions)]
    >>> verified = cairn.verify(*regions, cairn.nearest_matches(*rows), first.shape, second.shape)
    >>> verified.verified, len(verified.inliers) > 20
    (True, True)
    >>> verified.transform[:, 2].round()
    array([-15., -10.])
    """
    if hypotheses not in _FREEDOMS:
        raise CairnError(f"There are no hypotheses {hypotheses!r}: choose one of {', '.join(_FREEDOMS)}.")
    if not 0 < threshold < 1:
        raise CairnError(f"The threshold is a part of the longer side, above 0 and below 1, not {threshold}.")
    regions = checked_regions(regions_a, "regions_a"), checked_regions(regions_b, "regions_b")
    sides = _longer_side(shape_a, "shape_a"), _longer_side(shape_b, "shape_b")
    angles = _angles(angles_a, len(regions[0]), "angles_a"), _angles(angles_b, len(regions[1]), "angles_b")
    pairs = _pairs(matches, len(regions[0]), len(regions[1]))
    options = VerificationOptions(
        freedom=_FREEDOMS[hypotheses], threshold=threshold, min_inliers=checked_count(min_inliers, "min_inliers", 3)
    )
    if hypotheses == "places":  # the shapes of regions are not used
        evidence = replace(options.evidence, log_scale=np.inf, shape=np.inf)
        options = replace(options, scale_ratio=np.inf, evidence=evidence)
    frames = [
        _frames(rows, turned, side, pairs[:, place])
        for place, (rows, turned, side) in enumerate(zip(regions, angles, sides, strict=True))
    ]
    with one_thread():
        verification = verify_frames(frames[0], frames[1], pairs, options)
    if verification.transform is None:
        return Verified(np.zeros((0, 2), np.int32), None, None, float(verification.log_odds), verification.unsure)
    inliers = verification.matches.astype(np.int32)
    source = _frames(regions[0], angles[0], sides[0], inliers[:, 0]).centres
    target = _frames(regions[1], angles[1], sides[1], inliers[:, 1]).centres
    affine = np.vstack([_fitted(verification.transform, source, target, threshold), [0, 0, 1]])
    projective = projective_map(source, target)
    return Verified(
        inliers,
        in_pixels(affine, *sides)[:2],
        in_pixels(affine if projective is None else projective, *sides),
        float(verification.log_odds),
        0,
    )


def _fitted(
    found: NDArray[np.float64], source: NDArray[np.floating], target: NDArray[np.floating], threshold: float
) -> NDArray[np.float64]:
    """Fit a map to its inliers by least squares; return the original if the fit explains too few of them.

    Verification chooses the map with most inliers, and one stray match can keep the map of a single region from being
    refined.
    """
    fitted = fit_affine(source.astype(np.float64), target.astype(np.float64))
    if fitted is None:
        return found
    errors = np.linalg.norm(source @ fitted[:, :2].T + fitted[:, 2] - target, axis=1)
    return fitted if np.mean(errors <= threshold) > _KEPT else found


def _frames(regions: NDArray[np.float32], angles: NDArray[np.float32], side: float, rows: NDArray[np.int32]) -> Frames:
    """Frames of some regions in units of the longer side."""
    return frames_of(Features(regions[rows], angles[rows], np.zeros((len(rows), 0), np.float16)), side)


def _longer_side(shape: tuple[int, ...], name: str) -> float:
    sides = as_array(shape, name)
    if sides.ndim != 1 or len(sides) not in (2, 3) or sides.dtype.kind not in "iu" or sides.min() < 1:
        raise CairnError(f"{name} must be the shape of an image, (H, W) or (H, W, 3), not {shape!r}.")
    return float(sides[:2].max())


def _angles(angles: ArrayLike | None, number: int, name: str) -> NDArray[np.float32]:
    if angles is None:
        return np.zeros(number, np.float32)
    values = as_array(angles, name)
    if values.shape != (number,) or values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise CairnError(f"{name} must be {number} finite numbers, one a region, not of shape {values.shape}.")
    return values.astype(np.float32)


def _pairs(matches: ArrayLike, first: int, second: int) -> NDArray[np.int32]:
    pairs = as_array(matches, "matches")
    if not pairs.size:
        return np.zeros((0, 2), np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise CairnError(f"matches must have the shape (K, 2), not {pairs.shape}.")
    if len(pairs) > _MOST_TRIED:
        raise CairnError(
            f"{len(pairs)} matches are too many to verify: give {_MOST_TRIED} at most, those that are the clearest."
        )
    checked = (checked_indices(pairs[:, place], "matches", below) for place, below in enumerate((first, second)))
    return np.stack(list(checked), axis=1).astype(np.int32)
