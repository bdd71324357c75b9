"""The error rate of a descriptor on labelled patches: measured directly, and through the command."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from eval import patches as module
from eval.patches import evaluate_patches, squared_distances
from index.errors import CairnError
from learning.measures.roc import fpr95
from learning.patches.phototour import (
    PUBLISHED_TEST,
    PatchPairs,
    PatchSet,
    default_pair_file,
    write_bitmaps,
    write_info,
    write_pairs,
)
from retrieval.descriptors.registry import find_descriptor
from retrieval.regions.patches import resample_patches
from tests.conftest import Ran

Cairn = Callable[..., Ran]
POINTS, VIEWS = 100, 3
KEYS = {"fpr95", "auc", "dim", "bytes", "pairs", "ms_per_patch"}


class Grey:
    """A descriptor for calculations by hand, the mean grey value; it counts calls."""

    name, dim, patch_size, fingerprint, bytes, extent = "grey", 1, 64, "grey", 4, 1.0

    def __init__(self) -> None:
        self.batches: list[int] = []

    def describe(self, patches: np.ndarray) -> np.ndarray:
        self.batches.append(len(patches))
        return patches.mean(axis=(1, 2), dtype=np.float64)[:, None].astype(np.float32)


def write_pair_file(folder: Path, name: str, pairs: list[tuple[int, int]], points: np.ndarray) -> None:
    lines = [f"{one} {points[one]} 0 {two} {points[two]} 0 0\n" for one, two in pairs]
    (folder / name).write_text("".join(lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noisy views of smooth random textures, three a point, with training and test pairs over other points each."""
    folder = tmp_path_factory.mktemp("patches")
    rng = np.random.default_rng(4)
    textures = np.array([cv2.GaussianBlur(one, (0, 0), 3) for one in rng.normal(size=(POINTS, 64, 64))])
    points = np.repeat(np.arange(POINTS), VIEWS)
    views = 128 + 200 * textures[points] + rng.normal(scale=30, size=(len(points), 64, 64))
    write_bitmaps(folder, views.clip(0, 255).astype(np.uint8))
    write_info(folder, points, np.tile(np.arange(VIEWS), POINTS))
    for split, (start, stop) in ((0, (0, 60)), (2, (60, POINTS))):
        shown = np.arange(start, stop).repeat(2)
        one = VIEWS * shown
        other = VIEWS * np.roll(shown, 14) + 1  # of the point seven before
        match = one + 1 + np.tile([0, 1], stop - start)
        write_pairs(folder, split, np.concatenate([one, one]), np.concatenate([match, other]), points)
    return folder


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """Patches 0 to 9, each of one grey value, ten times its number."""
    levels = np.arange(10, dtype=np.uint8) * 10
    write_bitmaps(tmp_path, np.broadcast_to(levels[:, None, None], (10, 64, 64)))
    write_info(tmp_path, np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]), np.zeros(10, int))
    return tmp_path


def test_a_set_worked_by_hand(flat: Path) -> None:
    points = PatchSet.open(flat).points
    # Distances 10² four times and 10², 20², 50², 10²: two of the other pairs are as near as the matches.
    pairs = [(0, 1), (2, 3), (5, 4), (9, 8), (1, 2), (0, 2), (2, 7), (6, 5)]
    write_pair_file(flat, "m50_4_4_2.txt", pairs, points)
    descriptor = Grey()
    report = evaluate_patches(flat, descriptor)
    np.testing.assert_array_equal(report.distances, [100, 100, 100, 100, 100, 400, 2500, 100])
    np.testing.assert_array_equal(report.match, [True] * 4 + [False] * 4)
    assert (report.fpr95, report.auc) == (0.5, 0.75)
    assert (report.pair_file, report.descriptor, report.dim, report.bytes) == ("m50_4_4_2.txt", "grey", 1, 4)
    assert (report.pairs, report.patches) == (8, 10)
    assert descriptor.batches == [10]  # each patch once, however many pairs it is in
    assert report.ms_per_patch > 0


@pytest.mark.parametrize("name", ["sift", "rootsift"])
def test_distances_are_those_of_the_pairs_described_one_by_one(folder: Path, name: str) -> None:
    descriptor = find_descriptor(name)
    report = evaluate_patches(folder, descriptor)
    patches = PatchSet.open(folder)
    pairs = patches.pairs("test")
    for row in range(0, len(pairs), 7):
        one, two = (
            descriptor.describe(resample_patches(patches.read(np.array([number])), descriptor.patch_size))[0]
            for number in (pairs.first[row], pairs.second[row])
        )
        assert report.distances[row] == pytest.approx(((one - two) ** 2).sum(), rel=1e-4)
    np.testing.assert_array_equal(report.match, pairs.match)
    assert report.fpr95 == fpr95(report.distances, pairs.match)
    assert report.fpr95 < 0.5 < report.auc


