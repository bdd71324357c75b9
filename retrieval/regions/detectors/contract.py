"""The contract of the detectors."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.regions.scalespace import Octave, ScaleSpaceOptions


@dataclass(frozen=True)
class Detector:
    """Properties of a detector; `detect_regions` does the rest.

    Regions are the extrema of the responses over place and scale, maxima and minima alike, and their strength is the
    absolute response. It must follow the image when that is moved, turned or mirrored, be linear in its contrast, and
    0 if it is flat: thresholds are in grey values.
    """

    respond: Callable[[Octave], list[NDArray[np.float32]]]
    """Responses of an octave: as many as its levels but the last, each of a level's shape, float32; that of index i is
    of the scale `sigmas[i]`."""
    space: ScaleSpaceOptions  # its scale space
    threshold: float  # default threshold, chosen for the counts of Simonyan14 10.2.2
    radius: float  # radius of the detected region in units of the detection scale
    measurement_scale: float  # default enlargement of the detected region to the patch
    differences: bool = False
    """Whether the responses are the differences of each level and the one below: they are then taken where extrema are
    looked for, and `respond` is not called."""
