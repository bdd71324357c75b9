"""Overlap against rasterised areas and closed forms; the sets P(x) and N(x) against all pairs tried in turn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.regions.overlap import overlap_candidates, overlap_error, overlap_sets, transfer_ellipses

PAIR = np.array([[0, 0]])


def ellipses(
    rng: np.random.Generator, count: int, side: float, largest: float, ratio: float, *, smallest: float = 3
) -> np.ndarray:
    """Ellipses with mean radii in a range, long and thin up to the ratio, on a square."""
    radius = np.exp(rng.uniform(np.log(smallest), np.log(largest), count))
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


def all_pairs(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of rows, and its overlap."""
    pairs = np.argwhere(np.ones((len(one), len(other)), bool))
    return pairs, 1 - overlap_error(one, other, pairs)


def rows(pairs: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(pair) for pair in pairs.tolist()]


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.floats(0, 7), st.floats(0, 1.5))
def test_overlap_error_is_that_of_rasterised_areas(seed: int, ratio: float, distance: float) -> None:
    rng = np.random.default_rng(seed)
    one, other = ellipses(rng, 2, 1, 20, 1 + ratio, smallest=4)
    other[:2] = one[:2] + distance * 10 * rng.uniform(-1, 1, 2)
    error = overlap_error(one[None], other[None], PAIR)[0]
    assert error == pytest.approx(_rasterised_error(one, other), abs=0.01)


def test_overlap_error_of_equal_circles_is_the_lens() -> None:
    r, d = 10.0, np.array([0.0, 3.0, 9.0, 19.0, 25.0])
    one = np.array([[50, 50, r**-2, 0, r**-2]])
    others = np.column_stack([50 + d, np.full(5, 50), np.full(5, r**-2), np.zeros(5), np.full(5, r**-2)])
    half = np.minimum(d / (2 * r), 1)
    lens = 2 * r * r * (np.arccos(half) - half * np.sqrt(1 - half**2))
    exact = 1 - lens / (2 * np.pi * r * r - lens)
    pairs = np.column_stack([np.zeros(5, int), np.arange(5)])
    np.testing.assert_allclose(overlap_error(one, others, pairs), exact, atol=0.003)


def test_normalisation_scales_regions_about_their_centres() -> None:
    small = np.array([[10.0, 10, 1 / 9, 0, 1 / 9]])  # radius 3, so ten times smaller than the normalised one
    beside = np.array([[14.0, 10, 1 / 16, 0, 1 / 16]])
    large = np.array([[10.0, 10, 1 / 900, 0, 1 / 900]])
    large_beside = np.array([[14.0, 10, 1 / 1600, 0, 1 / 1600]])
    expected = _rasterised_error(large[0], large_beside[0])
    assert overlap_error(small, beside, PAIR, radius=30)[0] == pytest.approx(expected, abs=0.01)


@given(st.integers(0, 2**32 - 1))
def test_transfer_is_exact_for_affine_maps_and_tangent_for_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    some = ellipses(rng, 5, 400, 40, 4, smallest=2)
    affine = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    affine[:2] += rng.uniform(-0.4, 0.4, (2, 3)) * [1, 1, 100]
    bent = affine.copy()
    bent[2, :2] = rng.uniform(-3e-4, 3e-4, 2)
    tiny = some * [1, 1, 1e6, 1e6, 1e6]  # a thousandth of the size: the map is as good as its tangent
    for regions, homography, tolerance in ((some, affine, 1e-9), (tiny, bent, 1e-3)):
        for before, after in zip(regions, transfer_ellipses(regions, homography), strict=True):
            points = np.column_stack([_on_boundary(before), np.ones(64)]) @ homography.T
            u, v = (points[:, :2] / points[:, 2:]).T
            x, y, a, b, c = after
            form = a * (u - x) ** 2 + 2 * b * (u - x) * (v - y) + c * (v - y) ** 2
            np.testing.assert_allclose(form, 1, atol=tolerance)


def test_transfer_to_infinity_is_no_number() -> None:
    horizon = np.array([[1, 0, 0], [0, 1, 0], [-0.01, 0, 1.0]])
    assert np.isnan(transfer_ellipses(np.array([[100.0, 5, 1, 0, 1]]), horizon)[0, :2]).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.9), st.floats(1, 60), st.sampled_from([6.0, 60.0]))
def test_no_candidate_is_missed(seed: int, least: float, ratio: float, largest: float) -> None:
    rng = np.random.default_rng(seed)
    one, other = ellipses(rng, 40, 60, largest, ratio), ellipses(rng, 40, 60, largest, ratio)
    other[:20] = one[:20] * rng.uniform(0.6, 1.6, (20, 1)) ** [0, 0, 1, 1, 1]
    other[:20, :2] += rng.normal(0, 3, (20, 2))
    pairs, overlap = all_pairs(one, other)
    found = rows(overlap_candidates(one, other, least))
    assert set(rows(pairs[overlap >= least])) <= set(found)
    assert found == sorted(set(found))


