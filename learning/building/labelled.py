"""Patches with labels, as the builder of patch sets takes them from its sources."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from learning.building.correspondence import Detections


@dataclass(frozen=True)
class Labelled:
    """Patches with their labels, N in all; their pixels lie in a file of their own, in the same order."""

    points: np.ndarray  # (N,) int64, the point that each shows
    photos: np.ndarray  # (N,) int64, the photo that each is from
    groups: np.ndarray  # (N,) int64: non-matches are drawn between patches of the same group
    detections: Detections  # N, in pixels of their photos
    matches: np.ndarray  # (M, 2) int64, numbers of patches of the same point
    are_apart: Callable[[np.ndarray, np.ndarray], np.ndarray]  # which pairs (K,), (K,) of different points do not match
    images: int  # photos read
    unused: int  # detections inside the photos that are in no pair, for they can be told neither same nor different
