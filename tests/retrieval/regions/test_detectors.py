"""Regions follow the image: moved, turned, enlarged or stretched with it, for each detector."""

import warnings

import cv2
import numpy as np
import pytest
from scipy import ndimage
from scipy.spatial import cKDTree

from index.errors import CairnError
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.library.testing import check_detector
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.detection import detect_regions, spread_choice
from retrieval.regions.detectors.registry import DETECTORS, find_detector
from retrieval.regions.options import AdaptationOptions, RegionOptions
from retrieval.regions.scalespace import build_scale_space
from tests.support import toy_detector

DETECTOR_NAMES = sorted([*DETECTORS, toy_detector.NAME])
THRESHOLD = 3.0  # the tests' own, so that tuning the defaults leaves them alone


@pytest.fixture(autouse=True)
def third(monkeypatch):
    """A detector that somebody has added."""
    monkeypatch.setitem(DETECTORS, toy_detector.NAME, toy_detector.PLACE)


def options(detector, **changes):
    return RegionOptions(**({"detector": detector, "threshold": THRESHOLD, "max_regions": 0} | changes))


def covariances(ellipses):
    """Covariances (N, 2, 2) of ellipses: the inverse of [[a, b], [b, c]]."""
    a, b, c = ellipses[:, 2:].T.astype(np.float64)
    return np.linalg.inv(np.stack([np.stack([a, b], -1), np.stack([b, c], -1)], -2))


def texture(shape=(240, 320), seed=0):
    """Blobs of all sizes and both signs: noise, band-limited."""
    generator = np.random.default_rng(seed)
    image = sum(
        sigma * ndimage.gaussian_filter(generator.normal(size=shape), sigma, mode="reflect") * weight
        for sigma, weight in ((1.5, 60), (3, 90), (6, 90), (12, 60))
    )
    return np.clip(128 + image, 0, 255).astype(np.float32)


