"""Matching between photos with a known homography: recall (Simonyan14, eq. 15), and average precision as in the
matching task of HPatches (Balntas et al., CVPR 2017), on the project's own regions.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import one_thread
from index.progress import Progress, silent
from learning.building.sequences import read_sequences
from retrieval.descriptors.contract import Descriptor
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.overlap import OverlapSets, overlap_sets

_BLOCK = 4_000_000  # distances held at a time: 32 MB


@dataclass(frozen=True)
class MatchingOptions:
    """Options of matches and their ranking."""

    high: float = 0.6  # overlap of measurement regions above which a match is positive (Simonyan14, section 9)
    low: float = 0.3  # and below which it is negative; between the two it is ambiguous and ignored
    ratio: bool = False  # rank by the ratio of the distances to the nearest and the second nearest, instead of distance

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < 1:
            raise CairnError(
                f"The overlaps {self.high} and {self.low} must lie between 0 and 1, the larger one (positive) first."
            )


@dataclass(frozen=True)
class PhotoPair:
    """Two photos of one plane."""

    name: str
    first: Path
    second: Path
    homography: NDArray[np.float64]  # (3, 3): maps pixels (x, y, 1) of the first photo to the second


@dataclass(frozen=True)
class ViewFeatures:
    """Features of one photo, by one or more descriptors."""

    regions: NDArray[np.float64]  # (N, 5) float64 measurement regions, pixels of the upright original
    shape: tuple[int, int]  # (height, width) of the upright original
    descriptors: list[NDArray[np.float16]]  # (N, D) each


@dataclass(frozen=True)
class Matches:
    """The match of each feature x of the first photo that has a positive: its nearest neighbour in P(x) ∪ N(x)."""

    features: NDArray[np.int64]  # (F,) int64: x, ascending
    # (F,) bool: a positive is nearer than every negative (Simonyan14 equation 15); False for ties
    right: NDArray[np.bool_]
    scores: NDArray[np.float64]  # (F,): distance of the match, or its ratio to the second's; smaller is better


@dataclass(frozen=True)
class PairScore:
    """Score of one descriptor on one pair."""

    pair: str
    features: int  # of the first photo with a positive: the base of recall and ap
    regions: tuple[int, int]  # detected in the photos
    recall: float | None  # None if no feature has a positive
    ap: float | None


@dataclass(frozen=True)
class MatchingReport:
    """Scores of one descriptor on all pairs."""

    descriptor: str
    dim: int
    scores: list[PairScore]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def recall(self) -> float | None:
        """Mean recall of the pairs with one."""
        return _mean([score.recall for score in self.scores])

    @property
    def mean_ap(self) -> float | None:
        """Mean average precision of the pairs with one."""
        return _mean([score.ap for score in self.scores])

    def as_json(self) -> dict[str, Any]:
        """Return the object that `cairn evaluate matching --json` prints."""
        return {
            "recall": _rounded(self.recall),
            "mAP": _rounded(self.mean_ap),
            "descriptor": self.descriptor,
            "dim": self.dim,
            "pairs": [
                {
                    "pair": score.pair,
                    "features": score.features,
                    "recall": _rounded(score.recall),
                    "ap": _rounded(score.ap),
                    "regions": list(score.regions),
                }
                for score in self.scores
            ],
            "seconds": {step: round(value, 3) for step, value in self.seconds.items()},
        }


def find_pairs(folder: Path) -> list[PhotoPair]:
    """List the pairs of a folder: every photo of a sequence with its first, or the pairs in it."""
    pairs = []
    for sequence in read_sequences(folder):
        first = sequence.images[0]
        for second, homography in zip(sequence.images[1:], sequence.homographies[1:], strict=True):
            name = sequence.name if second.stem == first.stem else f"{sequence.name}/{second.stem}"
            # Rows differ in size by the photo's width: normalise each before testing for dependence.
            rows = homography / np.abs(homography).max(axis=1, keepdims=True)
            if np.linalg.matrix_rank(rows, tol=1e-12) < 3:
                raise CairnError(f"The homography of {name} in {folder} is singular: it maps the photo to a line.")
            pairs.append(PhotoPair(name, first, second, homography))
    return pairs


def evaluate_matching(
    pairs: Sequence[PhotoPair],
    descriptors: Sequence[Descriptor],
    *,
    features: FeatureOptions | None = None,
    image: ImageOptions | None = None,
    options: MatchingOptions | None = None,
    progress: Progress = silent,
) -> list[MatchingReport]:
    """Match the pairs by each of the descriptors, on the same regions: a report a descriptor. Regions are compared in
    pixels of the upright originals; pairs in a row with the same first photo share its features. The seconds of
    ``features`` are those of all descriptors together.

    `descriptors`: each describes the same measurement regions, cropped at its own patch size.
    """
    extractors = [Extractor(descriptor, features or FeatureOptions()) for descriptor in descriptors]
    scores: list[list[PairScore]] = [[] for _ in descriptors]
    seconds = {"features": 0.0, "match": 0.0}
    first: ViewFeatures | None = None
    last: Path | None = None
    for done, pair in enumerate(pairs):
        start = time.perf_counter()
        if first is None or pair.first != last:
            first, last = read_view(pair.first, extractors, image), pair.first
        second = read_view(pair.second, extractors, image)
        middle = time.perf_counter()
        for each, score in zip(scores, evaluate_pair(pair.name, first, second, pair.homography, options), strict=True):
            each.append(score)
        seconds["features"] += middle - start
        seconds["match"] += time.perf_counter() - middle
        progress("pairs", done + 1, len(pairs))
    seconds["total"] = sum(seconds.values())
    return [
        MatchingReport(each.name, each.dim, pair_scores, dict(seconds))
        for each, pair_scores in zip(descriptors, scores, strict=True)
    ]


def read_view(path: Path, extractors: Sequence[Extractor], image: ImageOptions | None = None) -> ViewFeatures:
    """Detect a photo's regions once and describe them by every extractor; their feature options must be the same."""
    try:
        photo = read_photo(path, image)
    except CairnError as error:
        raise CairnError(f"{path} cannot be used: {error}.") from None
    detected = extractors[0].detect(photo)
    descriptors = []
    for extractor in extractors:
        with np.errstate(over="ignore"):
            described = extractor.describe(photo, detected)
        if not np.isfinite(described.descriptors).all():
            raise CairnError(
                f"The descriptor {extractor.descriptor.name!r} gives numbers that are not finite or beyond 65,504, "
                "so its distances say nothing: scale it down."
            )
        regions = described.ellipses.astype(np.float64)
        descriptors.append(described.descriptors)
    regions[:, 2:] /= extractors[0].region_scale ** 2
    return ViewFeatures(regions, (photo.height, photo.width), descriptors)


