import json

import numpy as np
import pytest
import skimage.data
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.library.parts.features import describe, detect, orientations
from retrieval.library.parts.matches import nearest_matches, verify, word_matches
from retrieval.regions.geometry import ellipses_of_shapes, rotations, upright_frames

SHAPE = (300, 400)
PAIRS = np.stack([np.arange(60)] * 2, axis=1)


@pytest.fixture(scope="module")
def regions() -> NDArray[np.float32]:
    """Sixty ellipses somewhere in an image."""
    rng = np.random.default_rng(0)
    centres = rng.uniform((20, 20), (380, 280), (60, 2))
    shapes = rng.uniform(4, 12, (60, 1, 1)) * (np.eye(2) + rng.uniform(-0.3, 0.3, (60, 2, 2)))
    return ellipses_of_shapes(centres, shapes)


def mapped(
    regions: NDArray[np.float32], linear: NDArray[np.float64], shift: NDArray[np.float64]
) -> NDArray[np.float32]:
    return ellipses_of_shapes(regions[:, :2].astype(np.float64) @ linear.T + shift, linear @ upright_frames(regions))


def test_the_map_between_two_images_is_found(regions: NDArray[np.float32]) -> None:
    linear, shift = np.array([[0.8, 0.0], [0.1, 1.1]]), np.array([30.0, -20.0])  # keeps "down"
    others = mapped(regions, linear, shift)
    wrong = np.stack([np.arange(60), np.roll(np.arange(60), 7)], axis=1)
    found = verify(regions, others, np.concatenate([PAIRS, wrong]), SHAPE, (*SHAPE, 3))
    assert found.verified and found.probability > 0.99 and found.unsure == 0
    assert found.transform is not None and found.homography is not None
    assert found.transform.shape == (2, 3) and found.homography.shape == (3, 3)
    assert np.allclose(found.transform, np.column_stack([linear, shift]), atol=1e-2)
    assert np.allclose(found.homography, np.vstack([found.transform, [0, 0, 1]]), atol=2e-2)
    assert {tuple(pair) for pair in found.inliers.tolist()} == {tuple(pair) for pair in PAIRS.tolist()}
    assert found.inliers.dtype == np.int32
    reported = json.loads(json.dumps(found.to_dict()))
    assert reported["verified"] and reported["transform"] == found.transform.tolist() and len(reported["inliers"]) == 60


def test_pixels_are_those_of_each_image_whatever_their_sizes(regions: NDArray[np.float32]) -> None:
    others = mapped(regions, np.eye(2) * 3, np.array([1.0, 1.0]))
    found = verify(regions, others, PAIRS, SHAPE, (900, 1200))
    assert found.transform is not None
    assert np.allclose(found.transform, [[3, 0, 1], [0, 3, 1]], atol=1e-2)


def test_a_homography_follows_a_plane_at_a_slant(regions: NDArray[np.float32]) -> None:
    matrix = np.array([[1.0, 0.05, 5], [0.02, 1.0, 3], [2e-4, 1e-4, 1]])
    places = np.column_stack([regions[:, :2], np.ones(60)]) @ matrix.T
    others = regions.copy()
    others[:, :2] = places[:, :2] / places[:, 2:]
    found = verify(regions, others, PAIRS, SHAPE, SHAPE)
    assert found.homography is not None
    assert np.allclose(found.homography / found.homography[2, 2], matrix, rtol=0.02, atol=1e-4)


def test_matches_by_chance_verify_nothing(regions: NDArray[np.float32]) -> None:
    others = regions[np.random.default_rng(1).permutation(60)]
    found = verify(regions, others, PAIRS, SHAPE, SHAPE)
    assert not found.verified and found.transform is found.homography is None
    assert found.inliers.shape == (0, 2) and found.probability < 0.5


def test_turned_images_verify_by_their_angles(regions: NDArray[np.float32]) -> None:
    turn = rotations(np.array([2.0]))[0]
    others = mapped(regions, turn, np.array([300.0, 20.0]))
    # The angle of the frame of each from its upright one.
    frames = turn @ upright_frames(regions)
    relative = np.linalg.solve(upright_frames(others), frames)
    angles = np.arctan2(relative[:, 1, 0], relative[:, 0, 0])
    assert not verify(regions, others, PAIRS, SHAPE, SHAPE).verified
    for found in (
        verify(regions, others, PAIRS, SHAPE, SHAPE, angles_a=np.zeros(60), angles_b=angles),
        verify(regions, others, PAIRS, SHAPE, SHAPE, angles_b=angles, hypotheses="similarity"),
        verify(regions, others, PAIRS, SHAPE, SHAPE, hypotheses="places"),
    ):
        assert found.transform is not None and len(found.inliers) == 60
        assert np.allclose(found.transform, np.column_stack([turn, [300, 20]]), atol=1e-2)


