"""SURF compared with its definition, point by point, and what turns and mirrors do to it; and plain grey values."""

import numpy as np
import pytest

from index.errors import CairnError
from retrieval.descriptors.contract import check_distance, signs_of
from retrieval.descriptors.raw_pixels import RawPixels
from retrieval.descriptors.registry import find_descriptor
from retrieval.descriptors.surf import Surf
from tests.support.learning.learnt_models import textures


def defined(patch):
    """Bay et al. (2008), section 4.2, a loop at a time: s is two samples, points lie at odd multiples of half of it."""
    s, row = 2, []
    for cell_y in range(4):
        for cell_x in range(4):
            sums = np.zeros(4)
            for j in range(5):
                for i in range(5):
                    x, y = (5 * cell_x + i + 1) * s, (5 * cell_y + j + 1) * s  # corners of samples
                    weight = np.exp(-((x - 21) ** 2 + (y - 21) ** 2) / (2 * (3.3 * s) ** 2))
                    box = patch[y - s : y + s, x - s : x + s].astype(float)
                    dx = box[:, s:].mean() - box[:, :s].mean()
                    dy = box[s:].mean() - box[:s].mean()
                    sums += weight * np.array([dx, dy, abs(dx), abs(dy)])
            row.extend(sums)
    return np.array(row) / np.linalg.norm(row)


def test_surf_is_what_its_paper_defines():
    patches = textures(6, 42)
    rows = Surf().describe(patches)
    np.testing.assert_allclose(rows, [defined(patch) for patch in patches], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_a_patch_turned_or_mirrored_has_its_entries_moved():
    patches = textures(8, 42)
    surf = Surf()
    rows = surf.describe(patches)
    half = surf.describe(patches[:, ::-1, ::-1])
    np.testing.assert_allclose(surf.describe_both(patches)[1], half, atol=1e-5)
    cells = rows.reshape(-1, 4, 4, 4)
    mirrored = surf.describe(patches[:, :, ::-1]).reshape(-1, 4, 4, 4)
    np.testing.assert_allclose(mirrored, cells[:, :, ::-1] * [-1, 1, 1, 1], atol=1e-5)
    quarter = surf.describe(patches.transpose(0, 2, 1)).reshape(-1, 4, 4, 4)  # about a diagonal
    np.testing.assert_allclose(quarter, cells.transpose(0, 2, 1, 3)[..., [1, 0, 3, 2]], atol=1e-5)


def test_grey_values_are_compared_by_their_correlation():
    patches = textures(5, 64)
    rows = RawPixels().describe(patches)
    squared = np.square(rows[:, None] - rows[None]).sum(axis=2)
    np.testing.assert_allclose(squared, 2 - 2 * np.corrcoef(patches.reshape(5, -1)), atol=1e-5)
    turned = RawPixels().describe(patches[:, ::-1, ::-1])
    np.testing.assert_allclose(RawPixels().describe_both(patches)[1], turned, atol=1e-5)


def test_they_are_found_by_name_and_compared_by_distance():
    for name, dim in (("surf", 64), ("ssd", 4096), ("ssd-32", 1024)):
        found = find_descriptor(name)
        assert (found.name, found.dim, found.bytes) == (name, dim, 4 * dim)
        check_distance(found)
        assert signs_of(found) is None
    signed = Surf()
    signed.signs = np.ones(64, np.float32)
    with pytest.raises(CairnError, match="signed inner product"):
        check_distance(signed)
