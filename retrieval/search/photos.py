"""Interfaces to the searched photos, local or on other machines: their features, and the weights of words."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import Unreachable
from index.segments.segment import ImageFeatures
from index.similarity import SimilarityMatrix


class NotHere(Unreachable):
    """The features of a photo of the collection are not available now."""


class FeatureReader(Protocol):
    """Features of photos by number; `index.images.IndexedImages` reads those of local segments."""

    def features(self, image_number: int, /) -> ImageFeatures:
        """The features of a photo; raises KeyError if it is not indexed."""

    def features_of(self, image_numbers: Sequence[int], /) -> list[ImageFeatures]:
        """The features of some photos; raises KeyError if one is not indexed."""

    def signatures(self, image_number: int, /) -> NDArray[np.uint8]:
        """The signatures (n, B) of the features of a photo; raises KeyError if it is not indexed."""

    def feature_counts(self, image_numbers: Sequence[int], /) -> NDArray[np.int64]:
        """Numbers of features of some photos; raises KeyError if one is not indexed."""


class SearchedPhotos(Protocol):
    """The photos of a collection; `index.inverted.InvertedIndex` holds those of local segments."""

    words: int
    idf: NDArray[np.float64]
    image_numbers: NDArray[np.uint32]

    @property
    def images(self) -> FeatureReader:
        """Their features."""

    @property
    def similarity(self) -> SimilarityMatrix | None:
        """Similarity of words used in scoring; None: each is like itself alone."""

    @property
    def borrows(self) -> bool:
        """Whether photos are scored with features borrowed from others."""

    def norms_of(self, image_numbers: Sequence[int], /) -> NDArray[np.float64]:
        """Norms of the tf-idf vectors of some photos."""

    def term_frequency(self, counts: NDArray[np.number], /) -> NDArray[np.float64]:
        """Term frequency of some counts."""

    def counts_of(self, frequencies: NDArray[np.floating], /) -> NDArray[np.float64]:
        """Counts that have some term frequencies."""
