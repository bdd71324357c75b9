"""Evidence that two photos show the same: log odds of a map between them.

Counting inliers as if they were independent mistakes paving, foliage and printed letters for landmarks: their features
have a few common words and lie on a grid, and the map with most inliers is the best of many. Four cues distinguish
them. Places: matches that overlap in either photo count once. Accuracy: features of the same object agree in place,
scale and shape far more closely than the threshold requires; the rate at which other features of the two photos agree
as closely is measured, not assumed. Rarity: photos made of the collection's commonest words match each other in many
places. Spread: matches in one low strip of both photos are a line of text.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval.matching.poisson import at_least
from retrieval.regions.geometry import Frames

_SAMPLES = (200, 400)  # features of the query and of the photo that the rate of chance agreement is measured with
_NEVER = 1e-300


@dataclass(frozen=True)
class EvidenceOptions:
    """How the evidence for a map is weighed, by logistic regression over pairs (`scripts/verified.py --fit`)."""

    wide: float = 1.53  # weight of the root of the digits of the expected number of false alarms, threshold unchanged
    narrow: float = 0.38  # the same for the narrow tolerances below
    rarity: float = 3.02  # weight of the rarity of the photos' words
    constant: float = -3.56
    sure: float = 1.0  # smallest sum, the logarithm of the odds, that verifies
    most: float = 60.0  # digits that count, at most
    commonest: float = -1.5  # bounds of the rarity that counts
    rarest: float = 0.75
    error: float = 0.6  # narrow tolerance of the transfer error, as a part of the threshold
    log_scale: float = 0.45  # of the logarithm of the ratio of scales
    shape: float = 0.6  # of the difference of shapes, Frobenius norm of D⁻¹ L Q - 1 with unit determinants
    by_chance: float = 0.0864  # least part of the matches within the threshold that are within the narrow ones too
    crowded: float = 2.0  # times the even rate: usual agreement within the threshold, which is no evidence
    # Height of a strip, least part of the inliers inside it in both photos, and least ratio of their width to their
    # height: such matches are text or an edge.
    strips: tuple[tuple[float, float, float], ...] = ((0.06, 0.8, 3.0), (0.06, 0.9, 0.0), (0.1, 0.95, 3.0))
    of_extent: float = 1 / 3  # a strip is at most this part of the height of the query's region, which may be low
    strip: float = -1.0  # largest log odds of such a map
    outside: int = 8  # inliers outside a strip that make it a part of something larger
    hollow: float = 0.25  # least hollowness of frames and mounts: such a map has the odds `sure`, at most
    solid: float = 5.0  # logarithm of the odds from which on hollowness is not asked for: branches and railings have it

    def bounded(self, rarity: float) -> float:
        """Rarity, clipped to its bounds."""
        return min(max(rarity, self.commonest), self.rarest)

    def limits(self, threshold: float) -> NDArray[np.float64]:
        """The narrow tolerances (3,): of the squared transfer error, at a threshold, of log scale and of shape."""
        return np.array([(self.error * threshold) ** 2, self.log_scale, self.shape])


def weigh(false_alarms: float, narrow: float, rarity: float, options: EvidenceOptions) -> float:
    """Log odds that two photos show the same.

    `false_alarms`: expected number of equally good maps by chance, at the threshold of verification; `narrow`: the same
    within the narrow tolerances. `rarity`: mean idf of the features of the photo with the commoner words, less that of
    all features of the collection; 0 if unknown.
    """
    return float(
        options.wide * digits(false_alarms, options.most)
        + options.narrow * digits(narrow, options.most)
        + options.rarity * options.bounded(rarity)
        + options.constant
    )


def close_places(
    query: Frames, image: Frames, transform: NDArray[np.float64], threshold: float, options: EvidenceOptions
) -> int:
    """Count the places of the matches that agree with a map within the narrow tolerances. `transform` (2, 3): the map.
    `query`, `image`: the features of the inliers: row k of both is a match. `threshold`: of verification, as a part of
    the longer side.
    """
    from retrieval.matching.evidence_kernels import close_matches

    close = close_matches(*query.plain, *image.plain, transform, options.limits(threshold))
    return min(count_places(side.centres[close], threshold) for side in (query, image))


class ChanceRates(NamedTuple):
    """Rates at which a feature of the query and one of the photo agree with a map by chance."""

    wide: float  # within the limits of verification
    narrow: float  # within the narrow tolerances


def chance_rates(
    query: Frames,
    image: Frames,
    transform: NDArray[np.float64],
    limits: tuple[float, float],
    options: EvidenceOptions,
) -> ChanceRates:
    """Measure which part of all pairs of features of the two photos agree with a map (2, 3) by chance; at least the
    rate of evenly spread features.

    Features crowd in texture, with similar sizes: in most photos one to five times as many pairs agree as if they were
    spread evenly; if all features are in one corner, such as a drawing on a page of text, ten times as many. `query`,
    `image`: features of tentative matches, each once; a sample suffices. `limits`: of verification: of the squared
    transfer error, and of the logarithm of the ratio of scales.
    """
    from retrieval.matching.evidence_kernels import count_agreeing_pairs

    both = np.array([[*limits, np.inf], options.limits(math.sqrt(limits[0]))])
    wide, narrow = count_agreeing_pairs(*query.plain, *image.plain, transform, both).tolist()
    number = max(len(query.centres) * len(image.centres), 1)
    evenly = even_rate(limits[0])
    return ChanceRates(max(wide / number / options.crowded, evenly), max(narrow / number, evenly * options.by_chance))


def even_rate(limit: float) -> float:
    """Part of the pairs of places that are within a squared transfer error of each other if they are spread evenly."""
    return math.pi * limit / 2


def is_strip(
    source: NDArray[np.floating],
    target: NDArray[np.floating],
    options: EvidenceOptions,
    extent: float = np.inf,
) -> bool:
    """Whether nearly all matched places lie in one low strip of both photos, as a line of text does. `source`, `target`
    (N, 2): matched places in the query and in the photo. `extent`: height of the query's region, in units of `source`,
    as all matches of a frieze lie in a strip.
    """
    from retrieval.matching import evidence_kernels

    here, there = (np.ascontiguousarray(points, np.float32) for points in (source, target))
    strips = np.array(options.strips, np.float64).reshape(-1, 3)
    strips[:, 0] = np.minimum(strips[:, 0], options.of_extent * extent)
    return bool(evidence_kernels.is_strip(here, there, strips, options.outside))


def hollowness(
    source: NDArray[np.floating],
    target: NDArray[np.floating],
    query: NDArray[np.floating],
    image: NDArray[np.floating],
) -> float:
    """Share of the features between the inliers that lie where nothing agrees, the smaller of both photos: about 0 if
    inliers are spread as features are, or nothing lies between them.

    Photos of one thing agree in the middle of it too. Frames, mounts and printed borders agree along the rim alone, and
    surround hundreds of features of two different pictures.

    `source`, `target` (N, 2): matched places in the query and in the photo. `query` (Q, 2), `image` (I, 2): places of
    all features in tentative matches.
    """
    from retrieval.matching import evidence_kernels

    sides = (source, query), (target, image)
    return min(evidence_kernels.empty_part(*(np.ascontiguousarray(one, np.float32) for one in side)) for side in sides)


def count_places(points: NDArray[np.floating], threshold: float) -> int:
    """Number of cells of half the threshold that points (K, 2) lie in: regions at one place are not independent."""
    from retrieval.matching import evidence_kernels

    return int(evidence_kernels.count_places(np.ascontiguousarray(points, np.float32), threshold))


def false_alarms(inliers: float, features: int, expected: float) -> float:
    """Expected number of hypotheses with this many inliers if the matches were spread by chance.

    A match agrees by chance if it falls within the threshold, a part of the photo's area. So the inliers, without those
    of the hypothesis itself, follow a Poisson law (a contrario reasoning as in Moisan & Stival, IJCV 2004).
    """
    return features * at_least(max(inliers - 1, 1e-3), max(expected, 1e-9))


def sampled(features: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    """Evenly spread sample of the features of the query (side 0) or of the photo (side 1), to measure a rate."""
    most = _SAMPLES[side]
    return features if len(features) <= most else features[np.arange(most) * len(features) // most]


def probability(log_odds: float) -> float:
    """Convert log odds to a probability."""
    return 1 / (1 + math.exp(-min(max(log_odds, -700.0), 700.0)))


def digits(alarms: float, most: float) -> float:
    """Root of the number of digits by which an expected number of false alarms is below one."""
    return math.sqrt(min(max(-math.log10(max(alarms, _NEVER)), 0.0), most))
