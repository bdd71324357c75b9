"""The overlap error against rasterised areas and closed forms, and what a detector is credited with."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.repeatability import overlap_error, repeatability, transfer_ellipses

PAIR = np.array([[0, 0]])


def _ellipses(
    rng: np.random.Generator, count: int, side: float, radii: tuple[float, float], ratio: float
) -> np.ndarray:
    """Random ellipses with mean radii and axis ratios in the ranges given."""
    radius = np.exp(rng.uniform(*np.log(radii), count))
    stretch = np.sqrt(np.exp(rng.uniform(0, np.log(ratio), count)))
    angle = rng.uniform(0, np.pi, count)
    cos, sin = np.cos(angle), np.sin(angle)
    p, q = (radius * stretch) ** -2, (radius / stretch) ** -2
    centres = rng.uniform(0, side, (count, 2))
    return np.column_stack([centres, p * cos**2 + q * sin**2, (p - q) * cos * sin, p * sin**2 + q * cos**2])


def _rasterised_error(one: np.ndarray, other: np.ndarray, samples: int = 1000) -> float:
    """Overlap error by counting points of a fine grid that holds both ellipses."""
    boxes = []
    for x, y, a, b, c in (one, other):
        det = a * c - b * b
        boxes.append([x - np.sqrt(c / det), y - np.sqrt(a / det), x + np.sqrt(c / det), y + np.sqrt(a / det)])
    low, high = np.min(boxes, axis=0)[:2], np.max(boxes, axis=0)[2:]
    u, v = np.meshgrid(*(np.linspace(low[i], high[i], samples) for i in (0, 1)))
    inside = [a * (u - x) ** 2 + 2 * b * (u - x) * (v - y) + c * (v - y) ** 2 <= 1 for x, y, a, b, c in (one, other)]
    return 1 - (inside[0] & inside[1]).sum() / (inside[0] | inside[1]).sum()


def _on_boundary(ellipse: np.ndarray) -> np.ndarray:
    """Points of an ellipse, (64, 2), by its Cholesky factor."""
    x, y, a, b, c = ellipse
    t = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    lower = np.linalg.cholesky(np.linalg.inv(np.array([[a, b], [b, c]])))
    return np.array([x, y]) + np.column_stack([np.cos(t), np.sin(t)]) @ lower.T


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1, 6), st.floats(0, 1.5))
def test_overlap_error_is_that_of_rasterised_areas(seed: int, ratio: float, distance: float) -> None:
    rng = np.random.default_rng(seed)
    one, other = _ellipses(rng, 2, 1, (5, 15), 1 + ratio)
    other[:2] = one[:2] + distance * 10 * rng.uniform(-1, 1, 2)
    error = overlap_error(one[None], other[None], PAIR, radius=None)[0]
    assert error == pytest.approx(_rasterised_error(one, other), abs=0.01)


def test_overlap_error_of_equal_circles_is_the_lens() -> None:
    r, d = 10.0, np.array([0.0, 3.0, 9.0, 19.0, 25.0])
    one = np.array([[50, 50, r**-2, 0, r**-2]])
    others = np.column_stack([50 + d, np.full(5, 50), np.full(5, r**-2), np.zeros(5), np.full(5, r**-2)])
    half = np.minimum(d / (2 * r), 1)
    lens = 2 * r * r * (np.arccos(half) - half * np.sqrt(1 - half**2))
    exact = 1 - lens / (2 * np.pi * r * r - lens)
    pairs = np.column_stack([np.zeros(5, int), np.arange(5)])
    np.testing.assert_allclose(overlap_error(one, others, pairs, radius=None), exact, atol=0.003)


def test_normalisation_scales_regions_about_their_centres() -> None:
    small = np.array([[10.0, 10, 1 / 9, 0, 1 / 9]])  # radius 3, so ten times smaller than the normalised one
    beside = np.array([[14.0, 10, 1 / 16, 0, 1 / 16]])
    large = np.array([[10.0, 10, 1 / 900, 0, 1 / 900]])
    large_beside = np.array([[14.0, 10, 1 / 1600, 0, 1 / 1600]])
    expected = _rasterised_error(large[0], large_beside[0])
    assert overlap_error(small, beside, PAIR)[0] == pytest.approx(expected, abs=0.01)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_transfer_is_exact_for_affine_maps_and_tangent_for_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ellipses = _ellipses(rng, 5, 400, (2, 40), 4)
    affine = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    affine[:2] += rng.uniform(-0.4, 0.4, (2, 3)) * [1, 1, 100]
    bent = affine.copy()
    bent[2, :2] = rng.uniform(-3e-4, 3e-4, 2)
    tiny = ellipses * [1, 1, 1e6, 1e6, 1e6]  # a thousandth of the size: the map is as good as its tangent
    for regions, homography, tolerance in ((ellipses, affine, 1e-9), (tiny, bent, 1e-3)):
        for before, after in zip(regions, transfer_ellipses(regions, homography), strict=True):
            points = np.column_stack([_on_boundary(before), np.ones(64)]) @ homography.T
            u, v = (points[:, :2] / points[:, 2:]).T
            x, y, a, b, c = after
            form = a * (u - x) ** 2 + 2 * b * (u - x) * (v - y) + c * (v - y) ** 2
            np.testing.assert_allclose(form, 1, atol=tolerance)


def test_transfer_to_infinity_is_no_number() -> None:
    horizon = np.array([[1, 0, 0], [0, 1, 0], [-0.01, 0, 1.0]])
    assert np.isnan(transfer_ellipses(np.array([[100.0, 5, 1, 0, 1]]), horizon)[0, :2]).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.4, 0.49]))
def test_no_correspondence_is_missed(seed: int, max_error: float) -> None:
    """The search for candidates leaves out nothing that all pairs, tried in turn, would give."""
    rng = np.random.default_rng(seed)
    one = _ellipses(rng, 40, 60, (2, 20), 8)
    other = one + rng.normal(0, 1, one.shape) * [2, 2, 0, 0, 0]
    other[:, 2:] *= rng.uniform(0.7, 1.4, (40, 1))
    found = repeatability(one, other, np.eye(3), (100, 100), (100, 100), max_error)

    inside = [((r[:, :2] >= -0.5) & (r[:, :2] < 99.5)).all(axis=1) for r in (one, other)]
    pairs = np.argwhere(inside[0][:, None] & inside[1][None, :])
    distance = np.linalg.norm(one[pairs[:, 0], :2] - other[pairs[:, 1], :2], axis=1)
    radius = (one[:, 2] * one[:, 4] - one[:, 3] ** 2) ** -0.25
    pairs = pairs[distance <= 4 * radius[pairs[:, 0]]]
    errors = overlap_error(one, other, pairs)
    used1, used2, expected = set(), set(), []
    for pair in np.argsort(errors, kind="stable"):
        first, second = (int(row) for row in pairs[pair])
        if errors[pair] < max_error and first not in used1 and second not in used2:
            used1.add(first)
            used2.add(second)
            expected.append((first, second))
    assert [tuple(match) for match in found.matches.tolist()] == expected
    assert (found.regions1, found.regions2) == tuple(int(mask.sum()) for mask in inside)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_regions_that_move_with_the_image_are_all_found_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    angle, zoom = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 2)
    turn = zoom * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    homography = np.eye(3)
    homography[:2, :2] = turn
    homography[:2, 2] = np.array([300, 300]) - turn @ [100, 100]
    # At least 10 px apart: a region's own image overlaps it best.
    grid = np.stack(np.meshgrid(np.arange(20, 181, 20), np.arange(20, 181, 20)), axis=-1).reshape(-1, 2)
    regions = _ellipses(rng, len(grid), 1, (4, 12), 3)
    regions[:, :2] = grid + rng.uniform(-5, 5, grid.shape)
    order = rng.permutation(len(regions))
    result = repeatability(regions, transfer_ellipses(regions, homography)[order], homography, (200, 200), (600, 600))
    assert result.regions1 == result.regions2 == result.correspondences
    assert result.repeatability == 1
    assert (order[result.matches[:, 1]] == result.matches[:, 0]).all()
    assert result.errors.max() < 0.01


def test_only_the_common_part_counts_and_each_region_once() -> None:
    def circle(x: float, y: float) -> list[float]:
        return [x, y, 0.01, 0, 0.01]

    shift = np.array([[1, 0, 50], [0, 1, 0], [0, 0, 1.0]])
    # The third circle leaves the second image, the second image's last one has no place in the first.
    one = np.array([circle(20, 50), circle(22, 50), circle(80, 50)])
    other = np.array([circle(71, 50), circle(30, 50)])
    result = repeatability(one, other, shift, (100, 100), (100, 100))
    assert (result.regions1, result.regions2, result.correspondences) == (2, 1, 1)
    assert result.repeatability == 1


def test_nothing_detected_is_nothing_repeated() -> None:
    some = np.array([[20.0, 20, 0.01, 0, 0.01]])
    for one, other in (
        (np.zeros((0, 5)), some),
        (some, np.zeros((0, 5))),
        (some, some + np.array([500.0, 0, 0, 0, 0])),
    ):
        result = repeatability(one, other, np.eye(3), (100, 100), (100, 100))
        assert (result.repeatability, result.correspondences) == (0.0, 0)
        assert result.matches.shape == (0, 2)
