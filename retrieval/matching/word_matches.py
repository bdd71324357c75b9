"""Tentative matches of two photos: their features that have the same word."""

import numpy as np
from numpy.typing import NDArray

from index.postings.word_lists import first_of_kind


class QueryWords:
    """The words of a query (N,), in any order, ready to be looked up for one photo after another."""

    def __init__(self, words: NDArray[np.integer]) -> None:
        self._order = np.argsort(words, kind="stable").astype(np.int32)
        sorted_ = words[self._order]
        self._first = np.flatnonzero(first_of_kind(sorted_))
        self._distinct, self._count = sorted_[self._first], np.diff(self._first, append=len(sorted_))
        # A bit for each word of the vocabulary, and the number of distinct words before each block of 64: a thirtieth
        # of the memory of a table of places, which stays in the processor's cache.
        self._bits = np.zeros(int(self._distinct[-1]) // 64 + 1 if len(words) else 0, np.uint64)
        block, bit = np.divmod(self._distinct.astype(np.uint64), np.uint64(64))
        np.bitwise_or.at(self._bits, block.astype(np.int64), np.uint64(1) << bit)
        self._ranks = np.searchsorted(self._distinct, 64 * np.arange(len(self._bits)))

    @property
    def order(self) -> NDArray[np.int32]:
        """Numbers (N,) int32 of the query's features, ordered by word; those of one word stay in their order."""
        return self._order

    def equal(self, image_words: NDArray[np.integer]) -> bool:
        """Whether a photo, with sorted words, has the same words as the query, each as often."""
        return len(image_words) == len(self._order) and np.array_equal(
            np.repeat(self._distinct, self._count), image_words
        )

    def match(self, image_words: NDArray[np.integer], most: int) -> NDArray[np.int32]:
        """Pair the features (K, 2) of the query with those of a photo, sorted by word, that have the same word. `most`:
        largest number of pairs. If there are more, exactly that many are returned: those of the words with the fewest
        pairs, and of the last word that fits in part, pairs of features with about the same rank in it.
        """
        if not len(self._distinct):
            return np.zeros((0, 2), np.int32)
        place = np.minimum(np.searchsorted(self._distinct, image_words), len(self._distinct) - 1)
        features = np.flatnonzero(self._distinct[place] == image_words)
        place = place[features]
        counts = self._count[place]
        if counts.sum() > most:
            return self._match_some(features, place, most)
        return self._pairs(features, place, counts)

    def match_many(
        self, words: NDArray[np.integer], offsets: NDArray[np.integer], most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Pair the features of the query with those of many photos, only by the least ambiguous words of each. Returns
        pairs (K, 2) by photo, first pair of each photo (B + 1,), number of pairs of each pair's word in its photo (K,),
        and number of pairs of each photo (B,), including those left out. `words` (M,): sorted in each photo, which
        begin at `offsets` (B + 1,).

        `most`: largest number of pairs of one photo. If there are more, those of whole words are returned, the words
        with the fewest pairs first; if that fills less than half, pairs as in `match`.
        """
        from retrieval.matching.word_kernels import match_words

        plain = words.astype(np.int64, copy=False), offsets.astype(np.int64, copy=False)
        paired, starts, ambiguity, totals = match_words(
            self._bits, self._ranks, self._first, self._count, self._order, *plain, most
        )
        sizes = np.diff(starts)
        poor = np.flatnonzero((totals > most) & (2 * sizes < most))
        if len(poor):
            parts, many = np.split(paired, starts[1:-1]), np.split(ambiguity, starts[1:-1])
            for one in poor.tolist():
                parts[one] = self.match(words[offsets[one] : offsets[one + 1]], most)
                sizes[one] = len(parts[one])
                many[one] = np.full(sizes[one], most)
            paired, ambiguity = np.concatenate(parts), np.concatenate(many)
        return paired, np.concatenate([[0], np.cumsum(sizes)]), ambiguity, totals

    def _pairs(
        self, features: NDArray[np.int64], place: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """Pair features of a photo with all features of the query that have the distinct word at a place."""
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        pairs = np.empty((len(within), 2), np.int32)
        pairs[:, 0] = self._order[np.repeat(self._first[place], counts) + within]
        pairs[:, 1] = np.repeat(features, counts)
        return pairs

    def _match_some(self, features: NDArray[np.int64], place: NDArray[np.int64], most: int) -> NDArray[np.int32]:
        """Pair the features of the least ambiguous words; the arguments describe all pairs."""
        repeats = np.bincount(place, minlength=len(self._distinct))
        pairs = self._count * repeats
        shared = np.flatnonzero(repeats)
        # Words of equal ambiguity in a scattered order: neighbours in a vocabulary may be similar.
        order = shared[np.lexsort((_scattered(self._distinct[shared]), pairs[shared]))]
        total = np.cumsum(pairs[order])
        whole = int(np.searchsorted(total, most, side="right"))
        whole_words = np.zeros(len(self._distinct), bool)
        whole_words[order[:whole]] = True
        chosen = whole_words[place]
        paired = self._pairs(features[chosen], place[chosen], self._count[place[chosen]])
        word = order[whole]
        room = most - int(total[whole - 1] if whole else 0)
        # Features are ordered by strength: the same one has about the same rank within its word in both photos.
        one, other = _nearest_diagonal(int(self._count[word]), int(repeats[word]), room)
        query = self._order[self._first[word] + one]
        return np.concatenate([paired, np.stack([query, features[place == word][other]], axis=1)]).astype(np.int32)


def _scattered(words: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Hashes of words, whose order is unrelated to that of the words (Fibonacci hashing)."""
    return words.astype(np.uint32) * np.uint32(2654435769)


def _nearest_diagonal(rows: int, columns: int, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of `most` cells of a matrix, those nearest to its diagonal, evenly spread along it."""
    wide = columns >= rows
    short, long = (rows, columns) if wide else (columns, rows)
    along = np.arange(long)
    centre = along * short // long
    cells: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    room = most
    for step in range(2 * short):
        offset = (step + 1) // 2 * (-1 if step % 2 else 1)
        inside = along[(centre + offset >= 0) & (centre + offset < short)]
        if len(inside) > room:
            inside = inside[np.arange(room) * len(inside) // room] if room else inside[:0]
        cells.append((centre[inside] + offset, inside))
        room -= len(inside)
        if not room:
            break
    one, other = (np.concatenate(side) for side in zip(*cells, strict=True))
    return (one, other) if wide else (other, one)
