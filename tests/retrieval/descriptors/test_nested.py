"""Tests for `retrieval.descriptors.nested`."""

import numpy as np
import pytest

from retrieval.descriptors.nested import NestedSift, load_nested
from retrieval.descriptors.sift import Sift
from tests.support.learning.learnt_models import textures


def test_each_part_is_rootsift_of_a_square_about_the_middle():
    patches = textures(20, 31, seed=3)
    rows = NestedSift((31, 21, 17)).describe(patches)
    assert rows.shape == (20, 3 * 128)
    for number, (side, margin) in enumerate([(31, 0), (21, 5), (17, 7)]):
        middle = np.ascontiguousarray(patches[:, margin : margin + side, margin : margin + side])
        expected = Sift(root=True, patch_size=side).describe(middle)
        np.testing.assert_array_equal(rows[:, 128 * number : 128 * number + 128], expected)


def test_what_lies_around_the_middle_changes_the_first_part_alone():
    patches = textures(4, 31, seed=5)
    other = patches.copy()
    other[:, :6] = other[:, :6, ::-1]
    changed = NestedSift((31, 17)).describe(patches) != NestedSift((31, 17)).describe(other)
    assert changed[:, :128].any(axis=1).all() and not changed[:, 128:].any()


@pytest.mark.parametrize(
    "meta",
    [
        {"version": 1, "sides": []},
        {"version": 1, "sides": [17, 31]},
        {"version": 1, "sides": [31, 16]},
        {"version": 1, "sides": [31, 3]},
        {"version": 1, "sides": [100_001, 17]},
        {"version": 1, "sides": [31.0, 17.0]},
        {"version": 1, "sides": [True]},
        {"version": 1, "sides": [31] * 9},
        {"version": 2, "sides": [31, 17]},
        {"version": 1},
        {"version": 1, "sides": None},
    ],
)
def test_what_does_not_fit_is_refused(meta):
    with pytest.raises((ValueError, KeyError, TypeError)):
        load_nested(meta, {})
