import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.library.display.drawing import (
    DrawnPhoto,
    box_corners,
    ellipse_axes,
    fitted,
    hues,
    side_by_side,
    some_rows,
)
from retrieval.library.display.pictures import Picture
from retrieval.regions.geometry import ellipses_of_shapes

WIDE, HIGH = Picture("wide", 200, 100), Picture("high", 50, 100)


def test_two_photos_stand_beside_each_other_in_the_middle() -> None:
    left, right, width, height = side_by_side(WIDE, HIGH, 400, 10)
    assert (left.x, left.y, left.width, left.height, left.scale) == (0, 100, 400, 200, (2, 2))
    assert (right.x, right.y, right.width, right.height, right.scale) == (410, 0, 200, 400, (4, 4))
    assert (width, height) == (610, 400)
    # Pixels are as wide as they are: the first one's centre lies half a pixel inside, and the last one's.
    assert right.place(np.array([[0, 0], [49, 99], [-0.5, -0.5], [49.5, 99.5]])).tolist() == [
        [412, 2],
        [608, 398],
        [410, 0],
        [610, 400],
    ]


def test_a_photo_fills_the_space_that_it_is_given() -> None:
    assert fitted(WIDE, 100, 100) == (100, 50)
    assert fitted(HIGH, 100, 100) == (50, 100)
    assert fitted(Picture("strip", 10_000, 10), 100, 100) == (100, 1)
    assert fitted(Picture("unknown", None, None), 100, 80) == (80, 80)


@given(
    st.lists(st.floats(-2, 2), min_size=4, max_size=4),
    st.floats(0, 100),
    st.floats(0.5, 3),
    st.floats(0.5, 3),
)
def test_axes_draw_the_ellipse(shape: list[float], x: float, across: float, down: float) -> None:
    linear = np.array(shape).reshape(2, 2) * 20 + np.eye(2) * 100  # far from a line
    placed = DrawnPhoto(7, 9, 0, 0, (across, down))
    ellipses = ellipses_of_shapes(np.array([[x, 40.0]]), linear[None])
    centres, halves, angles = ellipse_axes(ellipses, placed)
    turn = np.linspace(0, 2 * np.pi, 9)
    cosine, sine = np.cos(np.radians(angles[0])), np.sin(np.radians(angles[0]))
    drawn = np.stack([halves[0, 0] * np.cos(turn), halves[0, 1] * np.sin(turn)])
    drawn = np.array([[cosine, -sine], [sine, cosine]]) @ drawn
    u, v = (drawn[0] / across, drawn[1] / down)
    a, b, c = ellipses[0, 2:].astype(np.float64)
    assert np.allclose(a * u * u + 2 * b * u * v + c * v * v, 1, atol=1e-3)
    assert halves[0, 0] >= halves[0, 1]
    assert centres[0] == pytest.approx([7 + (ellipses[0, 0] + 0.5) * across, 9 + 40.5 * down])


def test_an_ellipse_is_never_too_small_to_be_seen() -> None:
    halves = ellipse_axes(np.array([[0, 0, 100, 0, 1]]), DrawnPhoto(0, 0, 1, 1, (1, 1)))[1]
    assert halves.tolist() == [[2.5, 2.5]]
    assert [len(part) for part in ellipse_axes(np.zeros((0, 5)), DrawnPhoto(0, 0, 1, 1, (1, 1)))] == [0, 0, 0]


def test_some_of_many_matches_are_drawn() -> None:
    assert some_rows(0, 5).tolist() == []
    assert some_rows(3, 5).tolist() == [0, 1, 2]
    assert some_rows(101, 5).tolist() == [0, 25, 50, 75, 100]
    assert len(set(hues(60))) == 60 and all(len(hue) == 7 for hue in hues(60))
    assert box_corners((1, 2, 3, 4)).tolist() == [[1, 2], [3, 2], [3, 4], [1, 4]]
