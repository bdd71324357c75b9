"""The rule of Brown11: matches, non-matches, and ambiguous pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from learning.building.correspondence import (
    ALONE,
    AMBIGUOUS,
    Detections,
    assign_points,
    disagreement,
    is_match,
    near_pairs,
)
from learning.building.detections import SIFT_SIDE, keypoint_frames
from learning.building.options import MatchRule

RULE = MatchRule()


def keypoints(*rows: tuple[float, float, float, float]) -> Detections:
    """From x, y, size (pixels) and angle (degrees)."""
    table = np.array(rows, np.float64).reshape(-1, 4)
    return Detections(table[:, :2], keypoint_frames(table[:, 2], table[:, 3]))


def test_the_side_of_a_keypoints_patch_is_known() -> None:
    assert keypoints((5, 5, 8, 123)).sides == pytest.approx(SIFT_SIDE * 8)
    assert np.degrees(keypoints((5, 5, 8, 123)).angles) == pytest.approx(123)


# Large keypoints, to which 5 pixels are little. By hand: 3-4-5 triangles, powers of two, parts of 22.5 degrees.
@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ((102.9994, 204, 40, 350), 1),
        ((103.001, 204, 40, 350), 0),
        ((105.999, 208, 40, 350), 0),
        ((106.001, 208, 40, 350), -1),
        ((100, 200, 40 * 2**0.2499, 350), 1),
        ((100, 200, 40 / 2**0.2499, 350), 1),
        ((100, 200, 40 * 2**0.2501, 350), 0),
        ((100, 200, 40 * 2**0.4999, 350), 0),
        ((100, 200, 40 / 2**0.5001, 350), -1),
        ((100, 200, 40, 12.499), 1),  # across 360 degrees
        ((100, 200, 40, 12.501), 0),
        ((100, 200, 40, 34.999), 0),
        ((100, 200, 40, 35.001), -1),
        ((100, 200, 40, 305.001), 0),
        ((100, 200, 40, 304.999), -1),
        ((102.9, 203.9, 40 * 2**0.24, 12), 1),  # all three nearly used up
        ((102.9, 203.9, 40 * 2**0.24, 36), -1),  # beyond twice any one
    ],
)
def test_thresholds(other: tuple[float, float, float, float], expected: int) -> None:
    first, second = keypoints((100, 200, 40, 350)), keypoints(other)
    apart = disagreement(first, second, RULE)[0]
    assert apart == disagreement(second, first, RULE)[0]
    assert {1: apart <= 1, 0: 1 < apart <= 2, -1: apart > 2}[expected]
    assert is_match(first, second, RULE)[0] == (expected == 1)
    assert len(near_pairs(first, second, RULE)[0]) == (expected >= 0)
    assert assign_points(first, second, RULE)[0] == {1: 0, 0: AMBIGUOUS, -1: ALONE}[expected]


def test_a_small_patch_may_not_be_shifted_far() -> None:
    # Sides of 13.5 pixels: a fifth is 2.7.
    point = keypoints((50, 50, 2, 0))
    near, far = keypoints((52.699, 50, 2, 0)), keypoints((52.701, 50, 2, 0))
    assert is_match(point, near, RULE)[0] and not is_match(point, far, RULE)[0]
    assert assign_points(point, far, RULE)[0] == AMBIGUOUS  # yet it is no non-match
    assert is_match(point, far, MatchRule(max_shift=0))[0]
    # The smaller of the two counts.
    assert not is_match(keypoints((50, 50, 2.2, 0)), far, RULE)[0]
    assert is_match(keypoints((50, 50, 2.1, 0)), keypoints((52.8, 50, 2.1, 0)), RULE)[0]


@pytest.mark.parametrize("wrong", [{"pixels": 0}, {"octaves": -1}, {"radians": np.nan}, {"max_shift": -0.1}])
def test_a_rule_that_allows_nothing_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(CairnError):
        MatchRule(**wrong)


def test_each_detection_is_given_its_best_point_and_each_point_its_best_detection() -> None:
    points = keypoints((100, 100, 40, 0), (103, 100, 40, 0), (300, 300, 40, 0), (500, 100, 40, 0))
    found = keypoints(
        (102.5, 100, 40, 0),  # nearest to point 1
        (104.5, 100, 40, 0),  # nearest to point 1 as well, but further
        (300, 300, 40, 20),  # point 2
        (300, 300, 40, 2),  # point 2, better
        (300, 307, 40, 0),  # between
        (300, 311, 40, 0),  # of none
        (500, 100, 80, 0),  # an octave off: of none
    )
    assert assign_points(points, found, RULE).tolist() == [1, AMBIGUOUS, AMBIGUOUS, 2, AMBIGUOUS, ALONE, ALONE]
    assert assign_points(points.take(np.zeros(4, bool)), found, RULE).tolist() == [ALONE] * 7
    assert assign_points(points, found.take(np.zeros(7, bool)), RULE).shape == (0,)


def test_a_similarity_moves_position_scale_and_orientation_alike() -> None:
    cosine, sine = 1.5 * np.cos(np.radians(50)), 1.5 * np.sin(np.radians(50))
    moved = keypoints((10, 20, 4, 340)).transfer(np.array([[cosine, -sine, 7], [sine, cosine, -3], [0, 0, 1]]))
    assert moved.centres[0] == pytest.approx([cosine * 10 - sine * 20 + 7, sine * 10 + cosine * 20 - 3])
    assert moved.sides[0] == pytest.approx(SIFT_SIDE * 6)
    assert np.degrees(moved.angles[0]) == pytest.approx(30)


@given(
    entries=st.lists(st.floats(-0.3, 0.3), min_size=6, max_size=6),
    bend=st.tuples(st.floats(-1e-3, 1e-3), st.floats(-1e-3, 1e-3)),
    degrees=st.floats(0, 360),
)
def test_a_homography_moves_frames_as_it_moves_points_nearby(
    entries: list[float], bend: tuple[float, float], degrees: float
) -> None:
    homography = np.eye(3)
    homography[:2] += np.reshape(entries, (2, 3)) * [[1, 1, 100]]
    homography[2, :2] = bend
    point = keypoints((120, 80, 3, degrees))
    moved = point.transfer(homography)

    def project(at: np.ndarray) -> np.ndarray:
        u, v, w = homography @ [*at, 1]
        return np.array([u, v]) / w

    step = 1e-4
    assert moved.centres[0] == pytest.approx(project(point.centres[0]))
    for column in range(2):
        ahead = project(point.centres[0] + step * point.frames[0, :, column])
        behind = project(point.centres[0] - step * point.frames[0, :, column])
        assert moved.frames[0, :, column] == pytest.approx((ahead - behind) / (2 * step), rel=1e-4, abs=1e-5)
    # There and back again; the sign of a homography means nothing.
    back = moved.transfer(-np.linalg.inv(homography))
    assert disagreement(back, point, RULE)[0] == pytest.approx(0, abs=1e-6)


def test_what_is_seen_from_behind_matches_nothing_and_differs_from_nothing() -> None:
    homography = np.array([[1.0, 0, 0], [0, 1, 0], [-0.01, 0, 1]])  # the line x = 100 goes to infinity
    moved = keypoints((50, 0, 8, 0), (150, 0, 8, 0), (100, 0, 8, 0)).transfer(homography)
    assert np.isfinite(moved.centres).all(axis=1).tolist() == [True, False, False]
    assert assign_points(moved, keypoints((-300, 0, 8, 0)), RULE).tolist() == [ALONE]
    assert not (disagreement(moved, keypoints(*[(9, 9, 8, 0)] * 3), RULE)[1:] > 2).any()


def test_upright_patches_match_only_while_they_stay_upright() -> None:
    upright = Detections(np.array([[50.0, 50]]), np.array([[[20.0, 0], [5, 30]]]), oriented=False)
    for degrees, expected in ((0, True), (22, True), (23, False), (180, False)):
        turn = np.radians(degrees)
        matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        turned = Detections(upright.centres, upright.frames @ matrix, oriented=False)
        assert disagreement(upright, turned, RULE)[0] < 1e-6  # never a non-match: it shows the same point
        assert is_match(turned, upright, RULE)[0] == expected
