"""Borrowed features: images are also scored by features of other images that show the same object."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.segments.segment import Segment


@dataclass(frozen=True)
class Borrowed:
    """Features of other images that map into images of an index (database-side augmentation). They count in scores, but
    not in document frequencies, nor where features are verified or shown.
    """

    # of the same vocabulary as the images; the image numbers are those of the images that borrow
    segments: tuple[Segment, ...]
    # (images of the segment,) bool: which images of each segment count; an image counts in at most one segment
    counting: tuple[NDArray[np.bool_], ...]

    def places(self, image_numbers: NDArray[np.integer]) -> list[NDArray[np.int64]]:
        """Positions of each segment's images among ascending numbers; -1 for an image that is removed or missing."""
        places = []
        for segment, counting in zip(self.segments, self.counting, strict=True):
            numbers = segment.image_numbers
            at = np.minimum(np.searchsorted(image_numbers, numbers), max(len(image_numbers) - 1, 0))
            there = counting & (image_numbers[at] == numbers) if len(image_numbers) else np.zeros(len(numbers), bool)
            places.append(np.where(there, at, -1))
        return places
