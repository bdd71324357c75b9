"""Responses of boxes compared with their definition, one sample at a time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.descriptors.boxes import ResponseOptions, integral_images, responses
from tests.support.learning.learnt_models import textures

SIZE = 13
OPTIONS = ResponseOptions(patch_size=SIZE, smoothing=0)


def literal_response(patch, box, orientation, options):
    """φ of equation 10: gradient energy along an orientation over that along all, summed over the box's samples."""
    patch = np.asarray(patch, np.float64)
    padded = np.pad(patch, 1, mode="edge")
    gradient = np.stack([padded[1:-1, 2:] - padded[1:-1, :-2], padded[2:, 1:-1] - padded[:-2, 1:-1]])
    contrast = (gradient**2).sum(axis=0).mean() + 0.01

    def energy(x, y, k):
        angle = 2 * np.pi * k / options.orientations
        vector = gradient[:, y, x]
        dot = np.cos(angle) * vector[0] + np.sin(angle) * vector[1]
        return max(dot, 0)

    x0, y0, x1, y1 = box
    above = below = 0.0
    for y in range(y0, y1):
        for x in range(x0, x1):
            above += energy(x, y, orientation)
            below += sum(energy(x, y, k) for k in range(options.orientations))
            below += options.floor * options.orientations / np.pi * np.sqrt(contrast)
    return above / below


boxes_within = st.tuples(
    *(st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE)).filter(lambda ends: ends[0] < ends[1]) for _ in "xy")
).map(lambda sides: (sides[0][0], sides[1][0], sides[0][1], sides[1][1]))


@given(
    box=boxes_within,
    orientations=st.sampled_from([2, 4, 8, 24]),
    seed=st.integers(0, 5),
    data=st.data(),
)
def test_a_response_is_what_its_definition_says(box, orientations, seed, data):
    orientation = data.draw(st.integers(0, orientations - 1))
    options = replace(OPTIONS, orientations=orientations)
    patch = textures(1, SIZE, seed)
    found = responses(integral_images(patch, options), np.array([box]), np.array([orientation]))
    assert found[0, 0] == pytest.approx(literal_response(patch[0], box, orientation, options), rel=1e-4, abs=1e-6)


@given(box=boxes_within)
def test_grey_values_are_those_of_a_patch_of_mean_0_and_deviation_1(box):
    patch = textures(1, SIZE)[0]
    options = replace(OPTIONS, family="intensity")
    x0, y0, x1, y1 = box
    expected = ((patch - patch.mean()) / patch.std())[y0:y1, x0:x1].mean()
    found = responses(integral_images(patch[None], options), np.array([box]), np.array([0]))[0, 0]
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("angle", np.radians([0, 15, 90, 200, 345]))
def test_a_ramp_has_the_energy_of_a_cosine(angle):
    """All gradients along one angle: the energy along e is the cosine between them, or nothing beyond a right angle."""
    y, x = np.mgrid[:SIZE, :SIZE]
    ramp = (3 * (np.cos(angle) * x + np.sin(angle) * y)).astype(np.float32)[None]
    inside = np.array([[1, 1, SIZE - 1, SIZE - 1]]).repeat(24, axis=0)  # but for the border, where it ends
    found = responses(integral_images(ramp, replace(OPTIONS, floor=1e-3)), inside, np.arange(24))[0]
    lobes = np.maximum(np.cos(2 * np.pi * np.arange(24) / 24 - angle), 0)
    np.testing.assert_allclose(found, lobes / lobes.sum(), rtol=5e-3, atol=1e-5)


def test_a_quarter_turn_turns_boxes_and_orientations():
    patches = textures(20, SIZE, seed=4)
    turned = np.ascontiguousarray(np.rot90(patches, -1, axes=(1, 2)))
    rng = np.random.default_rng(0)
    corners = np.sort(rng.permuted(np.tile(np.arange(SIZE + 1), (50, 2, 1)), axis=2)[:, :, :2], axis=2)
    boxes = np.concatenate([corners[:, :, 0], corners[:, :, 1]], axis=1)
    orientations = rng.integers(0, 24, 50)
    x0, y0, x1, y1 = boxes.T
    # Clockwise on the screen: what was at (x, y) is at (S - 1 - y, x), and what pointed along x points along y.
    after = np.stack([SIZE - y1, x0, SIZE - y0, x1], axis=1)
    options = replace(OPTIONS, smoothing=1.0)
    np.testing.assert_allclose(
        responses(integral_images(turned, options), after, (orientations + 6) % 24),
        responses(integral_images(patches, options), boxes, orientations),
        atol=1e-5,
    )


@pytest.mark.parametrize("family", ["gradient", "intensity"])
@pytest.mark.parametrize(("gain", "offset"), [(0.2, 0), (1, 40), (0.5, 100), (2.0, -30)])
def test_an_affine_change_of_grey_values_leaves_responses_as_they_are(family, gain, offset):
    options = ResponseOptions(family)
    patches = textures(50, 31)
    rng = np.random.default_rng(1)
    corner = rng.integers(0, 20, (80, 2))
    boxes = np.concatenate([corner, corner + rng.integers(3, 11, (80, 2))], axis=1)
    channels = rng.integers(0, options.channels, 80)
    before, after = (
        responses(integral_images(some.astype(np.float32), options), boxes, channels)
        for some in (patches, gain * patches + offset)
    )
    np.testing.assert_allclose(after, before, atol=1e-3 * np.abs(before).max())


def test_a_box_without_gradient_has_next_to_no_response():
    """Half of the patch is flat but for a thousandth of a grey value, whose direction must not count."""
    patch = textures(1, 31)
    patch[:, :, :15] = 80 + 1e-3 * textures(1, 31, seed=3)[:, :, :15]
    box = np.array([[0, 0, 10, 31]]).repeat(24, axis=0)
    assert responses(integral_images(patch, ResponseOptions()), box, np.arange(24)).max() < 0.02
    flat = np.full((3, 31, 31), 7.3, np.float32)
    with np.errstate(all="raise", under="ignore"):
        for family in ("gradient", "intensity"):
            options = ResponseOptions(family)
            found = responses(integral_images(flat, options), box[:1], np.array([0]))
            np.testing.assert_allclose(found, 0, atol=1e-3)
