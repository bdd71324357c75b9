"""How sure is it that two photos show the same? What speaks for a map between them, weighed.

Counting inliers as if they were independent takes paving, foliage and printed letters for landmarks: their features are
of a few common words, they lie on a grid, and the map that the most agree on is the best of many. Four things tell
them apart. Places: matches that lie on each other in either photo count once. Accuracy: the features of one thing agree
in place, scale and shape far more closely than the threshold asks for, and the rate at which any two features of these
very photos agree so closely is measured, not assumed. Rarity: photos made of the collection's commonest words match
each other in many places. Spread: what lies in one low strip of both photos is a line of text, laid over them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

_SAMPLES = (200, 400)  # features of the query and of the photo that the rate of chance agreement is measured with
_NEVER = 1e-300


@dataclass(frozen=True)
class EvidenceOptions:
    """How the evidence for a map is weighed.

    The weights are those of a logistic regression over pairs of photos whose names tell what they show, and the figures
    that it reaches on scenes left out of it are in the documentation; `scripts/verified.py --fit` prints both.
    """

    wide: float = 1.414  # weight of the root of the digits of the expected number of false alarms, threshold as it is
    narrow: float = 0.776  # the same for the narrow tolerances below
    rarity: float = 3.709  # weight of the rarity of the photos' words
    constant: float = -4.489
    sure: float = 1.0  # smallest sum, the logarithm of the odds, that verifies
    most: float = 60.0  # digits that count, at most
    commonest: float = -1.5  # bounds of the rarity that counts
    rarest: float = 0.75
    error: float = 0.6  # narrow tolerance: of the transfer error, as a part of the threshold
    log_scale: float = 0.45  # of the logarithm of the ratio of scales
    shape: float = 0.6  # of the difference of shapes, Frobenius norm of D⁻¹ L Q - 1 with unit determinants
    by_chance: float = 0.0864  # least part of the matches within the threshold that are within the narrow ones too
    # Height of a strip, the least part of the inliers that lie in it in both photos, and how many times as wide as
    # high they are at least: what lies so is text, or an edge.
    strips: tuple[tuple[float, float, float], ...] = ((0.06, 0.8, 3.0), (0.06, 0.9, 0.0), (0.1, 0.95, 3.0))
    strip: float = -1.0  # the logarithm of the odds of such a map, at most
    beside: int = 8  # inliers outside a strip that make it a part of something larger


@dataclass(frozen=True)
class Regions:
    """Places and shapes of features of a photo, in units of its longer side."""

    centres: NDArray[np.float32]  # (N, 2)
    linear: NDArray[np.float32]  # (N, 2, 2), maps from the unit circle to the region


def weigh(false_alarms: float, narrow: float, rarity: float, options: EvidenceOptions) -> float:
    """Weigh what speaks for two photos: logarithm of the odds that they show the same.

    Parameters
    ----------
    false_alarms : float
        Expected number of as good maps by chance, at the threshold of verification.
    narrow : float
        The same of the matches that agree within the narrow tolerances, by the rate of `chance_rate`.
    rarity : float
        Of the words of that photo of the two whose words are the more common: mean idf of its features less that of
        all features of the collection; 0 where nothing is known of it.
    options : EvidenceOptions
        Weights.
    """
    return float(
        options.wide * digits(false_alarms, options.most)
        + options.narrow * digits(narrow, options.most)
        + options.rarity * min(max(rarity, options.commonest), options.rarest)
        + options.constant
    )


def close_places(
    query: Regions, image: Regions, transform: NDArray[np.float64], threshold: float, options: EvidenceOptions
) -> int:
    """Count the places of the matches that agree with a map within the narrow tolerances.

    Parameters
    ----------
    query, image : Regions
        The features of the inliers: row k of both is a match.
    transform : ndarray, shape (2, 3)
        The map.
    threshold : float
        Of verification, as a part of the longer side.
    options : EvidenceOptions
        Narrow tolerances.
    """
    residual = query.centres @ transform[:, :2].T + transform[:, 2] - image.centres
    close = _close(residual, query.linear, image.linear, transform[:, :2], threshold, options)
    return min(count_places(side.centres[close].T, threshold) for side in (query, image))


def chance_rate(
    query: Regions, image: Regions, transform: NDArray[np.float64], threshold: float, options: EvidenceOptions
) -> float:
    """Measure how often a feature of one photo agrees with one of the other within the narrow tolerances, by chance.

    Features crowd where there is texture, and are of few sizes there: twice to ten times as many pairs agree as if
    they were spread evenly.

    Parameters
    ----------
    query, image : Regions
        Features that take part in tentative matches, each once; some of them are enough.
    transform, threshold, options
        See `close_places`.

    Returns
    -------
    float
        Part of all pairs of a feature of the query and one of the photo.
    """
    linear = transform[:, :2]
    mapped = query.centres @ linear.T + transform[:, 2]
    apart, down = (np.subtract.outer(mapped[:, axis].astype(np.float32), image.centres[:, axis]) for axis in (0, 1))
    apart *= apart
    down *= down
    apart += down
    one, other = np.divmod(np.flatnonzero(apart < np.float32((options.error * threshold) ** 2)), apart.shape[1])
    residual = mapped[one] - image.centres[other]
    close = _close(residual, query.linear[one], image.linear[other], linear, threshold, options)
    return float(np.count_nonzero(close)) / max(apart.size, 1)


def _close(
    residual: NDArray[np.float64],
    query: NDArray[np.float32],
    image: NDArray[np.float32],
    linear: NDArray[np.float64],
    threshold: float,
    options: EvidenceOptions,
) -> NDArray[np.bool_]:
    """Say which matches (N,) agree within the narrow tolerances: in place, in scale, and in shape."""
    back = residual @ np.linalg.inv(linear).T
    error = (residual**2).sum(axis=1) + (back**2).sum(axis=1)
    mapped = linear @ query
    areas = [
        np.maximum(np.abs(one[:, 0, 0] * one[:, 1, 1] - one[:, 0, 1] * one[:, 1, 0]), 1e-30) for one in (mapped, image)
    ]
    log_scale = 0.5 * np.log(areas[1] / areas[0])
    inverse = np.stack(
        [np.stack([image[:, 1, 1], -image[:, 0, 1]], -1), np.stack([-image[:, 1, 0], image[:, 0, 0]], -1)], -2
    )
    relative = (inverse @ mapped) / np.sqrt(areas[0] * areas[1])[:, None, None]
    shape = np.sqrt(((relative - np.eye(2)) ** 2).sum(axis=(1, 2)))
    close = (error < (options.error * threshold) ** 2) & (np.abs(log_scale) < options.log_scale)
    return np.asarray(close & (shape < options.shape))


def is_strip(source: NDArray[np.floating], target: NDArray[np.floating], options: EvidenceOptions) -> bool:
    """Whether nearly all matched places (N, 2) lie in one low strip of both photos, as a line of text does."""
    heights = np.sort(source[:, 1])
    for height, part, aspect in options.strips:
        inside = _strip(source, heights, height)
        if np.count_nonzero(inside) < part * len(source):
            continue
        inside[inside] = _strip(target[inside], np.sort(target[inside, 1]), height)
        seen = np.count_nonzero(inside)
        if seen < part * len(source) or len(source) - seen >= options.beside:
            continue
        spread = [np.ptp(points[inside], axis=0) for points in (source, target)]
        if all(wide >= aspect * high for wide, high in spread):
            return True
    return False


def count_places(points: NDArray[np.floating], threshold: float) -> int:
    """Number of cells of half the threshold that points (2, K) lie in.

    Regions of several scales at one place agree with a map together: they are no witnesses of their own.
    """
    cells = np.floor(points * (2 / threshold)).astype(np.int64)
    return len(set(zip(*cells.tolist(), strict=True)))


def false_alarms(inliers: float, features: int, expected: float) -> float:
    """Expected number of hypotheses with so many inliers if the matches were spread by chance.

    A match agrees by chance where it falls within the threshold, a part of the photo's area, so that the inliers beyond
    the hypothesis's own follow a Poisson law (a contrario reasoning as in Moisan & Stival, IJCV 2004).
    """
    return float(features * gammainc(max(inliers - 1, 1e-3), max(expected, 1e-9)))


def sampled(features: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    """Some of the features of the query (side 0) or of the photo (side 1), evenly spread, to measure a rate with."""
    most = _SAMPLES[side]
    return features if len(features) <= most else features[np.arange(most) * len(features) // most]


def probability(log_odds: float) -> float:
    """The probability that goes with the logarithm of odds."""
    return float(1 / (1 + np.exp(-np.clip(log_odds, -700, 700))))


def digits(alarms: float, most: float) -> float:
    """Root of the number of digits by which an expected number of false alarms is below one."""
    return float(np.sqrt(min(max(-np.log10(max(alarms, _NEVER)), 0.0), most)))


def _strip(points: NDArray[np.floating], sorted_y: NDArray[np.floating], height: float) -> NDArray[np.bool_]:
    """Which points (N, 2), whose y are given in order too, lie in that strip of a height that holds the most."""
    if not len(points):
        return np.zeros(0, bool)
    y = points[:, 1]
    count = np.searchsorted(sorted_y, sorted_y + height, side="right") - np.arange(len(y))
    top = sorted_y[count.argmax()]
    return np.asarray((y >= top) & (y <= top + height))
