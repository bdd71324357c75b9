"""Pooled gradients and a literal computation, one pixel at a time (Simonyan14 section 3, equations 1 and 7)."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.descriptors.pooling import ChannelOptions, normalised_channels, pool, region_kernels, respond
from tests.support.learning.learnt_models import circles, textures

REGIONS = np.array([[0, 0, 1.5], [3.5, -2, 0.5], [-15, 15, 2], [7, 7, 6], [-9.5, 4, 0.7]], np.float32)
# The paper's quantile; whatever the defaults come to be.
PAPER = ChannelOptions(smoothing=0.7, quantile=0.8)
OPTIONS = {
    "default": ChannelOptions(),
    "paper": PAPER,
    "no smoothing": ChannelOptions(smoothing=0),
    "smooth": ChannelOptions(smoothing=2.3),
    "median": ChannelOptions(quantile=0.5),
    "floor": ChannelOptions(floor=30),
    "few channels": ChannelOptions(orientations=5),
    "small": ChannelOptions(patch_size=14, smoothing=1),
}


def literal_smoothing(patch, sigma):
    """Gaussian smoothing, the patch continued by its border samples, to four standard deviations."""
    if sigma == 0:
        return patch
    size, reach = len(patch), math.ceil(4 * sigma) + 1
    taps = {offset: math.exp(-(offset**2) / (2 * sigma**2)) for offset in range(-reach, reach + 1)}
    mass = sum(taps.values())
    for _ in range(2):  # along one axis, then along the other
        smooth = np.zeros_like(patch)
        for row in range(size):
            for offset, tap in taps.items():
                smooth[row] += tap / mass * patch[min(max(row + offset, 0), size - 1)]
        patch = smooth.T
    return patch


def literal_channels(patch, options):
    """Gradient magnitude of each pixel, shared between the two nearest orientations, over T(x): (p, S, S)."""
    size = len(patch)
    smooth = literal_smoothing(np.asarray(patch, np.float64), options.smoothing)
    channels, magnitudes = np.zeros((options.orientations, size, size)), []
    for y in range(size):
        for x in range(size):
            across = smooth[y, min(x + 1, size - 1)] - smooth[y, max(x - 1, 0)]
            down = smooth[min(y + 1, size - 1), x] - smooth[max(y - 1, 0), x]
            magnitude = math.hypot(across, down)
            place = math.atan2(down, across) / (2 * math.pi) * options.orientations % options.orientations
            below = int(place)
            channels[below % options.orientations, y, x] += (1 - (place - below)) * magnitude
            channels[(below + 1) % options.orientations, y, x] += (place - below) * magnitude
            magnitudes.append(magnitude)
    # The smallest value that so large a share of the magnitudes does not exceed.
    quantile = sorted(magnitudes)[math.ceil(options.quantile * size * size) - 1]
    return channels / math.sqrt(quantile**2 + options.floor**2)


def literal_descriptor(patch, regions, options):
    """φ of a patch, region by region: (R * p,)."""
    channels, size = literal_channels(patch, options), len(patch)
    row = []
    for x0, y0, sigma in regions.astype(np.float64):
        mass, sums = 0.0, np.zeros(options.orientations)
        for v in range(size):
            for u in range(size):
                x, y = u - (size - 1) / 2, v - (size - 1) / 2
                weight = math.exp(-((x - x0) ** 2 + (y - y0) ** 2) / (2 * sigma**2))
                mass += weight
                sums += weight * channels[:, v, u]
        row += [min(value / mass, 1) for value in sums]
    return np.array(row)


def described(patches, regions, options):
    return pool(normalised_channels(patches, options), region_kernels(regions, options.patch_size))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_rows_are_what_the_definition_gives(options):
    patches = textures(3, options.patch_size, seed=4)
    regions = REGIONS * [options.patch_size / 31, options.patch_size / 31, 1]
    rows = described(patches, regions.astype(np.float32), options)
    assert rows.shape == (3, 5 * options.orientations) and rows.dtype == np.float32
    expected = np.stack([literal_descriptor(patch, regions, options) for patch in patches])
    # The orientation of a gradient is computed to a third of a degree.
    np.testing.assert_allclose(rows, expected, atol=4e-3)
    assert np.abs(rows - expected).mean() < 5e-4


@pytest.mark.parametrize("quantile", [0.2, 0.8, 1.0])
def test_t_is_the_quantile_of_the_magnitudes(quantile):
    patches = textures(5, 31, seed=2)
    channels = normalised_channels(patches, replace(PAPER, quantile=quantile))
    magnitudes = np.sort(channels.sum(axis=0), axis=1)
    # In units of T the quantile itself is 1.
    np.testing.assert_allclose(magnitudes[:, math.ceil(quantile * 961) - 1], 1, rtol=1e-4)


def test_t_never_falls_below_its_floor():
    patches = textures(4, 31, seed=3)
    plain, floored = (normalised_channels(patches, replace(PAPER, floor=floor)).sum(axis=0) for floor in (0, 20))
    # Both are the magnitudes, one over T and one over sqrt(T² + floor²); what is left of the quantile tells T.
    rank = math.ceil(PAPER.quantile * 961) - 1
    left = np.sort(floored, axis=1)[:, rank]
    np.testing.assert_allclose(floored / plain, np.broadcast_to(left[:, None], floored.shape), rtol=1e-4)
    magnitudes = normalised_channels(patches, replace(PAPER, floor=1e6)).sum(axis=0) * 1e6
    quantile = np.sort(magnitudes, axis=1)[:, rank]
    np.testing.assert_allclose(left, quantile / np.hypot(quantile, 20), rtol=1e-4)
    # Faint patches are then left faint, where without a floor they would be like any other.
    faint = described(patches / 100, circles(), replace(PAPER, floor=20))
    assert faint.max() < 0.1 < described(patches / 100, circles(), PAPER).max()


@pytest.mark.parametrize(("gain", "offset"), [(0.3, 0), (1, 25), (0.5, 100), (1.1, -10), (1e-1, 90)])
def test_an_affine_change_of_grey_values_makes_no_difference(gain, offset):
    patches = textures(50, 31)
    rows, changed = (described(values, circles(), PAPER) for values in (patches, gain * patches + offset))
    np.testing.assert_allclose(changed, rows, atol=1e-3)


@given(
    regions=st.lists(st.tuples(st.floats(-40, 40), st.floats(-40, 40), st.floats(0.05, 60)), min_size=1, max_size=6),
    size=st.integers(3, 40),
)
@settings(deadline=None)
def test_kernels_have_unit_mass_wherever_they_lie(regions, size):
    kernels = region_kernels(np.array(regions), size)
    assert kernels.shape == (size * size, len(regions)) and kernels.dtype == np.float32
    assert (kernels >= 0).all()
    np.testing.assert_allclose(kernels.sum(axis=0, dtype=np.float64), 1, rtol=1e-5)


def test_a_kernel_is_the_gaussian_around_its_centre():
    kernel = region_kernels(np.array([[4, -6, 2.0]]), 31).reshape(31, 31)
    y, x = np.mgrid[-15:16, -15:16]
    gaussian = np.exp(-((x - 4.0) ** 2 + (y + 6.0) ** 2) / 8)
    np.testing.assert_allclose(kernel, gaussian / gaussian.sum(), atol=1e-7)


def test_what_is_pooled_is_cropped_at_one_and_never_negative():
    patches = textures(20, 31, seed=6)
    patches[:, 15, :] = 255  # a strong line across a faint patch
    patches[:, :15] = 100 + patches[:, :15] / 50
    patches[:, 16:] = 100 + patches[:, 16:] / 50
    channels = normalised_channels(patches, PAPER)
    kernels = region_kernels(REGIONS, 31)
    rows = pool(channels, kernels).reshape(20, 5, 8)
    uncropped = np.einsum("cnp,pr->nrc", channels, kernels)
    assert uncropped.max() > 3
    np.testing.assert_allclose(rows, np.minimum(uncropped, 1), atol=1e-4)
    assert rows.max() == 1 and rows.min() >= 0


def test_channels_are_left_as_they_are():
    channels = normalised_channels(textures(3, 31), PAPER)
    kept = channels.copy()
    pool(channels, region_kernels(REGIONS, 31))
    np.testing.assert_array_equal(channels, kept)


@pytest.mark.parametrize("floor", [0, 5])
def test_patches_without_contrast_give_rows_of_zeros(floor):
    patches = np.stack([np.full((31, 31), value, np.float32) for value in (0, 7.3, 255)])
    with np.errstate(all="raise", under="ignore"):
        rows = described(patches, circles(), replace(PAPER, floor=floor))
    # Smoothing sums weights that add up to 1 but for rounding.
    assert np.isfinite(rows).all() and rows.max() < 0.1


def test_a_patch_that_is_flat_for_the_most_part_is_finite():
    patches = np.full((2, 31, 31), 40, np.float32)
    patches[0, 3, 3] = 255  # T is zero: fewer than a fifth of the pixels have a gradient
    patches[1, :, 30] = 0
    rows = described(patches, circles(), PAPER)
    assert np.isfinite(rows).all() and rows.max() <= 1 and rows.any(axis=1).all()


@pytest.mark.parametrize("power", [1, 0.5, 0.25, 0.3, 0.7])
def test_responses_are_cropped_and_then_taken_to_their_power(power):
    values = np.array([-1e-7, 0, 1e-4, 0.25, 0.81, 1, 3], np.float32)
    expected = np.minimum(np.maximum(values.astype(np.float64), 0), 1) ** power
    np.testing.assert_allclose(respond(values.copy(), power), expected, rtol=1e-5)
