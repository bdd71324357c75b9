"""Descriptions by other programs: the same figures as of the descriptor, in every form, and refusals."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from eval.descriptions import Descriptions, read_descriptions
from eval.patches import evaluate_patches, share_of
from index.errors import CairnError
from learning.measures.roc import fpr95
from learning.patches.phototour import PatchPairs, PatchSet, write_bitmaps, write_info, write_pairs
from retrieval.descriptors.registry import find_descriptor
from retrieval.regions.patches import resample_patches
from tests.conftest import Ran

Cairn = Callable[..., Ran]
PATCHES = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two noisy views of each of sixty points, with test pairs over them."""
    folder = tmp_path_factory.mktemp("patches")
    rng = np.random.default_rng(7)
    points = np.arange(PATCHES) // 2
    textures = rng.normal(128, 40, (PATCHES // 2, 8, 8)).repeat(8, 1).repeat(8, 2)[points]
    write_bitmaps(folder, (textures + rng.normal(0, 60, textures.shape)).clip(0, 255).astype(np.uint8))
    write_info(folder, points, np.zeros(PATCHES, int))
    even = np.arange(0, PATCHES, 2)
    write_pairs(folder, 2, np.concatenate([even, even]), np.concatenate([even + 1, (even + 7) % PATCHES]), points)
    return folder


@pytest.fixture(scope="module")
def rows(folder: Path) -> np.ndarray:
    sift = find_descriptor("rootsift")
    patches = PatchSet.open(folder)
    return sift.describe(resample_patches(patches.read(np.arange(PATCHES)), sift.patch_size))


def test_rows_of_a_descriptor_give_its_figures_in_every_form(folder: Path, rows: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", rows)
    np.savez(tmp_path / "b.npz", rows)
    np.savez_compressed(tmp_path / "c.npz", descriptions=rows, other=rows[:3])
    np.savetxt(tmp_path / "d.csv", rows, "%.9g", delimiter=",")
    np.savetxt(tmp_path / "e.txt", rows, "%.9g", header="x " * 128, comments="")
    wanted = evaluate_patches(folder, find_descriptor("rootsift"))
    for path in tmp_path.iterdir():
        report = evaluate_patches(folder, read_descriptions(path))
        np.testing.assert_allclose(report.distances, wanted.distances, rtol=1e-5, atol=1e-6)
        assert (report.fpr95, report.dim, report.bytes, report.ms_per_patch) == (wanted.fpr95, 128, 512, None)
        assert (report.descriptor, report.pair_file, report.patches) == (path.stem, "m50_60_60_2.txt", PATCHES)


def test_packed_bits_are_compared_by_hamming_distance(folder: Path, tmp_path: Path) -> None:
    bits = np.random.default_rng(1).integers(0, 2, (PATCHES, 40), dtype=np.uint8)
    packed = np.packbits(bits, axis=1)
    np.save(tmp_path / "bits.npy", packed)
    np.savetxt(tmp_path / "bits.csv", packed, "%d", delimiter=";")
    pairs = PatchSet.open(folder).pairs("test")
    hamming = 40 * cdist(bits, bits, "hamming")[pairs.first, pairs.second]
    for name in ("bits.npy", "bits.csv"):
        report = evaluate_patches(folder, read_descriptions(tmp_path / name, binary=True))
        np.testing.assert_array_equal(report.distances, hamming.round())
        assert (report.fpr95, report.dim, report.bytes) == (fpr95(hamming.round(), pairs.match), 40, 5)


def test_a_share_keeps_the_proportion_and_follows_the_seed() -> None:
    match = np.arange(1000) % 4 == 0
    pairs = PatchPairs(np.arange(1000), np.arange(1000, 2000), match)
    one, same, other = (share_of(pairs, 100, seed) for seed in (1, 1, 2))
    assert len(one) == 100 and one.match.sum() == 25
    assert (np.diff(one.first) > 0).all() and ((one.second - one.first) == 1000).all()
    np.testing.assert_array_equal(one.first, same.first)
    assert set(one.first) != set(other.first)
    rare = share_of(PatchPairs(pairs.first, pairs.second, np.arange(1000) == 3), 10, 0)
    assert (rare.match.sum(), len(rare)) == (1, 10)


@pytest.mark.parametrize(
    ("contents", "binary", "said"),
    [
        (np.zeros((5, 3)), False, "describes 5 patches, but .* has 120: give a row for every patch"),
        (np.zeros(PATCHES), False, r"shape \(N, D\), and has \(120,\)"),
        (np.array([["a"]] * PATCHES), False, "must hold numbers"),
        (np.zeros((PATCHES, 4)), True, "must hold bytes"),
        (
            np.where(np.arange(PATCHES)[:, None] == 7, np.nan, np.ones((1, 4))),
            False,
            "no finite description of patch 7",
        ),
        ("1,2\n3\n", False, "no table of numbers"),
        ("", False, "must have a row of numbers"),
        (None, False, "is missing"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(
    folder: Path, tmp_path: Path, contents: np.ndarray | str | None, binary: bool, said: str
) -> None:
    path = tmp_path / ("rows.csv" if isinstance(contents, str) else "rows.npy")
    if isinstance(contents, str):
        path.write_text(contents)
    elif contents is not None:
        np.save(path, contents)
    with pytest.raises(CairnError, match=said):
        evaluate_patches(folder, read_descriptions(path, binary=binary))


def test_several_arrays_without_a_name_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.ones((2, 2)), y=np.ones((2, 2)))
    with pytest.raises(CairnError, match="has 2 arrays, 'x', 'y': call the one to take 'descriptions'"):
        read_descriptions(tmp_path / "a.npz")
    assert Descriptions("a", np.ones((2, 3), np.float16)).bytes == 6


def test_commands_take_them(cairn: Cairn, folder: Path, rows: np.ndarray, tmp_path: Path) -> None:
    path, bits = tmp_path / "mine.npy", tmp_path / "bits.npy"
    np.save(path, rows)
    np.save(bits, np.packbits(rows > np.median(rows, 0), axis=1))
    plain = cairn("evaluate", "patches", folder, "--json").json
    mine = cairn("evaluate", "patches", folder, "--descriptions", path, "--json").json
    assert {key: mine[key] for key in ("fpr95", "auc", "pairs", "dim")} == {
        key: plain[key] if key != "auc" else pytest.approx(plain[key]) for key in ("fpr95", "auc", "pairs", "dim")
    }
    assert "mine, 128-D, 512 bytes\n" in cairn("evaluate", "patches", folder, "--descriptions", path).out
    short = ("--descriptions", bits, "--binary", "--max-pairs", 30, "--seed", 3, "--json")
    assert cairn("evaluate", "patches", folder, *short).json["pairs"] == 30
    both = cairn("evaluate", "patches", folder, "--descriptor", "sift", "--descriptions", path)
    assert "exclude each other" in both.refused()
    assert "--descriptions" in cairn("evaluate", "patches", folder, "--binary").refused()
    pytest.importorskip("matplotlib")
    out = tmp_path / "roc.svg"
    drawn = ("--descriptor", "rootsift", "--descriptions", path, "--binary-descriptions", bits, "--out", out)
    assert cairn("plot", "roc", folder, *drawn).code == 0
    assert all(label in out.read_text() for label in ("rootsift, 128-D", "mine, 128-D", "bits, 128-D"))
    assert "nothing to draw" in cairn("plot", "roc", folder, "--out", out).refused()
