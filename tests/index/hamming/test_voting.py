"""Votes by signatures, compared with a plain loop over photos and features, as in the papers."""

import itertools
import math
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from index.hamming import voting
from index.hamming.voting import SignedFeatures, SignedMatches, VotingOptions, join_signed, match, without_common
from index.inverted import InvertedIndex
from index.segments.segment import Segment
from index.segments.writing import write_segment
from tests.support.voted import vote


@dataclass(frozen=True)
class Photo:
    """Words (n,) and signatures (n, B) of its features, by word."""

    words: np.ndarray
    signatures: np.ndarray


def photo_of(words: Sequence[int], signatures: np.ndarray) -> Photo:
    order = np.argsort(np.array(words, np.int64), kind="stable")
    return Photo(np.array(words, np.int32)[order], signatures[order])


def segment_of(folder: Path, numbers: Sequence[int], photos: Sequence[Photo]) -> Segment:
    order = np.argsort(numbers)
    return write_segment(
        folder,
        image_numbers=np.array(numbers, np.uint32)[order],
        words=[photos[k].words for k in order],
        columns={"signature": [photos[k].signatures for k in order]},
        vocabulary_fingerprint="v",
        descriptor_fingerprint="d",
    )


def near(rng: np.random.Generator, features: int, length: int, flips: float) -> np.ndarray:
    """Signatures (n, B), many of them similar: two base signatures with some bits flipped."""
    bits = rng.integers(0, 2, (2, 8 * length))[rng.integers(0, 2, features)] ^ (
        rng.random((features, 8 * length)) < flips
    )
    return np.packbits(bits.astype(np.uint8), axis=1, bitorder="little").reshape(features, length)


def differing(one: np.ndarray, other: np.ndarray) -> int:
    return sum(int(a ^ b).bit_count() for a, b in zip(one.tolist(), other.tolist(), strict=True))


def ordered(matches: SignedMatches) -> SignedMatches:
    """By photo, then by the query's feature, by word and by rank."""
    return matches.at(np.lexsort(matches.features[::-1]))


Pair = tuple[int, int, int, int]
"""Feature of the query, word, feature of the photo, bits that differ."""


def matches_of(photo: Photo, query: SignedFeatures, most: int, of_a_word: int) -> list[Pair]:
    """All matches of one photo."""
    requested: dict[int, int] = {}
    found = []
    for j, (words, signatures) in enumerate(zip(query.words.tolist(), query.signatures, strict=True)):
        for word, signature in zip(words, signatures, strict=True):
            if word < 0:
                continue
            requested[word] = requested.get(word, 0) + 1
            if requested[word] > of_a_word:
                continue
            for i in np.flatnonzero(photo.words == word).tolist():
                distance = differing(signature, photo.signatures[i])
                if distance <= most:
                    found.append((j, word, i, distance))
    return sorted(found)


