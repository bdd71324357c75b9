"""G- and T-blocks compared with what their definitions give."""

import numpy as np
import pytest
from scipy import ndimage

from retrieval.descriptors.blocks.parameters import check_parameters, defaults
from retrieval.descriptors.blocks.transforms import (
    TRANSFORMS,
    Transform,
    line_operator,
    quadrature_pair,
    rectified,
    transform_dim,
    transform_parameters,
)
from tests.support.learning.learnt_models import textures

SIZE = 32
STEERABLE = {"T3g": (2, 4), "T3h": (4, 4), "T3i": (2, 8), "T3j": (4, 8)}


def make(name, size=SIZE, **changes):
    parameters = defaults(parameter.scaled(size) for parameter in transform_parameters(name))
    return Transform(name, size, parameters | changes)


def filter_at(order, odd, angle, x, y):
    """A filter of Freeman and Adelson turned by an angle, by its polynomial along the turned axes."""
    u, v = x * np.cos(angle) + y * np.sin(angle), -x * np.sin(angle) + y * np.cos(angle)
    polynomial = {
        (2, False): 0.9213 * (2 * u**2 - 1),
        (2, True): 0.9780 * (-2.254 * u + u**3),
        (4, False): 1.246 * (0.75 - 3 * u**2 + u**4),
        (4, True): 0.3975 * (7.189 * u - 7.501 * u**3 + u**5),
    }[order, odd]
    return polynomial * np.exp(-(u**2) - v**2)


