"""Features are those of the options: what collections were made with stays what it is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage

from retrieval.descriptors.learnt import LearntDescriptor, LearntModel
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.photos.decoding import Photo
from retrieval.regions.options import AdaptationOptions, RegionOptions


@pytest.fixture(scope="module")
def photo() -> Photo:
    """Texture, twice as large in the original."""
    noise = np.random.default_rng(0).normal(size=(240, 320))
    image = 128 + 90 * ndimage.gaussian_filter(noise, 1.5) * 3 + 90 * ndimage.gaussian_filter(noise[::-1], 4) * 6
    return Photo(np.clip(image, 0, 255).astype(np.float32), 640, 480)


def extractor(**regions: object) -> Extractor:
    return Extractor(find_descriptor("rootsift"), FeatureOptions(replace(RegionOptions(), **regions)))


def test_a_collection_made_before_later_options_keeps_its_fingerprint() -> None:
    # Of the first format's options; collections hold it in their vocabulary.
    first = extractor(adaptation=AdaptationOptions(iterations=10))
    assert first.fingerprint == "977561c1fc37a48a8e8b8eaa827a4a7f1d004ddc0daf28920db5f1e549627a28"
    others = [extractor(), extractor(max_features=500), extractor(max_features=1000)]
    assert len({first.fingerprint, *(other.fingerprint for other in others)}) == 4


@pytest.mark.slow
def test_a_descriptor_asks_for_larger_patches_unless_the_options_say_how_large(photo: Photo) -> None:
    wide = LearntDescriptor(replace(LearntModel("rootsift"), extent=1.5))
    requested = Extractor(wide, FeatureOptions())
    assert requested.measurement_scale == pytest.approx(1.5 * extractor().measurement_scale)
    assert requested.region_scale == extractor().region_scale == extractor().measurement_scale
    scaled = FeatureOptions(measurement_scale=requested.measurement_scale)
    found = requested.extract(photo).descriptors
    np.testing.assert_array_equal(found, Extractor(find_descriptor("rootsift"), scaled).extract(photo).descriptors)
    # What is said is not multiplied.
    assert Extractor(wide, scaled).measurement_scale == scaled.measurement_scale
    assert requested.fingerprint != Extractor(LearntDescriptor(LearntModel("rootsift")), FeatureOptions()).fingerprint


def test_regions_within_a_box_are_those_of_the_whole_photo_that_lie_in_it(photo: Photo) -> None:
    box = (100.0, 80.0, 420.0, 300.0)
    everything, inside = extractor(), extractor().detect(photo, box)
    features = everything.extract(photo)
    x, y = features.ellipses[:, 0], features.ellipses[:, 1]
    expected = (x >= box[0]) & (x <= box[2]) & (y >= box[1]) & (y <= box[3])
    assert 50 < expected.sum() < len(features) / 2
    found = everything.describe(photo, inside)
    np.testing.assert_allclose(found.ellipses, features.ellipses[expected], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.descriptors, features.descriptors[expected], atol=2e-2)


def test_known_regions_are_described_nearly_as_they_were_in_a_third_of_the_room(photo: Photo) -> None:
    dog = extractor()
    found = dog.detect(photo)
    known = dog.known(photo, dog.describe(photo, found).ellipses)
    np.testing.assert_allclose(known.ellipses, found.ellipses, rtol=1e-5)
    samples = [sum(octave.levels.size for octave in regions.space.octaves) for regions in (known, found)]
    assert 4 * samples[0] < samples[1]
    first, second = (dog.describe(photo, one).descriptors.astype(np.float64) for one in (found, known))
    alike = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    # Of the smallest regions patches are sampled from other pixels.
    assert np.median(alike) > 0.995 and np.quantile(alike, 0.05) > 0.97
    others = (first * np.roll(second, 1, axis=0)).sum(axis=1)
    assert np.quantile(others, 0.99) < np.quantile(alike, 0.01)


def test_a_photo_has_at_most_as_many_features_as_asked_for_and_they_are_spread(photo: Photo) -> None:
    features, some = extractor().extract(photo), extractor(max_features=100).extract(photo)
    assert 90 <= len(some) <= 100 < len(features)  # some are dropped for their shape
    kept = {tuple(row) for row in np.round(some.ellipses[:, :2], 2).tolist()}
    assert kept <= {tuple(row) for row in np.round(features.ellipses[:, :2], 2).tolist()}
    quarters = np.histogram2d(some.ellipses[:, 0], some.ellipses[:, 1], bins=2, range=[[0, 640], [0, 480]])[0]
    assert quarters.min() >= 15
