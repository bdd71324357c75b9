"""What a segment keeps of geometry is the geometry, to a stated precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.features.encoding import (
    CENTRE_ERROR,
    FRAME_ERROR,
    as_encoded_now,
    decode_centres,
    decode_geometry,
    encode_frames,
    encode_geometry,
    frames_of,
    misshapen_columns,
)
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
    assert sum(column[:1].nbytes for column in columns.values()) <= (7 if turned else 5)
    rows = np.random.default_rng(0).permutation(len(features))
    found = decode_geometry(columns, rows)
    expected = frames_of(features, side).at(rows)
    assert (np.abs(found.centres - expected.centres) <= CENTRE_ERROR).all()
    largest = np.abs(expected.linear).max(axis=(1, 2), keepdims=True)
    # An angle below π is kept to 2⁻¹⁰, and turns axes of which one is five times as long as the other.
    assert (
        np.abs(found.linear - expected.linear) <= (FRAME_ERROR if not turned else 1.5 * FRAME_ERROR) * largest
    ).all()
    areas, expected_areas = np.linalg.det(found.linear), np.linalg.det(expected.linear)
    # Half a step of the scale's logarithm, twice: an area is its square.
    np.testing.assert_allclose(np.log2(areas), np.log2(expected_areas), atol=15 / 127 + 1e-4)
    assert found.centres.dtype == np.float32 and found.linear.dtype == np.float32
    # What was decoded is kept without loss.
    assert turned or (encode_frames(found) == columns["geometry"][rows]).all()


@settings(deadline=None)
@given(photo=photos())
def test_the_diagonal_is_kept_to_some_percent(photo):
    features, side = upright(photo[0]), photo[1]
    found = decode_geometry(encode_geometry(features, side, upright=True), np.arange(len(features)))
    expected = frames_of(features, side)
    for axis in (0, 1):
        np.testing.assert_allclose(found.linear[:, axis, axis], expected.linear[:, axis, axis], rtol=FRAME_ERROR)
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
    untuned = decode_geometry(encode_geometry(features, 100, upright=True), np.array([0])).linear[0]
    np.testing.assert_allclose(found @ found.T, untuned @ untuned.T, rtol=1e-5, atol=1e-8)
    expected = np.diag([0.1, 0.05]) @ rotations(np.array([0.5]))[0]
    np.testing.assert_allclose(found, expected, atol=0.1 * FRAME_ERROR)


def test_a_known_feature_is_packed_by_the_documented_bits():
    """Independently: by Python's own integers, from the lowest bits on."""
    # A circle of radius 1/8 of the side, in the middle of a square photo's left border.
    features = Features(
        np.array([[-0.5, 99.5, 1 / 625, 0, 1 / 625]], np.float32), np.zeros(1, np.float32), np.zeros((1, 4))
    )
    (packed,) = encode_geometry(features, 200, upright=True)["geometry"]
    number = int.from_bytes(packed.tobytes(), "little")
    x, y, scale, stretch, shear = (
        number & 2047,
        number >> 11 & 2047,
        number >> 22 & 127,
        number >> 29 & 31,
        number >> 34,
    )
    assert (x, y) == (0, round(2047 / 2)) and scale == round((15 - 3) / 15 * 127)
    assert stretch in (15, 16) and shear in (31, 32)  # nothing, between two steps


def test_columns_of_earlier_versions_are_read_and_brought_up_to_date():
    generator = np.random.default_rng(3)
    columns = {
        "position": generator.integers(0, 65_536, (50, 2)).astype(np.uint16),
        "shape": np.stack(
            [generator.uniform(-9, -3, 50), generator.uniform(-0.5, 0.5, 50), generator.uniform(-9, -3, 50)], axis=1
        ).astype(np.float16),
        "angle": generator.uniform(-3, 3, 50).astype(np.float16),
    }
    columns["shape"][:, 2] = columns["shape"][:, 0] + generator.uniform(-1, 1, 50)
    rows = generator.permutation(50)
    found = decode_geometry(columns, rows)
    first, shear, second = columns["shape"][rows].astype(np.float64).T
    linear = np.zeros((50, 2, 2))
    linear[:, 0, 0], linear[:, 1, 0], linear[:, 1, 1] = 2**first, shear * 2**second, 2**second
    np.testing.assert_allclose(found.centres, columns["position"][rows] / 65_535, rtol=1e-6)
    np.testing.assert_array_equal(decode_centres(columns, rows), found.centres)
    np.testing.assert_allclose(
        found.linear, linear @ rotations(columns["angle"][rows].astype(float)), rtol=1e-4, atol=1e-8
    )
    now = as_encoded_now({**columns, "descriptor": np.arange(50)})
    assert list(now) == ["geometry", "angle", "descriptor"] and as_encoded_now(now) is now
    again = decode_geometry(now, rows)
    np.testing.assert_array_equal(decode_centres(now, rows), again.centres)
    assert np.abs(again.centres - found.centres).max() <= CENTRE_ERROR
    assert (
        np.abs(again.linear - found.linear).max(axis=(1, 2))
        <= 1.5 * FRAME_ERROR * np.abs(found.linear).max(axis=(1, 2))
    ).all()


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


def _columns() -> dict[str, np.ndarray]:
    return {
        "geometry": np.zeros((3, 5), np.uint8),
        "angle": np.zeros(3, np.float16),
        "descriptor": np.zeros((3, 128), np.float16),
        "other": np.zeros((3, 1, 2)),
    }


def test_columns_are_of_the_shape_and_type_that_is_written() -> None:
    assert list(misshapen_columns(_columns())) == []
    earlier = {"position": np.zeros((3, 2), np.uint16), "shape": np.zeros((3, 3), np.float16)}
    assert list(misshapen_columns(earlier)) == []
    assert list(misshapen_columns({})) == ["position", "shape"]
    for name, change in (
        ("geometry", lambda column: column[:, :1]),
        ("geometry", lambda column: column.astype(np.uint16)),
        ("geometry", lambda column: column[:, 0]),
        ("angle", lambda column: column[:, None]),
        ("angle", lambda column: column.astype(np.float64)),
        ("descriptor", lambda column: column[:, 0]),
        ("descriptor", lambda column: column.astype(np.complex64)),
    ):
        columns = _columns()
        assert list(misshapen_columns(columns | {name: change(columns[name])})) == [name]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_angles_that_are_no_numbers_are_refused(value: float) -> None:
    columns = {"geometry": np.full((3, 5), 77, np.uint8), "angle": np.array([0, value, 0], np.float16)}
    decode_geometry(columns, np.array([0, 2]))
    with pytest.raises(CairnError, match=r"no numbers: run Collection\.check, then cairn repair"):
        decode_geometry(columns, np.arange(3))
