"""Levels are smoothed by what they say, and extrema lie where the image's own formula puts them."""

import warnings

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.regions.detectors.dog import difference_of_gaussians
from retrieval.regions.detectors.hessian import hessian_determinant
from retrieval.regions.scalespace import NOMINAL_BLUR, ScaleSpaceOptions, build_scale_space, find_extrema

OPTIONS = [ScaleSpaceOptions(double=True), ScaleSpaceOptions(double=False), ScaleSpaceOptions(False, levels=4, sigma=2)]


def blob(shape, x, y, sigma, amplitude=100.0, base=80.0):
    """A round Gaussian, sampled."""
    across = np.exp(-0.5 * ((np.arange(shape[1]) - x) / sigma) ** 2)
    down = np.exp(-0.5 * ((np.arange(shape[0]) - y) / sigma) ** 2)
    return (base + amplitude * np.outer(down, across)).astype(np.float32)


def extrema_of(image, double=True, respond=difference_of_gaussians, threshold=2.0):
    """All extrema as rows x, y, sigma, value, in pixels of the image."""
    space = build_scale_space(image, ScaleSpaceOptions(double=double))
    rows = [np.zeros((4, 0))]
    for octave in space.octaves:
        found = find_extrema(respond(octave), threshold)
        sigma = octave.sigmas[0] * 2 ** (found.level / space.options.levels)
        x, y = found.x * octave.step + octave.offset, found.y * octave.step + octave.offset
        rows.append(np.stack([x, y, sigma, found.value]))
    return np.concatenate(rows, axis=1).T


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("angle", [0.0, 0.6])
def test_every_level_damps_a_wave_as_its_smoothing_says(options, angle):
    # A wave of frequency w keeps the factor exp(-w² σ² / 2) under a Gaussian; the camera's own blur is in σ already.
    rows, columns = np.mgrid[0:224, 0:256].astype(np.float64)
    for wavelength in (16.0, 40.0):
        frequency = 2 * np.pi / wavelength
        wave = np.cos(frequency * (np.cos(angle) * columns + np.sin(angle) * rows))
        space = build_scale_space((100 + 50 * wave).astype(np.float32), options)
        checked = 0
        for octave in space.octaves:
            for level, sigma in zip(octave.levels, octave.sigmas, strict=True):
                # Samples far enough from the border to see none of it, where the wave is still there.
                added = sigma**2 - NOMINAL_BLUR**2
                factor = np.exp(-(frequency**2) * added / 2)
                margin = int(np.ceil((6 * sigma) / octave.step)) + 1
                inner = (slice(margin, -margin), slice(margin, -margin))
                if factor < 0.02 or min(level[inner].shape) < 4:
                    continue
                y, x = np.meshgrid(
                    *(np.arange(size) * octave.step + octave.offset for size in level.shape), indexing="ij"
                )
                expected = 100 + 50 * factor * np.cos(frequency * (np.cos(angle) * x + np.sin(angle) * y))
                np.testing.assert_allclose(level[inner], expected[inner], atol=50 * 0.02)
                checked += 1
        assert checked >= 5


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_level_numbers_run_from_fine_to_coarse_and_finest_picks_the_last_that_does_not_exceed(options):
    # The smoothing of each level by what it leaves of a wave.
    frequency = 2 * np.pi / 20
    wave = np.tile(100 * np.cos(frequency * np.arange(600)), (600, 1))
    space = build_scale_space(wave.astype(np.float32), options)
    assert space.level(-1 - len(space.fine))[0] is space.image
    sigmas = []
    for number in range(-len(space.fine), 2 * options.levels):
        pixels, step, offset = space.level(number)
        x = np.arange(pixels.shape[1]) * step + offset
        inner = (x > 100) & (x < 500)
        carrier = np.cos(frequency * x[inner])
        left = pixels[pixels.shape[0] // 2, inner] @ carrier / (carrier @ carrier) / 100
        sigmas.append(np.sqrt(NOMINAL_BLUR**2 - 2 * np.log(left) / frequency**2))
    np.testing.assert_allclose(np.diff(np.log2(sigmas)), 1 / options.levels, atol=0.08)
    # No step from the image to the first level, or from one to the next, is larger than needed.
    assert sigmas[0] / NOMINAL_BLUR < 2
    wanted = np.concatenate([[0, 1e-3, 0.3], np.geomspace(0.5, sigmas[-1] * 1.05, 200)])
    exact = sigmas[-1] * 2 ** (np.arange(1 - len(sigmas), 1) / options.levels)
    clear = np.abs(np.log(wanted[:, None] / exact + 1e-9)).min(axis=1) > 0.06
    expected = np.searchsorted(exact, wanted, "right") - 1 - len(space.fine)
    np.testing.assert_array_equal(space.finest(wanted)[clear], expected[clear])
    assert clear.sum() > 50
    assert space.finest(np.array([1e9]))[0] == options.levels * len(space.octaves) - 1


@given(
    sigma=st.floats(2, 10),
    x=st.floats(0, 1),
    y=st.floats(0, 1),
    bright=st.booleans(),
    respond=st.sampled_from([difference_of_gaussians, hessian_determinant]),
    double=st.booleans(),
)
def test_a_blob_is_found_where_and_as_large_as_it_is(sigma, x, y, bright, respond, double):
    # The smallest scale that has a neighbour on both sides is one level above the first.
    first = 1.6 * (0.5 if double else 1.0)
    if sigma < 1.5 * first:
        sigma += first
    image = blob((160, 176), 84 + x, 75 + y, sigma, 100 if bright else -70, 40 if bright else 200)
    found = extrema_of(image, double, respond)
    strongest = found[np.abs(found[:, 3]).argmax()]
    # A part of the distance of samples, which lie σ / 3.2 to σ / 1.6 apart: a quadratic is all that is fitted to them.
    # At worst, half way between samples and between octaves, it is that far off.
    part = 0.12 if respond is difference_of_gaussians else 0.15
    assert np.hypot(strongest[0] - 84 - x, strongest[1] - 75 - y) < part * max(1, sigma / 1.6)
    # The blob seen by the camera is the scene's, blurred. The determinant of Hessian peaks at the blob's own scale; the
    # difference of levels s and ks peaks where their geometric mean is it, and is named after the lower (Lowe 2004).
    own = np.sqrt(sigma**2 - NOMINAL_BLUR**2)
    expected = own if respond is hessian_determinant else own / 2 ** (1 / 6)
    assert strongest[2] == pytest.approx(expected, rel=0.05)
    sign = 1 if respond is hessian_determinant or not bright else -1
    assert np.sign(strongest[3]) == sign


@pytest.mark.parametrize("sigma", [2.1, 3.1, 5.7])
def test_most_blobs_are_found_to_a_fraction_of_a_pixel(sigma):
    away = []
    for x, y in np.random.default_rng(0).uniform(70, 75, (25, 2)):
        found = extrema_of(blob((144, 144), x, y, sigma))
        strongest = found[np.abs(found[:, 3]).argmax()]
        away.append(np.hypot(strongest[0] - x, strongest[1] - y))
    assert np.median(away) < 0.05


def test_the_response_at_a_blob_is_the_formula_s():
    # A bright Gaussian of variance s gives level peaks A s / (s + v); the difference at a sample is their difference.
    sigma, amplitude = 4.0, 100.0
    found = extrema_of(blob((128, 128), 64, 64, sigma, amplitude))
    strongest = found[np.abs(found[:, 3]).argmax()]
    own = sigma**2 - NOMINAL_BLUR**2
    lower, ratio = own / 2 ** (1 / 3), 2 ** (2 / 3)
    expected = amplitude * sigma**2 * (1 / (own + lower * ratio) - 1 / (own + lower))
    assert strongest[3] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("x", [64.0, 64.25, 64.5, 64.75])
@pytest.mark.parametrize("y", [64.0, 64.5])
@pytest.mark.parametrize("sigma", [2.0, 3.0, 4.7])
def test_an_octave_finds_a_blob_once_wherever_it_lies_between_the_samples(x, y, sigma):
    space = build_scale_space(blob((128, 128), x, y, sigma), ScaleSpaceOptions(double=True))
    counts = []
    for octave in space.octaves:
        found = find_extrema(difference_of_gaussians(octave), 2.0)
        away = np.hypot(found.x * octave.step + octave.offset - x, found.y * octave.step + octave.offset - y)
        counts.append(int((away < 0.5).sum()))
    # Two octaves may both see what lies between them.
    assert max(counts) == 1 and sum(counts) <= 2


def test_several_blobs_of_both_signs_are_all_found():
    generator = np.random.default_rng(5)
    places = np.array([(x, y) for x in range(40, 300, 60) for y in range(40, 240, 60)]) + generator.uniform(
        -4, 4, (20, 2)
    )
    sigmas = generator.uniform(2, 5, len(places))
    image = np.full((280, 320), 128, np.float32)
    for number, ((x, y), sigma) in enumerate(zip(places, sigmas, strict=True)):
        image += blob(image.shape, x, y, sigma, 90 if number % 2 else -90, 0)
    found = extrema_of(image)
    for number, ((x, y), sigma) in enumerate(zip(places, sigmas, strict=True)):
        near = found[np.hypot(found[:, 0] - x, found[:, 1] - y) < 0.3]
        fits = np.abs(np.log(near[:, 2] * 2 ** (1 / 6) / sigma)) < 0.1
        assert (np.sign(near[fits, 3]) == (-1 if number % 2 else 1)).any()


@pytest.mark.parametrize("respond", [difference_of_gaussians, hessian_determinant])
@pytest.mark.parametrize("threshold", [2.0, 0.0])
def test_images_that_show_nothing_give_nothing(respond, threshold):
    flat = np.full((90, 120), 255, np.float32)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert len(extrema_of(flat, True, respond, max(threshold, 1e-3))) == 0
        assert len(extrema_of(np.zeros_like(flat), True, respond, threshold)) == 0


def test_a_plateau_of_the_response_gives_no_extremum():
    flat = np.zeros((40, 40), np.float32)
    flat[15:25, 15:25] = 10
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        # The same in all levels: no level stands out; in one level alone: the top has no place.
        assert len(find_extrema([flat] * 5, 1.0).x) == 0
        found = find_extrema([0 * flat, 0 * flat, flat, 0 * flat, 0 * flat], 1.0)
    assert np.isfinite(found.x).all() and np.isfinite(found.value).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (7, 9), (15, 15), (16, 16), (17, 40), (500, 16), (33, 31)])
