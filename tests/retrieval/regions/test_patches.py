"""Patches show what lies under their region: the right place, the right size, nothing finer than their samples hold."""

import cv2
import numpy as np
import pytest
from scipy import ndimage

from retrieval.regions.geometry import rotations
from retrieval.regions.patches import extract_patches, patch_grid, sample_frames, sampling_order
from retrieval.regions.scalespace import ScaleSpaceOptions, build_scale_space

BOTH = [ScaleSpaceOptions(double=True), ScaleSpaceOptions(double=False)]


def frames(sizes, angles=0.0, stretch=1.0):
    sizes = np.atleast_1d(np.asarray(sizes, float))
    shape = np.diag([np.sqrt(stretch), 1 / np.sqrt(stretch)])
    return sizes[:, None, None] * (rotations(np.broadcast_to(angles, sizes.shape)) @ shape)


def points(centres, maps, size):
    """Points (N, S, S, 2) of the image under a patch's samples."""
    axis = np.linspace(-1, 1, size)
    v, u = np.meshgrid(axis, axis, indexing="ij")
    return centres[:, None, None] + np.einsum("nij,yxj->nyxi", maps, np.stack([u, v], -1))


def test_the_grid_runs_along_x_first():
    grid = patch_grid(5)
    np.testing.assert_array_equal(grid[0][0], [-1, -0.5, 0, 0.5, 1])
    np.testing.assert_array_equal(grid[1][:, 0], [-1, -0.5, 0, 0.5, 1])


@pytest.mark.parametrize("options", BOTH, ids=str)
@pytest.mark.parametrize("size", [31, 8])
def test_a_ramp_is_sampled_where_the_frames_say(options, size):
    # Smoothing and linear interpolation leave a ramp as it is, away from the border.
    y, x = np.mgrid[0:300, 0:400].astype(np.float64)
    image = (20 + 0.3 * x + 0.2 * y).astype(np.float32)
    space = build_scale_space(image, options)
    generator = np.random.default_rng(0)
    centres = generator.uniform([150, 120], [250, 180], (60, 2))
    maps = frames(generator.uniform(1, 45, 60), generator.uniform(-3, 3, 60), 2.0)
    found = extract_patches(space, centres, maps, size)
    place = points(centres, maps, size)
    # The sampler's coordinates have 1/32 of a sample: at most 1/64 times the slope, of the coarsest level used.
    assert found.shape == (60, size, size) and found.dtype == np.float32
    np.testing.assert_allclose(found, 20 + 0.3 * place[..., 0] + 0.2 * place[..., 1], atol=0.5 * 8 / 64)
    assert abs((found - 20 - 0.3 * place[..., 0] - 0.2 * place[..., 1]).mean()) < 0.005


@pytest.mark.parametrize("options", BOTH, ids=str)
def test_smooth_patterns_are_sampled_as_they_are(options):
    # A wave that is long against all smoothing; the tolerance is its own damping.
    y, x = np.mgrid[0:300, 0:400].astype(np.float64)

    def wave(x, y):
        return (
            128 + 50 * np.cos(2 * np.pi * (0.8 * x + 0.6 * y) / 90) + 30 * np.sin(2 * np.pi * (0.6 * x - 0.8 * y) / 120)
        )

    space = build_scale_space(wave(x, y).astype(np.float32), options)
    generator = np.random.default_rng(1)
    centres = generator.uniform([120, 110], [280, 190], (40, 2))
    maps = frames(generator.uniform(3, 60, 40), generator.uniform(-3, 3, 40), 1.5)
    place = points(centres, maps, 31)
    np.testing.assert_allclose(extract_patches(space, centres, maps, 31), wave(place[..., 0], place[..., 1]), atol=2.5)


