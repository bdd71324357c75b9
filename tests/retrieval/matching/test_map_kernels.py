"""Agreement with maps, refinement and the first look, against plain computations in double precision."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.matching.map_kernels import own_maps, points_and_scales, promising_maps
from retrieval.matching.refinement_kernels import agreeing, count_agreeing, near_matches, refine
from retrieval.matching.vote_kernels import judge_maps, most_voted
from retrieval.regions.geometry import fit_affine

LIMITS = (0.025**2, float(np.log(2.0)))


def maps_of(generator: np.random.Generator, number: int) -> np.ndarray:
    """Rows of maps (H, 7), mirrored ones among them."""
    linear = generator.normal(size=(4 * number, 2, 2)) * 0.5 + np.eye(2)
    linear = linear[np.abs(np.linalg.det(linear)) > 0.1][:number]
    linear[::3, 0] *= -1
    shift = generator.normal(size=(len(linear), 2)) * 0.2
    scale = 0.5 * np.log(np.abs(np.linalg.det(linear)))
    return np.concatenate([linear.reshape(-1, 4), shift, scale[:, None]], axis=1).astype(np.float32)


def errors(row: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Squared symmetric transfer errors."""
    linear, shift = row[:4].astype(np.float64).reshape(2, 2), row[4:6].astype(np.float64)
    forward = source @ linear.T + shift - target
    backward = (target - shift) @ np.linalg.inv(linear).T - source
    return np.asarray((forward**2).sum(axis=1) + (backward**2).sum(axis=1))


def near(generator: np.random.Generator, row: np.ndarray, number: int, noise: float) -> tuple[np.ndarray, ...]:
    """Matches of which most lie near where a map takes them, and their scales."""
    source = generator.uniform(0, 1, (number, 2))
    target = source @ row[:4].reshape(2, 2).T + row[4:6] + generator.normal(0, noise, (number, 2))
    scales = row[6] + generator.normal(0, 0.4, number)
    return source.astype(np.float32), target.astype(np.float32), scales.astype(np.float32)


