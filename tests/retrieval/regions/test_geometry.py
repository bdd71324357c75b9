"""Frames are square roots of an ellipse's covariance, and turn with it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.regions.geometry import ellipses_of_shapes, rotations, upright_frames

turns = st.floats(-2 * np.pi, 2 * np.pi)


@st.composite
def shapes(draw):
    """A map from the unit circle: rotation, two radii, rotation; the radii at most 1:10, as no region's exceed 1:5."""
    size, stretch = draw(st.floats(0.5, 300)), draw(st.floats(1, 10))
    first, second = rotations(np.array([draw(turns), draw(turns)]))
    return first @ np.diag([size, size * stretch]) @ second


def covariance(ellipse):
    a, b, c = ellipse[2:].astype(np.float64)
    return np.linalg.inv([[a, b], [b, c]])


@settings(deadline=None)
@given(shape=shapes(), x=st.floats(-5, 5000), y=st.floats(-5, 5000), around=turns)
def test_an_ellipse_s_equation_holds_on_the_image_of_the_circle(shape, x, y, around):
    ellipse = ellipses_of_shapes(np.array([[x, y]]), shape[None])
    assert ellipse.dtype == np.float32 and ellipse.shape == (1, 5)
    np.testing.assert_allclose(ellipse[0, :2], [x, y], rtol=1e-6, atol=1e-30)
    a, b, c = ellipse[0, 2:].astype(np.float64)
    u, v = shape @ [np.cos(around), np.sin(around)]
    # Three float32 roundings, which cancel up to the squared ratio of the axes.
    assert a * u * u + 2 * b * u * v + c * v * v == pytest.approx(1, abs=1e-6 * np.linalg.cond(shape) ** 2)


@settings(deadline=None)
@given(shape=shapes())
def test_upright_frames_are_lower_triangular_roots_of_the_covariance(shape):
    ellipse = ellipses_of_shapes(np.zeros((1, 2)), shape[None])
    frame = upright_frames(ellipse)[0]
    expected = covariance(ellipse[0])
    np.testing.assert_allclose(frame @ frame.T, expected, rtol=1e-6, atol=1e-8 * np.trace(expected))
    assert frame[0, 1] == 0 and frame[0, 0] > 0 and frame[1, 1] > 0
    np.testing.assert_allclose(frame, np.linalg.cholesky(expected), rtol=1e-6, atol=1e-6 * frame.max())


@settings(deadline=None)
@given(shape=shapes(), turn=turns)
def test_turned_frames_are_the_frames_of_the_turned_back_photo_turned(shape, turn):
    # A photo whose content is turned by `turn` shows R shape where the upright photo shows shape.
    rotation = rotations(np.array([turn]))[0]
    upright = upright_frames(ellipses_of_shapes(np.zeros((1, 2)), shape[None]))[0]
    turned = upright_frames(ellipses_of_shapes(np.zeros((1, 2)), (rotation @ shape)[None]), turn)[0]
    tolerance = 2e-6 * np.linalg.cond(shape) ** 2 * np.abs(upright).max()
    np.testing.assert_allclose(turned, rotation @ upright, atol=tolerance)
    np.testing.assert_allclose(
        turned @ turned.T, rotation @ shape @ shape.T @ rotation.T, atol=tolerance * upright.max()
    )


def test_down_stays_down():
    generator = np.random.default_rng(0)
    ellipses = ellipses_of_shapes(np.zeros((200, 2)), generator.normal(size=(200, 2, 2)) + 2 * np.eye(2))
    for turn in (0.0, 0.3, np.pi / 2, -2.0):
        down = upright_frames(ellipses, turn) @ [0.0, 1.0]
        direction = down / np.linalg.norm(down, axis=1, keepdims=True)
        # Turned clockwise on the screen, where y points down, "down" moves towards the left.
        np.testing.assert_allclose(
            direction, np.broadcast_to([-np.sin(turn), np.cos(turn)], direction.shape), atol=1e-6
        )


def test_the_frame_of_a_circle_is_its_radius():
    frames = upright_frames(np.array([[3, 4, 1 / 49, 0, 1 / 49]], np.float32))
    np.testing.assert_allclose(frames[0], 7 * np.eye(2), rtol=1e-6, atol=1e-9)


def test_no_regions_give_no_frames():
    for turn in (0.0, 0.5):
        assert upright_frames(np.zeros((0, 5), np.float32), turn).shape == (0, 2, 2)
    assert ellipses_of_shapes(np.zeros((0, 2)), np.zeros((0, 2, 2))).shape == (0, 5)


def test_rotations_turn_x_towards_y():
    np.testing.assert_allclose(rotations(np.array([np.pi / 2]))[0] @ [1, 0], [0, 1], atol=1e-12)