@pytest.mark.parametrize("options", BOTH, ids=str)
@pytest.mark.parametrize("angle", [0.0, 0.4])
@pytest.mark.parametrize("half", [31, 45, 60, 90])
def test_a_grating_finer_than_the_samples_does_not_alias(options, angle, half):
    # Samples lie `spacing` apart; a grating of 1.25 of it is beyond what they hold and would show as a coarse wave.
    spacing = 2 * half / 30
    y, x = np.mgrid[0:400, 0:400].astype(np.float64)
    wave = np.cos(2 * np.pi * (np.cos(angle) * x + np.sin(angle) * y) / (1.25 * spacing))
    space = build_scale_space((128 + 100 * wave).astype(np.float32), options)
    found = extract_patches(space, np.array([[200.0, 200.0]]), frames(half), 31)
    itself = np.array([-1 - len(space.fine)])
    plain = sample_frames(space, itself, np.array([[200.0, 200.0]]), frames(half), patch_grid(31))
    assert plain.std() > 35  # what would come without smoothing
    assert found.std() < 0.25 * plain.std()


def test_the_border_is_continued():
    image = np.full((60, 80), 200, np.float32)
    image[:, :40] = 50
    for level in range(-1, 6):
        space = build_scale_space(image, BOTH[0])
        corners = np.array([[79.0, 59.0], [0.0, 0.0]])
        found = sample_frames(space, np.array([level, level]), corners, frames([30, 30]), patch_grid(9))
        np.testing.assert_allclose(found[0], 200, atol=0.5)
        np.testing.assert_allclose(found[1], 50, atol=0.5)
    ramp = np.tile(np.arange(80, dtype=np.float32), (60, 1))
    space = build_scale_space(ramp, BOTH[0])
    beyond = sample_frames(space, np.array([-1]), np.array([[70.0, 30.0]]), frames(20), patch_grid(41))[0]
    np.testing.assert_allclose(beyond[20], np.minimum(np.arange(50, 91), 79), atol=1e-3)


@pytest.mark.parametrize("options", BOTH, ids=str)
def test_a_photo_of_twice_the_size_gives_nearly_the_same_patches(options):
    generator = np.random.default_rng(4)
    large = sum(
        ndimage.gaussian_filter(generator.normal(size=(600, 800)), sigma) * sigma * 60 for sigma in (1.2, 3, 8, 20)
    )
    large = np.clip(128 + large, 0, 255).astype(np.float32)
    small = cv2.resize(large, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    centres = generator.uniform([90, 90], [310, 210], (80, 2))
    maps = frames(generator.uniform(14, 60, 80), generator.uniform(-3, 3, 80), 1.8)
    first = extract_patches(build_scale_space(small, options), centres, maps, 31)
    second = extract_patches(build_scale_space(large, options), 2 * centres + 0.5, 2 * maps, 31)
    correlation = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(first, second, strict=True)]
    assert min(correlation) > 0.98 and np.median(correlation) > 0.995
    assert abs((first - second).mean()) < 0.5


def test_a_patch_does_not_depend_on_its_company():
    image = np.random.default_rng(5).uniform(0, 255, (200, 300)).astype(np.float32)
    space = build_scale_space(image, BOTH[0])
    generator = np.random.default_rng(6)
    # More than the sampler takes at a time: 16,384 rows of 31.
    centres, sizes = generator.uniform(0, 200, (1200, 2)), np.exp(generator.uniform(0, 4.5, 1200))
    maps = frames(sizes, generator.uniform(-3, 3, 1200), 2.5)
    together = extract_patches(space, centres, maps, 31)
    for row in (0, 1, 527, 528, 529, 1055, 1199):
        alone = extract_patches(space, centres[row : row + 1], maps[row : row + 1], 31)[0]
        # A coordinate that is rounded the other way is off by 1/32 of a sample.
        np.testing.assert_allclose(together[row], alone, atol=255 / 16)
        assert np.abs(together[row] - alone).mean() < 0.05


