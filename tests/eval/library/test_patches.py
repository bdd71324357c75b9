"""Error rates of distances, rows and descriptors by one function: worked by hand, and as the command prints them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cairn as public
from eval.library.patches import evaluate_patches
from index.errors import CairnError
from tests.conftest import Ran
from tests.support.learning.boosting_cases import write_views

Cairn = Callable[..., Ran]
# Nine of ten matches lie below all others; the tenth is farther than three of four of these.
DISTANCES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 10, 11, 12, 14]
SAME = [True] * 10 + [False] * 4


def scenes(number: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Patches (2 N, 64, 64) of N points, each once brighter and once darker."""
    scene = np.random.default_rng(seed).integers(0, 256, (number, 64, 64)).astype(np.uint8)
    return np.concatenate([scene, scene // 2 + 40]), np.tile(np.arange(number), 2)


def test_distances_worked_by_hand() -> None:
    found = evaluate_patches(DISTANCES, same=SAME)
    # 95% of ten matches are all ten: the threshold is 13, below which three of four others lie.
    assert found.fpr95 == 0.75
    assert found.auc == pytest.approx((9 * 4 + 1) / 40)
    assert found.false_positive_rate[[0, 9, -1]].tolist() == [0, 0, 1]
    assert found.true_positive_rate[[0, 9, -1]].tolist() == [0, 0.9, 1]
    assert found.to_dict() == {"fpr95": 0.75, "auc": found.auc, "pairs": 14, "matching": 10}


def test_rows_and_packed_bits() -> None:
    first, second = np.zeros((3, 2)), np.array([[3, 4], [0, 1], [6, 8]])
    found = evaluate_patches((first, second), same=[1, 1, 0])
    assert found.distances.tolist() == [25, 1, 100] and found.fpr95 == 0
    bits = np.array([[0b11110000], [0b1], [0]], np.uint8)
    assert evaluate_patches((bits, bits[::-1]), same=[1, 0, 0], binary=True).distances.tolist() == [4, 0, 4]


def test_descriptors_functions_and_rows_of_patches() -> None:
    patches, points = scenes(20)
    found = evaluate_patches("rootsift", (patches, points))
    assert (found.fpr95, len(found.same), found.same.sum()) == (0, 40, 20)
    assert found.to_dict()["descriptor"] == "rootsift" and "folder" not in found.to_dict()
    by_name = evaluate_patches("rootsift", (patches[:20], patches[20:]), same=np.arange(20) > 3)
    by_object = evaluate_patches(public.Descriptor.load("rootsift"), (patches[:20], patches[20:], np.arange(20) > 3))
    assert by_name.distances.tolist() == by_object.distances.tolist()

    def means(patches: np.ndarray) -> np.ndarray:
        return patches.mean(axis=(1, 2))[:, None]

    rows = evaluate_patches(means(patches), (patches, points))
    np.testing.assert_allclose(evaluate_patches(means, (patches, points)).distances, rows.distances, rtol=1e-3)


def test_a_folder_gives_what_the_command_prints(cairn: Cairn, tmp_path: Path) -> None:
    folder = write_views(tmp_path / "set")
    reported = cairn("evaluate", "patches", folder, "--descriptor", "sift", "--pairs", "validation", "--json").json
    steps: list[str] = []
    found = evaluate_patches("sift", str(folder), pairs="validation", progress=lambda step, *_: steps.append(step))
    assert {**found.to_dict(), "ms_per_patch": None} == {**reported, "ms_per_patch": None}
    assert found.fpr95 == reported["fpr95"] and set(steps) == {"describe"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (((DISTANCES,), {}), "give same, too"),
        (((DISTANCES,), {"same": SAME[1:]}), r"same must have the shape \(14,\)"),
        (((DISTANCES,), {"same": [2] * 14}), "True or False"),
        (((DISTANCES,), {"same": [True] * 14}), "14 of 14 pairs match"),
        ((([float("nan")] * 14,), {"same": SAME}), "not a number"),
        (((["a", "b"],), {"same": [1, 0]}), "must be numbers"),
        (((np.eye(2),), {"same": [1, 0]}), r"shape \(M,\)"),
        ((((np.eye(2), np.eye(3)),), {"same": [1, 0]}), "one shape"),
        ((((np.full((2, 2), np.nan), np.eye(2)),), {"same": [1, 0]}), "no finite description"),
        ((((np.eye(2), np.eye(2)),), {"same": [1, 0], "binary": True}), "uint8"),
        ((("rootsift",), {"same": [1, 0]}), "measured on patches"),
        ((("rootsift", scenes(3)), {"binary": True}), "leave it out"),
        ((("nothing", scenes(3)), {}), "no descriptor 'nothing'"),
        (((3, scenes(3)), {}), "A descriptor is a name"),
        (((np.eye(5), scenes(3)), {}), "describes 5 patches"),
        (((lambda patches: patches, scenes(3)), {}), "must give rows"),
        (((lambda patches: np.full((len(patches), 2), np.nan), scenes(3)), {}), "not finite"),
        ((([[1], [1, 2], [3]],), {"same": [1, 0, 1]}), "several lengths"),
        ((("rootsift", ([[1], [1, 2]], [0, 1])), {}), "several lengths"),
        (((DISTANCES,), {"same": SAME, "seed": -1}), "seed is 0 at least"),
        ((("rootsift", (scenes(3)[0], scenes(3)[0])), {}), "give same, too"),
        ((("rootsift", (scenes(3)[0] / 2, scenes(3)[1])), {}), "uint8"),
        ((("rootsift", 5), {}), "patches is a folder"),
        ((("rootsift", "nowhere"), {"same": SAME}), "leave same out"),
        ((("rootsift", "nowhere"), {}), "info.txt"),
    ],
)
def test_what_cannot_be_measured_is_said(given: Any, sentence: str) -> None:
    with pytest.raises(CairnError, match=sentence):
        evaluate_patches(*given[0], **given[1])


def test_what_describes_needs_no_more_than_that() -> None:
    class Mean:
        def describe(self, patches: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            assert patches.dtype == np.float32
            return patches.mean(axis=1)

    found = evaluate_patches(Mean(), scenes(6))
    np.testing.assert_array_equal(found.distances, evaluate_patches(Mean().describe, scenes(6)).distances)
    assert found == found and found != evaluate_patches(Mean(), scenes(6))  # by identity: arrays have no one truth
