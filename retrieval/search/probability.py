"""Probability that a photo shows the same as the query, from geometry and score.

Geometric evidence ignores what else the photos have in common, and scores are on a different scale for each query. So
the score counts by its contrast to the median of the photos that share anything with the query. Logistic regressions
over pairs of photos of known contents weigh evidence and contrast: `scripts/panel --calibrate` prints the weights, and
how well they do on held-out scenes.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval.matching.evidence import probability
from retrieval.matching.verification import Verification

FOUND = 0.95
"""Least probability of what is called found; what is less probable shows the same perhaps."""

LIKELY = 0.8
"""Least probability of what is called likely, where it is not found."""

UNCONFIRMED = 0.9
"""Highest probability of a photo that the query itself has no map to: nothing confirms its score."""

_BOUNDS = (-1.0, 3.0)  # of the contrast: beyond them it carries no information


@dataclass(frozen=True)
class Calibration:
    """Weights of evidence and contrast, with and without a map found by geometry."""

    evidence: float  # weight of the logarithm of the odds by geometry
    contrast: float  # weight of the contrast, where there is a map
    constant: float
    alone: float  # weight of the contrast of photos without evidence
    alone_constant: float


def background(scores: NDArray[np.floating]) -> float:
    """Median of the scores (N,) above 0: the score of an unrelated photo by chance."""
    positive = scores[scores > 0]
    return float(np.median(positive)) if len(positive) else 0.0


def multiples(scores: NDArray[np.floating], ground: float) -> NDArray[np.float64]:
    """Scores (N,) as multiples of the background, comparable between queries. 0 stays 0."""
    return np.asarray(scores, np.float64) / (ground if ground > 0 else 1.0)


def contrast(score: float, ground: float) -> float:
    """Logarithm of the ratio of a score to the background, within bounds; the lowest for a score of 0."""
    if score <= 0:
        return _BOUNDS[0]
    if ground <= 0:
        return _BOUNDS[1]
    ratio = score / ground  # underflows to 0 for tiny scores
    return min(max(math.log(ratio), _BOUNDS[0]), _BOUNDS[1]) if ratio > 0 else _BOUNDS[0]


def weigh_result(verification: Verification, score: float, ground: float, calibration: Calibration) -> float:
    """Probability that a photo shows the same as the query. It grows with the evidence, if there is any, and with the
    score; it is 0 without both. A map of little evidence, such as that of a line of text, may make a photo less likely
    than no map.
    """
    stands_out = contrast(score, ground)
    if math.isfinite(verification.log_odds):
        weighed = calibration.evidence * verification.log_odds + calibration.contrast * stands_out
        likely = probability(weighed + calibration.constant)
    else:
        likely = probability(calibration.alone * stands_out + calibration.alone_constant) if score > 0 else 0.0
    return likely if verification.inliers else min(likely, UNCONFIRMED)


def probability_alone(scores: NDArray[np.floating], ground: float, calibration: Calibration) -> NDArray[np.float64]:
    """Return `weigh_result` of photos (N,) without a map, by their scores; it grows with them."""
    with np.errstate(divide="ignore"):
        stands_out = np.clip(np.log(multiples(scores, ground)), *_BOUNDS) if ground > 0 else _BOUNDS[1]
    odds = calibration.alone * stands_out + calibration.alone_constant
    likely: NDArray[np.float64] = np.minimum(1 / (1 + np.exp(-odds)), UNCONFIRMED)
    return np.where(scores > 0, likely, 0.0)


_BY_WORDS = Calibration(evidence=1.074, contrast=1.133, constant=-1.907, alone=2.633, alone_constant=-7.58)
_BY_SIGNATURES = Calibration(evidence=0.851, contrast=1.384, constant=-1.82, alone=2.445, alone_constant=-7.635)
_BY_AGGREGATES = Calibration(evidence=0.785, contrast=0.912, constant=-0.103, alone=1.117, alone_constant=-6.029)

CALIBRATIONS = {
    "tf-idf": replace(_BY_WORDS, alone=3.102, alone_constant=-6.288),
    "tf-idf-sp": _BY_WORDS,
    "signatures": replace(_BY_SIGNATURES, alone=3.16, alone_constant=-7.06),
    "signatures-sp": _BY_SIGNATURES,
    "asmk": replace(_BY_AGGREGATES, alone=2.421, alone_constant=-6.905),
    "asmk-sp": _BY_AGGREGATES,
    "raw": _BY_WORDS,  # also scores by words
}
"""By engine. Where photos are verified, one without a map is less likely to be right than its score alone says."""


def calibration_of(engine: str) -> Calibration:
    """Return the calibration of an engine; that of words for one that was not calibrated."""
    return CALIBRATIONS.get(engine, _BY_WORDS)
