"""Features of other programs as a collection keeps them: places, turns, and distances between descriptors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from index.errors import CairnError
from retrieval.descriptors.foreign import AS_THEY_ARE, BITS, BYTES, UNIT, ForeignDescriptor, label_of, parse_foreign
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.encoding import frames_of
from retrieval.features.options import FeatureOptions
from retrieval.foreign.contract import AFFINE, ORIENTED, POINTS, TURNED, Entry, Unfit
from retrieval.foreign.converting import as_stored, described_as, features_of, placed, rows_of
from retrieval.foreign.extractor import DescribedPhoto, ForeignExtractor
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.geometry import rotations
from retrieval.regions.options import RegionOptions

RNG = np.random.default_rng(2)


def entry(number: int, rows: np.ndarray, geometry: str = AFFINE) -> Entry:
    linear = RNG.uniform(1, 4, (number, 1, 1)) * rotations(RNG.uniform(-3, 3, number)) @ np.array([[1.5, 0.2], [0, 1]])
    return Entry(geometry, RNG.uniform(0, 40, (number, 2)), None if geometry == POINTS else linear, rows)


def test_frames_come_back_as_they_were_given() -> None:
    given = entry(50, RNG.normal(size=(50, 8)))
    features = features_of(given, ForeignDescriptor("net", 8), AFFINE, 60, 50)
    frames = frames_of(features, 60.0)
    np.testing.assert_allclose(frames.centres * 60 - 0.5, given.centres, atol=1e-4)
    np.testing.assert_allclose(frames.linear * 60, given.linear, atol=1e-3)
    points = features_of(entry(5, np.ones((5, 8)), POINTS), ForeignDescriptor("net", 8), POINTS, 64, 50)
    np.testing.assert_allclose(frames_of(points, 64.0).linear, np.broadcast_to(np.eye(2) / 64, (5, 2, 2)), rtol=1e-5)
    few = features_of(replace(given, scores=np.arange(50.0)), ForeignDescriptor("net", 8), AFFINE, 60, 50, most=10)
    assert len(few) == 10
    assert len(features_of(entry(0, np.zeros((0, 0))), ForeignDescriptor("net", 8), POINTS, 9, 9).descriptors) == 0


def test_distances_are_those_that_the_descriptor_is_for() -> None:
    floats = RNG.normal(size=(20, 32)).astype(np.float32) * 7
    unit = rows_of(floats, ForeignDescriptor("net", 32)).astype(np.float64)
    np.testing.assert_allclose(unit, floats / np.linalg.norm(floats, axis=1, keepdims=True), atol=1e-3)
    packed = RNG.integers(0, 256, (20, 32)).astype(np.uint8)
    bits = rows_of(packed, ForeignDescriptor("orb", 256, BITS)).astype(np.float64)
    hamming = np.unpackbits(packed[:, None] ^ packed[None], axis=2).sum(axis=2)
    np.testing.assert_array_equal(((bits[:, None] - bits[None]) ** 2).sum(axis=2), 4 * hamming)
    np.testing.assert_array_equal(rows_of(packed.astype(np.float32), ForeignDescriptor("sift", 32, BYTES)), packed)
    np.testing.assert_allclose(rows_of(floats, ForeignDescriptor("net", 32, AS_THEY_ARE)), floats, rtol=1e-3)
    assert not rows_of(np.zeros((2, 4)), ForeignDescriptor("net", 4)).any()  # a patch without contrast


def test_what_descriptors_are_is_told_from_the_first() -> None:
    floats = RNG.normal(size=(3, 32)).astype(np.float32)
    packed = RNG.integers(0, 256, (3, 32)).astype(np.uint8)
    wide = RNG.integers(0, 256, (3, 128)).astype(np.uint8)
    cases: list[tuple[np.ndarray, str | None, bool, str]] = [
        (floats, None, False, "foreign:net:32"),
        (floats, AS_THEY_ARE, False, "foreign:net:32:as-they-are"),
        (wide, None, False, "foreign:net:128:bytes"),
        (wide.astype(np.float32), None, False, "foreign:net:128:bytes"),
        (wide.astype(np.float32), UNIT, False, "foreign:net:128"),
        (packed, None, True, "foreign:net:256:bits"),
        (packed, BITS, False, "foreign:net:256:bits"),
        (packed, AS_THEY_ARE, False, "foreign:net:32:bytes"),
        (packed > 99, None, False, "foreign:net:32:bits"),
    ]
    for rows, values, is_binary, name in cases:
        found = described_as(replace(entry(3, rows), is_binary=is_binary), "net", values)
        assert found is not None and found.name == name
        again = parse_foreign(name)
        assert (again.name, again.fingerprint, again.dim) == (found.name, found.fingerprint, found.dim)
        assert find_descriptor(name).fingerprint == again.fingerprint
        with pytest.raises(CairnError, match="another program's"):
            again.describe(np.zeros((1, 1, 1), np.float32))
    assert described_as(entry(0, floats[:0]), "net", None) is None
    assert described_as(entry(3, floats * 0), "net", None) is None
    assert label_of("feats-superpoint n4096/ä") == "feats-superpoint-n4096"
    for rows, values, reason in (
        (packed, None, "binary or as_they_are"),
        (floats, BITS, "packed bits"),
        (wide, UNIT, "as_they_are"),
        (packed.astype(np.int32) - 99, None, "as_they_are"),
        (np.ones((3, 5000)), None, "1 to 4096"),
    ):
        with pytest.raises(CairnError, match=reason):
            described_as(entry(3, rows), "net", values)
    for name in ("foreign:net:0", "foreign:net", "foreign:a b:3", "foreign:net:32:furlongs", "foreign:net:9999"):
        with pytest.raises(CairnError, match="names no descriptor"):
            find_descriptor(name)


def test_other_features_than_the_collections_are_unfit() -> None:
    floats = RNG.normal(size=(3, 32)).astype(np.float32)
    for rows, descriptor, reason in (
        (floats, ForeignDescriptor("net", 64), "32 dimensions.*64"),
        (floats, ForeignDescriptor("net", 32, BYTES), "whole numbers from 0 to 255"),
        (floats.astype(np.int32), ForeignDescriptor("net", 32), "are whole numbers"),
        (floats * 1e6, ForeignDescriptor("net", 32, AS_THEY_ARE), "65,504"),
    ):
        with pytest.raises(Unfit, match=reason):
            rows_of(rows, descriptor)
    with pytest.raises(Unfit, match=r"affine frames.*places alone"):
        features_of(entry(3, floats), ForeignDescriptor("net", 32), POINTS, 60, 50)


def test_keypoints_are_brought_to_the_photo_or_refused() -> None:
    given = replace(entry(9, np.ones((9, 4))), size=(60, 50))
    assert placed(given, 60, 50) is not None
    twice = placed(given, 120, 100)
    np.testing.assert_allclose(twice.centres, (given.centres + 0.5) * 2 - 0.5)
    np.testing.assert_allclose(twice.linear, 2 * given.linear)
    for size, reason in (((50, 60), "when it is upright"), ((60, 90), "60 by 50 pixels, and the photo has 60 by 90")):
        with pytest.raises(CairnError, match=reason):
            placed(given, *size)
    with pytest.raises(CairnError, match="outside the photo, which is 20 by 20"):
        placed(replace(given, size=None), 20, 20)
    edge = Entry(POINTS, np.array([[-0.5, 60.2]]), None, np.ones((1, 4)))  # by rounding, as half precision does
    np.testing.assert_array_equal(placed(edge, 60, 61).centres, [[-0.5, 60.2]])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_keypoints_of_a_stored_photo_are_turned_with_it(orientation: int, tmp_path: Path) -> None:
    """A bright pixel and its neighbour to the right are found upright where Pillow's own reading has them."""
    stored = np.zeros((40, 60), np.uint8)
    stored[10, 30:41] = 255, *range(100, 0, -10)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "1.png"
    Image.fromarray(stored).save(path, exif=exif)

    class Source:
        path = tmp_path

        def entry(self, photo: Path, names: object) -> Entry:
            centres, linear = np.array([[30.0, 10.0]]), np.array([[[10.0, 0.0], [0.0, 10.0]]])
            return Entry(ORIENTED, centres, linear, np.ones((1, 4)), size=(60, 40), is_as_stored=True)

    options = FeatureOptions(RegionOptions(detector=ORIENTED), None, ORIENTED not in TURNED)
    photo = ForeignExtractor(ForeignDescriptor("net", 4), options, Source()).read(path, ImageOptions())
    assert isinstance(photo, DescribedPhoto) and photo.entry.linear is not None
    upright = read_photo(path).grey
    (x, y), along = photo.entry.centres[0], photo.entry.linear[0] @ [1, 0]
    assert upright[round(y), round(x)] == 255
    end = np.array([x, y]) + along
    assert upright[round(end[1]), round(end[0])] == 10 and np.linalg.det(photo.entry.linear[0]) > 0
    back = as_stored(photo.entry, photo.width, photo.height, orientation)
    assert back.size == (60, 40) and back.linear is not None and np.linalg.det(back.linear[0]) > 0
    np.testing.assert_array_equal(back.centres, [[30.0, 10.0]])
    np.testing.assert_allclose(back.linear[0] @ [1, 0], [10, 0], atol=1e-9)
    if orientation >= 5:  # the size of the upright photo tells that the other program has turned it
        turned = Entry(ORIENTED, np.array([[3.0, 55.0]]), np.eye(2)[None], np.ones((1, 4)), None, (40, 60), False, True)
        np.testing.assert_array_equal(placed(turned, 40, 60, orientation).centres, turned.centres)
