"""Registration of impressions: known maps are found again, whatever the light."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.impressions.registration import ImpressionMap, ink_of, register_impression, start_map
from tests.support.printed_blocks import age_block, cut_block, draw_strokes

Picture = NDArray[np.float32]


@pytest.fixture(scope="module")
def states() -> tuple[Picture, Picture]:
    """A block's ink and that of it worn, 320 pixels wide."""
    block = cut_block(5)
    both = [cv2.GaussianBlur(draw_strokes(one), (0, 0), 1.5) for one in (block, age_block(block, 5, 20, 0.3))]
    first, second = (np.asarray(cv2.resize(one, (320, 320), interpolation=cv2.INTER_AREA)) for one in both)
    return first, second


def test_ink_does_not_hang_on_light_and_exposure(states: tuple[Picture, Picture]) -> None:
    paper = np.linspace(1, 0.6, 320)[:, None] * np.linspace(0.8, 1, 320)
    bright, dim = ink_of(230 - 190 * states[0]), ink_of((150 - 90 * states[0]) * paper)
    assert np.abs(bright - dim).mean() < 0.03 and np.corrcoef(bright.ravel(), states[0].ravel())[0, 1] > 0.95


def test_a_known_map_of_curved_paper_is_found_again(states: tuple[Picture, Picture]) -> None:
    size = (280, 260)
    corners = np.array([[0, 0], [279, 0], [279, 259], [0, 259]], np.float32)
    seen = corners + np.array([[20, 12], [15, 30], [25, 22], [12, 26]], np.float32)
    bend = np.zeros((2, 4, 4))
    bend[0, 0, 2], bend[1, 1, 1] = 2.0, -1.0  # pixels
    true = ImpressionMap(cv2.getPerspectiveTransform(corners, seen).astype(np.float64), bend, size)
    off = cv2.getPerspectiveTransform(corners, seen + np.array([[3, -2], [-3, 2], [2, 3], [-2, 3]], np.float32))
    found = register_impression(true.apply(states[0]), states[1], start_map(off, size))
    errors = np.linalg.norm(found.places - true.places, axis=2)
    assert np.linalg.norm(start_map(off, size).places - true.places, axis=2).mean() > 1.5
    assert errors.mean() < 0.15 and np.quantile(errors, 0.95) < 0.4
    assert found.correlation > 0.9


def test_what_has_nothing_in_common_is_not_made_worse(states: tuple[Picture, Picture]) -> None:
    noise = cv2.GaussianBlur(np.random.default_rng(0).random((320, 320)).astype(np.float32), (0, 0), 2)
    blank = np.zeros((320, 320), np.float32)
    start = start_map(np.eye(3), (320, 320))
    assert register_impression(states[0], noise, start).correlation < 0.3
    for one, other in ((states[0], blank), (blank, states[0])):
        found = register_impression(one, other, start)
        assert np.array_equal(found.places, start.places) and found.correlation == 0
