"""Scores of photos by the aggregated selective match kernel: the features of a word are compared as one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.hamming.voting import SignedFeatures, as_numbers, check_length, places_by_word
from index.inverted import InvertedIndex
from index.postings.entries import WordEntries
from index.postings.sorted_lists import concatenated_ranges
from index.postings.word_lists import first_of_kind

_ENTRIES = 1 << 18  # features of the index that are read at a time


@dataclass(frozen=True)
class AggregationOptions:
    """How aggregated signatures are compared (Tolias, Avrithis, Jégou: Image search with selective match kernels:
    aggregation across single and multiple images, IJCV 2016).
    """

    nearest: int = 1  # words in which a feature of the query is aggregated
    alpha: float = 3.0  # exponent of a similarity
    threshold: float = 0.0  # similarities up to this count as 0


@dataclass(frozen=True)
class AggregatedFeatures:
    """The features of a query, aggregated by word."""

    words: NDArray[np.int64]  # (M,) int64: distinct, ascending
    signatures: NDArray[np.uint8]  # (M, B) uint8


def aggregate(signatures: NDArray[np.uint8], starts: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Aggregate groups of signatures (N, B), which begin at `starts` (G,), by a majority vote on each bit. On a tie the
    first of the group decides, so that unrelated groups agree in half of their bits.
    """
    lengths = np.diff(starts, append=len(signatures))
    majority: NDArray[np.uint8] = signatures[starts]
    several = np.flatnonzero(lengths > 2)  # in a group of two, the first decides every bit
    if len(several):
        lengths = lengths[several]
        bits = np.unpackbits(signatures[concatenated_ranges(starts[several], lengths)], axis=1)
        begins = np.cumsum(lengths) - lengths
        surplus = 2 * np.add.reduceat(bits, begins, axis=0, dtype=np.int64) - lengths[:, None]
        majority[several] = np.packbits(np.where(surplus == 0, bits[begins], surplus > 0), axis=1)
    return majority


def aggregate_query(features: SignedFeatures, nearest: int) -> AggregatedFeatures:
    """Aggregate a query's features by at most `nearest` words each.

    Within a word, features are ordered by the rank of the word, then by their position.
    """
    words = features.words[:, :nearest].T.reshape(-1).astype(np.int64)
    length = features.signatures.shape[2]
    signatures = features.signatures[:, :nearest].transpose(1, 0, 2).reshape(-1, length)
    sorted_, order = places_by_word(words)
    starts = np.flatnonzero(first_of_kind(sorted_))
    return AggregatedFeatures(sorted_[starts], aggregate(signatures[order], starts))


def score_aggregated(
    index: InvertedIndex, queries: Sequence[AggregatedFeatures], bits: int, options: AggregationOptions
) -> NDArray[np.float32]:
    """Score photos (Q, photos), in the order of `index.image_numbers`, 0 to 1, by the aggregated selective match kernel
    of binary signatures, ASMK*.

    K(X, Y) = γ(X) γ(Y) Σ_c w_c σ(u(X_c, Y_c)) over the words c of both: u = 1 - 2 h / bits for aggregates that differ
    in h bits, and σ(u) = u^α above the threshold, else 0 (Tolias, Avrithis, Jégou, ICCV 2013, equations 7 and 17). γ
    makes the similarity of a photo with itself 1; w_c is idf², as in the inner product of tf-idf vectors.
    """
    words = np.unique(np.concatenate([np.zeros(0, np.int64), *(query.words for query in queries)]))
    similarity = 1 - 2 * np.arange(bits + 1) / bits
    above = similarity > max(options.threshold, 0)
    selected = np.where(above, np.abs(similarity) ** options.alpha, 0)
    weights = np.square(index.idf)
    # Row of each word in a query, -1 if absent.
    rows = np.full((len(queries), len(words)), -1)
    for row, query in zip(rows, queries, strict=True):
        row[np.searchsorted(words, query.words)] = np.arange(len(query.words))
    sums = np.zeros((len(queries), len(index.image_numbers)))
    for segment, places in zip(index.segments, index.images.places, strict=True):
        check_length(segment, bits // 8)
        totals = np.zeros((len(queries), segment.images))
        for entries in segment.signed_blocks(_ENTRIES, words):
            lists = _AggregatedLists(entries)
            which = np.searchsorted(words, entries.words)
            for total, row, query in zip(totals, rows[:, which], queries, strict=True):
                lists.add(total, row, query.signatures, selected, weights)
        there = places >= 0  # skip removed photos
        sums[:, places[there]] = totals[:, there]
    own = [np.sqrt(weights[query.words].sum()) for query in queries]
    norms = np.multiply.outer(np.array(own, np.float64), index.word_norms)
    return np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0).astype(np.float32)


class _AggregatedLists:
    """Lists of some words, in which the features of each photo are aggregated."""

    def __init__(self, entries: WordEntries) -> None:
        firsts = np.flatnonzero(first_of_kind(entries.images, entries.lengths))
        self._words = entries.words
        self._images = entries.images[firsts].astype(np.int32)
        self._codes = as_numbers(aggregate(entries.signatures, firsts))
        self._bounds = np.searchsorted(firsts, np.concatenate([[0], np.cumsum(entries.lengths)]))

    def add(
        self,
        total: NDArray[np.float64],
        rows: NDArray[np.integer],
        signatures: NDArray[np.uint8],
        selected: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> None:
        """Add the kernel between photos and a query to `total` (photos,), word by word. `rows` (lists,): which of the
        query's signatures each list is compared with (-1: none); `selected` (bits + 1,): σ by the number of bits that
        differ.
        """
        from scipy.sparse._sparsetools import csc_matvec  # see `InvertedIndex.score_many`

        common = np.flatnonzero(rows >= 0)
        lengths = np.diff(self._bounds)[common]
        some = concatenated_ranges(self._bounds[common], lengths)
        differing = _bits_apart(as_numbers(signatures), self._codes, np.repeat(rows[common], lengths), some)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        csc_matvec(
            len(total),
            len(common),
            ends,
            self._images[some],
            selected[differing],
            weights[self._words[common]],
            total,
        )


def _bits_apart(
    first: NDArray[np.unsignedinteger],
    second: NDArray[np.unsignedinteger],
    rows: NDArray[np.int64],
    members: NDArray[np.int64],
) -> NDArray[np.uint8]:
    """Bits in which some rows of signatures (N, W) and (M, W) differ, side by side."""
    total = np.zeros(len(rows), np.uint8)
    for left, right in zip(first.T, second.T, strict=True):
        both = left.take(rows)
        both ^= right.take(members)
        total += np.bitwise_count(both)
    return total
