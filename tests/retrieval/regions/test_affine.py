"""The second-moment matrix measured through a region's own frame is isotropic once the shape is adapted."""

import warnings

import numpy as np
import pytest

from retrieval.regions.affine import adapt_shapes
from retrieval.regions.options import AdaptationOptions
from retrieval.regions.sampling_kernels import anisotropy, inverse_square_root
from retrieval.regions.scalespace import ScaleSpaceOptions, build_scale_space


def steps_of(moments):
    """Inverse square roots (N, 2, 2) of matrices given as rows xx, xy, yy, and ratios of eigenvalues (N,)."""
    xx, xy, yy, ratios = np.array([inverse_square_root(*row) for row in moments.tolist()]).T
    return np.stack([np.stack([xx, xy], -1), np.stack([xy, yy], -1)], -2), ratios


def ratios_of_axes(shapes):
    return np.array([anisotropy(shape) for shape in np.ascontiguousarray(shapes)])


def space_of(image):
    return build_scale_space(image.astype(np.float32), ScaleSpaceOptions(double=True))


def grating(shear, side=240, wavelength=14.0):
    """Two crossed waves: isotropic for shear = 0, and for others its image under [[1, shear], [0, 1]]."""
    y, x = np.mgrid[0:side, 0:side].astype(np.float64)
    u = x - shear * y
    return 128 + 50 * np.cos(2 * np.pi * u / wavelength) + 50 * np.cos(2 * np.pi * y / wavelength)


@pytest.mark.parametrize("seed", range(3))
def test_inverse_square_roots_whiten_what_they_come_from(seed):
    generator = np.random.default_rng(seed)
    halves = generator.normal(size=(100, 2, 2)) * generator.uniform(0.5, 50, (100, 1, 1))
    moments = halves @ halves.transpose(0, 2, 1)
    values = np.linalg.eigvalsh(moments)
    steps, ratios = steps_of(np.stack([moments[:, 0, 0], moments[:, 0, 1], moments[:, 1, 1]], axis=1))
    np.testing.assert_allclose(np.linalg.det(steps), 1, rtol=1e-6)
    usual = values[:, 0] / values[:, 1] > 1e-3  # beyond, one step is bounded
    assert usual.sum() > 50
    np.testing.assert_allclose(ratios[usual], (values[:, 0] / values[:, 1])[usual], rtol=1e-5)
    white = steps @ moments @ steps.transpose(0, 2, 1)
    middle = np.sqrt(np.linalg.det(moments))[:, None, None]
    np.testing.assert_allclose((white / middle)[usual], np.broadcast_to(np.eye(2), white.shape)[usual], atol=1e-6)


def test_one_step_of_a_window_with_a_single_edge_is_bounded():
    moments = np.array([[1.0, 0, 0], [1e6, 1e6, 1e6], [0, 0, 3.0], [0, 0, 0], [1e-30, 0, 0]])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        steps, ratios = steps_of(moments)
    assert np.isfinite(steps).all() and np.isfinite(ratios).all()
    np.testing.assert_allclose(np.linalg.det(steps), 1, rtol=1e-6)
    assert (ratios_of_axes(steps) <= 102).all()
    np.testing.assert_array_equal(steps[3], np.eye(2))
    assert ratios[3] == 1 and ratios[0] < 0.1


def test_anisotropy_is_the_ratio_of_singular_values():
    shapes = np.random.default_rng(0).normal(size=(50, 2, 2))
    singular = np.linalg.svd(shapes, compute_uv=False)
    np.testing.assert_allclose(ratios_of_axes(shapes), singular[:, 0] / singular[:, 1], rtol=1e-6)


def test_shapes_keep_the_area_of_the_detection_scale():
    generator = np.random.default_rng(1)
    image = generator.uniform(0, 255, (200, 200))
    centres, sigmas = generator.uniform(30, 170, (150, 2)), generator.uniform(1, 8, 150)
    shapes, kept = adapt_shapes(space_of(image), centres, sigmas, AdaptationOptions())
    assert kept.sum() > 50
    np.testing.assert_allclose(np.linalg.det(shapes), sigmas**2, rtol=1e-4)
    limit = AdaptationOptions().max_anisotropy
    assert (ratios_of_axes(shapes[kept]) <= limit).all() and (ratios_of_axes(shapes[~kept]) > limit).all()


def test_an_isotropic_texture_leaves_regions_round():
    centres = np.array([[7 * 17.0, 7 * 17.0], [7 * 15.0, 7 * 19.0]])  # corners of the crossed waves, both symmetric
    shapes, kept = adapt_shapes(space_of(grating(0)), centres, np.array([3.0, 3.0]), AdaptationOptions())
    assert kept.all()
    np.testing.assert_allclose(ratios_of_axes(shapes), 1, atol=0.04)


def test_zero_iterations_leave_regions_round_and_unread():
    sigmas = np.array([2.0, 5.0])
    shapes, kept = adapt_shapes(
        space_of(np.zeros((50, 50))), np.full((2, 2), 25.0), sigmas, AdaptationOptions(iterations=0)
    )
    np.testing.assert_array_equal(shapes, np.eye(2) * sigmas[:, None, None])
    assert kept.all()


def test_flat_windows_stay_round_and_silent():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        shapes, kept = adapt_shapes(
            space_of(np.full((80, 80), 9.0)), np.full((3, 2), 40.0), np.ones(3), AdaptationOptions()
        )
    assert kept.all()
    np.testing.assert_array_equal(shapes, np.broadcast_to(np.eye(2), (3, 2, 2)))


def test_regions_at_the_border_and_beyond_their_window_are_finite():
    image = np.random.default_rng(2).uniform(0, 255, (64, 48))
    centres = np.array([[0.0, 0.0], [47, 63], [24, 0], [24, 32]])
    shapes, _ = adapt_shapes(space_of(image), centres, np.array([1.0, 12, 30, 40]), AdaptationOptions())
    assert np.isfinite(shapes).all()


def test_a_region_s_shape_does_not_depend_on_its_company():
    generator = np.random.default_rng(3)
    space = space_of(generator.uniform(0, 255, (160, 160)))
    centres, sigmas = generator.uniform(20, 140, (40, 2)), generator.uniform(1, 6, 40)
    together, kept = adapt_shapes(space, centres, sigmas, AdaptationOptions())
    for row in range(0, 40, 7):
        alone, alone_kept = adapt_shapes(space, centres[row : row + 1], sigmas[row : row + 1], AdaptationOptions())
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-3, atol=1e-3)
        assert alone_kept[0] == kept[row]


def test_leaving_out_what_did_not_converge_leaves_the_rest_alone():
    generator = np.random.default_rng(4)
    space = space_of(generator.uniform(0, 255, (160, 160)))
    centres, sigmas = generator.uniform(20, 140, (200, 2)), generator.uniform(1, 6, 200)
    shapes, kept = adapt_shapes(space, centres, sigmas, AdaptationOptions(iterations=3))
    strict, converged = adapt_shapes(space, centres, sigmas, AdaptationOptions(iterations=3, keep_unconverged=False))
    assert 0 < converged.sum() < kept.sum()
    assert not (converged & ~kept).any()
    np.testing.assert_array_equal(shapes[converged], strict[converged])
