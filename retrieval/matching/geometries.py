"""Verification of keypoints from another program, which may lack scales or angles."""

from dataclasses import replace

import numpy as np

from retrieval.foreign.contract import POINTS, SCALES
from retrieval.matching.verification import TWO_MATCHES, VerificationOptions

_REFINED = 4  # hypotheses of two matches: their votes identify the best one less reliably


def suited(options: VerificationOptions, detector: str) -> VerificationOptions:
    """Options of verification for the keypoints of a collection. If only places are known, two matches define a
    similarity, and scales and shapes are ignored. If scales but no angles are known, one match defines a similarity
    that keeps "down", and shapes are ignored. Else a frame of place, scale and angle defines a similarity.
    """
    if detector == POINTS:
        evidence = replace(options.evidence, log_scale=np.inf, shape=np.inf)
        return replace(options, freedom=TWO_MATCHES, scale_ratio=np.inf, refined=_REFINED, evidence=evidence)
    if detector == SCALES:
        return replace(options, evidence=replace(options.evidence, shape=np.inf))
    return options