def test_most_pairs_are_no_candidates() -> None:
    rng = np.random.default_rng(0)
    one, other = ellipses(rng, 300, 300, 60, 4), ellipses(rng, 300, 300, 60, 4)
    pairs, overlap = all_pairs(one, other)
    assert len(overlap_candidates(one, other, 0.3)) < 2.5 * (overlap >= 0.3).sum() < 0.2 * len(pairs)


@given(st.integers(0, 2**32 - 1))
def test_sets_are_those_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    homography = np.eye(3)
    homography[:2, :2] += rng.uniform(-0.4, 0.4, (2, 2))
    homography[:2, 2] = rng.uniform(-20, 20, 2)
    homography[2, :2] = rng.uniform(-2e-3, 2e-3, 2)
    homography *= rng.choice([-1, 1]) * rng.uniform(0.01, 100)  # stands for the same map
    regions1 = ellipses(rng, 40, 100, 25, 4)
    moved = transfer_ellipses(
        regions1 * [1, 1, 0.8, 0.8, 0.8] + rng.normal(0, 2, (40, 5)) * [1, 1, 0, 0, 0], homography
    )
    order = rng.permutation(40)
    sets = overlap_sets(regions1, moved[order], homography, (90, 100))

    seen = transfer_ellipses(regions1, homography)
    inside = (seen[:, 0] >= -0.5) & (seen[:, 0] < 99.5) & (seen[:, 1] >= -0.5) & (seen[:, 1] < 89.5)
    pairs, overlap = all_pairs(regions1, transfer_ellipses(moved[order], np.linalg.inv(homography)))
    counted = inside[pairs[:, 0]]
    assert rows(sets.positives) == rows(pairs[counted & (overlap > 0.6)])
    assert rows(sets.ambiguous) == rows(pairs[counted & (overlap <= 0.6) & (overlap >= 0.3)])


def test_circles_are_sorted_by_the_overlap_of_the_lens() -> None:
    r, d = 10.0, np.array([0.0, 3, 4.4, 5, 8, 9.5, 11, 30])
    half = d / (2 * r)
    lens = 2 * r * r * (np.arccos(np.minimum(half, 1)) - half * np.sqrt(np.maximum(1 - half**2, 0)))
    overlap = lens / (2 * np.pi * r * r - lens)
    one = np.array([[50, 50, r**-2, 0, r**-2]])
    others = np.column_stack([50 + d, np.full((8, 1), 50), np.tile([r**-2, 0, r**-2], (8, 1))])
    shift = np.array([[1, 0, 7], [0, 1, -3], [0, 0, 1.0]])
    others = transfer_ellipses(others, shift)
    sets = overlap_sets(one, others, shift, (100, 100))
    assert sets.positives[:, 1].tolist() == np.flatnonzero(overlap > 0.6).tolist()
    assert sets.ambiguous[:, 1].tolist() == np.flatnonzero((overlap >= 0.3) & (overlap <= 0.6)).tolist()
    strict = overlap_sets(one, others, shift, (100, 100), 0.9, 0.9)
    assert (rows(strict.positives), len(strict.ambiguous)) == ([(0, 0)], 0)


def test_a_region_outside_the_first_photo_is_no_negative_of_one_at_its_border() -> None:
    one = np.array([[1.0, 50, 0.01, 0, 0.01]])
    shift = np.array([[1, 0, 40], [0, 1, 0], [0, 0, 1.0]])
    other = np.array([[39.0, 50, 0.01, 0, 0.01]])  # at -1 of the first photo
    assert rows(overlap_sets(one, other, shift, (100, 100)).positives) == [(0, 0)]


def test_only_features_seen_in_the_second_photo_have_positives() -> None:
    one = np.array([[50.0, 50, 0.01, 0, 0.01], [98, 50, 0.01, 0, 0.01]])
    shift = np.array([[1, 0, 3], [0, 1, 0], [0, 0, 1.0]])
    assert rows(overlap_sets(one, transfer_ellipses(one, shift), shift, (100, 100)).positives) == [(0, 0)]


def test_what_lies_beyond_the_horizon_is_not_seen() -> None:
    # Points with x > 100 are behind the camera; (150, y) maps to (-100, ·), and (200, y) to (-60, ·).
    horizon = np.array([[1, 0, 0], [0, 1, 0], [-0.01, 0, 1.0]])
    regions = np.array([[20.0, 50, 0.04, 0, 0.04], [150, 50, 0.04, 0, 0.04], [100, 50, 0.04, 0, 0.04]])
    shifted = np.array([[1, 0, 400], [0, 1, 400], [0, 0, 1.0]]) @ horizon
    for sign in (1, -1):
        moved = transfer_ellipses(regions[:2], shifted)
        assert (moved[:, :2] > 0).all()
        assert rows(overlap_sets(regions, moved, sign * shifted, (1000, 1000)).positives) == [(0, 0)]


@pytest.mark.parametrize(("first", "second"), [(0, 3), (3, 0), (0, 0)])
def test_photos_without_regions_have_no_pairs(first: int, second: int) -> None:
    region = np.array([[50.0, 50, 0.01, 0, 0.01]])
    sets = overlap_sets(np.repeat(region, first, 0), np.repeat(region, second, 0), np.eye(3), (99, 99))
    assert sets.positives.shape == sets.ambiguous.shape == (0, 2)
