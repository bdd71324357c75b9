"""Entries of the posting lists of a segment, in any format, and errors of damaged ones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Frequency = Callable[[NDArray[np.number]], NDArray[np.float64]]
"""Term frequencies of counts."""


class DamagedListsError(ValueError):
    """Arrays that hold what they cannot; `array` is the name of one."""

    def __init__(self, array: str) -> None:
        super().__init__(f"{array} is damaged")
        self.array = array


@dataclass(frozen=True, slots=True)
class Postings:
    """The images that have each of some words, one list after the other."""

    words: NDArray[np.integer]  # (n,): distinct, ascending
    lengths: NDArray[np.int64]  # (n,) int64: how many images have each word: at least one
    # (P,): positions in `Segment.image_numbers`, ascending for each word; P is the sum of the lengths
    images: NDArray[np.integer]
    counts: NDArray[np.integer]  # (P,): how many features of that image have the word: at least one


@dataclass(frozen=True, slots=True)
class WordEntries:
    """The features that have each of some words, one list after the other."""

    words: NDArray[np.integer]  # (n,): distinct, ascending
    lengths: NDArray[np.int64]  # (n,) int64: how many features have each word: at least one
    # (E,): positions in `Segment.image_numbers`, ascending for each word; E is the sum of the lengths
    images: NDArray[np.integer]
    signatures: NDArray[np.uint8]  # (E, B) uint8


@dataclass(frozen=True, slots=True)
class AskedSignatures:
    """Features of a query in the order of their words, and what is near to their signatures."""

    # (m,) int64: distinct, ascending; where the features of each begin, and how many they are
    words: NDArray[np.int64]
    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.uint64]  # (n, W) uint64: signatures of the features, 64 bits a number
    most: int  # largest number of bits that differ


@dataclass(frozen=True, slots=True)
class NearEntries:
    """Features of images that have a word of a query's feature, and nearly its signature."""

    rows: NDArray[np.int32]  # (M,) int32: feature of the query, in the order of `AskedSignatures`
    images: NDArray[np.int32]  # (M,) int32: position in `Segment.image_numbers`
    ranks: NDArray[np.int32]  # (M,) int32: which of the image's features of the word it is
    distances: NDArray[np.uint8]  # (M,) uint8: bits that differ


def narrowest(values: NDArray[np.integer]) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds the values, which are not negative."""
    return np.min_scalar_type(int(values.max()) if len(values) else 0)


def are_bounds(ends: NDArray[np.unsignedinteger], of: int) -> bool:
    """Whether an array ascends from 0, and has bounds for this number of lists."""
    return len(ends) == of + 1 and ends[0] == 0 and not (ends[1:] < ends[:-1]).any()
