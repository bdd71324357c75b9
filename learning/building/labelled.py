"""Patches with labels, as the builder of patch sets takes them from its sources."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from learning.building.correspondence import Detections


@dataclass(frozen=True)
class Labelled:
    """Patches with their labels, N in all; their pixels lie in a file of their own, in the same order."""

    points: NDArray[np.int64]  # (N,) int64, the point that each shows
    photos: NDArray[np.int64]  # (N,) int64, the photo that each is from
    groups: NDArray[np.int64]  # (N,) int64: non-matches are drawn between patches of the same group
    detections: Detections  # N, in pixels of their photos
    matches: NDArray[np.int64]  # (M, 2) int64, numbers of patches of the same point
    # Which pairs (K,), (K,) of different points do not match.
    are_apart: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
    images: int  # photos read
    unused: int  # detections inside the photos that are in no pair, as they are neither same nor different
