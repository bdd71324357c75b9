"""How photos are verified whose keypoints come from another program, which may know little of them."""

from dataclasses import replace

import numpy as np

from retrieval.foreign.contract import POINTS, SCALES
from retrieval.matching.verification import TWO_MATCHES, VerificationOptions

_REFINED = 4  # hypotheses of two matches: their votes tell the best less well


def suited(options: VerificationOptions, detector: str) -> VerificationOptions:
    """Options of verification for what a collection's keypoints tell. If only places are known, two matches make a
    similarity, and neither scales nor shapes say anything. If scales are known and turns are not, one match makes one
    that keeps "down", and shapes say nothing. Else a frame of place, scale and angle is a similarity by itself.
    """
    if detector == POINTS:
        evidence = replace(options.evidence, log_scale=np.inf, shape=np.inf)
        return replace(options, freedom=TWO_MATCHES, scale_ratio=np.inf, refined=_REFINED, evidence=evidence)
    if detector == SCALES:
        return replace(options, evidence=replace(options.evidence, shape=np.inf))
    return options
