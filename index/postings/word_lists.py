"""The words of a segment's images, and the images of each word, in format 2: coded lists."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.postings.entries import (
    DamagedListsError,
    Frequency,
    NearEntries,
    Postings,
    QuerySignatures,
    WordEntries,
    are_bounds,
    narrowest,
)
from index.postings.sorted_lists import (
    LONG,
    CodedRanges,
    SortedLists,
    blocks_of,
    concatenated_ranges,
    encode_lists,
    take_ranges,
)

# Least average number of postings of a list, which may cover several words: a list takes the room of about three
# features more.
_LEAST_ENTRIES = 16
_SORTED_AT_ONCE = 1 << 22  # features, while postings are made


class CodedLists:
    """Words of images and postings of words in format 2: `SortedLists`.

    List k of the postings is of the words from k * words_a_list on: an entry for each feature, (word - first word) *
    images + position of the image.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._images = len(arrays["image_numbers"])
        self._of_images = SortedLists(arrays["word_lists"], arrays["offsets"])
        self._of_words = SortedLists(arrays["posting_lists"], arrays["posting_starts"])
        self._words_a_list = self._of_words.universe // self._images
        # Largest number of features of an image, read once: the file may change.
        self._most = int(np.diff(arrays["offsets"].astype(np.int64)).max(initial=0))

    @staticmethod
    def misfits(arrays: Mapping[str, NDArray[Any]]) -> Iterator[str]:
        """Names of arrays of unsigned numbers that do not fit the others; only the first name is reliable."""
        images = len(arrays["image_numbers"])
        starts = arrays["posting_starts"]
        if not are_bounds(arrays["offsets"], images):
            yield "offsets"
        if not are_bounds(starts, max(1, len(starts) - 1)) or int(starts[-1]) != int(arrays["offsets"][-1]):
            yield "posting_starts"
        below = []
        for name, bounds in (("word_lists", arrays["offsets"]), ("posting_lists", starts)):
            try:
                below.append(SortedLists(arrays[name], bounds).universe)
            except ValueError:
                yield name
        words_a_list, rest = divmod(below[1], images)
        if rest or len(starts) - 1 != -(-below[0] // words_a_list):
            yield "posting_lists"

    @property
    def words_below(self) -> int:
        """Exclusive upper bound of the words."""
        return self._of_images.universe if self._of_images.starts[-1] else 0

    def words_of(self, positions: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
        """See `Segment.words_of`."""
        try:
            return self._of_images.decode(positions)
        except ValueError as error:
            raise DamagedListsError("word_lists") from error

    def add_images(self, frequency: NDArray[np.int64]) -> None:
        """Add the number of images of each word."""
        for words, firsts in self._runs():
            np.add.at(frequency, words[firsts], 1)

    def add_features(self, frequency: NDArray[np.int64]) -> None:
        """Add the number of features of each word."""
        for words, _ in self._runs():
            np.add.at(frequency, words, 1)

    def _runs(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """The words of all images, a block at a time, and which are first occurrences in their image."""
        try:
            for _, lengths, words in self._of_images.blocks():
                yield words, first_of_kind(words, lengths)
        except ValueError as error:
            raise DamagedListsError("word_lists") from error

    def find(self, words: NDArray[np.integer] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lists that hold some words, or all: their numbers, ascending, and lengths."""
        starts = self._of_words.starts
        if words is None:
            at = np.arange(len(self._of_words))
        else:
            at = words[words < self.words_below].astype(np.int64)
            if self._words_a_list > 1:
                at = at // self._words_a_list  # ascending, as the words are
                at = at[first_of_kind(at)]
        lengths = starts[at + 1].astype(np.int64) - starts[at].astype(np.int64)
        return at[lengths > 0], lengths[lengths > 0]

    def read(self, at: NDArray[np.int64], words: NDArray[np.integer] | None) -> Postings:
        """Postings of some words, or of all, in some lists."""
        at, bounds, images, _ = self._read(at, words)
        # An image is listed once for each of its features of the word.
        same = images[1:] == images[:-1]
        same[bounds[1:-1] - 1] = False  # of another word
        again = np.flatnonzero(same) + 1
        counts = np.ones(len(images) - len(again), np.int32)
        if len(again):
            np.add.at(counts, again - np.arange(1, len(again) + 1), 1)
            images, bounds = np.delete(images, again), bounds - np.searchsorted(again, bounds)
        return Postings(at, np.diff(bounds), images, counts)

    def entries(
        self, at: NDArray[np.int64], words: NDArray[np.integer] | None, signatures: NDArray[np.uint8]
    ) -> WordEntries:
        """Features of some words, or of all, in some lists; `signatures`: of all features."""
        words_found, bounds, images, selected = self._read(at, words)
        if selected is None:
            taken = _take_lists(signatures, self._of_words.starts[at], self._of_words.starts[at + 1])
        else:
            taken = signatures.take(self._rows(at)[selected], axis=0)
        return WordEntries(words_found, np.diff(bounds), images, taken)

    def add_products(
        self, total: NDArray[np.float64], words: NDArray[np.int64], weights: NDArray[np.float64], frequency: Frequency
    ) -> None:
        """Add the inner products of vectors with all images: see `Segment.add_products`."""
        from index.postings.list_kernels import FITS, add_products

        coded = self._coded(self.find(words)[0])
        sizes, frequencies = (self._images, self._words_a_list), frequency(np.arange(self._most + 1))
        room = np.empty((3, coded.lengths.max(initial=0)), np.int64)
        if add_products(coded.parts, sizes, (words, *_sparse(weights)), frequencies, total, room) != FITS:
            raise DamagedListsError("posting_lists")

    def near(
        self, at: NDArray[np.int64], query: QuerySignatures, signatures: NDArray[np.uint8], first_rank: int
    ) -> NearEntries:
        """Features in some lists whose signature is near that of a query's feature of the same word; `signatures`
        (features, B). `at`: lists with the words of the query, from `find`.
        """
        from index.postings.list_kernels import FITS, near_entries

        coded = self._coded(at)
        if len(signatures) != self._of_words.entries:
            raise DamagedListsError("posting_starts")
        sizes, whole = (self._images, self._words_a_list), np.ascontiguousarray(signatures)
        features = query.words, query.firsts, query.counts, query.codes, query.most
        wrong, rows, images, ranks, distances = near_entries(coded.parts, sizes, whole, features, first_rank)
        if wrong != FITS:
            raise DamagedListsError("posting_lists")
        return NearEntries(rows, images, ranks, distances)

    def _coded(self, at: NDArray[np.int64]) -> CodedRanges:
        """Some lists in encoded form."""
        try:
            return self._of_words.coded(at)
        except ValueError as error:
            raise DamagedListsError("posting_lists") from error

    def rows_of(
        self, words: NDArray[np.integer], positions: NDArray[np.integer]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First place (n,) and number (n,) of the features that the images at `positions` (n,) have of `words` (n,)."""
        from index.postings.list_kernels import FITS, find_values

        if len(words) and words.max() >= self.words_below:
            raise DamagedListsError("posting_lists")
        lists, within = np.divmod(words.astype(np.int64), self._words_a_list)
        wrong, firsts, counts = find_values(self._coded(lists).parts, within * self._images + positions)
        if wrong != FITS:
            raise DamagedListsError("posting_lists")
        return firsts, counts

    def _rows(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of the features of some lists among all features of the lists."""
        starts = self._of_words.starts[at].astype(np.int64)
        return concatenated_ranges(starts, self._of_words.starts[at + 1].astype(np.int64) - starts)

    def _read(
        self, at: NDArray[np.int64], words: NDArray[np.integer] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
        """Words, bounds of the list of each, an image for each feature; and the selected entries, None for all."""
        try:
            lengths, images = self._of_words.decode(at)
        except ValueError as error:
            raise DamagedListsError("posting_lists") from error
        ends = np.cumsum(lengths)
        bounds = np.concatenate([[0], ends])
        selected = None
        if self._words_a_list > 1:
            # Numbers of word and image that ascend over all lists.
            keys = images + np.repeat(at * self._of_words.universe, lengths)
            found, images = np.divmod(keys, self._images)
            bounds = np.append(np.flatnonzero(first_of_kind(found)), len(found))
            at = found[bounds[:-1]]
            if words is not None:
                wanted = np.isin(at, words, assume_unique=True)
                lengths = np.diff(bounds)[wanted]
                selected = concatenated_ranges(bounds[:-1][wanted], lengths)
                images = images[selected]
                at, bounds = at[wanted], np.concatenate([[0], np.cumsum(lengths)])
            if len(at) and at[-1] >= self.words_below:
                raise DamagedListsError("posting_lists")
        return at, bounds, images, selected


def _sparse(
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The weights of each word (m, V) that are not 0: bounds (m + 1,), and vectors and values (n,)."""
    rows, vectors = np.nonzero(weights)
    bounds = np.searchsorted(rows, np.arange(len(weights) + 1))
    return bounds, np.ascontiguousarray(vectors), weights[rows, vectors]


def _take_lists(
    signatures: NDArray[np.uint8], begins: NDArray[np.unsignedinteger], ends: NDArray[np.unsignedinteger]
) -> NDArray[np.uint8]:
    """Concatenate the rows begins[i] to ends[i], exclusive, of bytes (N, B)."""
    width = signatures.shape[1]
    begins, ends = begins.astype(np.int64), ends.astype(np.int64)
    if not signatures.flags.c_contiguous or int((ends - begins).sum()) * width <= LONG * len(begins):
        return signatures.take(concatenated_ranges(begins, ends - begins), axis=0)
    return take_ranges(signatures.reshape(-1), begins * width, ends * width).reshape(-1, width)


def first_of_kind(words: NDArray[np.integer], lengths: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
    """Mask of words that differ from the one before; words ascend within each image. `lengths`: of several images."""
    first = np.ones(len(words), bool)
    first[1:] = words[1:] != words[:-1]
    if lengths is not None:
        starts = np.cumsum(lengths) - lengths
        first[starts[lengths > 0]] = True
    return first


def coded_lists(words: NDArray[np.unsignedinteger], offsets: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays `word_lists`, `posting_starts` and `posting_lists` of a segment. `words` (features,): ascending within
    an image; `offsets` (n + 1,): first feature of each image.
    """
    images, below = len(offsets) - 1, int(words.max()) + 1 if len(words) else 1
    yield "word_lists", encode_lists(words, offsets, below)
    words_a_list = max(1, -(-_LEAST_ENTRIES * below // max(1, len(words))))
    lists, universe = -(-below // words_a_list), words_a_list * images
    lengths = np.zeros(lists, np.int64)
    for start in range(0, len(words), _SORTED_AT_ONCE):
        # As 64 bits: the last word may be the largest that 32 hold.
        some = words[start : start + _SORTED_AT_ONCE].astype(np.int64)
        lengths += np.bincount(some // words_a_list, minlength=lists)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    yield "posting_starts", starts.astype(narrowest(starts))
    owners = np.repeat(np.arange(images, dtype=np.min_scalar_type(images)), np.diff(offsets))
    entries = np.empty(len(words), np.min_scalar_type(universe))
    # Some words at a time: the numbers that are sorted take eight bytes a feature.
    for first, last in blocks_of(lengths, _SORTED_AT_ONCE):
        begin, end = np.uint64(first * words_a_list), np.uint64(last * words_a_list)
        some = np.flatnonzero((words >= begin) & (words < end))
        keys = words[some].astype(np.int64) * images + owners[some]
        keys.sort()
        keys -= np.repeat(np.arange(first, last) * universe, lengths[first:last])
        entries[starts[first] : starts[last]] = keys
    yield "posting_lists", encode_lists(entries, starts, universe)
