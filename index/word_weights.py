"""Weights of words, and the statistics of a whole collection for an index of a part of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError

WEIGHTING = 1
"""Version of the weighting. Collections store norms: raise it with every change that alters one."""


@dataclass(frozen=True)
class ScoringOptions:
    """Options of the weighting of words."""

    # Term frequency from the count n of a word in an image: "linear" n, or "sqrt" √n, which discounts bursts of one
    # repeated structure (Jégou, Douze, Schmid: On the burstiness of visual elements, CVPR 2009, section 3.2).
    tf: str = "linear"

    def __post_init__(self) -> None:
        if self.tf not in ("linear", "sqrt"):
            raise CairnError(f"There is no term frequency {self.tf!r}: choose linear or sqrt.")


class WordWeights:
    """Weights of words: document frequencies, and term frequencies of counts.

    Attributes
    ----------
    words : int
        Size of the vocabulary.
    options : ScoringOptions
    photos : int
        Number of images that the document frequencies are counted over.
    document_frequency : ndarray, shape (words,), int64
    idf : ndarray, shape (words,), float64
    """

    def __init__(self, words: int, options: ScoringOptions, photos: int, document_frequency: NDArray[np.int64]) -> None:
        if document_frequency.shape != (words,):
            raise ValueError(f"a document frequency of shape {document_frequency.shape} for {words} words")
        self.words = words
        self.options = options
        self.photos = photos
        self.document_frequency = document_frequency
        known = document_frequency > 0
        self.idf = np.zeros(words)
        self.idf[known] = np.log(photos / document_frequency[known])

    def term_frequency(self, counts: NDArray[np.number]) -> NDArray[np.float64]:
        """Term frequency of some counts n, float64: see `ScoringOptions`."""
        return np.sqrt(counts, dtype=np.float64) if self.options.tf == "sqrt" else counts.astype(np.float64)

    def counts_of(self, frequencies: NDArray[np.floating]) -> NDArray[np.float64]:
        """Counts, float64, of term frequencies of at least 0: the inverse of `term_frequency`."""
        return np.square(frequencies, dtype=np.float64) if self.options.tf == "sqrt" else frequencies.astype(np.float64)


@dataclass(frozen=True)
class Whole:
    """Statistics of a whole collection, with which an index of a part scores as an index of all does."""

    photos: int  # images of the collection
    document_frequency: NDArray[np.int64]  # in all of them
    common_idf: float  # `InvertedIndex.common_idf` of all of them
