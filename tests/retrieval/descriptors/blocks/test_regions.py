"""S-blocks: where their regions lie, and what each sample counts in them."""

import numpy as np
import pytest

from retrieval.descriptors.blocks.parameters import defaults
from retrieval.descriptors.blocks.regions import (
    ARRANGEMENTS,
    is_spatial,
    polar_weights,
    ring_regions,
    spatial_kernels,
    spatial_parameters,
    spatial_regions,
    square_orbits,
)

SIZE = 64
NAMES = [*ARRANGEMENTS, "grid-8"]
AXIS = np.arange(SIZE) - (SIZE - 1) / 2
X, Y = (plane.ravel() for plane in np.meshgrid(AXIS, AXIS))


def kernels(name, size=SIZE, **changes):
    parameters = defaults(parameter.scaled(size) for parameter in spatial_parameters(name))
    return spatial_kernels(name, parameters | changes, size).astype(np.float64)


def centres(weights):
    return np.stack([X @ weights, Y @ weights], axis=1) / weights.sum(axis=0)[:, None]


@pytest.mark.parametrize("name", NAMES)
class TestEvery:
    def test_shape_and_number_of_regions(self, name):
        found = kernels(name)
        assert (
            found.shape
            == (SIZE**2, spatial_regions(name))
            == (SIZE**2, int(name.split("-")[1]) ** (1 + ("grid" in name)))
        )
        assert (found >= 0).all() and (found.sum(axis=0) > 0).all()

    def test_regions_are_means_but_for_sift_s_sums(self, name):
        sums = kernels(name).sum(axis=0)
        if name == "S1-16":
            np.testing.assert_allclose(sums, 12.0**2, rtol=1e-3)  # triangles of half-width 12 = 48 / 4
        else:
            np.testing.assert_allclose(sums, 1, rtol=1e-5)

    def test_a_quarter_turn_of_the_patch_permutes_the_regions(self, name):
        changes = {"phase": 0.0} if "S4" in name else {}
        found = kernels(name, **changes)
        turned = np.rot90(found.reshape(SIZE, SIZE, -1)).reshape(SIZE**2, -1)
        distances = np.abs(found[:, :, None] - turned[:, None]).max(axis=0)
        assert (distances.min(axis=0) < 1e-5 * found.max()).all()
        assert len(set(distances.argmin(axis=0))) == found.shape[1]

    def test_in_a_patch_of_half_the_size_everything_is_half_as_far(self, name):
        half = kernels(name, SIZE // 2)
        axis = np.arange(SIZE // 2) - (SIZE // 2 - 1) / 2
        x = np.meshgrid(axis, axis)[0].ravel() @ half / half.sum(axis=0)
        np.testing.assert_allclose(2 * x, centres(kernels(name))[:, 0], atol=0.7)

    @pytest.mark.parametrize("size", [24, 64])
    @pytest.mark.parametrize("limit", ["low", "high"])
    def test_every_region_has_samples_at_the_limits_of_learning(self, name, size, limit):
        parameters = [parameter.scaled(size) for parameter in spatial_parameters(name)]
        found = spatial_kernels(name, {one.name: getattr(one, limit) for one in parameters}, size)
        assert np.isfinite(found).all() and (found.sum(axis=0) > 0).all()

    def test_a_region_too_small_for_any_sample_counts_none(self, name):
        parameters = [parameter.scaled(8) for parameter in spatial_parameters(name)]
        found = spatial_kernels(name, {one.name: one.low for one in parameters}, 8)
        assert np.isfinite(found).all() and (found >= 0).all()


class TestS1:
    def test_samples_between_centres_are_shared_out_whole(self):
        found = kernels("S1-16", footprint=48.0)
        inside = (np.abs(X) <= 18) & (np.abs(Y) <= 18)  # within the outer centres
        np.testing.assert_allclose(found[inside].sum(axis=1), 1, atol=1e-5)
        assert not found[(np.abs(X) > 30) | (np.abs(Y) > 30)].any()

    def test_its_centres_are_a_grid_of_the_footprint(self):
        expected = [(x, y) for y in (-15, -5, 5, 15) for x in (-15, -5, 5, 15)]
        np.testing.assert_allclose(centres(kernels("S1-16", footprint=40.0)), expected, atol=0.05)


class TestS2:
    @pytest.mark.parametrize("segments", [1, 4, 8])
    def test_weights_are_shared_out_whole_within_the_outer_centres_and_end_at_the_edge(self, segments):
        found = polar_weights((8.0, 18.0, 28.0), segments, SIZE)
        radius = np.hypot(X, Y)
        np.testing.assert_allclose(found[radius <= 18].sum(axis=1), 1, atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1)[radius > 18], np.maximum(0, (28 - radius[radius > 18]) / 10))

    def test_weights_are_bilinear_in_radius_and_angle(self):
        found = polar_weights((8.0, 18.0, 28.0), 8, SIZE)
        for sample in np.random.default_rng(1).choice(SIZE**2, 200, replace=False):
            radius, angle = np.hypot(X[sample], Y[sample]), np.arctan2(Y[sample], X[sample]) % (2 * np.pi)
            expected = np.zeros(17)
            rings = {
                0: max(0, 1 - radius / 8),
                1: max(0, min(radius / 8, (18 - radius) / 10)),
                2: max(0, min((radius - 8) / 10, (28 - radius) / 10)),
            }
            expected[0] = rings[0]
            low = int(angle / (np.pi / 4))
            share = angle / (np.pi / 4) - low
            for ring in (1, 2):
                expected[1 + 8 * (ring - 1) + low] += rings[ring] * (1 - share)
                expected[1 + 8 * (ring - 1) + (low + 1) % 8] += rings[ring] * share
            np.testing.assert_allclose(found[sample], expected, atol=1e-9)

    def test_each_region_is_divided_by_its_area(self):
        values = {"middle": 8.0, "outer_step": 10.0, "edge_step": 10.0}
        found = spatial_kernels("S2-9", values, SIZE)
        weights = polar_weights((8.0, 18.0, 28.0), 4, SIZE)
        np.testing.assert_allclose(found, weights / weights.sum(axis=0), rtol=1e-5, atol=1e-9)


class TestS3:
    @pytest.mark.parametrize(("number", "groups"), [(3, [1, 4, 4]), (4, [4, 8, 4]), (5, [1, 4, 4, 4, 8, 4])])
    def test_groups_are_what_the_square_s_symmetries_exchange(self, number, groups):
        found = square_orbits(number)
        assert [len(group) for group in found] == groups
        assert sorted(map(tuple, np.concatenate(found))) == sorted(
            (x, y) for x in np.arange(number) - (number - 1) / 2 for y in np.arange(number) - (number - 1) / 2
        )
        for group in found:
            points = set(map(tuple, group))
            assert points == {(-y, x) for x, y in points} == {(y, x) for x, y in points}

    def test_three_by_three_has_two_positions_and_three_widths(self):
        assert [parameter.name for parameter in spatial_parameters("S3-9")] == [
            "distance_1",
            "distance_2",
            "width_0",
            "width_1",
            "width_2",
        ]

    def test_centres_lie_where_they_should(self):
        found = kernels("S3-9", distance_1=10.0, distance_2=20.0, width_0=2.0, width_1=2.5, width_2=3.0)
        diagonal = 20 / 2**0.5
        expected = {(0, 0), (10, 0), (-10, 0), (0, 10), (0, -10)}
        expected |= {(x, y) for x in (-diagonal, diagonal) for y in (-diagonal, diagonal)}
        for centre in centres(found):
            assert min(np.hypot(*(centre - one)) for one in expected) < 0.05
        spread = np.sqrt(((X[:, None] - centres(found)[:, 0]) ** 2 * found).sum(axis=0))
        np.testing.assert_allclose(sorted(spread), [2.0, *[2.5] * 4, *[3.0] * 4], atol=0.01)


class TestS4:
    @pytest.mark.parametrize(("name", "rings", "turned"), [("S4-17", 2, 1), ("S4-25", 3, 2)])
    def test_rings_of_eight_the_middle_one_turned(self, name, rings, turned):
        values = {f"radius_{ring}": 6.0 * ring for ring in range(1, rings + 1)}
        values |= {f"width_{ring}": 1.0 + ring / 2 for ring in range(rings + 1)} | {"phase": 0.3}
        found = spatial_kernels(name, values, SIZE).astype(np.float64)
        place = centres(found)
        np.testing.assert_allclose(place[0], 0, atol=1e-6)
        for ring in range(1, rings + 1):
            angles = 2 * np.pi * np.arange(8) / 8 + (0.3 if ring == turned else 0)
            expected = 6.0 * ring * np.column_stack([np.cos(angles), np.sin(angles)])
            np.testing.assert_allclose(place[1 + 8 * (ring - 1) : 1 + 8 * ring], expected, atol=0.02)
        np.testing.assert_allclose(ring_regions(values, rings, turned)[:, :2], place, atol=0.02)

    def test_seventeen_have_six_parameters_and_twenty_five_eight(self):
        assert len(spatial_parameters("S4-17")) == 6 and len(spatial_parameters("S4-25")) == 8


@pytest.mark.parametrize(
    "name",
    [
        "S5-17",
        "S4-9",
        "S4",
        "grid",
        "grid-",
        "grid-1",
        "grid-99",
        "grid-3x",
        "",
        "grid--8",
        "grid-02",
        "grid-٣",
        "grid-33",
    ],
)
def test_what_is_no_arrangement_is_told_from_one(name):
    assert not is_spatial(name)