def test_the_map_is_fitted_to_all_inliers_though_one_is_stray() -> None:
    rng = np.random.default_rng(0)
    regions = np.column_stack([rng.uniform(100, 900, (300, 2)), np.tile([0.01, 0, 0.01], (300, 1))])
    others = regions / [1, 1, 1.02, 1.02, 1.02]  # a hundredth larger: as is the map of each single region
    regions[0, :2], others[0, :2] = [900, 500], [920, 500]
    found = verify(regions, others, np.column_stack([np.arange(300)] * 2), (1000, 1000), (1000, 1000))
    assert found.transform is not None and len(found.inliers) == 300
    assert np.allclose(found.transform, [[1, 0, 0], [0, 1, 0]], atol=0.3)


def test_the_parts_recognise_a_turned_photo() -> None:
    image = skimage.data.coins()[20:200, 10:200]
    turned = np.rot90(image)
    regions = [detect(one, max_features=300) for one in (image, turned)]
    rows = [describe(one, found, upright=False) for one, found in zip((image, turned), regions, strict=True)]
    angles = [orientations(one, found) for one, found in zip((image, turned), regions, strict=True)]
    matches = nearest_matches(*rows)
    found = verify(*regions, matches, image.shape, turned.shape, angles_a=angles[0], angles_b=angles[1])
    assert found.transform is not None and len(found.inliers) > 40
    assert np.allclose(found.transform, [[0, 1, 0], [-1, 0, image.shape[1] - 1]], atol=0.5)


def test_few_matches_verify_nothing(regions: NDArray[np.float32]) -> None:
    for number in (0, 1, 3):
        assert not verify(regions, regions, PAIRS[:number], SHAPE, SHAPE).verified
    assert not verify([], [], [], (1, 1), (1, 1)).verified


@given(st.integers(0, 30), st.integers(0, 30), st.floats(0.1, 1.0), st.integers(0, 99))
def test_nearest_matches_are_mutual_and_clear(first: int, second: int, ratio: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.random((first, 4)).astype(np.float32), rng.random((second, 4)).astype(np.float32)
    distances = np.linalg.norm(a[:, None].astype(np.float64) - b, axis=2)
    expected = []
    for row in range(first if second >= 2 else 0):
        nearest, next_one = np.argsort(distances[row])[:2]
        clear = distances[row, nearest] < ratio * distances[row, next_one] * (1 - 1e-5)
        if clear and distances[:, nearest].argmin() == row:
            expected.append((row, int(nearest)))
    found = nearest_matches(a, b, ratio)
    assert found.dtype == np.int32 and found.shape[1:] == (2,)
    assert set(expected) <= {tuple(pair) for pair in found.tolist()}
    assert len(found) - len(expected) <= 1  # one may be clear by less than rounding


@given(st.lists(st.integers(0, 6), max_size=20), st.lists(st.integers(0, 6), max_size=20))
def test_features_of_one_word_match(first: list[int], second: list[int]) -> None:
    expected = {(i, j) for i, word in enumerate(first) for j, other in enumerate(second) if word == other}
    found = word_matches(first, second)
    assert {tuple(pair) for pair in found.tolist()} == expected and len(found) == len(expected)
    some = word_matches(first, second, most=5)
    assert len(some) == min(5, len(expected)) and {tuple(pair) for pair in some.tolist()} <= expected


def test_what_is_wrong_is_refused(regions: NDArray[np.float32]) -> None:
    good = regions, regions, PAIRS, SHAPE, SHAPE
    for place, wrong in (
        (0, regions[:, :4]),
        (1, np.full((1, 5), np.nan)),
        (2, PAIRS[:, :1]),
        (2, PAIRS + 1),
        (2, -PAIRS),
        (2, PAIRS + 0.5),
        (2, np.zeros((20_001, 2), int)),
        (3, (300,)),
        (3, (0, 400)),
        (4, 300),
        (4, (3.0, 4.0)),
    ):
        arguments = list(good)
        arguments[place] = wrong  # type: ignore[call-overload]
        with pytest.raises(CairnError):
            verify(*arguments)  # type: ignore[arg-type]
    for options in (
        {"angles_a": [0.0]},
        {"angles_b": np.full(60, np.nan)},
        {"hypotheses": "magic"},
        {"threshold": 0},
        {"threshold": float("nan")},
        {"min_inliers": 0},
    ):
        with pytest.raises(CairnError):
            verify(*good, **options)  # type: ignore[arg-type]
    rows = np.zeros((3, 4))
    for a, b, ratio in ((rows, rows[:, :3], 0.8), (rows[0], rows, 0.8), (rows, rows, 0), (rows, rows, 1.1)):
        with pytest.raises(CairnError):
            nearest_matches(a, b, ratio)
    with pytest.raises(CairnError):
        word_matches([-1], [1])
