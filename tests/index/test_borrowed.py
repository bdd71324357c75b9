"""Scores with borrowed features, compared with a dense computation and with photos that own them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index.arrays import load_array, save_array
from index.borrowed import Borrowed
from index.hamming.voting import BORROWED, SignedFeatures, VotingOptions, match
from index.inverted import InvertedIndex, ScoringOptions
from index.segments.segment import Segment
from index.segments.writing import write_segment
from index.similarity import SimilarityMatrix
from tests.support.voted import vote

WORDS = 12

Images = dict[int, list[int]]
"""Words of images by number."""


def segment_of(folder: Path, images: Images, signatures: dict[int, np.ndarray] | None = None) -> Segment:
    columns = {"signature": [signatures[number] for number in sorted(images)]} if signatures is not None else {}
    return write_segment(
        folder,
        image_numbers=np.array(sorted(images), np.uint32),
        words=[np.array(images[number], np.int32) for number in sorted(images)],
        columns=columns,
        vocabulary_fingerprint="v",
        descriptor_fingerprint="d",
    )


def all_of(*segments: Segment) -> Borrowed:
    return Borrowed(segments, tuple(np.ones(segment.images, bool) for segment in segments))


def dense_scores(own: Images, borrowed: Images, query: list[int], tf: str) -> np.ndarray:
    """The definition with full matrices: idf of own features, norms of own and borrowed ones."""

    def counted(words: list[int]) -> np.ndarray:
        counts = np.bincount(np.array(words, int), minlength=WORDS).astype(float)
        return np.sqrt(counts) if tf == "sqrt" else counts

    df = np.array([sum(word in words for words in own.values()) for word in range(WORDS)])
    idf = np.where(df > 0, np.log(len(own) / np.maximum(df, 1)), 0)
    requested = counted(query) * idf
    scores = []
    for number in sorted(own):
        vector = (counted(own[number]) + counted(borrowed.get(number, []))) * idf
        norm = np.linalg.norm(vector) * np.linalg.norm(requested)
        scores.append(vector @ requested / norm if norm else 0.0)
    return np.array(scores)


words = st.lists(st.integers(0, WORDS - 1), max_size=12)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    own=st.lists(words, min_size=2, max_size=8),
    lent=st.dictionaries(st.integers(0, 9), words, min_size=1),
    query=words,
    tf=st.sampled_from(["linear", "sqrt"]),
    cut=st.integers(1, 7),
)
def test_scores_are_those_of_the_definition_however_segments_are_divided(
    own: list[list[int]], lent: Images, query: list[int], tf: str, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, images = tmp_path_factory.mktemp("borrowed"), dict(enumerate(own))
    segments = [segment_of(folder / "own", images)]
    first, second = ({k: v for k, v in lent.items() if (k < cut) == low} for low in (True, False))
    parts = [segment_of(folder / f"lent{k}", some) for k, some in enumerate((first, second)) if some]
    options = ScoringOptions(tf)
    index = InvertedIndex(segments, WORDS, options=options, borrowed=all_of(*parts))
    found = index.score(np.array(query, int)).scores
    np.testing.assert_allclose(found, dense_scores(images, lent, query, tf), atol=1e-6)
    plain = InvertedIndex(segments, WORDS, options=options)
    np.testing.assert_array_equal(index.norms, plain.norms)
    np.testing.assert_array_equal(index.document_frequency, plain.document_frequency)
    whole = InvertedIndex(segments, WORDS, options=options, borrowed=all_of(segment_of(folder / "whole", lent)))
    np.testing.assert_array_equal(whole.score(np.array(query, int)).scores, found)
    np.testing.assert_array_equal(whole.scored_norms, index.scored_norms)
    known = InvertedIndex(segments, WORDS, options=options, borrowed=all_of(*parts), scored_norms=index.scored_norms)
    np.testing.assert_array_equal(known.score(np.array(query, int)).scores, found)


def test_what_does_not_count_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    own = segment_of(tmp_path / "own", {1: [0, 1], 2: [1, 2], 3: [3], 4: [2, 2]})
    lent = segment_of(tmp_path / "lent", {1: [3, 3], 3: [0], 7: [1]})
    query = np.array([0, 3])
    index = InvertedIndex([own], WORDS, {1}, borrowed=Borrowed((lent,), (np.array([True, False, True]),)))
    np.testing.assert_array_equal(index.score(query).scores, InvertedIndex([own], WORDS, {1}).score(query).scores)
    assert index.scored_lengths.tolist() == index.images.lengths.tolist() == [2, 1, 2]


def test_a_learnt_similarity_goes_without(tmp_path: Path) -> None:
    own = segment_of(tmp_path / "own", {1: [0, 1], 2: [1, 2], 3: [3]})
    nothing = np.zeros(0, np.int32)
    same = SimilarityMatrix("v", np.ones(WORDS, np.float32), nothing, nothing, np.zeros(0, np.float32))
    borrowed = all_of(segment_of(tmp_path / "lent", {1: [3, 3]}))
    index = InvertedIndex([own], WORDS, similarity=same, borrowed=borrowed)
    assert not index.lent and index.scored_norms is index.norms


@pytest.mark.parametrize("when", ["before", "after"])
def test_damage_of_what_is_borrowed_stops_no_search(tmp_path: Path, when: str) -> None:
    own = segment_of(tmp_path / "own", {1: [0, 1], 2: [1, 2], 3: [3]})
    segment_of(tmp_path / "lent", {1: [3, 3, 5], 2: [4, 9]})
    plain, query = InvertedIndex([own], WORDS), np.array([0, 1, 3])
    name = "word_lists" if when == "before" else "posting_lists"
    array = np.array(load_array(tmp_path / "lent" / f"{name}.npy"))
    array[-3:] = 255
    save_array(tmp_path / "lent" / f"{name}.npy", array)
    index = InvertedIndex([own], WORDS, borrowed=all_of(Segment.open(tmp_path / "lent")))
    assert bool(index.lent) == (when == "after")
    np.testing.assert_array_equal(index.score(query).scores, plain.score(query).scores)
    assert not index.lent


def test_photos_are_voted_for_as_if_they_had_what_they_borrow(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    # Words that the photos have already, so that idf is the same where they have the features themselves.
    own = {number: [*range(number, number + 4), number] for number in range(1, 7)}
    lent = {2: [2, 3, 3], 5: [6, 8], 6: [9]}
    signed = {number: rng.integers(0, 4, (len(some), 4), np.uint8) for number, some in own.items()}
    more = {number: rng.integers(0, 4, (len(some), 4), np.uint8) for number, some in lent.items()}
    both = {number: [*own[number], *lent.get(number, [])] for number in own}
    joint = {number: np.concatenate([signed[number], more.get(number, signed[number][:0])]) for number in own}
    segment = segment_of(tmp_path / "own", own, signed)
    index = InvertedIndex([segment], WORDS, borrowed=all_of(segment_of(tmp_path / "lent", lent, more)))
    merged = InvertedIndex([segment_of(tmp_path / "both", both, joint)], WORDS)
    query = SignedFeatures(rng.integers(1, 10, (30, 2)), rng.integers(0, 4, (30, 2, 4), np.uint8))
    found = match(index, query, 32)
    expected = vote(merged, match(merged, query, 32), 32, VotingOptions())
    np.testing.assert_array_equal(vote(index, found, 32, VotingOptions()), expected)
    assert (found.ranks >= BORROWED).any()
    plain = InvertedIndex([segment], WORDS)
    assert expected.tolist() != vote(plain, match(plain, query, 32), 32, VotingOptions()).tolist()
