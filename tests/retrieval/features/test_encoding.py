"""What a segment keeps of geometry is the geometry, to a stated precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.features.encoding import decode_geometry, encode_geometry, frames_of
from retrieval.features.extraction import Features
from retrieval.regions.geometry import ellipses_of_shapes, rotations


@st.composite
def photos(draw):
    """Features of a photo: any position in it, radii from half a pixel to half the photo, axes at most 1:5."""
    side = draw(st.sampled_from([16, 640, 1024, 4000, 12_000]))
    number = draw(st.integers(0, 30))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    centres = generator.uniform(-0.5, side - 0.5, (number, 2))
    stretch = np.exp(generator.uniform(0, np.log(5) / 2, number))
    radii = np.exp(generator.uniform(np.log(0.5), np.log(side / 2), number))
    diagonal = np.zeros((number, 2, 2))
    diagonal[:, 0, 0], diagonal[:, 1, 1] = radii * stretch, radii / stretch
    shapes = rotations(generator.uniform(-3, 3, number)) @ diagonal
    angles = generator.uniform(-np.pi, np.pi, number).astype(np.float32)
    return Features(ellipses_of_shapes(centres, shapes), angles, np.zeros((number, 4), np.float16)), float(side)


def upright(features):
    return Features(features.ellipses, np.zeros(len(features), np.float32), features.descriptors)


@settings(deadline=None)
@given(photo=photos(), turned=st.booleans())
def test_geometry_survives_a_segment(photo, turned):
    features, side = photo
    if not turned:
        features = upright(features)
    columns = encode_geometry(features, side, upright=not turned)
    assert sum(column[:1].nbytes for column in columns.values()) <= (12 if turned else 10) or not len(features)
    rows = np.random.default_rng(0).permutation(len(features))
    found = decode_geometry(columns, rows)
    expected = frames_of(features, side).at(rows)
    # Half a step, and float32.
    np.testing.assert_allclose(found.centres, expected.centres, atol=0.5 / 65_535 + 1e-7)
    # float16 holds a logarithm below 16 to 2⁻⁸ (0.3% of the length), a shear below 8 to 2⁻⁹, an angle below π to 2⁻¹⁰.
    across = np.linalg.norm(expected.linear, axis=1, keepdims=True).max(axis=2, keepdims=True)
    assert (np.abs(found.linear - expected.linear) <= (0.005 if not turned else 0.007) * across).all()
    areas, expected_areas = np.linalg.det(found.linear), np.linalg.det(expected.linear)
    np.testing.assert_allclose(areas, expected_areas, rtol=0.0065)
    assert found.centres.dtype == np.float32 and found.linear.dtype == np.float32


@settings(deadline=None)
@given(photo=photos())
def test_the_diagonal_is_kept_to_half_a_percent(photo):
    features, side = upright(photo[0]), photo[1]
    found = decode_geometry(encode_geometry(features, side, upright=True), np.arange(len(features)))
    expected = frames_of(features, side)
    for axis in (0, 1):
        np.testing.assert_allclose(found.linear[:, axis, axis], expected.linear[:, axis, axis], rtol=0.005)
    assert (found.linear[:, 0, 1] == 0).all()


def test_frames_are_in_units_of_the_longer_side_with_the_photo_s_corner_at_zero():
    features = Features(
        np.array([[-0.5, 99.5, 0.01, 0, 0.0025]], np.float32), np.zeros(1, np.float32), np.zeros((1, 4))
    )
    frames = frames_of(features, 200)
    np.testing.assert_allclose(frames.centres, [[0, 0.5]], atol=1e-7)
    np.testing.assert_allclose(frames.linear, [[[0.05, 0], [0, 0.1]]], atol=1e-7)


def test_angles_turn_frames_within_their_ellipse():
    features = Features(np.array([[50, 50, 0.01, 0, 0.04]], np.float32), np.array([0.5], np.float32), np.zeros((1, 4)))
    found = decode_geometry(encode_geometry(features, 100, upright=False), np.array([0])).linear[0]
    np.testing.assert_allclose(found @ found.T, np.diag([0.1, 0.05]) ** 2, rtol=0.01, atol=2e-5)
    expected = np.diag([0.1, 0.05]) @ rotations(np.array([0.5]))[0]
    np.testing.assert_allclose(found, expected, atol=5e-4)


def test_positions_outside_the_photo_go_to_its_border():
    ellipses = np.array([[-3, 120, 1, 0, 1], [100.2, -0.7, 1, 0, 1]], np.float32)
    features = Features(ellipses, np.zeros(2, np.float32), np.zeros((2, 4)))
    found = decode_geometry(encode_geometry(features, 100, upright=True), np.arange(2))
    np.testing.assert_allclose(found.centres, [[0, 1], [1, 0]])


@pytest.mark.parametrize("turn", [0.0, 0.8, -2.5])
def test_a_photo_taken_to_be_turned_has_its_frames_turned(turn):
    generator = np.random.default_rng(0)
    shapes = generator.normal(size=(20, 2, 2)) + 3 * np.eye(2)
    rotation = rotations(np.array([turn]))[0]
    centres = generator.uniform(0, 100, (20, 2))
    features, turned = (
        Features(ellipses_of_shapes(centres, matrix @ shapes), np.zeros(20, np.float32), np.zeros((20, 4)))
        for matrix in (np.eye(2), rotation)
    )
    np.testing.assert_allclose(
        frames_of(turned, 100, turn).linear, rotation @ frames_of(features, 100).linear, atol=1e-5
    )
