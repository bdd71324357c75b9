"""SIFT is what its definition says, computed sample by sample."""

import numpy as np
import pytest

from retrieval.descriptors.sift import Sift
from tests.support.learning.learnt_models import textures


def by_definition(patch, size):
    """Bins of place and orientation (4, 4, 8), each sample shared between the eight nearest, float64."""
    sums = np.zeros((4, 4, 8))
    middle, width = (size - 1) / 2, size / 5
    for y in range(1, size - 1):
        for x in range(1, size - 1):
            across = float(patch[y, x + 1]) - float(patch[y, x - 1])
            down = float(patch[y + 1, x]) - float(patch[y - 1, x])
            orientation = np.arctan2(down, across) / (2 * np.pi) * 8 % 8
            weight = np.hypot(across, down)
            weight *= np.exp(-((x - middle) ** 2 + (y - middle) ** 2) / (2 * (2 * width) ** 2))
            for row in range(4):
                for column in range(4):
                    nearness = (1 - abs((y - middle) / width + 1.5 - row), 1 - abs((x - middle) / width + 1.5 - column))
                    if min(nearness) <= 0:
                        continue
                    for channel in (int(orientation), int(orientation) + 1):
                        share = 1 - abs(orientation - channel)
                        sums[row, column, channel % 8] += weight * share * nearness[0] * nearness[1]
    return sums.reshape(-1)


@pytest.mark.parametrize("size", [31, 24])
def test_sift_and_rootsift_are_what_they_are_defined_as(size):
    patches = textures(6, size, seed=3)
    expected = np.array([by_definition(patch, size) for patch in patches])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    expected = np.minimum(expected, 0.2)
    sift = Sift(patch_size=size).describe(patches)
    # The angle of a gradient is known to a third of a degree.
    np.testing.assert_allclose(sift, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=2e-3)
    root = Sift(root=True, patch_size=size).describe(patches)
    np.testing.assert_allclose(root**2, expected / expected.sum(axis=1, keepdims=True), atol=5e-4)


def test_rows_do_not_depend_on_how_many_patches_there_are():
    patches = textures(200, 31, seed=4)
    sift = Sift(root=True)
    together = sift.describe(patches)
    np.testing.assert_allclose(together, np.concatenate([sift.describe(patch[None]) for patch in patches]), atol=1e-4)
    assert sift.describe(patches[:0]).shape == (0, 128)
