"""The contract that every descriptor keeps, and SIFT compared with two other computations of it."""

import cv2
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from index.errors import CairnError
from retrieval.descriptors.gradients import dominant_orientation, orientation_channels
from retrieval.descriptors.learnt import LearntDescriptor
from retrieval.descriptors.registry import DESCRIPTORS, find_descriptor
from retrieval.library.testing import check_descriptor, textures
from tests.support.learning.learnt_models import cases

LEARNT = cases()
NAMES = sorted(DESCRIPTORS) + list(LEARNT)


def make(name):
    return LearntDescriptor(LEARNT[name].model) if name in LEARNT else find_descriptor(name)


def assert_nearly_unchanged(name, rows, changed, slack):
    """Every row within this share of the shortest; what codes stand for jumps, but seldom and not far in the mean."""
    distances = np.linalg.norm(rows - changed, axis=1)
    if name in LEARNT and LEARNT[name].coded:
        others = np.linalg.norm(rows - np.roll(rows, 1, axis=0), axis=1)
        assert (distances**2).mean() < slack * (others**2).mean()
    else:
        assert distances.max() < slack * np.linalg.norm(rows, axis=1).min()


@pytest.mark.parametrize("name", NAMES)
class TestContract:
    @pytest.fixture
    def descriptor(self, name):
        return make(name)

    @pytest.fixture
    def longest(self, name):
        return LEARNT[name].longest if name in LEARNT else 1.0

    @pytest.fixture
    def patches(self, descriptor):
        return textures(300, descriptor.patch_size)

    def test_the_contract_of_extensions_is_kept(self, descriptor, name):
        assert descriptor.name == name
        check_descriptor(descriptor, rough=name in LEARNT and LEARNT[name].coded)

    def test_different_patches_are_told_apart_and_like_ones_are_close(self, descriptor, patches, name):
        rows = descriptor.describe(patches)
        noisy = descriptor.describe(patches + np.random.default_rng(9).normal(0, 2, patches.shape).astype(np.float32))
        distances = cdist(rows, noisy)
        assert (distances.argmin(axis=1) == np.arange(300)).all()
        others = distances[~np.eye(300, dtype=bool)]
        if name in LEARNT and LEARNT[name].coded:
            assert np.diag(distances).mean() < 0.2 * others.mean()
        else:
            assert np.diag(distances).max() < 0.7 * others.min()

    def test_rounded_to_bytes_rows_are_nearly_the_same(self, descriptor, patches, name):
        rounded = np.rint(patches).astype(np.uint8)
        rows = descriptor.describe(rounded)
        np.testing.assert_array_equal(rows, descriptor.describe(rounded.astype(np.float32)))
        assert_nearly_unchanged(name, descriptor.describe(patches), rows, 0.1)

    def test_views_are_taken(self, descriptor, patches):
        wide = np.zeros((300, descriptor.patch_size, 2 * descriptor.patch_size), np.float32)
        wide[:, :, ::2] = patches
        np.testing.assert_allclose(descriptor.describe(wide[:, :, ::2]), descriptor.describe(patches), atol=1e-6)

    def test_a_patch_without_contrast_gives_a_finite_row(self, descriptor, longest):
        size = descriptor.patch_size
        patches = np.stack([np.full((size, size), value, np.float32) for value in (0, 7.3, 255)])
        with np.errstate(all="raise", under="ignore"):
            rows = descriptor.describe(patches)
        assert np.isfinite(rows).all() and np.linalg.norm(rows, axis=1).max() <= longest * (1 + 1e-5)

    def test_extreme_patches_give_finite_rows_of_usual_length(self, descriptor, longest):
        size = descriptor.patch_size
        checks = np.indices((size, size)).sum(axis=0) % 2 * 255.0
        step, dot = np.zeros((2, size, size))
        step[:, size // 2 :], dot[size // 2, size // 2] = 255, 255
        patches = np.stack([checks, step, dot, 1e-3 * step]).astype(np.float32)
        rows = descriptor.describe(patches)
        assert np.isfinite(rows).all() and (np.linalg.norm(rows, axis=1) <= longest * (1 + 1e-5)).all()

    def test_the_fingerprint_is_the_same_each_time_and_no_other_s(self, descriptor, name):
        assert descriptor.fingerprint == make(name).fingerprint
        assert len(descriptor.fingerprint) == 64
        assert len({make(other).fingerprint for other in NAMES}) == len(NAMES)


def literal_sift(patch, root):
    """SIFT of a patch by its definition: one pixel, one bin at a time (Lowe 2004, section 6)."""
    size = len(patch)
    middle, width = (size - 1) / 2, size / 5
    histogram = np.zeros((4, 4, 8))
    for y in range(1, size - 1):
        for x in range(1, size - 1):
            across = (float(patch[y, x + 1]) - float(patch[y, x - 1])) / 2
            down = (float(patch[y + 1, x]) - float(patch[y - 1, x])) / 2
            magnitude = np.hypot(across, down)
            # The Gaussian has a standard deviation of half the descriptor's width: two bins.
            magnitude *= np.exp(-((x - middle) ** 2 + (y - middle) ** 2) / (2 * (2 * width) ** 2))
            column, row = (x - middle) / width + 1.5, (y - middle) / width + 1.5
            orientation = np.arctan2(down, across) / (2 * np.pi) * 8 % 8
            for i in (int(np.floor(row)), int(np.floor(row)) + 1):
                for j in (int(np.floor(column)), int(np.floor(column)) + 1):
                    for k in (int(np.floor(orientation)), int(np.floor(orientation)) + 1):
                        if 0 <= i < 4 and 0 <= j < 4:
                            share = (1 - abs(row - i)) * (1 - abs(column - j)) * (1 - abs(orientation - k))
                            histogram[i, j, k % 8] += magnitude * share
    row = histogram.ravel()
    row = np.minimum(row / np.linalg.norm(row), 0.2)
    return np.sqrt(row / row.sum()) if root else row / np.linalg.norm(row)


@pytest.mark.parametrize("root", [False, True])
def test_sift_is_what_its_definition_says(root):
    patches = textures(6, 31, seed=3)
    rows = find_descriptor("rootsift" if root else "sift").describe(patches)
    expected = np.stack([literal_sift(patch, root) for patch in patches])
    # The orientation of a gradient is computed to a third of a degree.
    np.testing.assert_allclose(rows, expected, atol=2e-3)
    assert (np.einsum("ij,ij->i", rows, expected) > 0.9999).all()


def test_sift_agrees_with_opencv_s():
    patches = np.rint(textures(60, 31, seed=5)).astype(np.uint8)
    # OpenCV smooths what it is given to 1.6, as the first level of its scale space.
    smoothed = np.stack(
        [cv2.GaussianBlur(patch.astype(np.float32), (0, 0), np.sqrt(1.6**2 - 0.5**2)) for patch in patches]
    )
    rows = find_descriptor("sift").describe(smoothed)
    # Its bin is three times half the keypoint's size; ours is a fifth of the patch. Its angles run from x to up.
    keypoint = cv2.KeyPoint(15, 15, 2 * 31 / 5 / 3, 0)
    theirs = np.stack([cv2.SIFT_create().compute(patch, [keypoint])[1][0] for patch in patches]).reshape(60, 16, 8)
    expected = theirs[:, :, [0, 7, 6, 5, 4, 3, 2, 1]].reshape(60, 128)
    correlation = np.corrcoef(rows, expected)[:60, 60:]
    assert np.diag(correlation).min() > 0.999
    assert (correlation.argmax(axis=1) == np.arange(60)).all()


def test_rootsift_is_the_square_root_of_sift_in_l1():
    patches = textures(50, 31, seed=1)
    sift, root = (find_descriptor(name).describe(patches) for name in ("sift", "rootsift"))
    np.testing.assert_allclose(root**2, sift / sift.sum(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(root, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(sift, axis=1), 1, atol=1e-5)


def test_a_quarter_turn_of_the_patch_permutes_sift():
    patches = textures(20, 31, seed=2)
    turned = find_descriptor("sift").describe(np.ascontiguousarray(np.rot90(patches, -1, axes=(1, 2))))
    rows = find_descriptor("sift").describe(patches).reshape(-1, 4, 4, 8)
    # Clockwise on the screen: bins turn with the patch, orientations by a quarter (two channels) from x towards y.
    expected = np.roll(np.rot90(rows, -1, axes=(1, 2)), 2, axis=3)
    np.testing.assert_allclose(turned.reshape(-1, 4, 4, 8), expected, atol=2e-3)


@pytest.mark.parametrize("name", ["sift", "rootsift", "rootsift-proj"])
def test_half_a_turn_takes_no_second_look(name):
    patches, descriptor = textures(20, 31, seed=2), find_descriptor(name)
    upright, turned = descriptor.describe_both(patches)
    np.testing.assert_array_equal(upright, descriptor.describe(patches))
    np.testing.assert_allclose(turned, descriptor.describe(np.ascontiguousarray(patches[:, ::-1, ::-1])), atol=1e-5)


def test_an_unknown_descriptor_is_refused_by_name():
    with pytest.raises(CairnError, match=r"magic.*rootsift"):
        find_descriptor("magic")


@pytest.mark.parametrize("orientations", [8, 36])
def test_channels_share_the_gradient_and_keep_its_direction(orientations):
    patches = textures(4, 20, seed=8)
    channels = orientation_channels(patches, orientations)
    assert channels.shape == (orientations, 4, 18 * 18) and (channels >= 0).all()
    down, across = (np.gradient(patches.astype(np.float64), axis=axis)[:, 1:-1, 1:-1] * 2 for axis in (1, 2))
    magnitude = np.hypot(across, down).reshape(4, -1)
    np.testing.assert_allclose(channels.sum(axis=0), magnitude, rtol=1e-4, atol=1e-3)
    assert (np.count_nonzero(channels > 1e-4 * magnitude, axis=0) <= 2).all()
    # Between two channels the direction is the linear mean of theirs.
    step = 2 * np.pi / orientations
    angle = np.arctan2(down, across).reshape(4, -1) % (2 * np.pi)
    for channel in range(orientations):
        distance = np.abs((angle - channel * step + np.pi) % (2 * np.pi) - np.pi) / step
        np.testing.assert_allclose(
            channels[channel], np.maximum(0, 1 - distance) * magnitude, atol=0.01 * magnitude.max()
        )


def test_the_dominant_orientation_follows_the_patch():
    y, x = np.mgrid[-1:1:31j, -1:1:31j]
    for angle in np.linspace(-3.1, 3.1, 40):
        # A soft edge whose gradient points along the angle, on a little texture.
        edge = 100 / (1 + np.exp(-6 * (np.cos(angle) * x + np.sin(angle) * y)))
        found = dominant_orientation((50 + edge + 0.02 * textures(1, 31)[0])[None].astype(np.float32))[0]
        assert abs((found - angle + np.pi) % (2 * np.pi) - np.pi) < np.radians(5)
    assert dominant_orientation(np.zeros((0, 31, 31), np.float32)).shape == (0,)
    assert np.isfinite(dominant_orientation(np.full((2, 31, 31), 9, np.float32))).all()


def test_a_quarter_turn_moves_the_dominant_orientation_by_a_quarter():
    patches = textures(100, 31, seed=12)
    before = dominant_orientation(patches)
    after = dominant_orientation(np.ascontiguousarray(np.rot90(patches, -1, axes=(1, 2))))
    difference = (after - before - np.pi / 2 + np.pi) % (2 * np.pi) - np.pi
    # Where two peaks are as high, rounding may choose the other.
    assert (np.abs(difference) < 0.02).mean() > 0.97


@pytest.mark.parametrize(("name", "dim"), [("cairn", 128), ("pr-proj", 123), ("rootsift-proj", 108)])
def test_the_descriptors_that_come_with_cairn_are_there_with_their_provenance(name, dim):
    descriptor = find_descriptor(name)
    patches = textures(40, descriptor.patch_size)
    rows = descriptor.describe(patches)
    assert rows.shape == (40, dim) == (40, descriptor.dim) and np.isfinite(rows).all()
    np.testing.assert_allclose(rows[3:4], descriptor.describe(patches[3:4]), rtol=1e-4, atol=1e-5)
    reported = descriptor.model.provenance
    assert reported["matches"]["counts"]["photos"] > 100 and reported["verdict"]["outcome"] == "better"
    assert "/" not in str(reported)