@pytest.mark.parametrize("double", [True, False])
def test_tiny_images_are_taken(shape, double):
    image = np.random.default_rng(0).uniform(0, 255, shape).astype(np.float32)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        space = build_scale_space(image, ScaleSpaceOptions(double=double))
        found = extrema_of(image, double)
    assert np.isfinite(found).all()
    assert (len(space.octaves) == 0) == (min(shape) < 16)
    wanted = np.array([0.1, 1.0, 5.0, 80.0])
    for number in space.finest(wanted):
        space.level(int(number))


def test_extrema_do_not_lie_in_the_border():
    image = np.random.default_rng(0).uniform(0, 255, (120, 100)).astype(np.float32)
    space = build_scale_space(image, ScaleSpaceOptions(double=False))
    for octave in space.octaves:
        found = find_extrema(difference_of_gaussians(octave), 1.0, border=9)
        height, width = octave.levels[0].shape
        assert (found.x > 7.4).all() and (found.x < width - 8.4).all()
        assert (found.y > 7.4).all() and (found.y < height - 8.4).all()


def test_extrema_of_a_quadratic_are_exact():
    # Where the response is a quadratic, the refinement's Taylor expansion is the response itself.
    generator = np.random.default_rng(3)
    for _ in range(50):
        place = np.array([3.0, 12.0, 14.0]) + generator.uniform(-0.45, 0.45, 3)
        basis = np.linalg.qr(generator.normal(size=(3, 3)))[0]
        curvature = basis @ np.diag(generator.uniform(0.3, 0.6, 3)) @ basis.T
        at = np.stack(np.meshgrid(np.arange(7), np.arange(26), np.arange(28), indexing="ij"), -1) - place
        response = 200 - np.einsum("...i,ij,...j", at, curvature, at)
        found = find_extrema(list(response.astype(np.float32)), 150.0)
        assert len(found.x) == 1
        np.testing.assert_allclose([found.level[0], found.y[0], found.x[0]], place, atol=1e-3)
        assert found.value[0] == pytest.approx(200, abs=1e-3)
        spatial = curvature[1:, 1:]
        assert found.edge[0] == pytest.approx(np.trace(spatial) ** 2 / np.linalg.det(spatial), rel=1e-3)


