"""The words of a segment's images, and the images of each word, in format 1: uncompressed arrays."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.postings.entries import DamagedListsError, Frequency, Postings, are_bounds, narrowest
from index.postings.sorted_lists import blocks_of, concatenated_ranges

_SORTED_AT_ONCE = 1 << 22  # features, while postings are made
_PRODUCTS_AT_ONCE = 1 << 16  # postings in format 1: the buffers stay in the processor's cache


class PlainLists:
    """Words of images and postings of words in format 1: uncompressed arrays."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._image_offsets = arrays["offsets"]
        self._image_words = arrays["words"]
        self._words = arrays["posting_words"]
        self._offsets = arrays["posting_offsets"]
        self._images = arrays["posting_images"]
        self._counts = arrays["posting_counts"]

    @staticmethod
    def misfits(arrays: Mapping[str, NDArray[Any]]) -> Iterator[str]:
        """Names of arrays of unsigned numbers that do not fit the others; only the first name is reliable."""
        words = arrays["posting_words"]
        if (words[1:] <= words[:-1]).any():
            yield "posting_words"
        if len(arrays["posting_counts"]) != len(arrays["posting_images"]):
            yield "posting_counts"
        lists = {"offsets": ("image_numbers", "words"), "posting_offsets": ("posting_words", "posting_images")}
        for name, (of, members) in lists.items():
            ends = arrays[name]
            if not are_bounds(ends, len(arrays[of])) or int(ends[-1]) != len(arrays[members]):
                yield name

    @property
    def words_below(self) -> int:
        """Exclusive upper bound of the words."""
        return int(self._words[-1]) + 1 if len(self._words) else 0

    def words_of(self, positions: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
        """See `Segment.words_of`."""
        starts = self._image_offsets[positions].astype(np.int64)
        ends = self._image_offsets[positions + 1].astype(np.int64)
        if len(starts) == 1:
            return ends - starts, self._image_words[starts[0] : ends[0]]
        return ends - starts, self._image_words[concatenated_ranges(starts, ends - starts)]

    def add_images(self, frequency: NDArray[np.int64]) -> None:
        """Add the number of images of each word."""
        frequency[self._words] += np.diff(self._offsets.astype(np.int64))

    def add_features(self, frequency: NDArray[np.int64]) -> None:
        """Add the number of features of each word."""
        if len(self._words):
            frequency[self._words] += np.add.reduceat(self._counts, self._offsets[:-1].astype(np.intp), dtype=np.int64)

    def find(self, words: NDArray[np.integer] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lists that hold some words, or all: their numbers, ascending, and lengths."""
        if words is None or not len(self._words):
            at = np.arange(len(self._words))
        else:
            # Of the same type: searching with another type copies the whole array.
            words = words[words <= self._words[-1]].astype(self._words.dtype)
            at = np.searchsorted(self._words, words)
            at = at[self._words[at] == words]
        return at, self._offsets[at + 1].astype(np.int64) - self._offsets[at].astype(np.int64)

    def add_products(
        self, total: NDArray[np.float64], words: NDArray[np.int64], weights: NDArray[np.float64], frequency: Frequency
    ) -> None:
        """Add the inner products of vectors with all images: see `Segment.add_products`."""
        at, lengths = self.find(words)
        for first, last in blocks_of(lengths, _PRODUCTS_AT_ONCE):
            postings = self.read(at[first:last], words)
            some = weights.take(np.searchsorted(words, postings.words), axis=0)
            add_postings(total, postings, frequency(postings.counts), some)

    def read(self, at: NDArray[np.int64], words: NDArray[np.integer] | None) -> Postings:
        """Postings of some words, or of all, in some lists."""
        starts = self._offsets[at].astype(np.int64)
        lengths = self._offsets[at + 1].astype(np.int64) - starts
        rows = concatenated_ranges(starts, lengths)
        images = self._images[rows]
        if len(images) and images.max() >= len(self._image_offsets) - 1:
            raise DamagedListsError("posting_images")
        return Postings(self._words[at], lengths, images, self._counts[rows])


def add_postings(
    total: NDArray[np.float64], postings: Postings, values: NDArray[np.float64], weights: NDArray[np.float64]
) -> None:
    """Add postings (P,) to `total` (V, images), sums of vectors with weights (m, V), in the order of the words."""
    from scipy.sparse._sparsetools import csc_matvec  # imported here: takes a second

    # SciPy multiplies column by column, and so adds in the order of the words. Its public product would start each
    # block at 0, and another order of sums changes the last bit.
    ends = np.concatenate([[0], np.cumsum(postings.lengths)], dtype=np.int32)
    positions = postings.images.astype(np.int32, copy=False)
    for row, vector in zip(total, weights.T, strict=True):
        csc_matvec(len(row), len(weights), ends, positions, values, np.ascontiguousarray(vector), row)


def plain_postings(words: NDArray[np.integer], lengths: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Postings in format 1 of features that are grouped by image (`lengths` of each) and ordered by word within it."""
    owners = np.repeat(np.arange(len(lengths), dtype=np.min_scalar_type(len(lengths) - 1)), lengths)
    # A posting is a run of equal (image, word).
    first = np.ones(len(words), dtype=bool)
    first[1:] = (words[1:] != words[:-1]) | (owners[1:] != owners[:-1])
    distinct, features = np.unique(words, return_counts=True)
    frequency = np.empty(len(distinct), np.int64)
    images = np.empty(np.count_nonzero(first), owners.dtype)
    counts = np.empty(len(images), np.uint32)
    done = 0
    # Some words at a time: sorting takes 64 bits a feature.
    for begin, end in blocks_of(features, _SORTED_AT_ONCE):
        some = np.flatnonzero((words >= distinct[begin]) & (words <= distinct[end - 1]))
        starts = np.flatnonzero(first[some])
        of = words[some[starts]]
        order = np.argsort(of, kind="stable")  # stable, so images stay ascending for each word
        frequency[begin:end] = np.unique(of, return_counts=True)[1]
        images[done : done + len(starts)] = owners[some[starts]][order]
        counts[done : done + len(starts)] = np.diff(starts, append=len(some))[order]
        done += len(starts)
    offsets = np.concatenate([[0], np.cumsum(frequency)])
    yield "posting_words", distinct.astype(words.dtype)
    yield "posting_offsets", offsets.astype(narrowest(offsets))
    yield "posting_images", images
    yield "posting_counts", counts.astype(narrowest(counts))
