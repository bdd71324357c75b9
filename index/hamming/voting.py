"""Voting for photos: features match if they share a word and their signatures differ in few bits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.inverted import InvertedIndex
from index.postings.entries import QuerySignatures
from index.postings.sorted_lists import concatenated_ranges
from index.postings.word_lists import first_of_kind
from index.segments.segment import Segment

# At most this many query features of one word are compared with the index, fewer if very many photos have the word.
# More are one texture, such as a wall of tiles, which would make far too many pairs.
_OF_A_WORD = 64
_OF_ALL = 1 << 20  # at most this, times the number of photos that have the word
BORROWED = 1 << 24
"""Ranks of what an image borrows begin here: see `SignedMatches.ranks`. It has no more features of its own."""
Numbers = NDArray[np.int32]
_STEPS = 2.0**30  # steps in one: double precision sums millions of such votes without rounding


@dataclass(frozen=True)
class VotingOptions:
    """Options of matching by signatures, and of votes."""

    nearest: int = 3  # words per feature of the query: multiple assignment (Jégou et al., 2010)
    # Limit of the summed document frequency of all second and further words of a query. Above it the most common words
    # are left out: they take most of the time of a search in a large collection, and their votes weigh little.
    beside: int = 1 << 20
    radius: float = 0.34  # largest fraction of differing bits of a match that votes: 22 of 64, as in the paper
    sigma: float = 0.25  # of the Gaussian weight of that fraction: a quarter of the bits, as in the paper
    words: float = 0.0075  # weight of the cosine of words, added to a photo's share of the query's votes


@dataclass(frozen=True)
class SignedFeatures:
    """Features of a query with one or several words each, and a signature for each word."""

    words: NDArray[np.integer]  # (N, k) int: distinct in each row; -1 for no word
    signatures: NDArray[np.uint8]  # (N, k, B) uint8

    def at(self, features: NDArray[np.integer]) -> "SignedFeatures":
        """Select features, in this order."""
        return SignedFeatures(self.words[features], self.signatures[features])


def join_signed(several: Sequence[SignedFeatures]) -> SignedFeatures:
    """Concatenate features; they may differ in words per feature."""
    most = max(one.words.shape[1] for one in several)
    fewer = [(0, most - one.words.shape[1]) for one in several]
    return SignedFeatures(
        np.concatenate(
            [np.pad(one.words, ((0, 0), pad), constant_values=-1) for one, pad in zip(several, fewer, strict=True)]
        ),
        np.concatenate(
            [np.pad(one.signatures, ((0, 0), pad, (0, 0))) for one, pad in zip(several, fewer, strict=True)]
        ),
    )


@dataclass(frozen=True)
class SignedMatches:
    """Matches by word and signature between features of a query and of photos."""

    query: NDArray[np.int32]  # (M,) int32: feature of the query
    photos: NDArray[np.int32]  # (M,) int32: place of the photo in `InvertedIndex.image_numbers`
    words: NDArray[np.int32]  # (M,) int32
    # (M,) int32: rank among the photo's features of this word, from 0; borrowed features from `BORROWED` on
    ranks: NDArray[np.int32]
    distances: NDArray[np.uint8]  # (M,) uint8: bits that differ

    def __len__(self) -> int:
        return len(self.query)

    def at(self, rows: NDArray[np.integer]) -> "SignedMatches":
        """Select matches, in this order."""
        return SignedMatches(*(getattr(self, name).take(rows) for name in self.__dataclass_fields__))

    @property
    def features(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Photos, the query's features, words and ranks."""
        return self.photos, self.query, self.words, self.ranks


def without_common(index: InvertedIndex, features: SignedFeatures, most: int) -> SignedFeatures:
    """Drop the most common of the second and further words if their document frequencies add up to more than `most`.
    Words of equal frequency are dropped together. `features`: of the query; the first word of each is the nearest.
    """
    further = features.words[:, 1:]
    frequency = index.document_frequency
    if frequency[np.maximum(further, 0)].sum() <= most:
        return features  # even counting repeated words
    distinct = np.sort(further[further >= 0])
    ascending = np.sort(frequency[distinct[first_of_kind(distinct)]])
    total = np.cumsum(ascending)
    if not len(total) or total[-1] <= most:
        return features
    too_common = ascending[np.searchsorted(total, most, side="right")]
    words = features.words.copy()
    words[:, 1:][(further >= 0) & (frequency[further] >= too_common)] = -1
    return SignedFeatures(words, features.signatures)