def elliptic_blob(axes, angle, centre=(150.3, 149.6), side=300):
    """An elliptical Gaussian of given standard deviations, its first axis turned by an angle from x towards y."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    covariance = turn @ np.diag(np.square(axes)) @ turn.T
    y, x = np.mgrid[0:side, 0:side] - np.array(centre[::-1])[:, None, None]
    points = np.stack([x, y], -1)
    power = np.einsum("...i,ij,...j", points, np.linalg.inv(covariance), points)
    return (60 + 150 * np.exp(-0.5 * power)).astype(np.float32), covariance


def matched(found, expected, covariance, expected_covariance):
    """Part of the expected regions that were found at the same place with the same shape."""
    tree = cKDTree(found)
    hits = 0
    for centre, shape in zip(expected, expected_covariance, strict=True):
        scale = np.linalg.det(shape) ** 0.25
        for near in tree.query_ball_point(centre, 0.15 * scale + 0.3):
            # The same where the shape in the frame of the other is nearly a circle of radius one.
            frame = np.linalg.inv(np.linalg.cholesky(shape))
            if np.abs(np.log(np.linalg.eigvalsh(frame @ covariance[near] @ frame.T))).max() < 2 * np.log(1.25):
                hits += 1
                break
    return hits / len(expected)


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
@pytest.mark.parametrize("angle", [0.0, 0.7, 1.5708, 2.5])
@pytest.mark.parametrize("axes", [(6.0, 6.0), (9.0, 6.0), (12.0, 5.0)])
def test_an_elliptical_blob_gives_an_ellipse_of_its_direction_and_shape(detector, angle, axes):
    image, covariance = elliptic_blob(axes, angle)
    regions = detect_regions(image, options(detector))
    assert len(regions)
    ellipse = regions.ellipses[0]  # the strongest
    np.testing.assert_allclose(ellipse[:2], [150.3, 149.6], atol=0.5)  # its samples lie 2 to 4 pixels apart
    found = covariances(ellipse[None])[0]
    ratio, expected_ratio = (np.sqrt(np.linalg.cond(matrix)) for matrix in (found, covariance))
    # The scale space smooths equally in all directions, which rounds what is stretched: never beyond the blob's own
    # ratio, and never less than half way to it.
    assert 0.5 * np.log(expected_ratio) - 0.04 < np.log(ratio) < np.log(expected_ratio) + 0.04
    if expected_ratio > 1:
        # Directions of the longer axes.
        first, second = (np.linalg.eigh(matrix)[1][:, 1] for matrix in (found, covariance))
        assert abs(first @ second) > np.cos(np.radians(4))


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
def test_the_region_of_a_round_blob_has_the_detector_s_radius(detector):
    image, _ = elliptic_blob((6.0, 6.0), 0)
    found = covariances(detect_regions(image, options(detector)).ellipses[:1])[0]
    scale = 6 / 2 ** (1 / 6) if detector == "dog-affine" else 6  # as each detector names the scale of a blob
    assert np.linalg.det(found) ** 0.25 == pytest.approx(scale * find_detector(detector).radius, rel=0.05)


MOVES = {
    # Name: the moved image; and the map of its points, as linear part and shift, for a height and a width.
    "quarter turn": (lambda image: np.rot90(image, -1), lambda h, w: ([[0, -1], [1, 0]], [h - 1, 0])),
    "half turn": (lambda image: np.rot90(image, 2), lambda h, w: ([[-1, 0], [0, -1]], [w - 1, h - 1])),
    "flip": (lambda image: image[:, ::-1], lambda h, w: ([[-1, 0], [0, 1]], [w - 1, 0])),
    "transposition": (lambda image: image.T, lambda h, w: ([[0, 1], [1, 0]], [0, 0])),
    "enlargement": (
        lambda image: cv2.resize(image, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC),
        lambda h, w: ([[2, 0], [0, 2]], [0.5, 0.5]),
    ),
    "stretch": (
        lambda image: cv2.resize(image, None, fx=1.5, fy=1, interpolation=cv2.INTER_CUBIC),
        lambda h, w: ([[1.5, 0], [0, 1]], [0.25, 0]),
    ),
}


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
@pytest.mark.parametrize(("move", "least"), [
    ("quarter turn", 0.95), ("half turn", 0.95), ("flip", 0.95), ("transposition", 0.95),
    ("enlargement", 0.85), ("stretch", 0.45),
])  # fmt: skip
def test_regions_move_with_the_image(detector, move, least):
    image = texture()
    change, place = MOVES[move]
    linear, shift = (np.array(part, float) for part in place(*image.shape))
    before = detect_regions(image, options(detector))
    after = detect_regions(np.ascontiguousarray(change(image)), options(detector))
    assert len(before) > 100
    shapes = covariances(before.ellipses)
    # The finest regions of an enlarged image have no like in the smaller one, and the other way round: compare those
    # that both scale spaces hold, and that the border does not cut.
    sizes = np.linalg.det(shapes) ** 0.25 / find_detector(detector).radius
    height, width = image.shape
    edge = np.minimum(before.ellipses[:, :2], [width, height] - before.ellipses[:, :2]).min(axis=1)
    kept = (sizes > (1.2 if find_detector(detector).space.double else 2.4)) & (edge > 6 * sizes + 8) & (sizes < 12)
    assert kept.sum() > 30
    expected = before.ellipses[kept, :2] @ linear.T + shift
    part = matched(after.ellipses[:, :2], expected, covariances(after.ellipses), linear @ shapes[kept] @ linear.T)
    assert part > least


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
def test_regions_have_the_strength_and_the_shape_that_is_asked_for(detector):
    image = texture(seed=4)
    regions = detect_regions(image, options(detector))
    assert regions.ellipses.dtype == np.float32 and regions.responses.dtype == np.float32
    assert len(regions) == len(regions.ellipses) == len(regions.responses)
    assert (regions.responses >= THRESHOLD).all()
    values = np.linalg.eigvalsh(covariances(regions.ellipses))
    assert (values > 0).all()
    limit = AdaptationOptions().max_anisotropy
    assert (np.sqrt(values[:, 1] / values[:, 0]) <= limit * 1.01).all()
    assert (regions.ellipses[:, :2] > 0).all() and (regions.ellipses[:, :2] < [320, 240]).all()


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
def test_the_contract_of_extensions_is_kept(detector):
    check_detector(find_detector(detector))


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
def test_a_limit_keeps_the_strongest(detector):
    image = texture(seed=1)
    everything = detect_regions(image, options(detector))
    some = detect_regions(image, options(detector, max_regions=50))
    assert 0 < len(some) <= 50
    np.testing.assert_allclose(some.ellipses, everything.ellipses[: len(some)], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
def test_no_region_is_given_twice(detector):
    regions = detect_regions(texture(seed=2), options(detector))
    sizes = np.linalg.det(covariances(regions.ellipses)) ** 0.25
    places = np.column_stack([regions.ellipses[:, :2], 20 * np.log(sizes)])
    # Two octaves may both see what lies between them.
    assert len(cKDTree(places).query_pairs(0.1)) <= 0.003 * len(places)


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
def test_the_number_of_threads_makes_no_difference(detector):
    image = texture((480, 640), seed=3)
    before = cv2.getNumThreads()
    results = []
    try:
        for threads in (1, 2, 5):
            cv2.setNumThreads(threads)
            results.append(detect_regions(image, options(detector)))
    finally:
        cv2.setNumThreads(before)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].ellipses, other.ellipses)
        np.testing.assert_array_equal(results[0].responses, other.responses)


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
def test_contrast_and_brightness_leave_the_regions_where_they_are(detector):
    image = 60 + 0.4 * texture(seed=6)
    first = detect_regions(image, options(detector))
    second = detect_regions(20 + 1.5 * image, options(detector, threshold=1.5 * THRESHOLD))
    assert abs(len(first) - len(second)) <= 0.01 * len(first)
    part = matched(
        second.ellipses[:, :2], first.ellipses[:, :2], covariances(second.ellipses), covariances(first.ellipses)
    )
    assert part > 0.98


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
@pytest.mark.parametrize("image", [
    np.full((200, 300), 128, np.float32), np.zeros((64, 64), np.float32), np.full((1, 1), 255, np.float32),
    np.zeros((5, 900), np.float32), np.tile(np.linspace(0, 255, 200, dtype=np.float32), (150, 1)),
], ids=["grey", "black", "one pixel", "strip", "ramp"])  # fmt: skip
def test_featureless_images_give_no_region_and_no_warning(detector, image):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        regions = detect_regions(image, RegionOptions(detector=detector))
    assert len(regions) == 0
    assert regions.ellipses.shape == (0, 5) and regions.responses.shape == (0,)


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
@pytest.mark.parametrize("shape", [(16, 16), (20, 33), (17, 400)])
def test_small_images_raise_no_warning(detector, shape):
    image = np.random.default_rng(0).uniform(0, 255, shape).astype(np.float32)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        regions = detect_regions(image, options(detector))
    assert np.isfinite(regions.ellipses).all()


def test_hard_edges_and_saturation_raise_no_warning():
    # Text-like: two values only, with corners, bars of one pixel and large flat parts.
    generator = np.random.default_rng(0)
    image = np.kron(generator.integers(0, 2, (25, 30)), np.ones((8, 8))).astype(np.float32) * 255
    image[:100:7] = 0
    for detector in DETECTOR_NAMES:
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            regions = detect_regions(image, options(detector))
        assert len(regions) and np.isfinite(regions.ellipses).all()
        assert (np.linalg.eigvalsh(covariances(regions.ellipses)) > 0).all()


def test_regions_on_straight_edges_are_left_out():
    image = np.zeros((200, 200), np.float32)
    image[:, 100:] = 200
    image += np.random.default_rng(0).normal(0, 0.5, image.shape).astype(np.float32)
    assert len(detect_regions(image, options("dog-affine"))) == 0


def test_an_unknown_detector_is_refused_by_name():
    with pytest.raises(CairnError, match=r"magic.*dog-affine"):
        detect_regions(np.zeros((50, 50), np.float32), RegionOptions(detector="magic"))


# The contract


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
def test_responses_are_of_the_levels_and_linear_in_contrast(detector):
    own = find_detector(detector)
    image = texture()
    for octave, brighter in zip(
        build_scale_space(image, own.space).octaves, build_scale_space(10 + 0.5 * image, own.space).octaves, strict=True
    ):
        responses = own.respond(octave)
        assert len(responses) == own.space.levels + 2 == len(octave.levels) - 1
        for level, response, half in zip(octave.levels, responses, own.respond(brighter), strict=False):
            assert response.shape == level.shape and response.dtype == np.float32
            np.testing.assert_allclose(half, 0.5 * response, atol=0.1)


@pytest.mark.parametrize("detector", DETECTOR_NAMES)
def test_regions_are_extrema_of_the_detector_s_own_responses(detector):
    own = find_detector(detector)
    assert own.threshold > 0 and own.radius > 0 and own.measurement_scale > 0
    image = texture(seed=7)
    regions = detect_regions(image, RegionOptions(detector, max_regions=0))
    assert len(regions) > 20 and (regions.responses >= own.threshold).all()
    largest = max(np.abs(response).max() for octave in regions.space.octaves for response in own.respond(octave))
    assert regions.responses[0] <= 1.05 * largest  # between the samples it may be a little more
    others = {
        name: detect_regions(image, RegionOptions(name, max_regions=0)).ellipses
        for name in DETECTOR_NAMES
        if name != detector
    }
    assert not any(np.array_equal(regions.ellipses, ellipses) for ellipses in others.values())


def test_a_new_detector_makes_features(tmp_path):
    cv2.imwrite(str(tmp_path / "photo.png"), texture().astype(np.uint8))
    photo = read_photo(tmp_path / "photo.png", ImageOptions())
    extractor = Extractor(find_descriptor("rootsift"), FeatureOptions(RegionOptions(toy_detector.NAME)))
    assert extractor.measurement_scale == toy_detector.DETECTOR.measurement_scale
    features = extractor.extract(photo)
    assert len(features) > 20 and np.isfinite(features.descriptors).all()


def test_points_are_chosen_for_their_strength_and_place():
    generator = np.random.default_rng(0)
    # The strongest 900 in one corner, 100 weaker ones all over.
    points = np.concatenate([generator.uniform(0, 100, (900, 2)), generator.uniform(0, 400, (100, 2))])
    chosen = spread_choice(points, 200)
    assert len(chosen) == 200 and (np.diff(chosen) > 0).all() and chosen[0] == 0
    assert (chosen >= 900).sum() > 60  # most of those that lie where little else is; 22 would be their share
    # Of equally many everywhere, the strongest.
    even = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), -1).reshape(-1, 2)
    order = np.concatenate([np.arange(400)] * 3)
    assert (spread_choice(even[order], 400) < 400).mean() > 0.8


@pytest.mark.parametrize("number", [1, 2, 7, 99, 100, 150])
def test_as_many_points_are_chosen_as_there_are_and_are_wanted(number):
    generator = np.random.default_rng(number)
    for points in (generator.uniform(0, 50, (100, 2)), np.zeros((100, 2)), np.arange(200.0).reshape(100, 2) * [1, 0]):
        chosen = spread_choice(points, number)
        assert len(chosen) == min(number, 100) and len(set(chosen.tolist())) == len(chosen)
        assert 0 in chosen  # the strongest of all
    assert len(spread_choice(np.zeros((0, 2)), number)) == 0
