"""Where a box lies in a photo: within it, and nowhere when the map that says so cannot be a view of it."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.outlines import area, clip_polygon, found_region, narrowest_width
from retrieval.search.query import Query

WIDTH, HEIGHT = 640, 480
BOX = (100.0, 80.0, 300.0, 240.0)


def query(box: tuple[float, float, float, float] | None = BOX) -> Query:
    return Query(Path("query.jpg"), WIDTH, HEIGHT, box, np.empty((0, 5), np.float32), [])


def region(matrix: Any, box: tuple[float, float, float, float] | None = BOX) -> list[list[float]] | None:
    return found_region(query(box), np.array(matrix, float), WIDTH, HEIGHT)


def turned(degrees: float, scale: float, x: float, y: float) -> np.ndarray:
    """Turn and enlarge round the middle of the box, and take that to (x, y)."""
    angle = np.radians(degrees)
    linear = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shift = [x, y] - linear @ [200, 160]
    return np.vstack([np.column_stack([linear, shift]), [0, 0, 1]])


def coverage(polygon: np.ndarray) -> np.ndarray:
    """Which pixels of the photo a polygon covers, by OpenCV's filling of it: an independent computation."""
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    cv2.fillPoly(mask, [np.rint(np.asarray(polygon) * 16).astype(np.int32)], 1, shift=4)
    return mask > 0


def test_a_box_that_lies_in_the_photo_keeps_its_four_corners() -> None:
    assert region(np.eye(3)) == [[100, 80], [300, 80], [300, 240], [100, 240]]
    assert region(turned(90, 1, 200, 160)) == [[280, 60], [280, 260], [120, 260], [120, 60]]
    # Whatever the matrix is multiplied by, below 0 too.
    assert region(-2 * np.eye(3)) == region(np.eye(3))


def test_a_whole_photo_is_outlined_to_its_edges() -> None:
    edges = [[-0.5, -0.5], [639.5, -0.5], [639.5, 479.5], [-0.5, 479.5]]
    assert region(np.eye(3), None) == edges
    # A photo of a part of the query shows nothing but the query.
    closer = region([[6, 0, -1500], [0, 6, -1000], [0, 0, 1]], None)
    assert closer is not None and sorted(closer) == sorted(edges)


@pytest.mark.parametrize(
    ("matrix", "corners"),
    [
        (turned(0, 1, 0, 0), 4),  # a corner of the photo
        (turned(45, 1, 640, 480), 3),
        (turned(45, 4.4, 320, 240), 8),  # all four corners of the box outside, those of the photo too
        (turned(0, 1, 320, 10), 4),
    ],
)
def test_an_outline_is_clipped_to_the_photo(matrix: np.ndarray, corners: int) -> None:
    box = (130.0, 90.0, 270.0, 230.0)
    found = region(matrix, box)
    assert found is not None and len(found) == corners
    x0, y0, x1, y1 = box
    whole = cv2.perspectiveTransform(np.array([[[x0, y0], [x1, y0], [x1, y1], [x0, y1]]]), matrix)[0]
    # Lines are a pixel wide.
    assert (coverage(np.array(found)) ^ coverage(whole)).sum() < 2000
    assert coverage(whole).sum() > 2500


@given(
    degrees=st.floats(0, 360),
    scale=st.floats(0.05, 40),
    x=st.floats(-2000, 2000),
    y=st.floats(-2000, 2000),
    lean=st.tuples(st.floats(-5e-3, 5e-3), st.floats(-5e-3, 5e-3)),
)
def test_an_outline_is_convex_in_the_photo_and_no_sliver(
    degrees: float, scale: float, x: float, y: float, lean: tuple[float, float]
) -> None:
    matrix = turned(degrees, scale, x, y)
    matrix[2, :2] = lean
    found = region(matrix)
    if found is None:
        return
    corners = np.array(found)
    assert 3 <= len(corners) <= 8
    assert corners.min() >= -0.5 and (corners.max(axis=0) <= [WIDTH - 0.5, HEIGHT - 0.5]).all()
    assert cv2.isContourConvex(corners.astype(np.float32)) and area(corners) > 0
    assert narrowest_width(corners) > 6
    x0, y0, x1, y1 = BOX
    whole = cv2.perspectiveTransform(np.array([[[x0, y0], [x1, y0], [x1, y1], [x0, y1]]]), matrix)[0]
    assert area(corners) <= area(whole) * (1 + 1e-6) + 1


@pytest.mark.parametrize(
    "matrix",
    [
        turned(0, 1, 2000, 160),  # beside the photo
        turned(0, 1, 738, 160),  # nearly beside it
        turned(0, 0.02, 320, 240),  # a speck
        turned(0, 120, 320, 240),  # immense
        [[0.03, 0, 300], [0, 1, 0], [0, 0, 1]],  # a needle, upright
        [[0.72, -0.7, 200], [0.7, -0.66, 150], [0, 0, 1]],  # a needle across the photo
        [[-1, 0, 400], [0, 1, 0], [0, 0, 1]],  # mirrored
        [[1, 0, 0], [0, 1, 0], [-0.0032, 0, 1]],  # corners far beyond the others
        [[1, 0, 0], [0, 1, 0], [-0.006, 0, 1]],  # corners behind the camera: the outline crosses itself
        [[1, 0, 0], [0, 0, 0], [0, 0, 1]],
        np.full((3, 3), np.nan),
        np.zeros((3, 3)),
    ],
)
def test_what_is_no_view_of_the_box_has_no_outline(matrix: Any) -> None:
    assert region(matrix) is None


def test_without_a_map_or_a_size_there_is_no_outline() -> None:
    assert found_region(query(), None, WIDTH, HEIGHT) is None
    assert found_region(query(), np.eye(3), None, None) is None


def test_clipping_what_lies_outside_leaves_nothing() -> None:
    far = np.array([[700.0, 0], [800, 0], [800, 100]])
    assert clip_polygon(far, WIDTH, HEIGHT).shape == (0, 2)
    assert narrowest_width(clip_polygon(far, WIDTH, HEIGHT)) == 0
    square = np.array([[0.0, 0], [10, 10], [0, 20], [-10, 10]])  # on a corner
    assert narrowest_width(square) == pytest.approx(10 * np.sqrt(2)) and area(square) == pytest.approx(200)
