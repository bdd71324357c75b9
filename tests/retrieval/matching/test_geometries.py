"""Keypoints that are places alone, or places and scales, are verified by what they tell."""

import numpy as np
import pytest

from retrieval.foreign.contract import AFFINE, ELLIPSES, ORIENTED, POINTS, SCALES
from retrieval.matching.geometries import suited
from retrieval.matching.maps import two_match_maps
from retrieval.matching.verification import VerificationOptions, verify
from retrieval.regions.geometry import Frames, rotations
from tests.retrieval.matching.test_verification import random_frames, scene, similarity

PLAIN = VerificationOptions()
MAPS = {
    "identity": similarity(),
    "zoom": similarity(2.5, 0, (0.1, 0)),
    "quarter turn": similarity(0.9, np.pi / 2, (0.05, 0.02)),
    "half turn and reduction": similarity(0.4, np.pi),
    "shear": np.array([[1.2, 0.0, -0.1], [0.35, 0.8, -0.05]]),
}


def places(frames: Frames) -> Frames:
    """The places alone, as an index keeps them: circles of one size, which say nothing."""
    return Frames(frames.centres, np.broadcast_to(np.eye(2, dtype=np.float32) / 64, frames.linear.shape))


def circles(frames: Frames, turns: np.ndarray | None = None) -> Frames:
    """Places and scales, and maybe angles."""
    scale = np.sqrt(np.abs(np.linalg.det(frames.linear)))[:, None, None].astype(np.float32)
    linear = np.broadcast_to(np.eye(2), frames.linear.shape) if turns is None else rotations(turns)
    return Frames(frames.centres, (scale * linear).astype(np.float32))


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(("inliers", "outliers"), [(60, 240), (200, 800), (40, 0)])
def test_two_matches_of_places_find_the_map(name: str, inliers: int, outliers: int) -> None:
    query, image, pairs, truth = scene(np.random.default_rng(7), MAPS[name], inliers, outliers)
    found = verify(places(query), places(image), pairs, suited(PLAIN, POINTS))
    assert found.transform is not None
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])
    error = (corners @ (found.transform - MAPS[name])[:, :2].T) + (found.transform - MAPS[name])[:, 2]
    assert np.linalg.norm(error, axis=1).max() < 0.03 * max(np.sqrt(np.linalg.det(MAPS[name][:, :2])), 1)
    given, matched = ({tuple(pair) for pair in some} for some in (pairs[truth], found.matches))
    assert len(given & matched) >= 0.9 * inliers
    assert len(matched - given) <= 0.01 * outliers + 2


def test_places_that_match_by_chance_are_not_verified() -> None:
    generator, options, wrong = np.random.default_rng(1), suited(PLAIN, POINTS), 0
    for _ in range(40):
        number = int(generator.integers(20, 400))
        pairs = np.stack([np.arange(number), generator.permutation(number)], axis=1).astype(np.int32)
        query, image = (places(random_frames(generator, number)) for _ in range(2))
        wrong += verify(query, image, pairs, options).inliers > 0
    assert wrong == 0


def test_scales_help_where_they_are_known_and_angles_where_a_photo_is_turned() -> None:
    generator = np.random.default_rng(3)
    matrix = similarity(1.5, np.radians(70))
    query, image, pairs, truth = scene(generator, matrix, 60, 240)
    angles = generator.uniform(-np.pi, np.pi, len(pairs))
    turned = np.where(truth, angles + np.radians(70) + generator.normal(0, 0.05, len(pairs)), angles[::-1])
    oriented = verify(circles(query, angles), circles(image, turned), pairs, suited(PLAIN, ORIENTED))
    assert len({tuple(pair) for pair in pairs[truth]} & {tuple(pair) for pair in oriented.matches}) > 50
    query, image, pairs, truth = scene(generator, similarity(1.5, np.radians(10), (0.1, 0)), 60, 240)
    upright = verify(circles(query), circles(image), pairs, suited(PLAIN, SCALES))
    assert len({tuple(pair) for pair in pairs[truth]} & {tuple(pair) for pair in upright.matches}) > 50


def test_frames_are_verified_as_ours_and_maps_of_two_matches_fit_them() -> None:
    assert suited(PLAIN, ELLIPSES) == suited(PLAIN, AFFINE) == suited(PLAIN, "dog-affine") == PLAIN
    assert suited(suited(PLAIN, POINTS), POINTS) == suited(PLAIN, POINTS)
    generator = np.random.default_rng(0)
    source = generator.uniform(0, 1, (30, 2)).astype(np.float32)
    maps = two_match_maps(source, source @ MAPS["quarter turn"][:, :2].T + MAPS["quarter turn"][:, 2], 100, 10.0)
    assert 0 < len(maps) <= 100
    np.testing.assert_allclose(maps.transforms, np.broadcast_to(MAPS["quarter turn"], maps.transforms.shape), atol=1e-4)
    np.testing.assert_allclose(maps.rows[:, 6], np.log(0.9), atol=1e-4)
    for few in (0, 1, 2):  # nothing to draw from, or one pair
        assert len(two_match_maps(source[:few], source[:few], 100, 10.0)) <= 2
