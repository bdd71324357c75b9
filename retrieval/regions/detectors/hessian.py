"""Detector: extrema of the determinant of the Hessian (Mikolajczyk & Schmid, IJCV 2004), as used by Simonyan14."""

import cv2
import numpy as np
from numpy.typing import NDArray

from retrieval.regions.detectors.contract import Detector
from retrieval.regions.scalespace import Octave, ScaleSpaceOptions


def hessian_determinant(octave: Octave) -> list[NDArray[np.float32]]:
    """Scale-normalised determinant of the Hessian, σ⁴ (L_xx L_yy - L_xy²), under a signed square root.

    The root makes the response linear in contrast, as the difference of Gaussians is. See `Detector.respond`.
    """
    responses = []
    for level, sigma in zip(octave.levels[:-1], octave.sigmas, strict=False):
        scale = (sigma / octave.step) ** 2
        xx = cv2.sepFilter2D(level, cv2.CV_32F, np.array([1.0, -2.0, 1.0]), np.array([1.0]))
        yy = cv2.sepFilter2D(level, cv2.CV_32F, np.array([1.0]), np.array([1.0, -2.0, 1.0]))
        xy = cv2.sepFilter2D(level, cv2.CV_32F, np.array([-0.5, 0.0, 0.5]), np.array([-0.5, 0.0, 0.5]))
        determinant = xx * yy - xy * xy
        responses.append(np.copysign(np.sqrt(np.abs(determinant)) * np.float32(scale), determinant))
    return responses


# Mikolajczyk's frame: the region has three times the scale, the patch reaches √3 of it (Simonyan14 Table 5).
DETECTOR = Detector(
    hessian_determinant, ScaleSpaceOptions(double=False), threshold=6.5, radius=3.0, measurement_scale=3**0.5
)
