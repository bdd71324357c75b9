"""Homographies of matches that are made up: a plane at a slant, and more matches than take part."""

from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from retrieval.features.encoding import encode_frames
from retrieval.regions.geometry import Frames
from retrieval.search.homography import FEWEST, homography, may_fix
from retrieval.search.homography_kernels import most_agreed

SIDE = 1000
SLANT = np.array([[0.62, 0.05, 0.18], [-0.08, 0.55, 0.16], [-0.35, 0.1, 1.0]])  # in units of the longer sides
CORNERS = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)


def mapped(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    found = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    return np.asarray(found[:, :2] / found[:, 2:])


def match(number: int, wrong: float, noise: float) -> tuple[Any, Any, Any, Any]:
    """A query's hit with matches of a plane at a slant, a part of them up to three hundredths of the side away."""
    rng = np.random.default_rng(number)
    here = rng.random((number, 2))
    there = mapped(SLANT, here) + rng.normal(scale=noise, size=(number, 2))
    off = rng.random(number) < wrong
    there[off] += rng.uniform(-0.03, 0.03, (int(off.sum()), 2))
    linear = np.tile(np.eye(2, dtype=np.float32) * np.float32(0.02), (number, 1, 1))
    image = SimpleNamespace(columns={"geometry": encode_frames(Frames(there.astype(np.float32), linear))}, elongation=1)
    view = SimpleNamespace(frames=Frames(here.astype(np.float32), linear), elongation=1)
    query = SimpleNamespace(views=[view], side=SIDE, mirroring=np.eye(3))
    matches = np.repeat(np.arange(number, dtype=np.int32)[:, None], 2, axis=1)
    verification = SimpleNamespace(transform=np.array([[0.6, 0, 0.2], [0, 0.55, 0.15]]), matches=matches)
    return SimpleNamespace(view=0, verification=verification), query, SimpleNamespace(width=SIDE, height=SIDE), image


@pytest.mark.parametrize("number", [60, 400, 1_000, 6_000])
def test_a_plane_at_a_slant_is_mapped_to_the_pixel(number: int) -> None:
    hit, query, row, image = match(number, wrong=0.35, noise=0.0005)
    matrix = homography(hit, query, row, image)
    assert matrix is not None
    errors = np.linalg.norm(mapped(matrix, CORNERS * SIDE - 0.5) - (mapped(SLANT, CORNERS) * SIDE - 0.5), axis=1)
    assert errors.max() < (6 if number < 100 else 2)


def test_where_fewer_than_half_agree_the_affine_map_is_given() -> None:
    hit, query, row, image = match(2_000, wrong=0.9, noise=0.0005)
    affine = homography(*match(FEWEST - 1, wrong=0, noise=0)[:3], None)
    found = homography(hit, query, row, image)
    assert affine is not None and found is not None
    np.testing.assert_allclose(found, affine)


def test_few_matches_need_no_features() -> None:
    hit, query, row, image = match(FEWEST - 1, wrong=0, noise=0)
    assert not may_fix(hit) and may_fix(match(FEWEST, wrong=0, noise=0)[0])
    np.testing.assert_array_equal(homography(hit, query, row, image), homography(hit, query, row, None))


def agreed(source: np.ndarray, target: np.ndarray) -> tuple[int, np.ndarray]:
    matrix = np.full((3, 3), np.nan)
    return most_agreed(source, target, 0.005, 500, matrix), matrix


@pytest.mark.parametrize("wrong", [0, 0.2, 0.5])
def test_what_is_fitted_is_as_near_to_the_truth_as_what_opencv_fits(wrong: float) -> None:
    rng = np.random.default_rng(1)
    here = rng.random((500, 2))
    there = mapped(SLANT, here) + rng.normal(scale=0.0005, size=(500, 2))
    off = rng.random(500) < wrong
    there[off] = rng.random((int(off.sum()), 2))
    found, matrix = agreed(here, there)
    theirs, mask = cv2.findHomography(here, there, cv2.RANSAC, 0.005, maxIters=500, confidence=0.999)
    errors = [np.abs(mapped(one, CORNERS) - mapped(SLANT, CORNERS)).max() for one in (matrix, theirs)]
    assert found == mask.sum() >= (~off).sum() and errors[0] < max(1.5 * errors[1], 5e-4)
    assert agreed(here, there)[1].tobytes() == matrix.tobytes()  # the same each time


def test_a_map_that_sends_the_origin_to_infinity_is_found() -> None:
    matrix = np.array([[0.05, 0.4, 0.2], [0.2, 0.1, 0.3], [0.6, 0.5, 0.0]])
    here = 0.3 + 0.7 * np.random.default_rng(2).random((50, 2))
    found, fitted = agreed(here, mapped(matrix, here))
    assert found == 50
    np.testing.assert_allclose(mapped(fitted, here), mapped(matrix, here), atol=1e-9)


def test_what_fixes_no_homography_gives_none() -> None:
    rng = np.random.default_rng(3)
    here = rng.random((40, 2))
    line = np.column_stack([here[:, 0], 2 * here[:, 0]])
    point = np.full((40, 2), 0.5)
    for source, target in (
        (line, line),
        (here, line),
        (here, point),
        (point, here),
        (here, 1 - here[:, ::-1] * [1, 0]),
    ):
        assert agreed(source, target)[0] == 0
    assert agreed(here, here * [-1, 1])[0] < 10  # a mirror shows the plane from behind
