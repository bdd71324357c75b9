"""Entries of the posting lists of a segment, in any format, and errors of damaged ones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Frequency = Callable[[NDArray[np.number]], NDArray[np.float64]]
"""Term frequencies of counts."""


class DamagedListsError(ValueError):
    """Arrays with invalid contents; `array` names one of them."""

    def __init__(self, array: str) -> None:
        super().__init__(f"{array} is damaged")
        self.array = array


@dataclass(frozen=True, slots=True)
class Postings:
    """Concatenated lists of the images of each of some words."""

    words: NDArray[np.integer]  # (n,): distinct, ascending
    lengths: NDArray[np.int64]  # (n,) int64: number of images of each word, at least one
    # (P,): positions in `Segment.image_numbers`, ascending for each word; P is the sum of the lengths
    images: NDArray[np.integer]
    counts: NDArray[np.integer]  # (P,): number of features of the image with the word, at least one


@dataclass(frozen=True, slots=True)
class WordEntries:
    """Concatenated lists of the features of each of some words."""

    words: NDArray[np.integer]  # (n,): distinct, ascending
    lengths: NDArray[np.int64]  # (n,) int64: number of features of each word, at least one
    # (E,): positions in `Segment.image_numbers`, ascending for each word; E is the sum of the lengths
    images: NDArray[np.integer]
    signatures: NDArray[np.uint8]  # (E, B) uint8


@dataclass(frozen=True, slots=True)
class QuerySignatures:
    """Features of a query in the order of their words, with signatures and a threshold."""

    # (m,) int64: distinct, ascending; where the features of each begin, and how many they are
    words: NDArray[np.int64]
    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.uint64]  # (n, W) uint64: signatures of the features, 64 bits a number
    most: int  # largest number of bits that differ


@dataclass(frozen=True, slots=True)
class NearEntries:
    """Features of images that share a word with a query's feature and have a similar signature."""

    rows: NDArray[np.int32]  # (M,) int32: feature of the query, in the order of `QuerySignatures`
    images: NDArray[np.int32]  # (M,) int32: position in `Segment.image_numbers`
    ranks: NDArray[np.int32]  # (M,) int32: its rank among the image's features of the word
    distances: NDArray[np.uint8]  # (M,) uint8: bits that differ


def narrowest(values: NDArray[np.integer]) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds the values, none negative."""
    return np.min_scalar_type(int(values.max()) if len(values) else 0)


def are_bounds(ends: NDArray[np.unsignedinteger], of: int) -> bool:
    """Whether an array holds ascending bounds from 0 for this number of lists."""
    return len(ends) == of + 1 and ends[0] == 0 and not (ends[1:] < ends[:-1]).any()
