from pathlib import Path

import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray
from PIL import Image

from index.errors import CairnError
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.library.parts.descriptor import Descriptor
from retrieval.library.parts.features import describe, detect, features_fingerprint, orientations, patches
from retrieval.photos.decoding import read_photo
from retrieval.regions.options import RegionOptions

ROUND = [[30.0, 30.0, 0.1, 0.0, 0.1]]


@pytest.fixture(scope="module")
def image() -> NDArray[np.uint8]:
    return np.asarray(skimage.data.astronaut()[:140, 150:300])


@pytest.mark.parametrize(
    ("detector", "upright", "scale", "most"),
    [("dog-affine", True, None, 0), ("hessian-affine", True, 2.0, 60), ("dog-affine", False, None, 40)],
)
def test_features_are_those_of_the_indexed_photo(
    image: NDArray[np.uint8], detector: str, upright: bool, scale: float | None, most: int, tmp_path: Path
) -> None:
    Image.fromarray(image).save(tmp_path / "photo.png")
    options = FeatureOptions(RegionOptions(detector=detector, max_features=most), scale, upright)
    extractor = Extractor(find_descriptor("rootsift"), options)
    indexed = extractor.extract(read_photo(tmp_path / "photo.png"))
    regions = detect(image, detector=detector, max_features=most)
    rows = describe(image, regions, upright=upright, measurement_scale=scale, detector=detector)
    assert len(regions) > 25
    assert np.allclose(regions, indexed.ellipses, atol=1e-4)
    assert rows.dtype == np.float32 and np.array_equal(rows, indexed.descriptors.astype(np.float32))
    if not upright:
        assert np.array_equal(orientations(image, regions), indexed.angles)
    made_with = {"detector": detector, "max_features": most, "upright": upright, "measurement_scale": scale}
    assert features_fingerprint("rootsift", **made_with) == extractor.fingerprint  # type: ignore[arg-type]


@pytest.mark.parametrize("upright", [True, False])
def test_patches_are_what_is_described(image: NDArray[np.uint8], upright: bool) -> None:
    regions = detect(image, max_features=50)
    sift = Descriptor.load("sift")
    squares = patches(image, regions, sift.side, upright=upright)
    assert squares.shape == (len(regions), 31, 31) and squares.dtype == np.float32
    assert np.abs(sift.describe(squares) - describe(image, regions, sift, upright=upright)).max() < 1e-3


def test_a_patch_shows_its_region() -> None:
    y, x = np.mgrid[:61, :61]
    ramp = (x / 100 + y / 400).astype(np.float64)
    patch = patches(ramp, ROUND, 5, measurement_scale=2.0)[0]
    half = 2.0 / np.sqrt(0.1)  # pixels from the centre to the patch's side
    across, down = np.meshgrid(*[np.linspace(-half, half, 5)] * 2)
    assert np.allclose(patch, 255 * ((30 + across) / 100 + (30 + down) / 400), atol=0.5)


def test_orientation_is_that_of_the_gradient() -> None:
    y, x = np.mgrid[:61, :61]
    for angle in (0.0, 0.8, 2.5, -1.2):
        ramp = 0.5 + ((x - 30) * np.cos(angle) + (y - 30) * np.sin(angle)) / 100
        assert orientations(ramp, ROUND)[0] == pytest.approx(angle, abs=0.05)


def test_an_image_that_shows_nothing_has_no_features() -> None:
    for image in (np.zeros((1, 1), np.uint8), np.zeros((100, 12)), np.full((64, 64, 3), 0.7)):
        regions = detect(image)
        assert regions.shape == (0, 5) and regions.dtype == np.float32
        assert describe(image, regions).shape == (0, 128)
        assert patches(image, [], 16).shape == (0, 16, 16)
        assert np.isfinite(describe(image, ROUND)).all()


def test_one_may_describe_by_an_object_of_ones_own(image: NDArray[np.uint8]) -> None:
    class Mean:
        name, dim, patch_size, extent, fingerprint, bytes = "mean", 1, 8, 1.0, "mean", 4

        def describe(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
            return patches.mean(axis=(1, 2))[:, None] / 255

        def describe_both(self, patches: NDArray[np.float32]) -> tuple[NDArray[np.float32], None]:
            return self.describe(patches), None

    regions = detect(image, max_features=20)
    rows = describe(image, regions, Mean())  # type: ignore[arg-type]
    assert np.allclose(rows[:, 0] * 255, patches(image, regions, 8).mean(axis=(1, 2)), atol=0.2)


@pytest.mark.parametrize(
    ("regions", "why"),
    [
        ([[1, 2, 3]], "(1, 3)"),
        ([1, 2, 3, 4, 5], "(5,)"),
        ([[1, 2, 1, 0, np.nan]], "not finite"),
        ([[1, 2, 1, 1, 1]], "no ellipse"),
        ([[1, 2, -1, 0, 1]], "no ellipse"),
        ([["a", "b", "c", "d", "e"]], "numbers"),
        ([[1, 2], [3]], "several lengths"),
    ],
)
def test_what_are_no_regions_is_refused(regions: object, why: str) -> None:
    for part in (describe, patches):
        with pytest.raises(CairnError) as refused:
            part(np.zeros((40, 40), np.uint8), regions)  # type: ignore[operator]
        assert why in str(refused.value)


def test_options_out_of_range_are_refused() -> None:
    image = np.zeros((40, 40), np.uint8)
    for wrong in (
        lambda: detect(image, detector="harris"),
        lambda: detect(image, max_features=-1),
        lambda: detect(image, max_features=1.5),  # type: ignore[arg-type]
        lambda: patches(image, ROUND, 1),
        lambda: patches(image, ROUND, measurement_scale=0),
        lambda: describe(image, ROUND, measurement_scale=float("nan")),
        lambda: describe(image, ROUND, "nonesuch"),
        lambda: describe(image, ROUND, "foreign:superpoint:256"),
    ):
        with pytest.raises(CairnError):
            wrong()