def extrema_by_all_neighbours(responses, threshold, border):
    """Places (3, N) as x, y, level: of samples compared with each of their 26 neighbours in turn, maxima first."""
    stack = np.stack(responses)
    _, height, width = stack.shape
    inner = stack[1:-1, border : height - border, border : width - border]
    found = []
    for level in range(inner.shape[0]):
        for sign in (1, -1):
            keep = sign * inner[level] > 0.8 * threshold
            for scale in (-1, 0, 1):
                for down in (-1, 0, 1):
                    for across in (-1, 0, 1):
                        other = sign * np.roll(stack[level + 1 + scale], (-down, -across), (0, 1))
                        other = other[border : height - border, border : width - border]
                        # Of neighbours in one level that tie, the first alone counts.
                        later = scale == 0 and (down, across) >= (0, 0)
                        keep &= (sign * inner[level] >= other) if later else (sign * inner[level] > other)
            y, x = np.nonzero(keep)
            found.append(np.stack([x + border, y + border, np.full(len(x), level + 1)]))
    return np.concatenate(found, axis=1)


def refined_by_formula(responses, at, threshold, border):
    """Extrema (5, N) as x, y, level, value, edge: the quadratic's top near places (3, N), step by step."""
    stack = np.stack(responses).astype(np.float64)
    levels, height, width = stack.shape
    low, high = (
        np.array([[border], [border], [1]]),
        np.array([[width - border - 1], [height - border - 1], [levels - 2]]),
    )
    rows = [np.zeros((8, 0))]
    for _ in range(5):

        def beside(x, y, level, at=at):
            return stack[at[2] + level, at[1] + y, at[0] + x]

        value = beside(0, 0, 0)
        axes = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        ahead, behind = [beside(*axis) for axis in axes], [beside(*(-np.array(axis))) for axis in axes]
        gx, gy, gs = (-0.5 * (after - before) for after, before in zip(ahead, behind, strict=True))
        xx, yy, ss = (after + before - 2 * value for after, before in zip(ahead, behind, strict=True))
        xy = 0.25 * (beside(1, 1, 0) - beside(1, -1, 0) - beside(-1, 1, 0) + beside(-1, -1, 0))
        xs = 0.25 * (beside(1, 0, 1) - beside(1, 0, -1) - beside(-1, 0, 1) + beside(-1, 0, -1))
        ys = 0.25 * (beside(0, 1, 1) - beside(0, 1, -1) - beside(0, -1, 1) + beside(0, -1, -1))
        c_xx, c_xy, c_xs = yy * ss - ys * ys, xs * ys - xy * ss, xy * ys - xs * yy
        c_yy, c_ys, c_ss = xx * ss - xs * xs, xs * xy - xx * ys, xx * yy - xy * xy
        determinant = xx * c_xx + xy * c_xy + xs * c_xs
        top = [c_xx * gx + c_xy * gy + c_xs * gs, c_xy * gx + c_yy * gy + c_ys * gs, c_xs * gx + c_ys * gy + c_ss * gs]
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(np.abs(determinant) < 1e-12, 1e9, np.stack(top) / determinant)
            edge = np.where(c_ss > 0, (xx + yy) ** 2 / c_ss, np.inf)
        moved = np.clip(at + np.where(np.abs(shift) > 0.6, np.sign(shift), 0).astype(np.int64), low, high)
        moving = (moved != at).any(axis=0)
        done = ~moving & (np.abs(shift) < 1.5).all(axis=0)
        peak = value - 0.5 * (gx * shift[0] + gy * shift[1] + gs * shift[2])
        rows.append(np.concatenate([at + shift, [peak], [edge], at])[:, done])
        at = moved[:, moving]
    found = np.concatenate(rows, axis=1)
    found = found[:, np.abs(found[3]) >= threshold]
    _, first = np.unique(found[5:], axis=1, return_index=True)
    return found[:5, np.sort(first)]