def points_of(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Places in the query and in the photo as rows: x and y in both."""
    return np.ascontiguousarray(np.concatenate([source.T, target.T]), np.float32)


@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_who_agrees_is_what_the_symmetric_error_and_the_scale_say(seed: int, number: int) -> None:
    generator = np.random.default_rng(seed)
    row = maps_of(generator, 1)[0]
    source, target, scales = near(generator, row, number, 0.02)
    transform = np.column_stack([row[:4].reshape(2, 2), row[4:6]]).astype(np.float64)
    found, error = agreeing(transform, points_of(source, target), scales, *LIMITS)
    expected = errors(row, source, target)
    np.testing.assert_allclose(error, expected, rtol=2e-3, atol=1e-6)
    sure = np.abs(expected - LIMITS[0]) > 1e-5
    agree = (expected < LIMITS[0]) & (np.abs(scales - row[6]) < LIMITS[1])
    assert (np.isin(np.arange(number), found) == agree)[sure].all()


@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(1, 9))
def test_near_matches_are_the_closest_of_each_map_and_features_are_counted_once(
    seed: int, number: int, most: int
) -> None:
    generator = np.random.default_rng(seed)
    rows = maps_of(generator, 3)
    source, target, scales = near(generator, rows[0], number, 0.02)
    points = points_of(source, target)
    transforms = np.concatenate([rows[:, :4].reshape(-1, 2, 2), rows[:, 4:6, None]], axis=2).astype(np.float64)
    pairs = generator.integers(0, 8, (number, 2)).astype(np.int32)
    expected: set[int] = set()
    for transform in transforms:
        agree, error = agreeing(transform, points, scales, *LIMITS)
        expected |= set(agree[np.argsort(error[agree], kind="stable")[:most]].tolist())
        fewer = min(len(np.unique(pairs[agree, side])) for side in (0, 1))
        assert count_agreeing(transform, points, pairs, scales, *LIMITS) == fewer
    assert near_matches(transforms, points, scales, *LIMITS, most).tolist() == sorted(expected)


def test_nothing_agrees_with_a_singular_map() -> None:
    points = points_of(np.full((3, 2), 0.5, np.float32), np.full((3, 2), 0.5, np.float32))
    for singular in (np.zeros((2, 3)), np.array([[1.0, 2, 0], [0.5, 1, 0]]), np.full((2, 3), np.nan)):
        found, error = agreeing(singular, points, np.zeros(3, np.float32), *LIMITS)
        assert not len(found) and np.isinf(error).all()


@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_the_most_voted_maps_are_those_that_most_agree_with_in_place_and_scale_together(seed: int, number: int) -> None:
    generator = np.random.default_rng(seed)
    rows = maps_of(generator, 20)
    source, target, scales = near(generator, rows[0], number, 0.015)
    pairs = generator.integers(0, 8, (number, 2)).astype(np.int32)
    uses = [np.bincount(pairs[:, side], minlength=8) for side in (0, 1)]
    share = np.rint(2**15 / np.maximum(uses[0][pairs[:, 0]], uses[1][pairs[:, 1]]))
    found, features = most_voted(rows, points_of(source, target), scales, pairs, *LIMITS, 5)
    assert features == min(np.count_nonzero(one) for one in uses)
    forms = [errors(row, source, target) / LIMITS[0] + ((scales - row[6]) / LIMITS[1]) ** 2 for row in rows]
    fewest = np.array([share[form < 0.995].sum() for form in forms])
    most = np.array([share[form < 1.005].sum() for form in forms])
    assert len(set(found.tolist())) == 5
    # None that comes later, or not at all, has more votes for certain.
    for place, one in enumerate(found.tolist()):
        assert fewest[np.setdiff1d(np.arange(20), found[:place])].max() <= most[one]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 12))
def test_each_feature_takes_part_in_one_match_the_closest_first(seed: int, number: int, features: int) -> None:
    generator = np.random.default_rng(seed)
    row = maps_of(generator, 1)[0]
    source, target, scales = near(generator, row, number, 0.01)
    pairs = generator.integers(0, features, (number, 2)).astype(np.int32)
    transform = np.column_stack([row[:4].reshape(2, 2), row[4:6]]).astype(np.float64)
    agree, error = agreeing(transform, points_of(source, target), scales, *LIMITS)
    found, kept, mean = refine(transform, points_of(source, target), pairs, scales, *LIMITS, 0)
    np.testing.assert_array_equal(kept, transform)

    # The same by hand: what is the closest of both its features, and once more among what is left free.
    left, expected = agree.tolist(), []
    for _ in range(2):
        chosen = [
            k
            for k in left
            if all(
                k
                == max(
                    j
                    for j in left
                    if pairs[j, side] == pairs[k, side]
                    and error[j] == min(error[i] for i in left if pairs[i, side] == pairs[k, side])
                )
                for side in (0, 1)
            )
        ]
        expected += chosen
        taken = [set(pairs[chosen, side].tolist()) for side in (0, 1)]
        left = [k for k in left if not any(pairs[k, side] in taken[side] for side in (0, 1))]
    assert found.tolist() == sorted(expected)
    if len(found):
        assert mean == pytest.approx(float(error[found].mean()), rel=1e-5)
    else:
        assert np.isinf(mean)


def test_refinement_ends_at_the_least_squares_map_of_its_matches() -> None:
    generator = np.random.default_rng(5)
    row = maps_of(generator, 2)[1]
    source, target, scales = near(generator, row, 400, 0.004)
    target[300:] = generator.uniform(0, 1, (100, 2))
    pairs = np.stack([np.arange(400), generator.permutation(400)], axis=1).astype(np.int32)
    start = np.column_stack([row[:4].reshape(2, 2), row[4:6] + 0.005]).astype(np.float64)
    points = points_of(source, target)
    found, transform, mean = refine(start, points, pairs, scales, *LIMITS, 6)
    assert len(found) > 200 and mean < LIMITS[0]
    exact = np.column_stack([row[:4].reshape(2, 2), row[4:6]])
    assert np.abs(transform - exact).max() < 0.004
    # The map that was found last is the one of the matches of the round before, which differ in few if any.
    np.testing.assert_allclose(transform, fit_affine(source[found], target[found]), atol=2e-3)


def look(rows: np.ndarray, middles: np.ndarray, source: np.ndarray, target: np.ndarray, scales: np.ndarray, **given):
    counts = np.array([0, len(rows)]), np.array([0, len(source)])
    fewest = np.array([given.get("fewest", (0, 0))])
    return judge_maps(
        rows,
        middles,
        counts[0],
        points_of(source, target),
        scales,
        counts[1],
        fewest,
        given.get("fitted", 8),
        given.get("kept", 4),
        *LIMITS,
    )


def test_fitted_maps_are_those_of_least_squares_where_there_are_many_matches() -> None:
    generator = np.random.default_rng(3)
    row = maps_of(generator, 2)[1]
    source, target, _ = near(generator, row, 2000, 0.002)
    scales = np.full(2000, row[6], np.float32)
    rows = np.repeat(row[None], 20, axis=0)
    rows[:, 4:6] += generator.uniform(-0.004, 0.004, (20, 2)).astype(np.float32)
    given, found = look(rows, source[:20], source, target, scales)
    assert given.tolist() == [4]
    linear, shift = found[0, :, :4].reshape(-1, 2, 2), found[0, :, 4:6]
    maps = np.concatenate([linear, shift[:, :, None]], axis=2)
    np.testing.assert_allclose(maps, np.broadcast_to(fit_affine(source, target), (4, 2, 3)), atol=2e-3)
    np.testing.assert_allclose(found[0, :, 6], 0.5 * np.log(np.abs(np.linalg.det(linear))), atol=1e-5)


def test_without_any_match_maps_stay_as_they_are_and_come_in_their_order() -> None:
    generator = np.random.default_rng(4)
    rows = maps_of(generator, 6)
    nowhere = np.full((3, 2), 50, np.float32)
    given, found = look(
        rows, generator.uniform(0, 1, (6, 2)).astype(np.float32), -nowhere, nowhere, nowhere[:, 0].copy()
    )
    assert given.tolist() == [4]
    np.testing.assert_allclose(found[0], rows[:4], atol=1e-4)


def test_a_photo_passes_by_the_fewest_matches_asked_for() -> None:
    generator = np.random.default_rng(6)
    row = maps_of(generator, 1)[0]
    source, target, _ = near(generator, row, 30, 0.0)
    scales = np.full(30, row[6], np.float32)
    for fewest, passes in (((30, 30), True), ((31, 0), False), ((0, 31), False)):
        given, _ = look(row[None], source[:1], source, target, scales, fewest=fewest)
        assert bool(given[0]) == passes


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 30), min_size=1, max_size=4), st.sampled_from([3, 4, 5]))
def test_maps_come_from_the_least_ambiguous_matches_of_the_largest_regions(
    seed: int, sizes: list[int], freedom: int
) -> None:
    generator = np.random.default_rng(seed)
    number, most, zoom, stretch = sum(sizes), 6, 2.0, 6.0
    centres = [generator.uniform(0, 1, (number, 2)).astype(np.float32) for _ in range(2)]
    linear = [(np.exp(generator.normal(-3, 0.8, (number, 1, 1))) * np.eye(2)).astype(np.float32) for _ in range(2)]
    linear[1][:, 1, 0] = generator.normal(0, 0.05, number)
    frames = centres[0], linear[0], centres[1], linear[1]
    ambiguity, starts = generator.integers(1, 4, number), np.concatenate([[0], np.cumsum(sizes)])
    points, scales = points_and_scales(*frames)
    np.testing.assert_array_equal(points, points_of(*centres))
    areas = [np.linalg.det(one.astype(np.float64)) for one in linear]
    np.testing.assert_allclose(scales, 0.5 * np.log(areas[1] / areas[0]), atol=1e-5)

    maps, middles, firsts = promising_maps(*frames, scales, starts, ambiguity, most, freedom, np.log(zoom), stretch)
    order = np.where(np.abs(scales) <= np.log(zoom), ambiguity / (areas[0] * areas[1]) ** 0.25, np.inf)
    for photo, (start, stop) in enumerate(pairwise(starts.tolist())):
        rows = np.sort(start + np.argsort(order[start:stop], kind="stable")[:most])
        expected = own_maps(*frames, rows[np.isfinite(order[rows])], freedom)
        ratios = [np.divide(*np.linalg.svd(row[:4].reshape(2, 2), compute_uv=False)) for row in expected]
        found = maps[firsts[photo] : firsts[photo + 1]]
        np.testing.assert_array_equal(found, expected[np.array(ratios).reshape(-1) <= stretch])
    assert len(middles) == len(maps) == firsts[-1]
