"""How likely does a photo show the same as the query? One probability of what geometry and the score say together.

Evidence alone does not tell how much else a photo has in common with the query, and a score alone is on another scale
with each query. So the score counts by its contrast: how far it stands out from the photos that have anything in
common with the query. Evidence and contrast are weighed by logistic regressions over pairs of photos whose names tell
what they show: `scripts/verified.py --fit` prints the weights, and how well they do on scenes that were left out.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval.matching.evidence import probability
from retrieval.matching.verification import Verification

FOUND = 0.9
"""Least probability of what is called found; what is less probable shows the same perhaps."""

_BOUNDS = (-1.0, 3.0)  # of the contrast that counts: how much more a score stands out tells nothing more


@dataclass(frozen=True)
class Calibration:
    """Weights of what speaks for a photo, by whether geometry found a map to it."""

    evidence: float  # weight of the logarithm of the odds by geometry
    contrast: float  # weight of the contrast, where there is a map
    constant: float
    alone: float  # weight of the contrast where there is none
    alone_constant: float


def background(scores: NDArray[np.floating]) -> float:
    """Median of the scores (N,) that are larger than 0: what a photo has in common with a query by chance."""
    positive = scores[scores > 0]
    return float(np.median(positive)) if len(positive) else 0.0


def contrast(score: float, ground: float) -> float:
    """Logarithm of the ratio of a score to the background, within bounds; the lowest for a score of 0."""
    if score <= 0:
        return _BOUNDS[0]
    return float(np.clip(np.log(score / ground), *_BOUNDS)) if ground > 0 else _BOUNDS[1]


def weigh_result(verification: Verification, score: float, ground: float, calibration: Calibration) -> float:
    """Give the probability that a photo shows the same as the query.

    Parameters
    ----------
    verification : Verification
        What geometry found.
    score : float
        The photo's.
    ground : float
        From `background`, of all photos' scores.
    calibration : Calibration
        Of the engine that scored.

    Returns
    -------
    float
        From 0 to 1. The larger the evidence and the score, the larger; 0 where there is neither.
    """
    if np.isfinite(verification.log_odds):
        return probability(
            calibration.evidence * verification.log_odds
            + calibration.contrast * contrast(score, ground)
            + calibration.constant
        )
    if score <= 0:
        return 0.0
    return probability(calibration.alone * contrast(score, ground) + calibration.alone_constant)


_BY_WORDS = Calibration(evidence=1.365, contrast=1.331, constant=-1.662, alone=1.766, alone_constant=-5.914)
_BY_SIGNATURES = Calibration(evidence=1.349, contrast=0.159, constant=-0.21, alone=1.743, alone_constant=-5.725)
_BY_AGGREGATES = Calibration(evidence=1.369, contrast=0.0, constant=0.139, alone=1.074, alone_constant=-5.522)

CALIBRATIONS = {
    "tf-idf": replace(_BY_WORDS, alone=3.183, alone_constant=-6.344),
    "tf-idf-sp": _BY_WORDS,
    "signatures": replace(_BY_SIGNATURES, alone=2.683, alone_constant=-6.126),
    "signatures-sp": _BY_SIGNATURES,
    "asmk": replace(_BY_AGGREGATES, alone=2.215, alone_constant=-5.982),
    "asmk-sp": _BY_AGGREGATES,
    "raw": _BY_WORDS,  # scores by words, and evidence as well
}
"""By engine. Where photos are verified, one without a map is less likely to be right than its score alone says."""


def calibration_of(engine: str) -> Calibration:
    """Give the calibration of an engine; that of words for one that was not calibrated."""
    return CALIBRATIONS.get(engine, _BY_WORDS)
