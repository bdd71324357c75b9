from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from index.errors import CairnError
from retrieval.descriptors.registry import find_descriptor, model_file
from retrieval.library.parts.descriptor import Descriptor, contract_of
from retrieval.regions.patches import resample_patches


@pytest.mark.parametrize("name", Descriptor.NAMES)
def test_every_descriptor_that_comes_with_cairn_loads(name: str) -> None:
    descriptor, own = Descriptor.load(name), find_descriptor(name)
    assert (descriptor.name, descriptor.dim, descriptor.side) == (own.name, own.dim, own.patch_size)
    assert (descriptor.fingerprint, descriptor.extent, descriptor.bytes) == (own.fingerprint, own.extent, own.bytes)
    patches = np.random.default_rng(0).integers(0, 256, (3, own.patch_size, own.patch_size)).astype(np.uint8)
    rows = descriptor.describe(patches)
    assert rows.dtype == np.float32 and np.allclose(rows, own.describe(patches), atol=1e-6)
    assert descriptor.describe(patches[:0]).shape == (0, own.dim)


def test_a_file_is_a_descriptor() -> None:
    file = model_file("cairn")
    assert file is not None
    assert Descriptor.load(file).fingerprint == Descriptor.load(str(file)).fingerprint
    assert contract_of(file).fingerprint == Descriptor.load("cairn").fingerprint


def test_patches_of_another_side_are_resampled() -> None:
    sift, patches = Descriptor.load("sift"), np.random.default_rng(1).random((4, 64, 64), np.float32)
    assert np.array_equal(sift.describe(patches), find_descriptor("sift").describe(resample_patches(patches, 31)))


def test_distances_are_euclidean() -> None:
    surf, rows = Descriptor.load("surf"), np.random.default_rng(2).random((5, 64))
    assert np.allclose(surf.distance(rows[0], rows), np.linalg.norm(rows - rows[0], axis=1), atol=1e-5)
    assert surf.distance(rows, rows).tolist() == [0] * 5
    assert surf.distance(rows[0], rows[1]).shape == ()
    assert surf.distance(rows[:0], rows[:0]).shape == (0,)


def test_a_signed_product_is_a_distance_with_its_sign_changed() -> None:
    signed = Descriptor(SimpleNamespace(name="signed", dim=2, signs=np.array([1, -1], np.float32)))  # type: ignore[arg-type]
    assert signed.distance([[1, 2], [3, 4]], [[5, 6], [7, 8]]).tolist() == [-(5 - 12), -(21 - 32)]


@pytest.mark.parametrize("wrong", [np.zeros((3, 31)), np.zeros((3, 31, 30)), np.zeros((3, 1, 1)), [[["a"] * 2] * 2]])
def test_what_are_no_patches_is_refused(wrong: object) -> None:
    with pytest.raises(CairnError, match=r"Patches must"):
        Descriptor.load("sift").describe(wrong)  # type: ignore[arg-type]


def test_patches_that_are_not_finite_are_refused() -> None:
    with pytest.raises(CairnError, match="finite"):
        Descriptor.load("sift").describe(np.full((1, 31, 31), np.nan))


def test_rows_that_do_not_fit_are_refused() -> None:
    sift = Descriptor.load("sift")
    for first, second in (((3, 64), (3, 64)), ((3, 128), (2, 128)), ((2, 3, 128), (3, 128))):
        with pytest.raises(CairnError):
            sift.distance(np.zeros(first), np.zeros(second))


@pytest.mark.parametrize("name", ["nonesuch", "", Path("nonesuch"), Path("nonesuch.npz"), b"sift"])
def test_a_name_that_there_is_not_is_refused(name: object) -> None:
    with pytest.raises(CairnError):
        Descriptor.load(name)  # type: ignore[arg-type]


def test_no_descriptor_and_patches_beyond_single_precision_are_refused() -> None:
    with pytest.raises(CairnError, match="This int does not keep the contract of a descriptor: it has no name"):
        contract_of(3)  # type: ignore[arg-type]
    with pytest.raises(CairnError, match="finite numbers, at most 1e"):
        Descriptor.load("sift").describe(np.full((1, 31, 31), 1e300))