class TestSteerableFilters:
    @pytest.mark.parametrize("order", [2, 4])
    @pytest.mark.parametrize("odd", [False, True])
    @pytest.mark.parametrize("angle", [0, 0.3, np.pi / 4, 1.3, np.pi / 2, 2.5])
    def test_the_basis_adds_up_to_the_turned_filter(self, order, odd, angle):
        basis = quadrature_pair(order)[odd]
        spacing, taps = (0.67, 4) if order == 2 else (0.5, 6)
        axis = spacing * np.arange(-taps, taps + 1)
        assert all(len(one) == 2 * taps + 1 for one in (*basis.across, *basis.down))
        parts = zip(basis.weights(angle), basis.across, basis.down, strict=True)
        found = sum(weight * np.outer(down, across) for weight, across, down in parts)
        x, y = np.meshgrid(axis, axis)
        np.testing.assert_allclose(found, filter_at(order, odd, angle, x, y), atol=1e-3)

    def test_there_are_no_more_separable_filters_than_needed(self):
        counts = [[len(basis.across) for basis in quadrature_pair(order)] for order in (2, 4)]
        assert counts == [[3, 4], [5, 8]]

    @pytest.mark.parametrize("order", [2, 4])
    def test_neither_sees_what_does_not_vary(self, order):
        for basis in quadrature_pair(order):
            for across, down in zip(basis.across, basis.down, strict=True):
                assert abs(across.sum() * down.sum()) < 1e-12

    @pytest.mark.parametrize("order", [2, 4])
    def test_the_pair_s_energy_does_not_depend_on_the_phase(self, order):
        spacing = {2: 0.67, 4: 0.5}[order]
        even, odd = quadrature_pair(order)
        axis = spacing * (np.arange(len(even.across[0])) - len(even.across[0]) // 2)
        frequency = np.sqrt(2 * order) * 0.9  # near the peak of u^order exp(-u²)
        energies = []
        for phase in np.linspace(0, 2 * np.pi, 12, endpoint=False):
            wave = np.cos(frequency * axis + phase)
            energies.append((even.across[0] @ wave) ** 2 + (odd.across[0] @ wave) ** 2)
        assert max(energies) / min(energies) < 1.2  # the published fits are no better

    @pytest.mark.parametrize("name", STEERABLE)
    @pytest.mark.parametrize("turn", [0.0, 0.4, 1.1, 2.0, 2.9])
    def test_a_turned_edge_is_answered_as_the_turned_filter_answers(self, name, turn):
        """At each orientation, the response to an edge is the analytic filter's, summed over its taps."""
        order, orientations = STEERABLE[name]
        spacing, taps = (0.67, 4) if order == 2 else (0.5, 6)
        y, x = np.mgrid[:SIZE, :SIZE] - SIZE // 2
        patch = (100 * np.tanh((np.cos(turn) * x + np.sin(turn) * y + 0.4) / 3)).astype(np.float32)
        transform = Transform(name, SIZE, {"smoothing": 1e-3})
        found = transform(patch[None])[:, 0].reshape(4, orientations, SIZE, SIZE)[:, :, SIZE // 2, SIZE // 2]
        place = slice(SIZE // 2 - taps, SIZE // 2 + taps + 1)
        axis = spacing * np.arange(-taps, taps + 1)
        u, v = np.meshgrid(axis, axis)
        for number in range(orientations):
            angle = np.pi * number / orientations
            even, odd = (
                float((filter_at(order, one, angle, u, v) * patch[place, place]).sum()) for one in (False, True)
            )
            expected = [max(even, 0), max(-even, 0), max(odd, 0), max(-odd, 0)]
            np.testing.assert_allclose(found[:, number], expected, atol=0.01 * np.abs(patch).sum() ** 0.5)

    def test_the_strongest_orientation_turns_with_the_pattern(self):
        y, x = np.mgrid[:SIZE, :SIZE] - (SIZE - 1) / 2
        transform = make("T3j", smoothing=1.0)
        for number in range(8):
            turn = np.pi * number / 8
            wave = 50 * np.cos(0.9 * (np.cos(turn) * x + np.sin(turn) * y))
            energy = (transform(wave[None].astype(np.float32)) ** 2).reshape(4, 8, SIZE, SIZE)
            assert energy[:, :, 8:-8, 8:-8].sum(axis=(0, 2, 3)).argmax() == number


class TestLineOperator:
    @pytest.mark.parametrize("margin", [0, 2])
    def test_smoothing_is_that_of_an_independent_filter(self, margin):
        line = textures(1, 40)[0, 7].astype(np.float64)
        expected = ndimage.gaussian_filter1d(np.pad(line, 20, mode="edge"), 2.0)[20 - margin : 60 + margin]
        np.testing.assert_allclose(line_operator(40, 2.0, margin=margin) @ line, expected, atol=2e-3)

    def test_filtering_follows_smoothing(self):
        line, taps = textures(1, 40)[0, 3].astype(np.float64), np.array([-1.0, 0.5, 2.0])
        smooth = ndimage.gaussian_filter1d(np.pad(line, 20, mode="edge"), 1.5)
        expected = ndimage.correlate1d(smooth, taps)[20:60]
        np.testing.assert_allclose(line_operator(40, 1.5, taps) @ line, expected, atol=5e-3)

    def test_without_smoothing_a_line_stays_as_it_is(self):
        np.testing.assert_array_equal(line_operator(9, 0.0), np.eye(9))


class TestOthers:
    def test_angle_quantised_gradients_keep_the_gradient_s_magnitude(self):
        patches = textures(3, SIZE)
        smooth = ndimage.gaussian_filter(np.pad(patches, ((0, 0), (20, 20), (20, 20)), mode="edge"), (0, 1.5, 1.5))
        down, across = (np.gradient(smooth, axis=axis)[:, 20:-20, 20:-20] * 2 for axis in (1, 2))
        magnitude = np.hypot(across, down).reshape(3, -1)
        for name, number in (("T1a", 4), ("T1b", 8), ("T1c", 16)):
            found = make(name, smoothing=1.5)(patches)
            assert found.shape == (number, 3, SIZE**2)
            np.testing.assert_allclose(found.sum(axis=0), magnitude, rtol=2e-3, atol=2e-2)
            assert np.count_nonzero(found > 1e-3 * magnitude, axis=0).max() <= 2

    def test_rectified_gradients_are_their_definition(self):
        patches = textures(3, SIZE)
        across, down = make("gradients")(patches)
        a, b = (across + down) / 2**0.5, (down - across) / 2**0.5
        for name, parts in (("T2a", (across, down)), ("T2b", (across, down, a, b))):
            found = make(name)(patches)
            expected = [np.maximum(part, 0) for part in parts] + [np.maximum(-part, 0) for part in parts]
            np.testing.assert_allclose(found, expected, atol=1e-3)

    def test_differences_of_gaussians_are_their_definition(self):
        patches = textures(3, SIZE)
        wide = np.pad(patches, ((0, 0), (40, 40), (40, 40)), mode="edge").astype(np.float64)
        found = make("T4", smoothing=1.2, second_centre=2.5)(patches).reshape(4, 3, SIZE, SIZE)
        for row, centre in enumerate((1.2, 3.0)):
            inner, outer = (ndimage.gaussian_filter(wide, (0, width, width)) for width in (centre, 1.4 * centre))
            expected = (inner - outer)[:, 40:-40, 40:-40]
            np.testing.assert_allclose(found[row] - found[row + 2], expected, atol=0.03)
            assert (np.minimum(found[row], found[row + 2]) == 0).all()

    def test_pixels_are_smoothed_and_their_mean_is_taken_off(self):
        found = make("pixels", smoothing=1.0)(textures(3, SIZE))[0]
        np.testing.assert_allclose(found.mean(axis=1), 0, atol=1e-3)
        assert found.std() > 10


@pytest.mark.parametrize("name", TRANSFORMS)
class TestEvery:
    def test_shape_and_sign(self, name):
        found = make(name)(textures(5, SIZE))
        assert found.shape == (transform_dim(name), 5, SIZE**2) and found.dtype == np.float32
        assert np.isfinite(found).all() and found.std() > 0
        assert name in ("pixels", "gradients") or (found >= 0).all()

    def test_gain_and_offset(self, name):
        patches = textures(4, SIZE)
        transform = make(name)
        expected = transform(patches)
        np.testing.assert_allclose(transform(0.5 * patches + 80), 0.5 * expected, atol=2e-3 * expected.max())

    def test_a_flat_patch_has_no_response_at_all(self, name):
        flat = np.full((2, SIZE, SIZE), 7.3, np.float32)
        assert not make(name)(flat).any()

    def test_a_quarter_turn_moves_the_energy_with_the_patch(self, name):
        patches = textures(4, SIZE)
        transform = make(name)
        energy = (transform(patches) ** 2).sum(axis=0).reshape(4, SIZE, SIZE)
        turned = (transform(np.ascontiguousarray(np.rot90(patches, axes=(1, 2)))) ** 2).sum(axis=0)
        expected = np.rot90(energy, axes=(1, 2)).reshape(4, -1)
        # An angle is computed to a third of a degree, which matters where its channels are squared.
        np.testing.assert_allclose(turned, expected, atol=1e-2 * energy.max())


def test_rectified_parts_make_up_what_they_part():
    values = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    parts = rectified(values)
    np.testing.assert_array_equal(parts[:3] - parts[3:], values)
    np.testing.assert_allclose(parts[:3] + parts[3:], np.abs(values), atol=1e-7)


@pytest.mark.parametrize(
    "change",
    [
        {"smoothing": 0},
        {"smoothing": -3.0},
        {"smoothing": float("nan")},
        {"smoothing": True},
        {"smoothing": "3"},
        {"smoothing": 10**400},
        {"smoothing": 0.04},  # learning keeps it from 0.5 to 8
        {"smoothing": 81.0},
        {"second_centre": 0.1},
        {"second_centre": 2000.0},
        {"other": 1.0},
    ],
)
def test_what_are_no_parameters_is_refused(change):
    known = transform_parameters("T4")
    given = {"second_centre": 2.0, "smoothing": 3.0}
    check_parameters(given, known)
    with pytest.raises(ValueError, match="its "):
        check_parameters(given | change, known)
    with pytest.raises(ValueError, match="should be smoothing, second_centre"):
        check_parameters({"smoothing": 3.0}, known)


@pytest.mark.parametrize("size", [8, 64, 256])
def test_limits_go_by_the_size_of_the_patch(size):
    known = [parameter.scaled(size) for parameter in transform_parameters("T2a")]
    check_parameters({"smoothing": 80 * size / 64}, known)
    with pytest.raises(ValueError, match="its smoothing"):
        check_parameters({"smoothing": 81 * size / 64}, known)
