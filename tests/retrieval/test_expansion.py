"""Average query expansion: where features land, and what they weigh."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from index.segment import ImageFeatures
from retrieval.encoding import decode_geometry, encode_geometry
from retrieval.expansion import average_query, back_project
from retrieval.features import Features
from retrieval.geometry import ellipses_of_shapes
from retrieval.verification import Frames, Verification


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
    words, frames = back_project(image, verified, region)

    # Back in the photo, each is one of its features, and no feature of the region is left out.
    there = decode_geometry(image.columns, np.arange(number))
    centres = frames.centres @ transform[:, :2].T + transform[:, 2]
    linear = transform[:, :2] @ frames.linear
    distances = np.abs(centres[:, None] - there.centres).max(axis=2)
    which = distances.argmin(axis=1) if len(words) else np.zeros(0, int)
    assert (distances[np.arange(len(words)), which] < 1e-4).all()
    np.testing.assert_array_equal(words, image.words[which])
    np.testing.assert_allclose(linear, there.linear[which], atol=1e-4)
    assert len(set(which.tolist())) == len(words)
    mapped = np.linalg.solve(transform[:, :2], (there.centres - transform[:, 2]).T).T
    inside = ((mapped > region[:2] + 1e-5) & (mapped < region[2:] - 1e-5)).all(axis=1)
    assert set(np.nonzero(inside)[0].tolist()) <= set(which.tolist())
    assert (frames.centres >= region[:2] - 1e-5).all() and (frames.centres <= region[2:] + 1e-5).all()


def test_words_weigh_their_mean_count() -> None:
    generator = np.random.default_rng(1)
    parts = []
    for number in (12, 0, 7):
        words = generator.integers(0, 9, number).astype(np.int32)
        parts.append((words, Frames(generator.random((number, 2)), generator.random((number, 2, 2)))))
    (own, frames), *added = parts
    query = average_query(own, frames, added)
    counts = np.mean([np.bincount(words, minlength=9) for words, _ in parts], axis=0)
    found = np.bincount(query.words, weights=query.weights, minlength=9)
    np.testing.assert_allclose(found, counts, rtol=1e-6)
    # The query's own features come first, as they were: matches below their number are of the query.
    np.testing.assert_array_equal(query.words[:12], own)
    np.testing.assert_array_equal(query.frames.centres[:12], frames.centres)
    assert len(query.frames.centres) == len(query.frames.linear) == len(query.words) == 19
