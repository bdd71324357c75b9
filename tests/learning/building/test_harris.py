"""Multi-scale Harris corners: at known positions, and compared with another computation."""

import cv2
import numpy as np
import pytest
from scipy import ndimage

from learning.building.detections import SIFT_SIDE, detect
from learning.building.harris import HarrisOptions, cornerness, harris_corners
from learning.building.options import DetectionOptions
from retrieval.photos.decoding import Photo
from tests.support.learning.learnt_models import textures


def board() -> np.ndarray:
    """Light squares on a dark ground; their corners lie at 49.5 and 109.5, and so on."""
    image = np.full((240, 240), 40, np.float32)
    for y in (50, 150):
        for x in (50, 150):
            image[y : y + 60, x : x + 60] = 200
    return cv2.GaussianBlur(image, (0, 0), 0.8)


CORNERS = np.array([(x, y) for x in (49.5, 109.5, 149.5, 209.5) for y in (49.5, 109.5, 149.5, 209.5)])


def test_the_corners_of_squares_are_found_at_every_scale() -> None:
    found = harris_corners(board())
    for scale in np.unique(found[:, 2]):
        if scale > 5:  # beyond, the four corners of a square run into each other
            continue
        centres = found[found[:, 2] == scale, :2]
        distances = np.linalg.norm(CORNERS[:, None] - centres[None], axis=2)
        # A corner of more smoothing lies further inside.
        assert distances.min(axis=1).max() < 0.5 + 1.2 * scale
        assert distances.min(axis=0).max() < 0.5 + 1.2 * scale


def test_edges_flat_parts_and_tiny_photos_have_none() -> None:
    edge = np.full((80, 80), 30, np.float32)
    edge[:, 40:] = 220
    for grey in (
        edge,
        np.full((50, 60), 128, np.float32),
        np.full((3, 2), 9, np.float32),
        np.zeros((1, 1), np.float32),
    ):
        assert harris_corners(grey).shape == (0, 4)


@pytest.mark.parametrize("scale", [1.5, 3.0])
def test_cornerness_is_its_definition(scale: float) -> None:
    grey, options = textures(1, 60, sigma=3)[0], HarrisOptions()
    smooth = ndimage.gaussian_filter(grey.astype(np.float64), 0.7 * scale, mode="nearest", truncate=8)
    down, across = (0.7 * scale * gradient for gradient in np.gradient(smooth))
    xx, xy, yy = (
        ndimage.gaussian_filter(product, scale, mode="nearest", truncate=8)
        for product in (across**2, across * down, down**2)
    )
    expected = xx * yy - xy**2 - options.alpha * (xx + yy) ** 2
    inside = (slice(20, 40),) * 2
    found = cornerness(grey, scale, options)
    np.testing.assert_allclose(found[inside], expected[inside], rtol=0.02, atol=0.02 * np.abs(expected).max())


def test_a_larger_photo_has_the_same_corners_at_larger_scales() -> None:
    image = board()
    twice = cv2.resize(image, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    small, large = harris_corners(image), harris_corners(twice)
    for row in small[small[:, 2] < 4]:
        # Half a pixel's offset: centres of pixels are at whole numbers.
        place = 2 * row[:2] + 0.5
        near = large[np.abs(large[:, 2] - 2 * row[2]) < 0.1]
        assert np.linalg.norm(near[:, :2] - place, axis=1).min() < 1.5


def test_detections_turn_with_the_photo_and_have_a_keypoint_s_size() -> None:
    grey = textures(1, 200, sigma=4)[0]
    turned = np.ascontiguousarray(np.rot90(grey, -1))  # clockwise on the screen: x' = 199 - y, y' = x
    first, second = (detect(Photo(one, *one.shape[::-1]), DetectionOptions("harris"))[0] for one in (grey, turned))
    assert len(first) > 20 and abs(len(first) - len(second)) <= 0.05 * len(first)
    assert first.sides.min() == pytest.approx(SIFT_SIDE * 2 * 1.5, rel=1e-3)
    moved = np.column_stack([199 - first.centres[:, 1], first.centres[:, 0]])
    distances = np.linalg.norm(moved[:, None] - second.centres[None], axis=2)
    distances += 100 * np.abs(first.octaves[:, None] - second.octaves[None])
    nearest = distances.argmin(axis=1)
    same = distances.min(axis=1) < 0.3
    assert same.mean() > 0.95
    turn = (second.angles[nearest] - first.angles - np.pi / 2 + np.pi) % (2 * np.pi) - np.pi
    assert (np.abs(turn[same]) < 0.05).mean() > 0.9
