"""The candidate pool: number of rings, and invariance of each to flips of the patch."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.convex.candidates import PoolOptions, candidate_pool

# x, y of a point after a flip about the vertical, the horizontal and each diagonal.
FLIPS = {
    "left and right": lambda p: p * [-1, 1],
    "up and down": lambda p: p * [1, -1],
    "first diagonal": lambda p: p[:, ::-1],
    "second diagonal": lambda p: -p[:, ::-1],
}
options = st.builds(
    PoolOptions,
    patch_size=st.integers(6, 40),
    step=st.sampled_from([0.5, 1.0, 2.5]),
    angles=st.sampled_from([8, 16, 32]),
)


@pytest.fixture(scope="module")
def full():
    return candidate_pool()


def places(positions):
    """Positions as a set, rounded."""
    return Counter(map(tuple, np.round(np.asarray(positions, np.float64), 6) + 0.0))


def test_a_patch_of_31_samples_has_the_paper_s_number_of_rings(full):
    assert len(full) == 4650 == 31 * 30 * 5
    # 961 different positions: the centre and 32 on each of 30 circles.
    assert full.positions.shape == (961, 2)
    np.testing.assert_allclose(full.sigmas, np.arange(1, 31) / 2)
    radii = np.hypot(*full.positions.T)
    np.testing.assert_allclose(np.unique(np.round(radii, 6)), np.arange(31) / 2)
    # On a circle: two rings of four and three of eight, 32 in all; at the centre, five of one.
    sizes = full.sizes.reshape(30, 31, 5)
    np.testing.assert_array_equal(sizes[:, 0], 1)
    np.testing.assert_array_equal(sizes[:, 1:].sum(axis=2), 32)
    np.testing.assert_array_equal(np.sort(sizes[:, 1:], axis=2), np.broadcast_to([4, 4, 8, 8, 8], (30, 30, 5)))


def test_rings_are_the_orbits_of_the_positions_under_flips(full):
    """By applying all products of flips to each position: those that fall on each other are one ring."""
    images = [full.positions]
    for flip in FLIPS.values():
        images += [flip(image) for image in images]
    # An orbit is represented by the least of a position's images.
    orbits = np.array([min(map(tuple, np.round(rows, 6) + 0.0)) for rows in np.stack(images, axis=1)])
    _, expected = np.unique(orbits, axis=0, return_inverse=True)
    pairs = np.unique(np.column_stack([full.groups, expected.ravel()]), axis=0)
    assert len(pairs) == len(np.unique(full.groups)) == expected.max() + 1 == 1 + 30 * 5


@given(options=options)
@settings(max_examples=25)
def test_a_flip_maps_every_ring_onto_itself(options):
    pool = candidate_pool(options)
    reach = (options.patch_size - 1) / 2
    for ring in range(len(pool.columns)):
        regions = pool.regions(ring)
        assert len(regions) == pool.sizes[ring]
        assert (regions[:, 2] == pool.sigmas[0]).all()
        assert np.hypot(regions[:, 0], regions[:, 1]).max() <= reach + 1e-9
        for flip in FLIPS.values():
            assert places(flip(regions[:, :2])) == places(regions[:, :2])
    steps = int(reach / options.step + 1e-9)
    assert len(pool) == (steps + 1) * steps * (options.angles // 8 + 1)


def test_rings_of_a_set_have_the_positions_of_every_other_set(full):
    for ring in (0, 4, 5, 77, 154):
        for scale in (1, 29):
            other = full.regions(ring + 155 * scale)
            np.testing.assert_array_equal(other[:, :2], full.regions(ring)[:, :2])
            assert (other[:, 2] == full.sigmas[scale]).all()


def test_without_symmetry_each_region_is_by_itself():
    pool = candidate_pool(PoolOptions(symmetric=False))
    assert len(pool) == 961 * 30 and (pool.sizes == 1).all()
    assert len({tuple(pool.regions(ring)[0, :2]) for ring in range(961)}) == 961
    full = places(candidate_pool().positions)
    assert places(pool.positions) == full


def test_angles_that_flips_do_not_map_onto_each_other_are_refused():
    with pytest.raises(ValueError, match="multiple of 8"):
        candidate_pool(PoolOptions(angles=12))


def test_a_pool_is_known_by_its_options(full):
    assert full.fingerprint == candidate_pool(PoolOptions()).fingerprint
    others = [PoolOptions(patch_size=32), PoolOptions(step=1), PoolOptions(angles=16), PoolOptions(symmetric=False)]
    assert len({candidate_pool(other).fingerprint for other in others} | {full.fingerprint}) == 5


class TestSelect:
    def test_regions_come_with_the_weight_of_their_ring(self, full):
        weights = np.zeros(len(full))
        chosen = {7: 0.5, 311: 2.0, 4649: 0.25}  # no ring at the centre
        weights[list(chosen)] = list(chosen.values())
        regions, region_weights, rings = full.select(weights)
        assert (regions.dtype, region_weights.dtype, rings.dtype) == (np.float32, np.float32, np.int32)
        assert (np.diff(rings) >= 0).all() and rings[0] == 0
        for number, (ring, weight) in enumerate(chosen.items()):
            members = rings == number
            np.testing.assert_allclose(regions[members], full.regions(ring), atol=1e-6)
            np.testing.assert_array_equal(region_weights[members], weight)
        assert len(regions) == full.sizes[list(chosen)].sum()

    def test_rings_that_coincide_come_once_with_all_their_weight(self, full):
        weights = np.zeros(len(full))
        weights[155 * 3 : 155 * 3 + 5] = [1, 0, 2, 0, 4]  # all five at the centre, σ = 2
        weights[155 * 8 + 1] = 3  # there too, of another σ
        regions, region_weights, rings = full.select(weights)
        np.testing.assert_array_equal(regions, [[0, 0, 2], [0, 0, 4.5]])
        np.testing.assert_array_equal(region_weights, [7, 3])
        np.testing.assert_array_equal(rings, [0, 1])

    @given(seed=st.integers(0, 10**6), share=st.floats(0.001, 0.3), symmetric=st.booleans())
    @settings(max_examples=25)
    def test_the_distance_is_that_of_all_rings_together(self, seed, share, symmetric):
        """Σ over regions of w·f(region) is Σ over rings of w Σ f, whatever f: so selecting keeps distances."""
        pool = candidate_pool(PoolOptions(patch_size=9, step=1, angles=8, symmetric=symmetric))
        rng = np.random.default_rng(seed)
        weights = rng.random(len(pool)) * (rng.random(len(pool)) < share)
        regions, region_weights, rings = pool.select(weights)

        def function(rows):
            return np.sin(3 * rows[:, 0] + 5 * rows[:, 1]) + rows[:, 2] ** 2

        expected = sum(weights[ring] * function(pool.regions(ring)).sum() for ring in np.flatnonzero(weights))
        assert region_weights @ function(regions.astype(np.float64)) == pytest.approx(expected, rel=1e-5, abs=1e-5)
        assert (region_weights > 0).all()
        assert len(np.unique(regions, axis=0)) == len(regions)
        if len(rings):
            np.testing.assert_array_equal(np.unique(rings), np.arange(rings.max() + 1))

    def test_no_weight_selects_nothing(self, full):
        regions, weights, rings = full.select(np.zeros(len(full)))
        assert (regions.shape, weights.shape, rings.shape) == ((0, 3), (0,), (0,))


def test_a_patch_of_64_samples_has_rings_out_to_its_border():
    pool = candidate_pool(PoolOptions(patch_size=64))
    assert len(pool) == 20_160 == 64 * 63 * 5
    assert (pool.sigmas[-1], np.hypot(*pool.positions.T).max()) == pytest.approx((31.5, 31.5))
