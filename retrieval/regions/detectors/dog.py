"""Detector: extrema of the difference of Gaussians (Lowe, IJCV 2004), as used by Simonyan14, section 10.2.2."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from retrieval.regions.detectors.contract import Detector
from retrieval.regions.scalespace import Octave, ScaleSpaceOptions


def difference_of_gaussians(octave: Octave) -> list[NDArray[np.float32]]:
    """Difference of each level and the one below: see `Detector.respond`. `find_extrema` computes them itself."""
    responses: list[NDArray[Any]] = [
        cv2.subtract(upper, lower) for lower, upper in zip(octave.levels, octave.levels[1:], strict=False)
    ]
    return responses


# VLFeat's frame: the region has the radius of the scale itself, the patch reaches 12.5 of it (Simonyan14 Table 4).
DETECTOR = Detector(
    difference_of_gaussians,
    ScaleSpaceOptions(double=True),
    threshold=2.0,
    radius=1.0,
    measurement_scale=12.5,
    differences=True,
)
