"""Average query expansion: where features land, and what they weigh."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from index.segment import ImageFeatures
from retrieval.features.encoding import decode_geometry, encode_geometry
from retrieval.features.extraction import Features
from retrieval.matching.verification import NOTHING, Verification
from retrieval.regions.geometry import ellipses_of_shapes
from retrieval.search.expansion import average_words, back_project


def image_features(number: int, generator: np.random.Generator, side: float = 640) -> ImageFeatures:
    shapes = np.exp(generator.uniform(0, 2, (number, 1, 1))) * (
        np.eye(2) + generator.uniform(-0.3, 0.3, (number, 2, 2))
    )
    ellipses = ellipses_of_shapes(generator.uniform(0, side - 1, (number, 2)), shapes)
    features = Features(ellipses, np.zeros(number, np.float32), np.zeros((number, 4), np.float16))
    return ImageFeatures(
        generator.integers(0, 50, number).astype(np.uint8), encode_geometry(features, side, upright=True)
    )


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 40))
def test_features_land_where_the_transform_puts_them(seed: int, number: int) -> None:
    generator = np.random.default_rng(seed)
    image = image_features(number, generator)
    transform = np.column_stack([np.eye(2) * generator.uniform(0.3, 3), generator.uniform(-0.5, 0.5, 2)])
    transform[:, :2] += generator.uniform(-0.2, 0.2, (2, 2))
    region = np.sort(generator.uniform(-1, 2, (2, 2)), axis=0).reshape(4)
    verified = Verification(np.zeros((12, 2), np.int32), transform)
    words = back_project(image, verified, region)

    # The photo's features, mapped back, are in the region or not; only those at its very border may go either way.
    there = decode_geometry(image.columns, np.arange(number)).centres
    mapped = np.linalg.solve(transform[:, :2], (there - transform[:, 2]).T).T
    surely = ((mapped > region[:2] + 1e-5) & (mapped < region[2:] - 1e-5)).all(axis=1)
    perhaps = ((mapped > region[:2] - 1e-5) & (mapped < region[2:] + 1e-5)).all(axis=1)
    counts = np.bincount(words, minlength=50)
    assert (counts >= np.bincount(image.words[surely], minlength=50)).all()
    assert (counts <= np.bincount(image.words[perhaps], minlength=50)).all()


def test_nothing_verified_adds_nothing() -> None:
    image = image_features(9, np.random.default_rng(2))
    assert len(back_project(image, NOTHING, np.array([0.0, 0.0, 1.0, 1.0]))) == 0


def test_words_weigh_their_mean_count() -> None:
    generator = np.random.default_rng(1)
    own, *added = (generator.integers(0, 9, number).astype(np.int32) for number in (12, 0, 7))
    words, weights = average_words(own, added)
    counts = np.mean([np.bincount(part, minlength=9) for part in (own, *added)], axis=0)
    np.testing.assert_allclose(np.bincount(words, weights=weights, minlength=9), counts, rtol=1e-6)


def test_a_photo_in_more_detail_weighs_no_more_than_the_query() -> None:
    words, weights = average_words(np.zeros(10, np.int32), [np.ones(1000, np.int32), np.full(5, 2, np.int32)])
    np.testing.assert_allclose(np.bincount(words, weights=weights) * 3, [10, 10, 5], rtol=1e-5)
