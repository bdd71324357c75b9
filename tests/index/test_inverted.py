"""tf-idf scores and learnt similarities against values worked out by hand and against a dense computation."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import index.inverted
import index.similarity
from index.arrays import save_array
from index.errors import CairnError
from index.inverted import InvertedIndex, Scores, ScoringOptions, rank
from index.segments.segment import Segment
from index.segments.writing import write_segment
from index.similarity import SimilarityMatrix
from index.word_weights import WEIGHTING
from tests.index.test_similarity import dense, matrices
from tests.support.segments_of_format_1 import write_segment_of_format_1


def segment_of(folder: Path, numbers: list[int], words: list[list[int]], vocabulary: str = "v") -> Segment:
    return write_segment(
        folder,
        image_numbers=np.array(numbers, dtype=np.uint32),
        words=[np.array(row, dtype=np.int32) for row in words],
        columns={},
        vocabulary_fingerprint=vocabulary,
        descriptor_fingerprint="d",
    )


def dense_scores(
    images: list[list[int]], query: list[int], weights: list[float], vocabulary: int, tf: str
) -> np.ndarray:
    """The definition, written down with full matrices: L1-normalised tf, idf, L2 norm, cosine."""
    counts = np.array([[row.count(word) for word in range(vocabulary)] for row in images], dtype=float)
    counts = counts.reshape(-1, vocabulary)
    requested = np.array(
        [sum(w for q, w in zip(query, weights, strict=True) if q == word) for word in range(vocabulary)]
    )
    df = (counts > 0).sum(axis=0)
    idf = np.array([np.log(len(images) / n) if n else 0.0 for n in df])
    vectors = []
    for row in [*counts, requested]:
        frequency = row / row.sum() if row.sum() else row
        vector = (np.sqrt(frequency) if tf == "sqrt" else frequency) * idf
        vectors.append(vector / np.linalg.norm(vector) if np.linalg.norm(vector) else vector)
    return np.array(vectors)[:-1] @ vectors[-1]


def test_three_documents_by_hand(tmp_path: Path) -> None:
    # Words 0 to 4 are in 3, 2, 1, 1 and 0 of the 3 images; L = ln 3, l = ln 3/2.
    index_ = InvertedIndex([segment_of(tmp_path / "s", [10, 20, 30], [[0, 1, 1, 2], [0, 1], [0, 0, 3]])], words=5)
    L, l = 1.0986122886681098, 0.4054651081081644  # noqa: E741
    assert index_.idf == pytest.approx([0, l, L, L, 0])
    assert index_.norms == pytest.approx([np.hypot(2 * l, L), l, L])
    assert WEIGHTING == 1, "collections keep the norms above under this version"
    assert index_.common_idf == pytest.approx((3 * l + 2 * L) / 9)
    # The query (1, 2): (l, L)/√(l²+L²) · (2l, L)/√(4l²+L²), and with image 20 it shares word 1: l/√(l²+L²).
    scores = index_.score(np.array([2, 1]))
    assert scores.image_numbers.tolist() == [10, 20, 30]
    assert scores.scores == pytest.approx([0.960416, 0.346242, 0.0], abs=1e-6)
    ranking = rank(scores)
    assert ranking.image_numbers.tolist() == [10, 20, 30]
    # √n: image 10 is (√2 l, L)/√(2l²+L²).
    rooted = InvertedIndex(index_.segments, words=5, options=ScoringOptions(tf="sqrt"))
    assert rooted.score(np.array([2, 1])).scores == pytest.approx(
        [(2**0.5 * l * l + L * L) / (np.hypot(l, L) * np.hypot(2**0.5 * l, L)), 0.346242, 0.0], abs=1e-6
    )


collections = st.lists(st.lists(st.integers(0, 7), max_size=12), min_size=1, max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), images=collections, tf=st.sampled_from(["linear", "sqrt"]), block=st.integers(1, 40))
def test_scores_are_the_dense_ones_whatever_the_segments(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, images: list[list[int]], tf: str, block: int
) -> None:
    vocabulary = 9
    numbers = data.draw(
        st.lists(st.integers(0, 10**6), min_size=len(images), max_size=len(images), unique=True).map(sorted)
    )
    home = data.draw(st.lists(st.integers(0, 2), min_size=len(images), max_size=len(images)))
    removed = data.draw(st.sets(st.sampled_from(numbers)))
    query = data.draw(st.lists(st.integers(0, vocabulary - 1), max_size=10))
    weights = data.draw(st.none() | st.lists(st.floats(0.01, 9), min_size=len(query), max_size=len(query)))

    folder = tmp_path_factory.mktemp("segments")
    segments = []
    for k in set(home):
        mine = [i for i in range(len(images)) if home[i] == k]
        segments.append(segment_of(folder / str(k), [numbers[i] for i in mine], [images[i] for i in mine]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index.inverted, "BLOCK_POSTINGS", block)
        index_ = InvertedIndex(segments, vocabulary, removed, options=ScoringOptions(tf=tf))
        given_ = None if weights is None else np.array(weights)
        got = index_.score(np.array(query), given_)
        # Several at once equal single queries, to the last bit.
        some = [(np.array([0, 3, 3]), None), (np.array(query), given_), (np.zeros(0, np.int32), None)]
        many = index_.score_many(some)
        assert [row.tobytes() for row in many] == [index_.score(*one).scores.tobytes() for one in some]

    kept = [i for i in range(len(images)) if numbers[i] not in removed]
    assert got.image_numbers.tolist() == [numbers[i] for i in kept]
    expected = dense_scores([images[i] for i in kept], query, weights or [1.0] * len(query), vocabulary, tf)
    assert got.scores == pytest.approx(expected, abs=1e-6)
    # One segment and one block: not a bit differs, so that ties stay ties.
    whole = segment_of(folder / "whole", numbers, images)
    alone = InvertedIndex([whole], vocabulary, removed, options=ScoringOptions(tf=tf))
    assert (
        alone.score(np.array(query), weights if weights is None else np.array(weights)).scores.tobytes()
        == got.scores.tobytes()
    )
    assert alone.norms.tobytes() == index_.norms.tobytes()
    for i in kept:
        assert index_.images.features(numbers[i]).words.tolist() == sorted(images[i])
    for number in removed:
        with pytest.raises(KeyError):
            index_.images.features(number)


@given(
    values=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=30),
    top=st.none() | st.integers(0, 35),
    data=st.data(),
)
def test_ranking_is_by_score_then_number(values: list[float], top: int | None, data: st.DataObject) -> None:
    numbers = data.draw(st.permutations(range(100, 100 + len(values))))
    expected = sorted(zip((-v for v in values), numbers, strict=True))[:top]
    ranking = rank(Scores(np.array(numbers, np.uint32), np.array(values, np.float32)), top)
    assert list(zip((-ranking.scores).tolist(), ranking.image_numbers.tolist(), strict=True)) == expected


def test_an_image_finds_itself_first_with_score_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    images = [rng.integers(0, 300, 200).tolist() for _ in range(40)]
    images[7] = images[3]
    index_ = InvertedIndex([segment_of(tmp_path / "s", list(range(40)), images)], words=300)
    for number in range(40):
        ranking = rank(index_.score(np.array(images[number])), top=2)
        assert ranking.scores[0] == 1
        assert ranking.image_numbers[0] == (3 if number == 7 else number)
    assert rank(index_.score(np.array(images[7])), top=2).image_numbers.tolist() == [3, 7]


def test_nothing_to_say_is_zeros(tmp_path: Path) -> None:
    two = InvertedIndex([segment_of(tmp_path / "two", [4, 9], [[0, 1], []])], words=3)
    for query in ([], [2]):  # no words; a word no image has
        scores = two.score(np.array(query))
        assert scores.scores.tolist() == [0, 0]
        assert rank(scores).image_numbers.tolist() == [4, 9]
    assert two.score(np.array([0])).scores == pytest.approx([2**-0.5, 0])
    for nothing in (0.0, 1e-200):  # the square of the second is 0 too
        assert two.score(np.array([0]), np.array([nothing])).scores.tolist() == [0, 0]
    one = InvertedIndex([segment_of(tmp_path / "one", [4], [[0, 1]])], words=3)
    assert one.score(np.array([0, 1])).scores.tolist() == [0]
    none = InvertedIndex([], words=3)
    assert len(none.score(np.array([0, 1]))) == 0 and len(rank(none.score(np.array([])), top=5)) == 0
    assert none.imbalance == 0
    assert none.common_idf == 0
    gone = InvertedIndex(two.segments, words=3, removed={4, 9, 77})
    assert len(gone.score(np.array([0]))) == 0


def test_only_the_proportions_of_weights_matter(tmp_path: Path) -> None:
    index_ = InvertedIndex([segment_of(tmp_path / "s", [0, 1, 2], [[0, 1], [1, 2, 2], [0, 2]])], words=3)
    counted = index_.score(np.array([0, 2, 2]))
    weighted = index_.score(np.array([2, 0]), np.array([0.5, 0.25]))
    assert weighted.scores == pytest.approx(counted.scores, abs=1e-7)


def test_norms_can_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = segment_of(tmp_path / "s", [0, 1, 2], [[0, 1], [1, 2, 2], [0, 2]])
    norms = InvertedIndex([segment], words=3).norms
    monkeypatch.setattr(InvertedIndex, "_norms", lambda self: pytest.fail("the postings were read"))
    given_ = InvertedIndex([segment], words=3, norms=norms)
    assert given_.score(np.array([1])).scores[1] > 0
    with pytest.raises(ValueError, match="norms"):
        InvertedIndex([segment], words=3, norms=norms[:2])


def test_features_of_some_images_are_those_of_each(tmp_path: Path) -> None:
    first = segment_of(tmp_path / "a", [1, 4, 9], [[3, 1, 1], [], [5, 2]])
    second = segment_of(tmp_path / "b", [2, 5], [[300, 7], [0]])
    index = InvertedIndex([first, second], 301, removed={9})
    for numbers in ([5, 1, 4, 2], [4], [2, 2, 1], []):
        found = index.images.features_of(numbers)
        assert index.images.feature_counts(numbers).tolist() == [len(image.words) for image in found]
        for number, image in zip(numbers, found, strict=True):
            alone = index.images.features(number)
            np.testing.assert_array_equal(image.words, alone.words)
            assert image.columns.keys() == alone.columns.keys()
            for name, column in alone.columns.items():
                np.testing.assert_array_equal(image.columns[name], column)
    for missing in (0, 3, 9, 10):
        with pytest.raises(KeyError, match=str(missing)):
            index.images.features_of([1, missing])
        with pytest.raises(KeyError, match=str(missing)):
            index.images.feature_counts([1, missing])
    with pytest.raises(KeyError):
        InvertedIndex([], 5).images.features_of([0])


def test_words_that_there_are_not_are_refused_whatever_is_said_of_them(tmp_path: Path) -> None:
    segment = segment_of(tmp_path / "s", [0, 1], [[0, 1], [7]])
    with pytest.raises(CairnError, match="damaged"):
        InvertedIndex([segment], words=5, document_frequency=np.ones(5, np.int64))
    with pytest.raises(ValueError, match="document frequency"):
        InvertedIndex([segment], words=8, document_frequency=np.ones(5, np.int64))


@pytest.mark.parametrize("bit", [20, 31])  # a word beyond the vocabulary, and one that 32 bits with a sign do not hold
def test_damaged_words_of_images_are_refused_and_nothing_is_read_beyond_an_array(tmp_path: Path, bit: int) -> None:
    words = [[1, 2, 70_000], [5, 70_001]]
    write_segment_of_format_1(
        tmp_path / "s",
        image_numbers=[0, 1],
        words=words,
        columns={},
        vocabulary_fingerprint="v",
        descriptor_fingerprint="d",
    )
    known: dict[str, Any] = {"norms": np.ones(1), "document_frequency": np.ones(80_000, np.int64)}
    sound = InvertedIndex([Segment.open(tmp_path / "s")], 80_000, {1}, **known)
    assert sound.imbalance == pytest.approx(80_000 / 3)
    array = np.load(tmp_path / "s" / "words.npy")
    assert array.dtype == np.uint32
    array[-1] ^= np.uint32(1 << bit)
    save_array(tmp_path / "s" / "words.npy", array)
    segment = Segment.open(tmp_path / "s")
    with pytest.raises(CairnError, match="damaged"):
        InvertedIndex([segment], 80_000)
    with pytest.raises(CairnError, match="damaged"):
        InvertedIndex([segment], 80_000, {1})
    with pytest.raises(CairnError, match="damaged"):
        _ = InvertedIndex([segment], 80_000, {1}, **known).imbalance
    there = InvertedIndex([segment], 80_000, {0}, **known)
    with pytest.raises(CairnError, match="damaged"):
        there.images.features(1)
    with pytest.raises(CairnError, match="damaged"):
        there.images.features_of([1])


def test_imbalance(tmp_path: Path) -> None:
    even = segment_of(tmp_path / "even", [0, 1], [[0, 1], [2, 3]])
    # Shares 4/7, 1/7, 1/7, 1/7 of 4 words: 4 · 19/49.
    burst = segment_of(tmp_path / "burst", [2], [[0, 0, 0]])
    assert InvertedIndex([even], words=4).imbalance == pytest.approx(1)
    assert InvertedIndex([even, burst], words=4).imbalance == pytest.approx(4 * 19 / 49)
    assert InvertedIndex([even, burst], words=4, removed={2}).imbalance == pytest.approx(1)
    assert InvertedIndex([even, burst], words=4, removed={0, 1}).imbalance == pytest.approx(4)


def test_what_cannot_be_scored_is_refused(tmp_path: Path) -> None:
    segment = segment_of(tmp_path / "a", [0, 1], [[0, 1], [2]])
    with pytest.raises(CairnError, match="more than one vocabulary"):
        InvertedIndex([segment, segment_of(tmp_path / "b", [2], [[0]], vocabulary="other")], words=3)
    with pytest.raises(CairnError, match="beyond the 2"):
        InvertedIndex([segment], words=2)
    with pytest.raises(CairnError, match="same image"):
        InvertedIndex([segment, segment_of(tmp_path / "c", [1], [[0]])], words=3)
    with pytest.raises(CairnError, match="term frequency"):
        ScoringOptions(tf="log")
    index_ = InvertedIndex([segment], words=3)
    for words, weights in [([3], None), ([-1], None), ([0], [1.0, 2.0]), ([0], [np.nan]), ([0], [-1.0]), ([0.5], None)]:
        with pytest.raises(ValueError):
            index_.score(np.array(words), None if weights is None else np.array(weights))


# Learnt similarity


def dense_similarity(
    images: list[list[int]], query: list[int], weights: list[float], R: np.ndarray, tf: str
) -> tuple[np.ndarray, np.ndarray]:
    """Equation 3 of Yan and Yu with full matrices: √Ŝ of the query and each image, and √S_jj of each image."""
    words = range(len(R))
    counts = np.array([[row.count(word) for word in words] for row in images], dtype=float).reshape(-1, len(R))
    requested = np.array([sum(w for q, w in zip(query, weights, strict=True) if q == word) for word in words])
    df = (counts > 0).sum(axis=0)
    idf = np.array([np.log(len(images) / n) if n else 0.0 for n in df])
    M = idf[:, None] * R * idf
    scale = np.sqrt if tf == "sqrt" else np.asarray
    I, i = scale(counts), scale(requested)  # noqa: E741
    S_jj, S_ii, S_ij = np.einsum("ju,uv,jv->j", I, M, I), i @ M @ i, I @ M @ i
    both = S_jj * S_ii
    return np.sqrt(np.divide(S_ij**2, both, out=np.zeros_like(S_ij), where=both > 0)), np.sqrt(S_jj)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    images=collections,
    tf=st.sampled_from(["linear", "sqrt"]),
    matrix=matrices(9),
    block=st.integers(1, 40),
)
def test_similarities_are_the_dense_ones_whatever_the_segments(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    images: list[list[int]],
    tf: str,
    matrix: SimilarityMatrix,
    block: int,
) -> None:
    numbers = list(range(3, 3 + 2 * len(images), 2))
    home = data.draw(st.lists(st.integers(0, 2), min_size=len(images), max_size=len(images)))
    removed = data.draw(st.sets(st.sampled_from(numbers)))
    query = data.draw(st.lists(st.integers(0, 8), max_size=10))
    weights = data.draw(st.none() | st.lists(st.floats(0.01, 9), min_size=len(query), max_size=len(query)))
    given_ = None if weights is None else np.array(weights)

    folder = tmp_path_factory.mktemp("segments")
    segments = []
    for k in set(home):
        mine = [i for i in range(len(images)) if home[i] == k]
        segments.append(segment_of(folder / str(k), [numbers[i] for i in mine], [images[i] for i in mine]))
    options = ScoringOptions(tf=tf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index.inverted, "BLOCK_POSTINGS", block)
        patch.setattr(index.similarity, "BLOCK_POSTINGS", block)
        index_ = InvertedIndex(segments, 9, removed, options=options, similarity=matrix)
        got = index_.score(np.array(query), given_)

    kept = [images[i] for i in range(len(images)) if numbers[i] not in removed]
    scores, norms = dense_similarity(kept, query, weights or [1.0] * len(query), dense(matrix), tf)
    np.testing.assert_allclose(index_.norms, norms, rtol=1e-12)
    np.testing.assert_allclose(got.scores, scores, rtol=1e-5)
    # One segment and one block: not a bit differs, so that ties stay ties.
    whole = [segment_of(folder / "whole", numbers, images)]
    alone = InvertedIndex(whole, 9, removed, options=options, similarity=matrix)
    assert alone.norms.tobytes() == index_.norms.tobytes()
    assert alone.score(np.array(query), given_).scores.tobytes() == got.scores.tobytes()
    # Nor does it with R = I and plain tf-idf, whether the mask is empty or all zeros.
    plain = InvertedIndex(whole, 9, removed, options=options)
    ones, zeros = np.ones(9, np.float32), np.zeros_like(matrix.values)
    for same in (SimilarityMatrix.identity("v", 9), replace(matrix, diagonal=ones, values=zeros)):
        unit = InvertedIndex(whole, 9, removed, options=options, similarity=same)
        assert unit.norms.tobytes() == plain.norms.tobytes()
        assert (
            unit.score(np.array(query), given_).scores.tobytes()
            == plain.score(np.array(query), given_).scores.tobytes()
        )


def test_the_identity_ranks_a_large_collection_as_tf_idf_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    images = [rng.zipf(1.3, rng.integers(0, 400)) % 5_000 for _ in range(300)]
    segments = [
        segment_of(tmp_path / str(k), list(range(k, 300, 3)), [images[i].tolist() for i in range(k, 300, 3)])
        for k in range(3)
    ]
    plain = InvertedIndex(segments, 5_000)
    same = InvertedIndex(segments, 5_000, similarity=SimilarityMatrix.identity("v", 5_000))
    assert same.norms.tobytes() == plain.norms.tobytes()
    for number in range(0, 300, 7):
        weights = rng.random(len(images[number]))
        for given_ in (None, weights):
            one, other = (rank(i.score(images[number], given_)) for i in (plain, same))
            assert one.image_numbers.tobytes() == other.image_numbers.tobytes()
            assert one.scores.tobytes() == other.scores.tobytes()


def test_related_words_by_hand(tmp_path: Path) -> None:
    # Words 0, 1, 2 are in one image each: idf ln 3. R = [[1, 1/2, 0], [1/2, 1, 0], [0, 0, 0]].
    R = SimilarityMatrix(
        "v", np.array([1, 1, 0], np.float32), *np.array([[0], [1]], np.int32), np.array([0.5], np.float32)
    )
    index_ = InvertedIndex([segment_of(tmp_path / "s", [5, 6, 7], [[0], [1], [2]])], words=3, similarity=R)
    assert index_.norms == pytest.approx([np.log(3), np.log(3), 0])
    assert index_.score(np.array([0])).scores == pytest.approx([1, 0.5, 0])
    # (1, 1, 0) has S_ii = 3: 3/2 of √3.
    assert index_.score(np.array([0, 1])).scores == pytest.approx([1.5 / 3**0.5, 1.5 / 3**0.5, 0])
    # An image, and a query, of words that count for nothing.
    assert index_.score(np.array([2])).scores.tolist() == [0, 0, 0]


def test_words_of_images_that_no_posting_has_are_refused(tmp_path: Path) -> None:
    segment = segment_of(tmp_path / "s", [0, 1], [[0, 1, 3], [2]])
    other = segment_of(tmp_path / "other", [0, 1], [[0, 2, 3], [2]])
    shutil.copy(other.folder / "posting_lists.npy", segment.folder)
    pair = np.array([0], np.int32), np.array([1], np.int32), np.array([0.5], np.float32)
    related = SimilarityMatrix("v", np.ones(4, np.float32), *pair)
    with pytest.raises(CairnError, match="damaged"):
        InvertedIndex([Segment.open(segment.folder)], 4, similarity=related)


def test_what_is_like_others_but_not_like_itself_is_no_number_too_many(tmp_path: Path) -> None:
    pair = np.array([[0], [1]], np.int32)
    segments = [segment_of(tmp_path / "s", [5, 6, 7], [[0], [1], []])]
    off = SimilarityMatrix("v", np.zeros(2, np.float32), *pair, np.ones(1, np.float32))
    none = InvertedIndex(segments, words=2, similarity=off)
    assert none.score(np.array([0])).scores.tolist() == [0, 0, 0]
    assert none.score(np.array([0, 1])).scores.tolist() == [0, 0, 0]
    # R is not positive semi-definite: more than 1, and finite whatever the file says.
    for small in (np.float32(0.25), np.finfo(np.float32).tiny):
        large = np.full(1, 1 if small == 0.25 else np.finfo(np.float32).max, np.float32)
        wild = InvertedIndex(
            segments, words=2, similarity=SimilarityMatrix("v", np.full(2, small, np.float32), *pair, large)
        )
        scores = wild.score(np.array([0])).scores
        assert np.isfinite(scores).all() and scores[0] == pytest.approx(1)
        assert scores[1] == pytest.approx(4 if small == 0.25 else np.finfo(np.float32).max)
        assert rank(wild.score(np.array([0]))).image_numbers.tolist() == [6, 5, 7]


def test_a_similarity_of_other_words_is_refused_and_an_empty_index_is_none(tmp_path: Path) -> None:
    segment = segment_of(tmp_path / "s", [0, 1], [[0, 1], [2]])
    with pytest.raises(CairnError, match="relates 4 words, and the vocabulary has 3"):
        InvertedIndex([segment], words=3, similarity=SimilarityMatrix.identity("v", 4))
    one = np.ones(1, np.float32)
    R = SimilarityMatrix("v", np.ones(3, np.float32), *np.array([[0], [2]], np.int32), one)
    for empty in (InvertedIndex([], 3, similarity=R), InvertedIndex([segment], 3, {0, 1}, similarity=R)):
        assert len(empty.score(np.array([0, 1]))) == 0
    bare = InvertedIndex([segment_of(tmp_path / "bare", [4], [[]])], 3, similarity=R)
    assert bare.score(np.array([0, 1])).scores.tolist() == [0]