def scores_of(
    photos: Sequence[Photo], query: SignedFeatures, bits: int, options: VotingOptions, of_a_word: int
) -> list[float]:
    """The score of each photo: Hamming threshold, Gaussian weight, idf², one match a feature, burstiness, length."""
    frequency: dict[int, int] = {}
    for photo in photos:
        for word in set(photo.words.tolist()):
            frequency[word] = frequency.get(word, 0) + 1
    counted: list[dict[int, float]] = []  # of each photo, the vote of each feature of the query
    for photo in photos:
        votes = []
        for j, word, i, distance in matches_of(photo, query, round(options.radius * bits), of_a_word):
            idf = math.log(len(photos) / frequency[word])
            votes.append((math.exp(-((distance / (options.sigma * bits)) ** 2)) * idf**2, j, word, i))
        # Ties go to the first, as with `max`.
        by_query = {
            j: max(some, key=lambda one: round(one[0], 12))
            for j, some in ((j, list(some)) for j, some in itertools.groupby(votes, key=lambda one: one[1]))
        }
        by_feature: dict[int, tuple[float, int]] = {}
        for amount, j, _, i in by_query.values():
            if i not in by_feature or round(amount, 12) > round(by_feature[i][0], 12):
                by_feature[i] = amount, j
        counted.append({j: amount for amount, j in by_feature.values()})
    totals: dict[int, float] = {}
    for votes_of_photo in counted:
        for j, amount in votes_of_photo.items():
            totals[j] = totals.get(j, 0.0) + amount
    return [
        sum(amount * math.sqrt(amount / totals[j]) for j, amount in some.items() if totals[j] > 0)
        / math.sqrt(max(1, len(photo.words)))
        for photo, some in zip(photos, counted, strict=True)
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    lists=st.lists(st.lists(st.integers(0, 8), max_size=12), min_size=1, max_size=7),
    length=st.sampled_from([4, 8, 16]),
    stretch=st.sampled_from([1, 1, 1000]),  # words that are far apart share the lists of the postings
    slots=st.integers(1, 3),
    features=st.integers(0, 9),
    flips=st.sampled_from([0.0, 0.1, 0.3]),
    seed=st.integers(0, 2**32),
    of_a_word=st.sampled_from([1, 2, 64]),
)
def test_scores_are_those_of_the_papers_however_photos_are_divided_and_added(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    lists: list[list[int]],
    length: int,
    stretch: int,
    slots: int,
    features: int,
    flips: float,
    seed: int,
    of_a_word: int,
) -> None:
    rng, bits, vocabulary = np.random.default_rng(seed), 8 * length, 9 * stretch
    photos = [photo_of([stretch * word for word in row], near(rng, len(row), length, flips)) for row in lists]
    # Words of a row are distinct but for -1.
    rows = [stretch * rng.permutation(9)[:slots] for _ in range(features)]
    words = np.array(rows, np.int32).reshape(features, slots)
    words[rng.random(words.shape) < 0.2] = -1
    # The two patterns of the photos are the first that their generator draws: these are others, so some are taken.
    signatures = near(rng, features * slots, length, flips).reshape(features, slots, length)
    given_ = [photo.signatures for photo in photos if len(photo.words)]
    if given_ and features:
        pool = np.concatenate(given_)
        taken = rng.random((features, slots)) < 0.7
        signatures[taken] = pool[rng.integers(0, len(pool), int(taken.sum()))]
    query = SignedFeatures(words, signatures)
    options = VotingOptions()

    numbers = rng.permutation(len(photos)) * 3 + 5
    removed = data.draw(st.sets(st.sampled_from(numbers.tolist())))
    home = rng.integers(0, 3, len(photos))
    folder = tmp_path_factory.mktemp("segments")
    segments = []
    for k in sorted(set(home.tolist())):
        mine = np.flatnonzero(home == k)
        segments.append(segment_of(folder / str(k), numbers[mine].tolist(), [photos[i] for i in mine]))
    most = round(0.42 * bits)  # more than vote
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(voting, "_OF_A_WORD", of_a_word)
        index = InvertedIndex(segments, vocabulary, removed)
        found = match(index, query, most)
        scores = vote(index, found, bits, options)
        found = ordered(found)
    kept = sorted((int(number), k) for k, number in enumerate(numbers) if number not in removed)
    there = [photos[k] for _, k in kept]

    # All matches are found, in order.
    expected_matches = []
    for place, photo in enumerate(there):
        firsts = np.searchsorted(photo.words, photo.words)
        for j, word, i, distance in matches_of(photo, query, most, of_a_word):
            expected_matches.append((place, j, word, i - int(firsts[i]), distance))
    reported = zip(
        *(getattr(found, name).tolist() for name in ("photos", "query", "words", "ranks", "distances")), strict=True
    )
    assert list(reported) == expected_matches
    # So are the scores.
    assert scores.dtype == np.float32 and (scores >= 0).all()
    np.testing.assert_allclose(scores, scores_of(there, query, bits, options, of_a_word), rtol=1e-5, atol=1e-7)

    # In one segment, and added in another order, scores are equal to the bit.
    again = rng.permutation(len(there))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(voting, "_OF_A_WORD", of_a_word)
        if there:
            whole = InvertedIndex([segment_of(folder / "whole", again.tolist(), there)], vocabulary)
            other = vote(whole, match(whole, query, most), bits, options)
            assert other[again].tobytes() == scores.tobytes()


