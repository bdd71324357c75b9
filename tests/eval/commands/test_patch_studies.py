"""Studies of patch descriptors: how much of a patch is described, and how long its codes are."""

import csv
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from eval.patches import evaluate_patches
from index.errors import CairnError
from learning.patches.phototour import PatchSet, write_pairs
from retrieval.descriptors.registry import find_descriptor
from retrieval.regions.patches import resample_patches
from tests.conftest import Ran
from tests.support.learning.boosting_cases import write_views

Cairn = Callable[..., Ran]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_views(tmp_path_factory.mktemp("studies") / "set")
    patches = PatchSet.open(folder)
    pairs = patches.pairs("train")
    write_pairs(folder, 2, pairs.first, pairs.second, patches.points)
    return folder


def test_a_share_of_a_patch_is_its_middle() -> None:
    patch = cv2.GaussianBlur(np.random.default_rng(0).random((65, 65)).astype(np.float32), (0, 0), 2)
    np.testing.assert_allclose(resample_patches(patch[None], 33, 0.5)[0], patch[16:49, 16:49], atol=1e-6)
    np.testing.assert_array_equal(resample_patches(patch[None], 65)[0], patch)


def test_footprints_are_measured_one_by_one(cairn: Cairn, folder: Path, tmp_path: Path) -> None:
    reported = cairn(
        "evaluate", "footprint", folder, "--share", 0.4, "--share", 1, "--csv", tmp_path / "f.csv", "--json"
    ).json
    errors = {row["share"]: row["fpr95"] for row in reported["errors"]}
    assert errors[1] == evaluate_patches(folder, find_descriptor("sift")).fpr95
    assert errors[0.4] == evaluate_patches(folder, find_descriptor("sift"), footprint=0.4).fpr95
    assert errors[0.4] > errors[1] and reported["best"] == {"sift": 1}
    rows = list(csv.DictReader((tmp_path / "f.csv").open()))
    assert [float(row["fpr95"]) for row in rows] == [errors[0.4], errors[1]]
    one = cairn("evaluate", "patches", folder, "--descriptor", "sift", "--footprint", 0.4, "--json").json
    assert (one["fpr95"], one["footprint"]) == (errors[0.4], 0.4)
    with pytest.raises(CairnError, match="footprint"):
        evaluate_patches(folder, find_descriptor("sift"), footprint=1.5)
    refused = cairn("evaluate", "footprint", folder, "--share", 1, "--csv", tmp_path / "no" / "f.csv").refused()
    assert "is not a folder" in refused


def test_inner_products_rank_rows_of_one_length_as_distances_do(cairn: Cairn, folder: Path) -> None:
    inner = evaluate_patches(folder, find_descriptor("rootsift"), comparison="inner")
    distance = evaluate_patches(folder, find_descriptor("rootsift"))
    np.testing.assert_allclose(2 + 2 * inner.distances, distance.distances, atol=1e-5)
    ran = cairn("evaluate", "patches", folder, "--comparison", "cosine")
    assert "no comparison 'cosine'" in ran.refused()


def test_codes_are_measured_by_their_length(cairn: Cairn, folder: Path, tmp_path: Path) -> None:
    out, code = tmp_path / "d.npz", tmp_path / "c.npz"
    assert cairn("learn", "embedding", folder, "--out", out, "--dim", 12).code == 0
    reported = cairn("evaluate", "bits", folder, "--descriptor", out, "--length", 8, "--length", 32, "--json").json
    real, binary = reported["errors"]  # a code has no fewer bits than there are dimensions
    assert (real["dim"], real["code"], binary["bits"], binary["code"]) == (12, False, 32, True)
    assert cairn("compress", out, "--out", code, "--bits", 32, "--method", "frame").code == 0
    measured = cairn("evaluate", "patches", folder, "--descriptor", code, "--json").json["fpr95"]
    assert binary["fpr95"] == measured
