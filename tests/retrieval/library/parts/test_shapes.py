"""Regions as shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cairn
from index.errors import CairnError

_SIZES = st.floats(1, 50)


@given(_SIZES, _SIZES, st.floats(0, np.pi), st.floats(0.5, 4))
def test_outlines_lie_on_the_ellipse(first: float, second: float, angle: float, scale: float) -> None:
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.diag([first**-2, second**-2]) @ turn.T
    region = np.array([[30, 20, matrix[0, 0], matrix[0, 1], matrix[1, 1]]])
    (outline,) = (cairn.outlines(region, scale) - region[0, :2]) / scale
    assert np.einsum("ni,ij,nj->n", outline, matrix, outline) == pytest.approx(1, rel=1e-3)
    assert outline[0] == pytest.approx(outline[-1], abs=1e-6) and cairn.radii(region)[0] == pytest.approx(
        np.sqrt(first * second), rel=1e-3
    )


def test_a_mapped_region_has_the_outline_of_the_mapped_points() -> None:
    homography = np.array([[1.5, 0.2, 3], [-0.1, 0.9, 5], [0, 0, 1]])
    region = np.array([[10, 20, 0.02, 0.005, 0.01]])
    points = np.column_stack([cairn.outlines(region)[0], np.ones(41)]) @ homography.T
    x, y, a, b, c = cairn.map_regions(region, homography)[0]
    u, v = points[:, 0] - x, points[:, 1] - y
    assert a * u * u + 2 * b * u * v + c * v * v == pytest.approx(1, rel=1e-4)


def test_what_is_no_shape_is_refused() -> None:
    assert cairn.outlines([]).shape == (0, 41, 2) and cairn.radii([]).shape == (0,)
    for call in (
        lambda: cairn.outlines([[0, 0, 1, 2, 1]]),
        lambda: cairn.outlines([[0, 0, 1, 0, 1]], points=2),
        lambda: cairn.map_regions([[0, 0, 1, 0, 1]], np.eye(2)),
        lambda: cairn.map_regions([[0, 0, 1, 0, 1]], np.full((3, 3), np.nan)),
    ):
        with pytest.raises(CairnError):
            call()
