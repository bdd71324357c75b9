"""Labelled patches in arrays: pairs are of the right kind, and validation pairs are not used for learning."""

from typing import Any

import numpy as np
import pytest

from index.errors import CairnError
from learning.library.array_patches import pairs_of_arrays, source_of_arrays

PATCHES = np.random.default_rng(0).integers(0, 256, (60, 8, 8)).astype(np.uint8)
POINTS = np.repeat(["c", "a", "b", "d", "e", "f"], 10)


def test_pairs_of_points() -> None:
    patches, pairs = pairs_of_arrays((PATCHES, POINTS))
    assert pairs.match.sum() == 6 * 45 == (~pairs.match).sum()  # all pairs of ten patches of a point
    np.testing.assert_array_equal(POINTS[pairs.first] == POINTS[pairs.second], pairs.match)
    assert len({tuple(sorted(pair)) for pair in zip(pairs.first, pairs.second, strict=True)}) > 400
    np.testing.assert_array_equal(patches.read(pairs.first), PATCHES[pairs.first])


def test_points_and_pairs_are_held_out() -> None:
    source = source_of_arrays((PATCHES, POINTS), seed=3)
    shown = [set(POINTS[np.concatenate([part.first, part.second])]) for part in (source.train, source.validation)]
    assert (len(shown[0]), len(shown[1])) == (4, 2) and not shown[0] & shown[1]
    same = np.arange(30) < 10
    source = source_of_arrays((PATCHES[:30], PATCHES[30:], same))
    assert (source.train.match.sum(), source.validation.match.sum()) == (8, 2)
    assert sorted([*source.train.first, *source.validation.first]) == list(range(30))
    np.testing.assert_array_equal(source.train.second, source.train.first + 30)
    np.testing.assert_array_equal(source.train.match, same[source.train.first])
    few = source_of_arrays((PATCHES, POINTS), pairs=20)
    assert (len(few.train), len(few.validation), few.train.match.sum()) == (20, 10, 10)
    assert source.describe()["name"] == "arrays"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ((PATCHES, POINTS[1:]), r"point_ids must have the shape \(60,\)"),
        (([[1], [1, 2]], [0, 1]), "several lengths"),
        ((PATCHES[:, :4], POINTS), r"shape \(N, S, S\)"),
        ((PATCHES / 255, POINTS), "uint8"),
        ((PATCHES[:0], POINTS[:0]), r"shape \(N, S, S\)"),
        ((PATCHES, np.arange(60)), "0 matches"),
        ((PATCHES, np.zeros(60)), "more points"),
        ((PATCHES, PATCHES[:9], np.ones(60, bool)), "one shape"),
        ((PATCHES, PATCHES, np.full(60, 0.5)), "True or False"),
        ((PATCHES, PATCHES, np.ones(60, bool)), "60 matches|matches among"),
        ((PATCHES, PATCHES, np.arange(60) == 0), "0 matches among"),
    ],
)
def test_what_does_not_fit_is_refused(source: Any, sentence: str) -> None:
    with pytest.raises(CairnError, match=sentence):
        source_of_arrays(source)