@pytest.mark.parametrize("options", BOTH, ids=str)
@pytest.mark.parametrize("size", [31, 8])
def test_samples_are_those_of_opencv(options, size):
    image = np.random.default_rng(8).uniform(0, 255, (150, 256)).astype(np.float32)
    space = build_scale_space(image, options)
    generator = np.random.default_rng(9)
    centres, maps = generator.uniform(-30, 280, (300, 2)), frames(generator.uniform(1, 60, 300), 0.7, 3.0)
    for level in (-1, 0, 4, 8):
        pixels, step, offset = space.level(level)
        place = ((points(centres, maps, size) - offset) / step).astype(np.float32).reshape(-1, size, 2)
        place = np.rint(place * 32) / np.float32(32)  # OpenCV 5 takes coordinates as they are, earlier ones round so
        expected = cv2.remap(
            pixels, place[..., 0], place[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        ).reshape(300, size, size)
        found = sample_frames(space, np.full(300, level), centres, maps, patch_grid(size))
        np.testing.assert_allclose(found, expected, atol=255 / 16)
        # All but those whose coordinate lies half way between two steps of 1/32, and is rounded the other way.
        assert (np.abs(found - expected) < 1e-4).mean() > 0.998


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (2, 2)])
def test_images_of_one_row_or_column_are_sampled(shape):
    image = np.random.default_rng(10).uniform(0, 255, shape).astype(np.float32)
    space = build_scale_space(image, BOTH[0])
    found = extract_patches(space, np.array([[0.0, 0.0], [0.0, 20.0], [20.0, 0.0]]), frames([5, 5, 5]), 11)
    for patch, (x, y) in zip(found, [(0, 0), (0, 20), (20, 0)], strict=True):
        assert patch[5, 5] == image[min(y, shape[0] - 1), min(x, shape[1] - 1)]
        assert image.min() - 1e-3 <= patch.min() and patch.max() <= image.max() + 1e-3


def test_frames_without_a_place_do_no_harm():
    image = np.random.default_rng(11).uniform(0, 255, (60, 80)).astype(np.float32)
    space = build_scale_space(image, BOTH[0])
    for number in (np.nan, np.inf, -np.inf, 1e30, -1e30):
        for centre, frame in (((number, 10), frames(5)), ((10, 10), np.full((1, 2, 2), number))):
            patch = sample_frames(space, np.array([0]), np.array([centre], float), frame, patch_grid(9))
            assert patch.shape == (1, 9, 9)


def test_frames_are_sampled_from_the_level_that_each_names_in_any_order():
    generator = np.random.default_rng(7)
    image = generator.uniform(0, 255, (200, 300)).astype(np.float32)
    space = build_scale_space(image, BOTH[0])
    centres, maps = generator.uniform(0, 200, (400, 2)), frames(generator.uniform(5, 40, 400), 0.3, 1.5)
    levels = generator.integers(-1, 9, 400)
    order = sampling_order(levels, centres)
    assert (np.diff(levels[order]) >= 0).all() and sorted(order) == list(range(400))
    mixed = sample_frames(space, levels, centres, maps, patch_grid(11))
    sorted_first = sample_frames(space, levels[order], centres[order], maps[order], patch_grid(11))
    np.testing.assert_allclose(mixed[order], sorted_first, atol=255 / 16)
    for row in range(0, 400, 40):
        pixels, step, offset = space.level(int(levels[row]))
        place = (points(centres[row : row + 1], maps[row : row + 1], 11)[0] - offset) / step
        exact = ndimage.map_coordinates(pixels, [place[..., 1], place[..., 0]], order=1, mode="nearest")
        np.testing.assert_allclose(mixed[row], exact, atol=255 / 16)


def test_no_regions_give_no_patches():
    space = build_scale_space(np.zeros((50, 60), np.float32), BOTH[0])
    assert extract_patches(space, np.zeros((0, 2)), np.zeros((0, 2, 2)), 31).shape == (0, 31, 31)


def test_an_image_too_small_for_a_scale_space_still_gives_patches():
    space = build_scale_space(np.full((3, 4), 77, np.float32), BOTH[0])
    np.testing.assert_allclose(extract_patches(space, np.array([[1.0, 1.0]]), frames(20), 31), 77)
