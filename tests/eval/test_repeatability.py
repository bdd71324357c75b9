"""Repeatability of detectors."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.repeatability import NORMALISED_RADIUS, repeatability
from retrieval.regions.overlap import overlap_error, transfer_ellipses


def _ellipses(
    rng: np.random.Generator, count: int, side: float, radii: tuple[float, float], ratio: float
) -> np.ndarray:
    """Random ellipses with mean radii and axis ratios in ranges."""
    radius = np.exp(rng.uniform(*np.log(radii), count))
    stretch = np.sqrt(np.exp(rng.uniform(0, np.log(ratio), count)))
    angle = rng.uniform(0, np.pi, count)
    cos, sin = np.cos(angle), np.sin(angle)
    p, q = (radius * stretch) ** -2, (radius / stretch) ** -2
    centres = rng.uniform(0, side, (count, 2))
    return np.column_stack([centres, p * cos**2 + q * sin**2, (p - q) * cos * sin, p * sin**2 + q * cos**2])


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.4, 0.49]))
def test_no_correspondence_is_missed(seed: int, max_error: float) -> None:
    """The search for candidates finds everything that all pairs would give."""
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
    errors = overlap_error(one, other, pairs, NORMALISED_RADIUS)
    used1, used2, expected = set(), set(), []
    for pair in np.argsort(errors, kind="stable"):
        first, second = (int(row) for row in pairs[pair])
        if errors[pair] < max_error and first not in used1 and second not in used2:
            used1.add(first)
            used2.add(second)
            expected.append((first, second))
    assert [tuple(match) for match in found.matches.tolist()] == expected
    assert (found.regions1, found.regions2) == tuple(int(mask.sum()) for mask in inside)


@settings(max_examples=20)
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
