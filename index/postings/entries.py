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
    """The images that have each of some words, one list after the other.

    Attributes
    ----------
    words : ndarray, shape (n,), integer
        Distinct, ascending.
    lengths : ndarray, shape (n,), int64
        How many images have each word: at least one.
    images : ndarray, shape (P,), integer
        Positions in `Segment.image_numbers`, ascending for each word; P is the sum of the lengths.
    counts : ndarray, shape (P,), integer
        How many features of that image have the word: at least one.
    """

    words: NDArray[np.integer]
    lengths: NDArray[np.int64]
    images: NDArray[np.integer]
    counts: NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class WordEntries:
    """The features that have each of some words, one list after the other.

    Attributes
    ----------
    words : ndarray, shape (n,), integer
        Distinct, ascending.
    lengths : ndarray, shape (n,), int64
        How many features have each word: at least one.
    images : ndarray, shape (E,), integer
        Positions in `Segment.image_numbers`, ascending for each word; E is the sum of the lengths.
    signatures : ndarray, shape (E, B), uint8
    """

    words: NDArray[np.integer]
    lengths: NDArray[np.int64]
    images: NDArray[np.integer]
    signatures: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class AskedSignatures:
    """Features of a query in the order of their words, and what is near to their signatures.

    Attributes
    ----------
    words, firsts, counts : ndarray, shape (m,), int64
        Distinct, ascending; where the features of each begin, and how many they are.
    codes : ndarray, shape (n, W), uint64
        Signatures of the features, 64 bits a number.
    most : int
        Largest number of bits that differ.
    """

    words: NDArray[np.int64]
    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.uint64]
    most: int


@dataclass(frozen=True, slots=True)
class NearEntries:
    """Features of images that have a word of a query's feature, and nearly its signature.

    Attributes
    ----------
    rows : ndarray, shape (M,), int32
        Feature of the query, in the order of `AskedSignatures`.
    images : ndarray, shape (M,), int32
        Position in `Segment.image_numbers`.
    ranks : ndarray, shape (M,), int32
        Which of the image's features of the word it is.
    distances : ndarray, shape (M,), uint8
        Bits that differ.
    """

    rows: NDArray[np.int32]
    images: NDArray[np.int32]
    ranks: NDArray[np.int32]
    distances: NDArray[np.uint8]


def narrowest(values: NDArray[np.integer]) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds the values, which are not negative."""
    return np.min_scalar_type(int(values.max()) if len(values) else 0)


def are_bounds(ends: NDArray[np.unsignedinteger], of: int) -> bool:
    """Whether an array ascends from 0, and has bounds for this number of lists."""
    return len(ends) == of + 1 and ends[0] == 0 and not (ends[1:] < ends[:-1]).any()