def test_the_result_does_not_depend_on_how_much_is_done_at_a_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evaluate_patches(folder, Grey())
    reported: list[tuple[str, int, int]] = []
    descriptor = Grey()
    monkeypatch.setattr(module, "_PATCHES", 7)
    monkeypatch.setattr(module, "_PAIRS", 11)
    monkeypatch.setattr("eval.descriptions._MEMORY", 0)  # descriptors go to a file
    parts = evaluate_patches(PatchSet.open(folder), descriptor, progress=lambda *step: reported.append(step))
    np.testing.assert_array_equal(parts.distances, whole.distances)
    assert (max(descriptor.batches), sum(descriptor.batches)) == (7, whole.patches)
    assert reported[-1] == ("describe", whole.patches, whole.patches)


def test_pairs_may_be_given_as_they_are(folder: Path) -> None:
    patches = PatchSet.open(folder)
    test = patches.pairs("test")
    back = PatchPairs(test.second[::-1], test.first[::-1], test.match[::-1])
    report, other = evaluate_patches(patches, Grey(), back), evaluate_patches(patches, Grey())
    np.testing.assert_array_equal(report.distances, other.distances[::-1])
    assert (report.fpr95, report.auc, report.pair_file) == (other.fpr95, other.auc, "")


def test_squared_distances() -> None:
    rows = np.array([[0, 0], [3, 4], [-3, 4]], np.float32)
    np.testing.assert_array_equal(squared_distances(rows, np.array([0, 1, 2]), np.array([1, 2, 2])), [25, 36, 0])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["m50_9_9_0.txt", "m50_9_9_1.txt", "m50_5_5_2.txt"], "m50_5_5_2.txt"),
        (["m50_900_900_2.txt", "m50_1000_1000_2.txt"], "m50_1000_1000_2.txt"),
        (["m50_1000_1000_0.txt", PUBLISHED_TEST, "m50_500000_500000_0.txt"], PUBLISHED_TEST),
        (["m50_500000_500000_0.txt"], None),  # ambiguous
        ([], None),
    ],
)
def test_the_test_pairs_are_taken(flat: Path, names: list[str], expected: str | None) -> None:
    for name in names:
        write_pair_file(flat, name, [(0, 1)], np.zeros(10, int))
    patches = PatchSet.open(flat)
    if expected is None:
        with pytest.raises(CairnError, match="pairs"):
            default_pair_file(patches)
    else:
        assert default_pair_file(patches) == expected


# The command


def test_the_command_prints_what_was_measured(folder: Path, cairn: Cairn, tmp_path: Path) -> None:
    direct = evaluate_patches(folder, find_descriptor("sift"))
    out = tmp_path / "roc.png"
    answer = cairn("evaluate", "patches", folder, "--descriptor", "sift", "--roc", out, "--json").json
    assert answer.keys() >= KEYS
    for key in ("fpr95", "auc", "dim", "bytes", "pairs", "pair_file", "descriptor"):
        assert answer[key] == getattr(direct, key), key
    assert out.read_bytes().startswith(b"\x89PNG")
    text = cairn("evaluate", "patches", folder, "--descriptor", "sift")
    assert text.code == 0
    assert f"{100 * direct.fpr95:.2f}%" in text.out


def test_the_command_takes_other_pairs(folder: Path, cairn: Cairn) -> None:
    train = next(name for name in PatchSet.open(folder).pair_files if name.endswith("_0.txt"))
    answer = cairn("evaluate", "patches", folder, "--descriptor", "rootsift", "--pairs", train, "--json").json
    assert answer["pair_file"] == train
    assert answer["pairs"] == len(PatchSet.open(folder).pairs(train))


def test_what_cannot_be_measured_is_refused_with_a_sentence(folder: Path, flat: Path, cairn: Cairn) -> None:
    command = ("evaluate", "patches")
    assert "info.txt" in cairn(*command, flat / "nowhere", "--descriptor", "sift").refused()
    assert "m50_7_7_0.txt" in cairn(*command, folder, "--descriptor", "sift", "--pairs", "m50_7_7_0.txt").refused()
    assert "brief" in cairn(*command, folder, "--descriptor", "brief").refused()
    assert "--pairs" in cairn(*command, flat, "--descriptor", "sift").refused()
    points = PatchSet.open(flat).points
    write_pair_file(flat, "m50_2_0_2.txt", [(0, 1), (2, 3)], points)
    assert "2 matching pairs among 2" in cairn(*command, flat, "--descriptor", "sift").refused()
    write_pair_file(flat, "m50_0_0_2.txt", [], points)
    assert (
        "0 matching pairs among 0"
        in cairn(*command, flat, "--pairs", "m50_0_0_2.txt", "--descriptor", "sift").refused()
    )
    refused = cairn(*command, folder, "--descriptor", "sift", "--roc", flat / "no" / "folder" / "roc.png").refused()
    assert "folder" in refused
