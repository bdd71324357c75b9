"""Example of a third-party detector: its responses and scale space, and a line in the registry."""

import cv2
import numpy as np

from retrieval.regions.detectors.contract import Detector
from retrieval.regions.scalespace import Octave, ScaleSpaceOptions

NAME, PLACE = "laplace-affine", "tests.support.toy_detector:DETECTOR"


def laplacian(octave: Octave) -> list[np.ndarray]:
    """Scale-normalised Laplacian, σ² (L_xx + L_yy)."""
    scales = (octave.sigmas / octave.step) ** 2
    return [
        cv2.Laplacian(level, cv2.CV_32F) * np.float32(scale)
        for level, scale in zip(octave.levels[:-1], scales, strict=False)
    ]


DETECTOR = Detector(laplacian, ScaleSpaceOptions(double=False), threshold=10.0, radius=2.0, measurement_scale=4.0)
