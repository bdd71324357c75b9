import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from index.inverted import InvertedIndex, ScoringOptions
from index.segments.writing import write_segment
from retrieval.library.parts.scoring import Index

WORDS = 12
bags = st.lists(st.integers(0, WORDS - 1), max_size=15)


@given(st.lists(bags, min_size=1, max_size=8), bags, st.sampled_from(["linear", "sqrt"]), st.booleans(), st.randoms())
def test_scores_are_those_of_an_index_on_disk(
    images: list[list[int]], query: list[int], tf: str, weighted: bool, random: object
) -> None:
    weights = np.round(np.random.default_rng(len(query)).random(len(query)), 3) if weighted else None
    with tempfile.TemporaryDirectory() as folder:
        segment = write_segment(
            Path(folder) / "segment",
            image_numbers=np.arange(len(images), dtype=np.uint32),
            words=[np.array(words, np.int32) for words in images],
            columns={},
            vocabulary_fingerprint="",
            descriptor_fingerprint="",
        )
        on_disk = InvertedIndex([segment], WORDS, options=ScoringOptions(tf))
        expected = on_disk.score(np.array(query, np.int32), weights).scores
    index = Index(WORDS, tf=tf)
    for words in images:
        index.add(words)
    scores = index.score(query, weights)
    assert scores.dtype == np.float32 and np.array_equal(scores, expected)
    assert np.array_equal(index.idf, on_disk.idf)


def test_scores_are_cosines() -> None:
    index = Index(5)
    for words in ([0, 0, 1], [1, 2], [3, 4]):
        index.add(words)
    # ln 3 for a word of one image, ln 1.5 for word 1, which two have.
    rare, common = np.log(3), np.log(1.5)
    query, first, second = np.array([rare, common, 0]), np.array([2 * rare, common, 0]), np.array([0, common, rare])
    norms = [np.linalg.norm(vector) for vector in (query, first, second)]
    expected = [query @ first / norms[0] / norms[1], query @ second / norms[0] / norms[2], 0]
    assert index.score([0, 1]).tolist() == pytest.approx(expected, abs=1e-7)


def test_the_best_come_first_and_what_has_nothing_in_common_is_left_out() -> None:
    index = Index(9)
    for words in ([0, 1], [2, 3], [0, 4], [0, 1], []):
        index.add(words)
    assert [number for number, _ in index.top([0, 1])] == [0, 3, 2]
    assert [number for number, _ in index.top([0, 1], 1)] == [0]
    assert index.top([0, 1], 0) == index.top([8]) == []
    assert len(index) == 5


def test_images_may_be_added_at_any_time() -> None:
    index = Index(4)
    assert index.score([1]).shape == (0,) and index.top([1]) == []
    assert index.add([1, 2]) == 0
    assert index.score([1]).tolist() == [0]  # a word that all images have tells nothing
    assert index.add(np.array([3], np.uint16)) == 1
    assert index.score([1, 1]).tolist() == pytest.approx([np.sqrt(0.5), 0])


def test_what_is_wrong_is_refused() -> None:
    index = Index(4)
    for wrong in (
        lambda: Index(0),
        lambda: Index(4, tf="log"),
        lambda: index.add([4]),
        lambda: index.add([-1]),
        lambda: index.add([0.5]),
        lambda: index.add([[0, 1]]),
        lambda: index.score([4]),
        lambda: index.score([1, 2], [1]),
        lambda: index.score([1], [-1]),
        lambda: index.score([1], [np.nan]),
        lambda: index.top([1], -1),
    ):
        with pytest.raises(CairnError):
            wrong()
    assert len(index) == 0
