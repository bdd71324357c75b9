"""Distorted copies of training patches: reproducible, of the same points, with untouched originals."""

from dataclasses import fields, replace

import numpy as np
import pytest

from learning.patches.augmentation import AugmentationOptions, AugmentedPatches, augment, distort
from learning.patches.phototour import PatchPairs, PatchSet, write_bitmaps, write_info
from learning.patches.sources import PatchFolder
from tests.support.learning.learnt_models import textures

NUMBER = 30
STILL = AugmentationOptions(rotation=0, scale=0, stretch=0, shift=0, gamma=0, blur=0, noise=0)
STRENGTHS = [field.name for field in fields(AugmentationOptions) if field.name not in ("copies", "seed")]


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> PatchSet:
    folder = tmp_path_factory.mktemp("set")
    write_bitmaps(folder, np.rint(textures(NUMBER, 64, sigma=3)).astype(np.uint8))
    write_info(folder, np.arange(NUMBER) // 3, np.zeros(NUMBER, int))
    return PatchSet.open(folder)


def source_of(patches: PatchSet) -> PatchFolder:
    train = PatchPairs(np.array([0, 3, 9]), np.array([1, 4, 29]), np.array([True, True, False]))
    return PatchFolder(patches, train, PatchPairs(np.array([6, 12]), np.array([7, 15]), np.array([True, False])))


class TestCopies:
    def test_originals_are_untouched_wherever_they_come(self, patches: PatchSet) -> None:
        augmented = AugmentedPatches(patches, AugmentationOptions(copies=2))
        assert len(augmented) == 3 * NUMBER
        numbers = np.array([5, NUMBER + 5, 0, 2 * NUMBER + 5, 29, 5])
        read = augmented.read(numbers)
        assert (read.shape, read.dtype) == ((6, 64, 64), np.uint8)
        originals = numbers < NUMBER
        np.testing.assert_array_equal(read[originals], patches.read(numbers[originals]))
        # The cache of decoded bitmaps is unchanged.
        np.testing.assert_array_equal(augmented.read(np.arange(NUMBER)), patches.read(np.arange(NUMBER)))

    def test_a_copy_is_the_same_whenever_and_with_whatever_it_is_read(self, patches: PatchSet) -> None:
        augmented = AugmentedPatches(patches, AugmentationOptions(copies=2))
        every = augmented.read(np.arange(len(augmented)))
        numbers = np.random.default_rng(0).integers(0, len(augmented), 50)
        np.testing.assert_array_equal(augmented.read(numbers), every[numbers])
        again = AugmentedPatches(PatchSet.open(patches.folder), AugmentationOptions(copies=2))
        np.testing.assert_array_equal(again.read(numbers), every[numbers])
        # Copies of one patch differ from it and from each other.
        first, second, third = every.reshape(3, NUMBER, 64, 64).astype(float)
        for one, two in ((first, second), (first, third), (second, third)):
            assert (np.abs(one - two).mean(axis=(1, 2)) > 1).all()

    def test_another_seed_makes_others(self, patches: PatchSet) -> None:
        copies = np.arange(NUMBER, 2 * NUMBER)
        one, two = (AugmentedPatches(patches, AugmentationOptions(seed=seed)) for seed in (0, 1))
        assert (one.read(copies) != two.read(copies)).any(axis=(1, 2)).all()
        assert one.fingerprint != two.fingerprint != patches.fingerprint
        assert one.fingerprint == AugmentedPatches(patches, AugmentationOptions()).fingerprint

    def test_they_show_the_same(self, patches: PatchSet) -> None:
        """Each is nearer to its own original than to any other."""
        augmented = AugmentedPatches(patches, AugmentationOptions())
        originals, copies = augmented.read(np.arange(2 * NUMBER)).reshape(2, NUMBER, -1).astype(float)
        likeness = np.corrcoef(originals, copies)[:NUMBER, NUMBER:]
        assert np.mean(likeness.argmax(axis=0) == np.arange(NUMBER)) > 0.8
        assert np.median(np.diag(likeness)) > 0.5


class TestPairs:
    @pytest.mark.parametrize("copies", [1, 2, 3])
    def test_a_copy_of_a_pair_has_its_label_and_one_patch_distorted(self, patches: PatchSet, copies: int) -> None:
        source = source_of(patches)
        found = augment(source, AugmentationOptions(copies=copies))
        number = len(source.train)
        assert len(found.train) == (copies + 1) * number
        for copy in range(copies + 1):
            part = slice(copy * number, (copy + 1) * number)
            first, second = found.train.first[part], found.train.second[part]
            np.testing.assert_array_equal(found.train.match[part], source.train.match)
            np.testing.assert_array_equal(first % NUMBER, source.train.first)
            np.testing.assert_array_equal(second % NUMBER, source.train.second)
            # The second patch and the first by turns; another copy of it each time.
            assert (first // NUMBER == (copy if copy and copy % 2 == 0 else 0)).all()
            assert (second // NUMBER == (copy if copy % 2 else 0)).all()
        assert max(found.train.first.max(), found.train.second.max()) < len(found.patches)

    def test_those_for_validation_stay_as_they_are(self, patches: PatchSet) -> None:
        source = source_of(patches)
        found = augment(source, AugmentationOptions())
        assert found.validation is source.validation
        for numbers in (found.validation.first, found.validation.second):
            np.testing.assert_array_equal(found.patches.read(numbers), patches.read(numbers))

    def test_no_copies_leave_the_source_as_it_is(self, patches: PatchSet) -> None:
        source = source_of(patches)
        assert augment(source, AugmentationOptions(copies=0)) is source


class TestDistortion:
    def test_of_no_strength_it_is_none(self, patches: PatchSet) -> None:
        for number, patch in enumerate(patches.read(np.arange(NUMBER))):
            found = distort(patch, np.random.default_rng(number), STILL)
            assert np.abs(found.astype(int) - patch).max() <= 1

    @pytest.mark.parametrize("name", STRENGTHS)
    def test_each_part_does_something_and_the_given_patch_is_left_alone(self, patches: PatchSet, name: str) -> None:
        options = replace(STILL, **{name: getattr(AugmentationOptions(), name)})
        given = patches.read(np.arange(10))
        changes = []
        for number, patch in enumerate(given):
            before = patch.copy()
            found = distort(patch, np.random.default_rng(number), options)
            assert (found.shape, found.dtype) == (patch.shape, np.uint8)
            np.testing.assert_array_equal(patch, before)
            changes.append(np.abs(found.astype(int) - patch).mean())
        # Blur and noise are for one patch in two.
        assert sum(change > 0.2 for change in changes) >= (2 if name in ("blur", "noise") else 7)

    def test_a_turn_is_about_the_middle(self) -> None:
        """A disc in the middle is left by any turn; a bar becomes one at an angle of that turn."""
        x, y = np.meshgrid(np.arange(64) - 31.5, np.arange(64) - 31.5)
        disc = (255 / (1 + np.exp(np.hypot(x, y) - 15))).astype(np.uint8)
        bar = (255 * np.exp(-0.5 * (y / 4) ** 2) * (np.hypot(x, y) < 25)).astype(np.uint8)
        options = replace(STILL, rotation=20.0)
        angles = []
        for seed in range(200):
            turned = distort(bar, np.random.default_rng(seed), options).astype(float)
            angles.append(0.5 * np.arctan2(2 * (turned * x * y).sum(), (turned * (x**2 - y**2)).sum()))
            if seed < 10:
                still = distort(disc, np.random.default_rng(seed), options)
                assert np.abs(still.astype(int) - disc).max() <= 4
        # In degrees, as a standard deviation.
        assert np.degrees(np.std(angles)) == pytest.approx(20, rel=0.2)
        assert abs(np.degrees(np.mean(angles))) < 5

    def test_shifts_and_scales_are_as_large_as_told(self) -> None:
        x, y = np.meshgrid(np.arange(64) - 31.5, np.arange(64) - 31.5)
        blob = (250 * np.exp(-0.5 * (x**2 + y**2) / 6**2)).astype(np.uint8)

        def moments(options: AugmentationOptions) -> np.ndarray:
            rows = []
            for seed in range(200):
                seen = distort(blob, np.random.default_rng(seed), options).astype(float)
                seen /= seen.sum()
                middle = (seen * x).sum(), (seen * y).sum()
                spread = [(seen * (at - of) ** 2).sum() for at, of in zip((x, y), middle, strict=True)]
                rows.append([*middle, 0.5 * np.log(np.mean(spread))])
            return np.array(rows)

        shifted = moments(replace(STILL, shift=0.05))
        np.testing.assert_allclose(shifted[:, :2].std(axis=0), 0.05 * 64, rtol=0.2)
        assert np.abs(shifted[:, :2].mean(axis=0)).max() < 0.7
        scaled = moments(replace(STILL, scale=0.1))
        assert scaled[:, 2].std() == pytest.approx(0.1, rel=0.25)
        assert np.abs(scaled[:, :2]).max() < 0.2

    def test_light_is_a_power_and_noise_no_stronger_than_told(self) -> None:
        ramp = np.tile(np.arange(0, 256, 4, dtype=np.uint8), (64, 1))
        exponents = []
        for seed in range(100):
            seen = distort(ramp, np.random.default_rng(seed), replace(STILL, gamma=0.25))
            assert (np.diff(seen[0].astype(int)) >= 0).all() and (seen == seen[0]).all()
            exponents.append(np.log(seen[0, 32] / 255) / np.log(ramp[0, 32] / 255))
        assert np.std(np.log(exponents)) == pytest.approx(0.25, rel=0.25)
        flat, spreads = np.full((64, 64), 128, np.uint8), []
        for seed in range(100):
            spreads.append(distort(flat, np.random.default_rng(seed), replace(STILL, noise=10)).std())
        assert 5 < max(spreads) < 10.5
        assert 0.3 < np.mean(np.array(spreads) == 0) < 0.7  # one in two has none