def evaluate_pair(
    name: str,
    first: ViewFeatures,
    second: ViewFeatures,
    homography: NDArray[np.floating],
    options: MatchingOptions | None = None,
) -> list[PairScore]:
    """Score every descriptor of two views of a plane; the homography maps the first one's pixels to the second's."""
    options = options or MatchingOptions()
    sets = overlap_sets(first.regions, second.regions, homography, second.shape, options.high, options.low)
    regions = len(first.regions), len(second.regions)
    scores = []
    for rows1, rows2 in zip(first.descriptors, second.descriptors, strict=True):
        matches = match_features(rows1, rows2, sets, ratio=options.ratio)
        number = len(matches.features)
        recall = float(matches.right.mean()) if number else None
        ap = matching_average_precision(matches.scores, matches.right) if number else None
        scores.append(PairScore(name, number, regions, recall, ap))
    return scores


def match_features(
    descriptors1: NDArray[np.floating], descriptors2: NDArray[np.floating], sets: OverlapSets, *, ratio: bool = False
) -> Matches:
    """Match each feature x of a first photo that has positives to its nearest neighbour in P(x) ∪ N(x), by rows (N, D)
    and (M, D). With `ratio` a match scores by the ratio of the distances to the nearest and the second nearest: 0 if
    there is no second, 1 if both are 0.

    `sets`: the positive and the ambiguous pairs; all others are negative.
    """
    features = np.unique(sets.positives[:, 0])
    right, scores = np.zeros(len(features), bool), np.zeros(len(features))
    # Products of float16 and their sums are exact in float64 for rows of like-sized numbers, so that equal distances
    # come out equal, whatever the order in which a library adds.
    others = descriptors2.astype(np.float64)
    lengths = np.einsum("md,md->m", others, others)
    step = max(1, _BLOCK // max(1, len(others)))
    for start in range(0, len(features), step):
        part = features[start : start + step]
        rows = descriptors1[part].astype(np.float64)
        with one_thread():
            squared = rows @ others.T
        squared *= -2
        squared += np.einsum("nd,nd->n", rows, rows)[:, None]
        squared += lengths
        np.maximum(squared, 0, out=squared)
        squared[_members(sets.ambiguous, part)] = np.inf
        if ratio:
            nearest, second = _two_smallest(squared)
        of, member = _members(sets.positives, part)
        # Pairs are sorted, and every feature of this part has some.
        positive = np.minimum.reduceat(squared[of, member], np.searchsorted(of, np.arange(len(part))))
        squared[of, member] = np.inf
        negative = squared.min(axis=1)
        block = slice(start, start + step)
        right[block] = positive < negative
        if ratio:
            share = np.divide(nearest, second, out=np.ones(len(part)), where=second > 0)
            scores[block] = np.sqrt(np.where(np.isinf(second), 0, share))
        else:
            scores[block] = np.sqrt(np.minimum(positive, negative))
    return Matches(features, right, scores)


def matching_average_precision(scores: NDArray[np.floating], right: NDArray[np.bool_]) -> float:
    """Area under the precision-recall curve of ranked matches; scores (F,), the smallest first. Recall is over *all*
    matches, so that the curve ends at that of eq. 15; the area is by trapezoids from precision 1 at recall 0. For ties
    it is the mean over all orders (McSherry & Najork, ECIR 2008). Raises ValueError without matches, or if a score is
    NaN.
    """
    scores, right = np.asarray(scores, np.float64), np.asarray(right, bool)
    if not scores.size or np.isnan(scores).any():
        raise ValueError("there is no ranking of no matches, or of scores that are no numbers")
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    hits = np.bincount(group, weights=right)
    ends = np.cumsum(sizes)
    # By rank k: position j in its group of ties, the group's share of right matches, and the expected number of right
    # ones before rank k if the match there is right: those of earlier groups, and (hits - 1)(j - 1)/(size - 1) of its
    # own.
    k = np.arange(1, len(scores) + 1)
    of = np.repeat(np.arange(len(sizes)), sizes)
    j = k - (ends - sizes)[of]
    share = (hits / sizes)[of]
    before = (np.cumsum(hits) - hits)[of] + (hits[of] - 1) * (j - 1) / np.maximum(sizes[of] - 1, 1)
    previous = np.where(k > 1, before / np.maximum(k - 1, 1), 1.0)
    return float((share * (previous + (before + 1) / k) / 2).sum() / len(scores))


def _members(pairs: NDArray[np.integer], part: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
    """The sorted pairs (K, 2) of some features (ascending): index of each among these, and number of the other."""
    rows = pairs[np.searchsorted(pairs[:, 0], part[0]) : np.searchsorted(pairs[:, 0], part[-1], side="right")]
    place = np.searchsorted(part, rows[:, 0])
    known = part[place] == rows[:, 0]
    return place[known], rows[known, 1]


def _two_smallest(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and second smallest of each row (N, M); infinity if missing."""
    if values.shape[1] < 2:
        return values[:, 0], np.full(len(values), np.inf)
    two = np.partition(values, 1, axis=1)[:, :2]
    return two[:, 0], two[:, 1]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