def assert_extrema(found, expected):
    for name, row in zip(("x", "y", "level", "value", "edge"), expected, strict=True):
        np.testing.assert_array_equal(getattr(found, name), row)


@given(
    shape=st.tuples(st.integers(13, 60), st.integers(13, 400)),
    levels=st.integers(3, 6),
    steps=st.sampled_from([0.0, 0.5, 4.0]),
    border=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_the_extrema_are_those_that_stand_out_among_all_their_neighbours(shape, levels, steps, border, seed):
    generator = np.random.default_rng(seed)
    noise = [cv2.GaussianBlur(one, (0, 0), 1.2) for one in generator.normal(0, 30, (levels, *shape)).astype(np.float32)]
    responses = [np.float32(steps) * np.round(one / np.float32(steps)) if steps else one for one in noise]
    expected = extrema_by_all_neighbours(responses, 2.0, border)
    refined = refined_by_formula(responses, expected, 2.0, border)
    assert_extrema(find_extrema(responses, 2.0, border), refined)
    # The same where they are passed as levels that have them as differences: sums of what has few digits are exact.
    if steps:
        sums = np.cumsum([np.zeros(shape), *responses], axis=0).astype(np.float32)
        assert_extrema(find_extrema(sums, 2.0, border, differences=True), refined)
    room = (shape[0] - 2 * border) * (shape[1] - 2 * border)
    assert expected.shape[1] > 0 or room < 500 or steps


@pytest.mark.parametrize("double", [True, False])
def test_differences_that_are_taken_on_the_way_are_those_of_the_detector(double):
    noise = np.random.default_rng(8).uniform(0, 255, (150, 203)).astype(np.float32)
    space = build_scale_space(cv2.GaussianBlur(noise, (0, 0), 1.0), ScaleSpaceOptions(double=double))
    numbers = []
    for octave in space.octaves:
        responses = difference_of_gaussians(octave)
        expected = refined_by_formula(responses, extrema_by_all_neighbours(responses, 1.0, 5), 1.0, 5)
        assert_extrema(find_extrema(octave.levels, 1.0, differences=True), expected)
        assert_extrema(find_extrema(responses, 1.0), expected)
        numbers.append(expected.shape[1])
    assert max(numbers) > 50
