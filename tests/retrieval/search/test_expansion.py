"""Query expansion: where features land, and what their words weigh."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from index.inverted import InvertedIndex, ScoringOptions
from index.segments.segment import ImageFeatures
from retrieval.features.encoding import decode_geometry, encode_geometry
from retrieval.features.extraction import Features
from retrieval.matching.verification import NOTHING, Verification
from retrieval.regions.geometry import ellipses_of_shapes
from retrieval.search.expansion import (
    WeighedWords,
    average_words,
    back_project,
    discriminative_words,
    near_places,
    strongest,
)
from retrieval.search.views import indexed_view, joined
from tests.index.test_inverted import segment_of


def image_features(number: int, generator: np.random.Generator, side: float = 640) -> ImageFeatures:
    shapes = np.exp(generator.uniform(0, 2, (number, 1, 1))) * (
        np.eye(2) + generator.uniform(-0.3, 0.3, (number, 2, 2))
    )
    ellipses = ellipses_of_shapes(generator.uniform(0, side - 1, (number, 2)), shapes)
    features = Features(ellipses, np.zeros(number, np.float32), np.zeros((number, 4), np.float16))
    return ImageFeatures(
        generator.integers(0, 50, number).astype(np.uint8), encode_geometry(features, side, upright=True)
    )


@given(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 40))
def test_features_land_where_the_transform_puts_them(seed: int, number: int) -> None:
    generator = np.random.default_rng(seed)
    image = image_features(number, generator)
    transform = np.column_stack([np.eye(2) * generator.uniform(0.3, 3), generator.uniform(-0.5, 0.5, 2)])
    transform[:, :2] += generator.uniform(-0.2, 0.2, (2, 2))
    region = np.sort(generator.uniform(-1, 2, (2, 2)), axis=0).reshape(4)
    verified = Verification(np.zeros((12, 2), np.int32), transform)
    view = back_project(image, verified, region)
    words = view.words

    # The photo's features, mapped back, are in the region or not; only those at its very border may go either way.
    there = decode_geometry(image.columns, np.arange(number)).centres
    mapped = np.linalg.solve(transform[:, :2], (there - transform[:, 2]).T).T
    surely = ((mapped > region[:2] + 1e-5) & (mapped < region[2:] - 1e-5)).all(axis=1)
    perhaps = ((mapped > region[:2] - 1e-5) & (mapped < region[2:] + 1e-5)).all(axis=1)
    counts = np.bincount(words, minlength=50)
    assert (counts >= np.bincount(image.words[surely], minlength=50)).all()
    assert (counts <= np.bincount(image.words[perhaps], minlength=50)).all()
    # Their ellipses are mapped back with them: Σ = L Lᵀ becomes A⁻¹ Σ A⁻ᵀ.
    kept = ((mapped >= region[:2]) & (mapped <= region[2:])).all(axis=1)
    if kept.sum() == len(words):
        np.testing.assert_allclose(view.frames.centres, mapped[kept], atol=1e-5)
        linear = decode_geometry(image.columns, np.flatnonzero(kept)).linear
        inverse = np.linalg.inv(transform[:, :2])
        covariance = inverse @ linear @ linear.transpose(0, 2, 1) @ inverse.T
        np.testing.assert_allclose(
            view.frames.linear @ view.frames.linear.transpose(0, 2, 1), covariance, rtol=1e-3, atol=1e-7
        )


def test_nothing_verified_adds_nothing() -> None:
    image = image_features(9, np.random.default_rng(2))
    assert len(back_project(image, NOTHING, np.array([0.0, 0.0, 1.0, 1.0])).words) == 0


def test_words_weigh_their_mean_count() -> None:
    generator = np.random.default_rng(1)
    own, *added = (generator.integers(0, 9, number).astype(np.int32) for number in (12, 0, 7))
    scored = average_words(own, added)
    counts = np.mean([np.bincount(part, minlength=9) for part in (own, *added)], axis=0)
    np.testing.assert_allclose(np.bincount(scored.words, weights=scored.weights, minlength=9), counts, rtol=1e-6)


def test_a_photo_in_more_detail_weighs_no_more_than_the_query() -> None:
    scored = average_words(np.zeros(10, np.int32), [np.ones(1000, np.int32), np.full(5, 2, np.int32)])
    np.testing.assert_allclose(np.bincount(scored.words, weights=scored.weights) * 3, [10, 10, 5], rtol=1e-5)


def test_views_are_joined_feature_by_feature() -> None:
    one, other = (indexed_view(image_features(number, np.random.default_rng(number))) for number in (5, 8))
    both = joined([one, other])
    np.testing.assert_array_equal(both.words, [*one.words, *other.words])
    np.testing.assert_array_equal(both.frames.at(np.arange(5, 13)).linear, other.frames.linear)
    np.testing.assert_array_equal(both.frames.at(np.arange(5)).centres, one.frames.centres)


IMAGES = [[0, 1, 1, 2], [0, 1, 3], [4, 4, 5, 1], [2, 6, 7], [5, 5, 5, 0, 7], [8, 9, 3]]
NUMBERS = [3, 5, 8, 13, 21, 34]


def dense_vectors(lists: list[list[int]], idf: np.ndarray, tf: str) -> np.ndarray:
    """Vectors of length 1, ``tf(n) idf``, written down in full."""
    counts = np.array([np.bincount(one, minlength=len(idf)) for one in lists], float)
    vectors = (np.sqrt(counts) if tf == "sqrt" else counts) * idf
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.mark.parametrize("tf", ["linear", "sqrt"])
def test_words_weigh_what_tells_the_verified_from_the_lowest_ranked(tmp_path: Path, tf: str) -> None:
    """Scores are those of the machine that costs the least, found by other means, without what speaks against."""
    index = InvertedIndex([segment_of(tmp_path / "s", NUMBERS, IMAGES)], words=10, options=ScoringOptions(tf))
    query, added, negatives = [0, 1, 1, 4], [[0, 1, 2, 2, 3]], [21, 34]
    scored = discriminative_words(np.array(query), [np.array(one) for one in added], index, negatives, 1.0)

    samples = dense_vectors([query, *added, IMAGES[4], IMAGES[5]], index.idf, tf)
    samples[2:, [5, 6, 7, 8, 9]] = 0  # words that no positive has
    signs = np.array([1, 1, -1, -1])

    def primal(machine: np.ndarray) -> float:
        margins = np.maximum(0, 1 - signs * (samples @ machine[:-1] + machine[-1]))
        return float(0.5 * machine @ machine + margins @ margins)

    weights = np.maximum(minimize(primal, np.zeros(11), method="BFGS", options={"gtol": 1e-9}).x[:-1], 0)
    expected = dense_vectors(IMAGES, index.idf, tf) @ weights / np.linalg.norm(weights)
    np.testing.assert_allclose(index.score(scored.words, scored.weights).scores, expected, atol=1e-4)
    assert set(scored.words.tolist()) <= {0, 1, 2, 3, 4}
    again = discriminative_words(np.array(query), [np.array(one) for one in added], index, negatives, 1.0)
    np.testing.assert_array_equal(again.weights, scored.weights)


def test_a_classifier_of_nothing_asks_for_nothing(tmp_path: Path) -> None:
    index = InvertedIndex([segment_of(tmp_path / "s", NUMBERS, IMAGES)], words=10)
    scored = discriminative_words(np.zeros(0, np.int32), [], index, [3], 1.0)
    assert not len(scored.words)
    assert not index.score(scored.words, scored.weights).scores.any()


def test_without_negatives_positives_alone_are_learnt_from(tmp_path: Path) -> None:
    index = InvertedIndex([segment_of(tmp_path / "s", NUMBERS, IMAGES)], words=10)
    scored = discriminative_words(np.array([0, 1]), [np.array([0, 2])], index, [], 1.0)
    assert set(scored.words.tolist()) == {0, 1, 2}


def test_the_words_are_kept_that_can_add_the_most(tmp_path: Path) -> None:
    index = InvertedIndex([segment_of(tmp_path / "s", NUMBERS, IMAGES)], words=10)
    words, weights = np.array([0, 6, 1, 6, 9], np.int32), np.array([1, 0.4, 1, 0.4, 0.1], np.float32)
    # ln(6/3) for words 0 and 1, ln 6 for 6 and 9: 0.8 ln² 6 > ln² 2 = ln² 2 > 0.1 ln² 6.
    kept = strongest(WeighedWords(words, weights), index, 2)
    assert kept.words.tolist() == [0, 6]
    np.testing.assert_allclose(kept.weights, [1, 0.8])
    every = strongest(WeighedWords(words, weights), index, 5)
    assert index.score(every.words, every.weights).scores == pytest.approx(index.score(words, weights).scores)


@given(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 40), places=st.integers(0, 5))
def test_features_near_to_what_agrees_are_kept(seed: int, number: int, places: int) -> None:
    generator = np.random.default_rng(seed)
    view, agreed = indexed_view(image_features(number, generator)), generator.uniform(0, 1, (places, 2))
    apart = np.linalg.norm(view.frames.centres[:, None].astype(float) - agreed, axis=2)
    near = (apart < 0.2).any(axis=1)
    kept = near_places(view, agreed, 0.2)
    np.testing.assert_array_equal(kept.words, view.words[near])
    np.testing.assert_array_equal(kept.frames.centres, view.frames.centres[near])
