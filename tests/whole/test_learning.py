"""From photos to a learnt descriptor and back to photos, through the command line: small, but all of it."""

import contextlib
import io
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from skimage import data

from learning.patches.phototour import PatchSet
from retrieval.descriptors.learnt import LearntModel, load_model, save_model
from tests.conftest import Ran, changed
from tests.support.made_once import made_once

Cairn = Callable[..., Ran]

# How the reference becomes each view: a homography about the middle, in shares of the side; then blur and noise.
TURNED = ((0.88, -0.24, 0.06), (0.22, 0.92, -0.04), (0, 0, 1))
SLANTED = ((0.85, 0.10, 0.02), (-0.04, 0.95, 0.03), (0.25, -0.10, 1))
VIEWS = ((np.eye(3), 0.0, 3.0), (np.array(TURNED), 1.2, 6.0), (np.array(SLANTED), 0.0, 12.0))
TRAINED_ON, TESTED_ON = ("astronaut", "page"), "coffee"
FILES = ("learnt", "binary", "product")
COLLECTED = ("astronaut", "camera", "chelsea", "coffee", "rocket")


def view_of(name: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """A view (H, W) uint8 of one of scikit-image's photographs, and the homography from the photograph to it."""
    image = getattr(data, name)()
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image
    height, width = grey.shape
    shares, blur, noise = VIEWS[number]
    units = np.array([[width, 0, width / 2], [0, width, height / 2], [0, 0, 1]])
    homography = units @ shares @ np.linalg.inv(units)
    view = cv2.warpPerspective(grey, homography, (width, height), borderMode=cv2.BORDER_REFLECT_101)
    view = cv2.GaussianBlur(view, (0, 0), blur) if blur else view
    noisy = view + noise * np.random.default_rng(number).normal(size=view.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8), homography


def write_sequence(folder: Path, name: str) -> Path:
    (folder / name).mkdir(parents=True)
    for number in range(len(VIEWS)):
        view, homography = view_of(name, number)
        cv2.imwrite(str(folder / name / f"img{number + 1}.png"), view)
        if number:
            np.savetxt(folder / name / f"H1to{number + 1}p", homography)
    return folder / name


@dataclass(frozen=True)
class Made:
    """What the commands have written."""

    folder: Path
    test: Path  # labelled patches of a sequence that nothing was learnt from
    files: dict[str, Path]  # descriptor files
    reports: dict[str, dict[str, Any]]  # what the commands said of them


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Sequences, labelled patches, a learnt descriptor and its codes; nobody may change them."""
    return made_once(tmp_path_factory, "learning", _make)


def _make(folder: Path) -> Made:
    sequences = [write_sequence(folder / "sequences", name) for name in (*TRAINED_ON, TESTED_ON)]
    files = {name: folder / f"{name}.npz" for name in FILES}
    train, test = folder / "train", folder / "test"
    sizes = ("--max-detections", 600, "--json")
    commands = {
        "train": ("patches", "build", train, *sequences[:2], "--train", 600, "--validation", 300, "--test", 0, *sizes),
        "test": ("patches", "build", test, sequences[2], "--train", 0, "--validation", 0, "--test", 600, *sizes),
        "learnt": (
            *("learn", "descriptor", train, "--out", files["learnt"], "--pool-step", 5, "--max-pooled-dim", 48),
            *("--dim", 24, "--pairs", 500, "--augment", 1, "--workers", 1, "--json"),
        ),
        "binary": ("compress", files["learnt"], "--out", files["binary"], "--bits", 64, "--json"),
        "product": ("compress", files["learnt"], "--out", files["product"], "--product", 64, "--json"),
    }
    with pytest.MonkeyPatch.context() as patch:
        reports = {name: run_command(patch, *command) for name, command in commands.items()}
    return Made(folder, test, files, reports)


def run_command(patch: pytest.MonkeyPatch, *arguments: object) -> dict[str, Any]:
    """Run `cairn ARGUMENTS… --json` in this process, where the fixture of one test cannot be had."""
    from cairn import main

    patch.setattr(sys, "argv", ["cairn", *map(str, arguments)])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as stop:
            assert not stop.code
    value = json.loads(out.getvalue())
    assert isinstance(value, dict)
    return value


# Learning and compressing


def test_what_is_learnt_is_told_as_the_contract_has_it(made: Made) -> None:
    report = made.reports["learnt"]
    assert report.keys() >= {"pooled_dim", "dim", "rings", "validation", "objective", "seconds"}
    model = load_model(made.files["learnt"])
    assert model.pooling is not None and model.projection is not None
    assert (report["pooled_dim"], report["dim"]) == (model.pooling.dim, len(model.projection))
    assert report["rings"] == len(np.unique(model.pooling.rings))
    assert 0 < report["dim"] <= 24 and report["dim"] <= report["pooled_dim"] <= 48
    assert report["validation"]["fpr95"] < 0.2
    # Of both stages; with nothing selected every combination would lose 1.
    assert len(report["objective"]) == 2 and all(0 < objective < 1 for objective in report["objective"])
    records = json.loads(Path(report["models"]).read_text())
    assert len(records) == report["tried"] >= 8 + 10
    assert {record["stage"] for record in records} == {"pooling", "projection"}


def test_provenance_tells_what_it_was_learnt_from(made: Made) -> None:
    provenance = load_model(made.files["learnt"]).provenance
    assert provenance["sources"] == [
        {
            "name": "train",
            "fingerprint": PatchSet.open(made.folder / "train").fingerprint,
            "train": 500,
            "validation": 250,
        }
    ]
    assert provenance["options"]["augmentation"]["copies"] == 1
    assert str(made.folder) not in json.dumps(provenance)
    records = json.loads((made.folder / "learnt.learning" / "records.json").read_text())
    for stage in ("pooling", "projection"):
        assert provenance[stage]["stage"] == stage
        assert any(provenance[stage].items() <= record.items() for record in records)


def test_of_what_was_computed_on_the_way_only_the_models_are_left(made: Made) -> None:
    left = {path.suffix for path in (made.folder / "learnt.learning").rglob("*") if path.is_file()}
    assert left == {".json", ".npy"}
    assert not (made.folder / "learnt.learning" / "ring-distances").exists()


@pytest.mark.parametrize(("name", "most", "size"), [("learnt", 0.1, None), ("binary", 0.25, 8), ("product", 0.12, 8)])
def test_matches_of_another_sequence_are_told_apart(
    made: Made, cairn: Cairn, name: str, most: float, size: int | None
) -> None:
    """At random the error is near 0.95."""
    report = cairn("evaluate", "patches", made.test, "--descriptor", made.files[name], "--json").json
    assert report.keys() >= {"fpr95", "auc", "dim", "bytes", "pairs", "ms_per_patch"}
    assert report["pairs"] == len(PatchSet.open(made.test).pairs("test")) > 500
    assert (report["dim"], report["bytes"]) == (made.reports[name]["dim"], size or 4 * made.reports["learnt"]["dim"])
    assert report["fpr95"] <= most and report["auc"] > 0.95


# Photos by it


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for name in COLLECTED:
        cv2.imwrite(str(folder / f"{name}.png"), view_of(name, 0)[0])
    return folder


@pytest.mark.parametrize("name", ["learnt", "binary"])
def test_photos_are_found_by_it_even_once_its_file_is_gone(
    made: Made, photos: Path, cairn: Cairn, tmp_path: Path, name: str
) -> None:
    file, collection, query = tmp_path / "d.npz", tmp_path / "c", tmp_path / "query.png"
    shutil.copy(made.files[name], file)
    options = ("--words", 300, "--workers", 1, "--json")
    report = cairn("index", collection, photos, "--descriptor", file, *options).json
    assert (report["images"], report["words"], report["failed"]) == (len(COLLECTED), 300, [])
    view, homography = view_of("coffee", 2)
    cv2.imwrite(str(query), view)

    def ask() -> list[dict[str, Any]]:
        return cairn("query", collection, query, "--turns", 1, "--json").json["results"]

    before = ask()
    assert before[0]["name"] == "coffee.png" and before[0]["inliers"] >= 20
    assert all(entry["inliers"] < 10 for entry in before[1:])
    # From the view back to the photo: within a few pixels at most places, however little was learnt from.
    corners = np.array([[[150, 100]], [[450, 100]], [[450, 300]], [[150, 300]]], np.float64)
    found = cv2.perspectiveTransform(corners, np.array(before[0]["homography"]))
    assert np.median(np.abs(found - cv2.perspectiveTransform(corners, np.linalg.inv(homography)))) < 8
    facts = cairn("info", collection, "--json").json["descriptor"]
    described = load_model(file)
    assert (facts["name"], facts["dim"]) == (described.name, made.reports[name]["dim"])

    file.unlink()
    assert ask() == before
    assert cairn("info", collection, "--json").json["descriptor"] == facts
    cv2.imwrite(str(photos.parent / "more.png"), view_of("page", 0)[0])
    added = cairn("index", collection, photos.parent / "more.png", "--workers", 1, "--json").json
    assert (added["added"], added["images"]) == (1, len(COLLECTED) + 1)


# Requests that are wrong


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--stage", "pool"], "no stage 'pool'; choose one of pooling, projection, both"),
        (["--base", "surf"], "no base 'surf'; choose one of pooled, rootsift, sift"),
        (["--norm", "l1"], "no norm 'l1'; choose one of nuclear, frobenius"),
        (["--stage", "pooling", "--base", "sift"], "choose the stage projection"),
        (["--stage", "projection"], "name the descriptor file whose pooling regions it projects"),
        (["--stage", "projection", "--base", "sift", "--power", 0.5], "the base sift takes none"),
        (["--stage", "projection", "--base", "sift", "--norm", "frobenius", "--dim", 16], "keeps the 128 dimensions"),
        (["--power", 0], "must lie between 0.01 and 1"),
        (["--out", "."], "must end with .npz"),
        (["--quantile", 0], "must lie above 0 and not above 1"),
        (["--stage", "projection", "--pooling", "nowhere.npz"], "There is no descriptor file nowhere.npz"),
        (["--out", "d.npy"], "d.npy must end with .npz"),
        (["--out", "nowhere/d.npz"], "nowhere is not a folder"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_wrong_requests_are_refused(
    made: Made, cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[object], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    train = made.folder / "train"
    command = ("learn", "descriptor", train, "--out", "d.npz", "--pairs", 20, "--augment", 0, "--quiet")
    assert reason in cairn(*changed(command, *arguments)).refused()
    assert not list(tmp_path.rglob("*.np*"))


def test_sources_that_are_none_are_refused(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    command, train = ("learn", "descriptor", "--out", tmp_path / "d.npz"), made.folder / "train"
    assert "has no info.txt" in cairn(*command, tmp_path).refused()
    assert "has no training pairs" in cairn(*command, made.test).refused()
    assert (
        "has no pooling regions"
        in cairn(*command, train, "--stage", "projection", "--pooling", sift_file(tmp_path)).refused()
    )
    assert [path.name for path in tmp_path.iterdir()] == ["sift.npz"]


def sift_file(folder: Path) -> Path:
    save_model(folder / "sift.npz", LearntModel("sift", projection=np.eye(4, 128, dtype=np.float32)))
    return folder / "sift.npz"


# Other ways of learning


@pytest.mark.slow
def test_a_given_pooling_is_projected_and_told_in_words(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    arguments = ("--pairs", 100, "--augment", 0, "--dim", 12, "--workers", 1)
    out = tmp_path / "d.npz"
    ran = cairn(
        *("learn", "descriptor", made.folder / "train", "--out", out, "--stage", "projection"),
        *("--pooling", made.files["learnt"], *arguments),
    )
    assert (ran.code, ran.err) == (0, "")
    parent, model = load_model(made.files["learnt"]), load_model(out)
    assert model.pooling is not None and parent.pooling is not None and model.projection is not None
    assert model.pooling.channels == parent.pooling.channels
    assert (model.pooling.regions == parent.pooling.regions).all()
    assert (model.pooling.weights == parent.pooling.weights).all()
    words = " ".join(ran.out.split())
    assert f"{model.pooling.dim} to {len(model.projection)} dimensions" in words
    assert "d.npz: pooled-proj" in words and "rings" not in words


def test_a_whitening_is_learnt_where_nothing_else_is_asked_for(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    out = tmp_path / "d.npz"
    ran = cairn("learn", "descriptor", made.folder / "train", "--out", out, "--dim", 48, "--workers", 1)
    assert (ran.code, ran.err) == (0, "")
    model = load_model(out)
    assert model.name == "rootsift-white" and model.projection is not None and model.centre is not None
    assert f"whitening    128 to {len(model.projection)} dimensions" in ran.out and "rings" not in ran.out
    # Of another sequence it tells matches apart better than rootSIFT.
    ours, plain = (
        cairn("evaluate", "patches", made.test, "--descriptor", name, "--json").json["fpr95"]
        for name in (out, "rootsift")
    )
    assert ours < plain
    binary = tmp_path / "b.npz"
    assert cairn("compress", out, "--out", binary, "--bits", 128).code == 0
    assert cairn("evaluate", "patches", made.test, "--descriptor", binary, "--json").json["fpr95"] < 0.1


# One model of each stage, of few pairs.
HASTY = ("--pairs", 40, "--augment", 0, "--pool-step", 5, "--max-pooled-dim", 64, "--dim", 64, "--hours", 1e-9)


@pytest.mark.slow
def test_the_same_request_gives_the_same_file(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        out = tmp_path / name / "d.npz"
        ran = cairn("learn", "descriptor", made.folder / "train", "--out", out, *HASTY, "--workers", 1)
        assert ran.code == 0
    assert (tmp_path / "a" / "d.npz").read_bytes() == (tmp_path / "b" / "d.npz").read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--pooling", "LEARNT"],  # regions are selected again
        ["--stage", "projection", "--base", "sift", "--pooling", "LEARNT"],
        ["--stage", "projection", "--pooling", "LEARNT", "--smoothing", 1],  # the file's own is what counts
        ["--smoothing", 40],  # such a file is refused once it is read
        ["--pool-step", 16],  # leaves no region at all
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_requests_that_contradict_themselves_are_refused(
    made: Made, cairn: Cairn, tmp_path: Path, arguments: list[object]
) -> None:
    given = [made.files["learnt"] if one == "LEARNT" else one for one in arguments]
    out = tmp_path / "d.npz"
    ran = cairn("learn", "descriptor", made.folder / "train", "--out", out, *HASTY, "--workers", 1, *given)
    assert ran.code == 2 and not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "norm"), [(127, "nuclear"), (128, "frobenius")])
def test_rootsift_is_projected_by_either_norm(made: Made, cairn: Cairn, tmp_path: Path, dim: int, norm: str) -> None:
    """With all dimensions wanted, by the norm that lowers none of them. No time for more than one model."""
    command = ("learn", "descriptor", made.folder / "train", "--stage", "projection", "--base", "rootsift")
    out = tmp_path / "d.npz"
    reported = cairn(
        *command, "--pairs", 60, "--augment", 0, "--dim", dim, "--out", out, "--hours", 1e-9, "--workers", 1, "--json"
    ).json
    assert (reported["pooled_dim"], reported["rings"], len(reported["objective"]), reported["tried"]) == (128, 0, 1, 1)
    model = load_model(out)
    assert (model.name, model.provenance["options"]["projection"]["norm"]) == ("rootsift-proj", norm)
    assert reported["dim"] == len(model.projection) <= dim
