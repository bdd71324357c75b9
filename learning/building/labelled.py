"""Labelled patches, passed from the sources to the builder of patch sets."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from learning.building.correspondence import Detections


@dataclass(frozen=True)
class Labelled:
    """N labelled patches; their pixels are in a separate file, in the same order."""

    points: NDArray[np.int64]  # (N,) int64, the point that each shows
    photos: NDArray[np.int64]  # (N,) int64, the photo that each is from
    groups: NDArray[np.int64]  # (N,) int64: non-matches are drawn between patches of the same group
    detections: Detections  # N, in pixels of their photos
    matches: NDArray[np.int64]  # (M, 2) int64, numbers of patches of the same point
    # Mask of the pairs (K,), (K,) of different points that do not match.
    are_apart: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
    images: int  # photos read
    unused: int  # ambiguous detections inside the photos, which are in no pair