def test_the_order_of_adding_changes_no_bit_of_a_score(tmp_path: Path) -> None:
    """Sums over some hundred photos would be rounded in another way in another order."""
    rng = np.random.default_rng(2)
    photos = [
        photo_of(rng.integers(0, 12, 20).tolist(), near(np.random.default_rng(k // 2), 20, 8, 0.2)) for k in range(300)
    ]
    query = SignedFeatures(
        rng.permuted(np.tile(np.arange(12), (40, 1)), axis=1)[:, :3], near(rng, 120, 8, 0.4).reshape(40, 3, 8)
    )
    scores = []
    for turn in range(3):
        order = rng.permutation(300) if turn else np.arange(300)
        index = InvertedIndex([segment_of(tmp_path / str(turn), order.tolist(), photos)], 12)
        scores.append(vote(index, match(index, query, 27), 64, VotingOptions())[order].tobytes())
    assert len(set(scores)) == 1


def test_votes_by_hand(tmp_path: Path) -> None:
    """Two photos of four have word 0, one has word 1."""
    none, two, all_ones = np.zeros(8, np.uint8), np.array([3, *[0] * 7], np.uint8), np.full(8, 255, np.uint8)
    photos = [
        photo_of([0, 0, 1], np.array([two, none, none])),
        photo_of([0], two[None]),
        photo_of([2], none[None]),
        photo_of([], np.zeros((0, 8), np.uint8)),
    ]
    index = InvertedIndex([segment_of(tmp_path / "s", range(4), photos)], 3)
    query = SignedFeatures(np.array([[0], [1], [1]], np.int32), np.array([[none], [none], [all_ones]]))
    found = ordered(match(index, query, 27))
    assert found.query.tolist() == [0, 0, 1, 0] and found.photos.tolist() == [0, 0, 0, 1]
    assert found.ranks.tolist() == [0, 1, 0, 0] and found.distances.tolist() == [2, 0, 0, 2]
    half, quarter = math.log(2) ** 2, math.log(4) ** 2
    away = math.exp(-((2 / 16) ** 2)) * half
    total = half + away
    expected = [(half * math.sqrt(half / total) + quarter) / math.sqrt(3), away * math.sqrt(away / total), 0, 0]
    assert vote(index, found, 64, VotingOptions()) == pytest.approx(expected)


def test_what_is_beyond_the_radius_does_not_vote(tmp_path: Path) -> None:
    """22 bits of 64 do, as in the paper."""
    rows = np.packbits(np.arange(64)[None] < np.arange(30)[:, None], axis=1)
    photos = [photo_of([0], rows[k][None]) for k in range(30)] + [photo_of([1], rows[:1])]
    index = InvertedIndex([segment_of(tmp_path / "s", range(31), photos)], 2)
    found = match(index, SignedFeatures(np.array([[0]]), rows[:1][None]), 27)
    assert found.distances.tolist() == list(range(28))
    scores = vote(index, found, 64, VotingOptions())
    assert np.flatnonzero(scores).tolist() == list(range(23)) and (np.diff(scores[:23]) < 0).all()


def test_a_texture_votes_once(tmp_path: Path) -> None:
    """Forty features of one word with one signature in both: the pairs are 1,600, the votes 40, each once."""
    same = np.zeros((40, 8), np.uint8)
    photos = [photo_of([0] * 40, same), photo_of([0], same[:1]), photo_of([1], same[:1])]
    index = InvertedIndex([segment_of(tmp_path / "s", range(3), photos)], 2)
    query = SignedFeatures(np.zeros((40, 1), np.int32), same[:, None])
    found = match(index, query, 22)
    assert np.bincount(found.photos).tolist() == [1600, 40]
    # All forty have the first feature of a photo as their best: it is matched with one of them alone.
    idf2 = math.log(3 / 2) ** 2
    shared = idf2 * math.sqrt(0.5)
    assert vote(index, found, 64, VotingOptions()) == pytest.approx([shared / math.sqrt(40), shared, 0])


# Without similar signatures there is less to count.
@pytest.mark.slow
@pytest.mark.parametrize("alike", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_many_features_of_one_word_take_bounded_time_and_memory(tmp_path: Path, alike: bool) -> None:
    """A wall of tiles: 8,000 features of one word in the query and in each of five photos, 320 million pairs."""
    rng = np.random.default_rng(0)
    flips = 0.0 if alike else 0.5
    photos = [photo_of([3] * 8_000, near(rng, 8_000, 8, flips)) for _ in range(5)] + [photo_of([4], near(rng, 1, 8, 0))]
    index = InvertedIndex([segment_of(tmp_path / "s", range(6), photos)], 5)
    query = SignedFeatures(np.full((8_000, 1), 3, np.int32), photos[0].signatures[:, None])
    tracemalloc.start()
    start = time.process_time()
    found = match(index, query, 27)
    scores = vote(index, found, 64, VotingOptions())
    spent = time.process_time() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) <= 64 * 5 * 8_000 and len(np.unique(found.query)) <= 64
    assert scores.argmax() == 0
    assert spent < 20 and peak < 500e6, (spent, peak)


def test_no_features_no_words_and_no_photos(tmp_path: Path) -> None:
    photos = [photo_of([0, 1], np.zeros((2, 8), np.uint8)), photo_of([], np.zeros((0, 8), np.uint8))]
    index = InvertedIndex([segment_of(tmp_path / "s", [4, 9], photos)], 2)
    nothing = SignedFeatures(np.zeros((0, 3), np.int32), np.zeros((0, 3, 8), np.uint8))
    unknown = SignedFeatures(np.full((2, 3), -1, np.int32), np.zeros((2, 3, 8), np.uint8))
    for query in (nothing, unknown):
        found = match(index, query, 22)
        assert len(found) == 0 and vote(index, found, 64, VotingOptions()).tolist() == [0, 0]
    gone = InvertedIndex(index.segments, 2, {4, 9})
    requested = SignedFeatures(np.zeros((1, 1), np.int32), np.zeros((1, 1, 8), np.uint8))
    for empty in (gone, InvertedIndex([], 2)):
        assert vote(empty, match(empty, requested, 22), 64, VotingOptions()).shape == (0,)
    # In a collection of one photo, as of one word, every word is in all photos, and says nothing.
    one = InvertedIndex([segment_of(tmp_path / "one", [7], photos[:1])], 2)
    assert len(match(one, requested, 22)) == 1 and vote(
        one, match(one, requested, 22), 64, VotingOptions()
    ).tolist() == [0]


def test_signatures_that_are_missing_or_others_are_refused_in_a_sentence(tmp_path: Path) -> None:
    long, short = (photo_of([0], np.zeros((1, length), np.uint8)) for length in (8, 4))
    first, second = segment_of(tmp_path / "a", [0], [long]), segment_of(tmp_path / "b", [1], [short])
    bare = write_segment(
        tmp_path / "c",
        image_numbers=np.array([2]),
        words=[np.zeros(1, np.int32)],
        columns={},
        vocabulary_fingerprint="v",
        descriptor_fingerprint="d",
    )
    query = SignedFeatures(np.zeros((1, 1), np.int32), np.zeros((1, 1, 8), np.uint8))
    with pytest.raises(CairnError, match=r"another length: run Collection.retrain.*\.$"):
        match(InvertedIndex([first, second], 1), query, 22)
    with pytest.raises(CairnError, match=r"has no signatures: run Collection.retrain.signature=…..*\.$"):
        match(InvertedIndex([first, bare], 1), query, 22)


def test_features_are_taken_and_joined() -> None:
    rng = np.random.default_rng(0)
    one = SignedFeatures(np.array([[1, 2, 3], [4, 5, -1]]), rng.integers(0, 256, (2, 3, 4)).astype(np.uint8))
    other = SignedFeatures(np.array([[7]]), rng.integers(0, 256, (1, 1, 4)).astype(np.uint8))
    both = join_signed([one, other])
    assert both.words.tolist() == [[1, 2, 3], [4, 5, -1], [7, -1, -1]]
    np.testing.assert_array_equal(both.signatures[:2], one.signatures)
    np.testing.assert_array_equal(both.signatures[2, 0], other.signatures[0, 0])
    swapped = both.at(np.array([2, 0]))
    assert swapped.words[:, 0].tolist() == [7, 1]
    np.testing.assert_array_equal(swapped.signatures[1], one.signatures[0])


def test_what_has_no_word_in_common_in_a_slot_is_not_matched_by_its_padding(tmp_path: Path) -> None:
    """Of joined features the missing words are -1, whose signatures are zeros."""
    index = InvertedIndex(
        [
            segment_of(
                tmp_path / "s",
                [0, 1],
                [photo_of([0], np.zeros((1, 8), np.uint8)), photo_of([1], np.zeros((1, 8), np.uint8))],
            )
        ],
        2,
    )
    found = match(index, SignedFeatures(np.array([[1, -1]]), np.zeros((1, 2, 8), np.uint8)), 22)
    assert isinstance(found, SignedMatches) and found.photos.tolist() == [1]


@given(st.integers(0, 2**32 - 1), st.integers(0, 30), st.integers(1, 3), st.integers(0, 1500))
@settings(deadline=None)
def test_of_the_words_beside_the_most_common_are_left_out(seed: int, number: int, several: int, most: int) -> None:
    rng = np.random.default_rng(seed)

    class Frequencies(InvertedIndex):
        def __init__(self) -> None:
            self.document_frequency = rng.integers(0, 50, 40)

    index = Frequencies()
    frequency = index.document_frequency
    words = np.argsort(rng.random((number, 40)), axis=1)[:, :several].astype(np.int32)
    words[:, 1:][rng.random((number, several - 1)) < 0.1] = -1
    features = SignedFeatures(words.copy(), rng.integers(0, 256, (number, several, 8), dtype=np.uint8))
    left = without_common(index, features, most)
    np.testing.assert_array_equal(features.words, words)  # as it was
    assert left.signatures is features.signatures
    np.testing.assert_array_equal(left.words[:, 0], words[:, 0])
    every, kept = ({word for word in one[:, 1:].ravel().tolist() if word >= 0} for one in (words, left.words))
    np.testing.assert_array_equal(left.words[:, 1:], np.where(np.isin(words[:, 1:], list(kept)), words[:, 1:], -1))
    assert sum(frequency[word] for word in kept) <= most
    gone = every - kept
    if gone:
        rarest = min(frequency[word] for word in gone)
        assert all(frequency[word] < rarest for word in kept)
        also = sum(frequency[word] for word in every if frequency[word] <= rarest)
        assert also > most