def places_by_word(words: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Words (N,) in ascending order, without -1, and their positions; the sort is stable."""
    # Sorting combined numbers of word and position takes a fifth of the time of a stable argsort.
    shift = len(words).bit_length()
    keys = np.sort(words << shift | np.arange(len(words)))
    keys = keys[np.searchsorted(keys, 0) :]
    return keys >> shift, keys & ((1 << shift) - 1)


def match(index: InvertedIndex, features: SignedFeatures, most: int) -> SignedMatches:
    """Find the features of an index that share a word with a query's feature and have a similar signature; in no order.
    `index`: its segments need signatures. Borrowed features are matched too; if their files are damaged, nothing is
    borrowed from then on. `most`: largest number of differing bits.
    """
    number, several = features.words.shape
    words = features.words.reshape(-1).astype(np.int64)
    sorted_, order = places_by_word(words)
    firsts = np.flatnonzero(first_of_kind(sorted_))
    distinct = sorted_[firsts]
    # Only the first features of each word.
    counts = np.minimum(np.diff(firsts, append=len(order)), _compared_features(index.document_frequency[distinct]))
    order = order[concatenated_ranges(firsts, counts)]
    firsts = np.cumsum(counts) - counts
    length = features.signatures.shape[2]
    if length % 4:
        raise CairnError("Signatures have bytes by fours, and these have {length}: run {cairn check}.", length=length)
    codes = as_numbers(features.signatures.reshape(number * several, length)).take(order, axis=0).astype(np.uint64)
    query = QuerySignatures(distinct, firsts, counts, codes, most)
    query_features, query_words = (order // several).astype(np.int32), words[order].astype(np.int32)

    def match_segment(segment: Segment, places: NDArray[np.int64], first_rank: int = 0) -> SignedMatches:
        check_length(segment, length)
        near = segment.near(query, first_rank)
        photos = places.astype(np.int32).take(near.images)
        return SignedMatches(
            query_features.take(near.rows), photos, query_words.take(near.rows), near.ranks, near.distances
        )

    parts = [
        match_segment(segment, places) for segment, places in zip(index.segments, index.images.places, strict=True)
    ]
    # A segment of photos that no longer borrow may have no features, and so no signatures.
    lent = [(segment, places) for segment, places in index.lent if segment.features]
    try:
        parts += [match_segment(segment, places, BORROWED) for segment, places in lent]
    except CairnError:
        index.borrow_nothing()
    matches = SignedMatches(
        *(
            np.concatenate([np.zeros(0, dtype), *(getattr(part, name) for part in parts)])
            for name, dtype in zip(SignedMatches.__dataclass_fields__, _TYPES, strict=True)
        )
    )
    # Removed photos have no place.
    return matches if matches.photos.min(initial=0) >= 0 else matches.at(np.flatnonzero(matches.photos >= 0))


_TYPES = (np.int32, np.int32, np.int32, np.int32, np.uint8)


@dataclass(frozen=True)
class Votes:
    """The best matches of features with photos, and their votes before sharing."""

    # (M,) int32: as in `SignedMatches`, ordered by photo, then by query feature
    photos: NDArray[np.int32]
    query: NDArray[np.int32]
    votes: NDArray[np.float64]  # (M,) float64
    # (N,) float64: sum of votes of each query feature. The totals of parts of a collection add up exactly to those of
    # the whole.
    totals: NDArray[np.float64]


def count_votes(
    index: InvertedIndex, matches: SignedMatches, bits: int, options: VotingOptions, features: int = 0
) -> Votes:
    """Compute the vote of each match of a query with photos: exp(-(d / σ)²) idf² (Jégou, Douze, Schmid, IJCV 2010).
    Only the best match of a feature with one other photo counts, for features of the query and of photos alike.
    """
    from index.hamming.vote_kernels import best_matches

    near = matches.distances <= round(options.radius * bits)
    matches = matches if near.all() else matches.at(np.flatnonzero(near))
    weights = np.exp(-np.square(np.arange(bits + 1) / (options.sigma * bits)))
    votes = weights.take(matches.distances) * np.square(index.idf.take(matches.words))
    features_of_query = int(matches.query.max(initial=-1)) + 1
    # In a fixed order, so that sums do not depend on the division into segments.
    best = best_matches(*matches.features, votes, len(index.image_numbers), features_of_query)
    matches, votes = matches.at(best), votes.take(best)
    # Rounded to steps whose sum is exact in any order: photos may have been added in another.
    totals = np.bincount(matches.query, np.round(votes * _STEPS), minlength=features) / _STEPS
    return Votes(matches.photos, matches.query, votes, totals)


def share_votes(index: InvertedIndex, votes: Votes, totals: NDArray[np.float64]) -> NDArray[np.float32]:
    """Score photos (photos,), in the order of `index.image_numbers`, by votes that the matches of one feature share, s
    ← s √(s / Σs), Σ (`totals`) over all photos of the whole collection (inter-image burstiness; Jégou, Douze, Schmid,
    CVPR 2009), divided by the root of the photo's number of features, borrowed ones included.
    """
    from index.hamming.vote_kernels import shared_votes

    sums = shared_votes(votes.photos, votes.query, votes.votes, totals, len(index.image_numbers))
    return (sums / np.sqrt(np.maximum(index.scored_lengths, 1))).astype(np.float32)


def check_length(segment: Segment, length: int) -> None:
    """Raise CairnError if a segment has signatures of another length in bytes."""
    if segment.signatures is not None and segment.signatures.shape[1] != length:
        raise CairnError(
            "The signatures of {folder} are of another length: run {cairn retrain}.", folder=segment.folder
        )


def as_numbers(signatures: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
    """View signatures (N, B) as 32- or 64-bit numbers (N, W)."""
    whole = np.ascontiguousarray(signatures)
    return whole.view(np.uint64 if whole.shape[1] % 8 == 0 else np.uint32)


def _compared_features(frequency: NDArray[np.integer]) -> NDArray[np.integer]:
    """Number of query features of a word to compare with the index, by the word's document frequency."""
    return np.asarray(np.clip(_OF_ALL // np.maximum(frequency, 1), 1, _OF_A_WORD))
