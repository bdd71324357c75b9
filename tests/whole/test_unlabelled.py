"""From photos without labels to a descriptor and back to photos, through the command line: small, but all of it."""

import importlib.util
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from index.errors import CairnError
from learning.convex.projection import ProjectionOptions
from learning.judge.judging import JudgeOptions
from learning.judge.verdict import RetrievalVerdict
from learning.latent.descriptor import UnlabelledOptions
from learning.latent.models import PoolingWork, ProjectionWork
from learning.mining.matches import MinedMatches
from learning.mining.mining import FEATURES
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, load_model, save_model
from tests.conftest import Ran, changed
from tests.support.learning.unlabelled_cases import QUICK, SHOWN, write_views
from tests.support.made_once import made_once
from tests.whole.test_learning import run_command, view_of

Cairn = Callable[..., Ran]

COMMAND = "learning.library.from_photos"
POOL = ("--pool-step", 5, "--max-pooled-dim", 64, "--dim", 24)
PROJECTION = ("--stage", "projection")
BASES = {"pooled": POOL, "rootsift": ("--base", "rootsift", *PROJECTION), "sift": ("--base", "sift", *PROJECTION)}
KEYS = {"pooled_dim", "dim", "rings", "validation", "objective", "seconds", "history", "verdict", "retrieval"}
KEYS |= {"image_pairs"}
plots = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="the extra plots is missing")


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Let the command learn from few features, in few steps."""

    def options(**given: Any) -> UnlabelledOptions:
        return replace(QUICK, **given)

    def metric_options(norm: str, seed: int = 0) -> ProjectionOptions:
        return replace(QUICK.projection, norm=norm, seed=seed)

    patch.setattr(f"{COMMAND}.UnlabelledOptions", options)
    patch.setattr(f"{COMMAND}.metric_options", metric_options)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@dataclass(frozen=True)
class Made:
    """What the commands have written."""

    folder: Path
    photos: Path
    collection: Path
    matches: Path  # mined from it
    files: dict[str, Path]  # descriptor files, by base
    reports: dict[str, dict[str, Any]]  # what the command said of each


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Photos, a collection, mined matches, and a descriptor of each base; nobody may change them."""
    return made_once(tmp_path_factory, "unlabelled", _make)


def _make(folder: Path) -> Made:
    photos, collection, matches = write_views(folder / "photos", *SHOWN), folder / "views", folder / "m.npz"
    files = {base: folder / f"{base}.npz" for base in BASES}
    sources = {"pooled": collection, "rootsift": matches, "sift": matches}
    with pytest.MonkeyPatch.context() as patch:
        hurry(patch)
        run_command(patch, "index", collection, photos, "--words", 300, "--workers", 1, "--json")
        run_command(patch, "mine", collection, "--out", matches, "--workers", 1, "--json")
        reports = {
            base: run_command(
                patch,
                *("learn", "descriptor", sources[base], "--out", files[base], *options, "--workers", 1, "--json"),
            )
            for base, options in BASES.items()
        }
    return Made(folder, photos, collection, matches, files, reports)


@pytest.fixture
def learnt(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names the stage of each model that is learnt in this test."""
    stages: list[str] = []

    def watch(kind: Any, stage: str) -> None:
        learn = kind.learn

        def watched(*arguments: Any) -> Any:
            stages.append(stage)
            return learn(*arguments)

        monkeypatch.setattr(kind, "learn", watched)

    watch(PoolingWork, "pooling")
    watch(ProjectionWork, "projection")
    return stages


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# What is learnt


CLASSICAL = ("--detector", "hessian-affine", "--rotated")  # with √3, the setting of the paper's table 5


@pytest.mark.parametrize("base", ["pooled", pytest.param("sift", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_the_classical_regions_are_learnt_from_as_well(made: Made, cairn: Cairn, tmp_path: Path, base: str) -> None:
    matches, file = tmp_path / "m.npz", tmp_path / "d.npz"
    mined = cairn("mine", made.collection, "--out", matches, *CLASSICAL, "--inliers", 15, "--workers", 1, "--json").json
    assert mined["image_pairs_kept"] > 1
    assert MinedMatches.open(matches).meta["measurement_scale"] == pytest.approx(np.sqrt(3))
    report = cairn("learn", "descriptor", matches, "--out", file, *BASES[base], "--workers", 1, "--json").json
    assert report["verdict"]["learnt"]["recall"] > 0.4
    collection = tmp_path / "c"
    cairn("index", collection, made.photos, "--descriptor", file, *CLASSICAL, "--words", 200, "--workers", 1, "--json")
    hits = cairn("query", collection, "coffee0.png", "--json").json["results"]
    assert {hit["name"] for hit in hits[:2]} == {"coffee0.png", "coffee1.png"}


@pytest.mark.parametrize("base", BASES)
def test_what_is_learnt_is_told_as_the_contract_has_it(made: Made, base: str) -> None:
    report, model = made.reports[base], load_model(made.files[base])
    assert report.keys() >= KEYS
    assert report["name"] == model.name == f"{base}-proj"
    assert report["fingerprint"] == model.fingerprint
    assert model.projection is not None
    assert report["dim"] == len(model.projection) == LearntDescriptor(model).dim <= (24 if base == "pooled" else 128)
    pooled = 128 if model.pooling is None else model.pooling.dim
    assert report["pooled_dim"] == pooled == model.projection.shape[1]
    if base == "pooled":
        assert model.pooling is not None
        assert pooled <= 64 and report["rings"] == len(np.unique(model.pooling.rings))
    assert 0.4 < report["validation"]["recall"] <= 1
    assert sum(report["image_pairs"].values()) == len(MinedMatches.open(made.matches).pairs)
    assert min(report["image_pairs"].values()) > 0
    records = json.loads(Path(report["models"]).read_text())
    assert len(records) == report["tried"] and {record["share"] for record in records} == set(QUICK.shares)

    verdict = report["verdict"]
    assert verdict["nearest_neighbours"] in ("better", "worse", "same", "mixed")
    retrieval = report["retrieval"]
    assert retrieval["measured"] == (base == "pooled") == (verdict["told_by"] == "retrieval")
    assert verdict["outcome"] == retrieval.get("outcome", verdict["nearest_neighbours"])
    if base == "pooled":  # from the collection: its photos are at hand
        assert retrieval["photos"] == 12 and 0 < retrieval["held_out_scenes"] < retrieval["scenes"] <= 4
        assert retrieval["queries"] > 0 and 0 < retrieval["tf-idf-sp"]["rootsift"] <= 1
    else:
        assert "a file of matches has no photos" in retrieval["reason"]
    assert verdict["pairs"] == report["image_pairs"]["validation"]
    # Nearest neighbours of the same features by the same rows, but for half precision.
    assert verdict["learnt"]["recall"] == pytest.approx(report["validation"]["recall"], abs=0.1)
    assert verdict["learnt"].keys() == verdict["rootsift"].keys()


@pytest.mark.slow
def test_a_whitening_of_rootsift_is_learnt_where_nothing_else_is_asked_for(
    made: Made, cairn: Cairn, tmp_path: Path
) -> None:
    file = tmp_path / "white.npz"
    ran = cairn("learn", "descriptor", made.matches, "--out", file, "--report", tmp_path / "r.html", "--workers", 1)
    model = load_model(file)
    assert model.name == "rootsift-white" and model.extent == MinedMatches.open(made.matches).extent > 1
    assert re.search(r"^whitening +128 to \d+ dimensions, K \d+.\d%, recall \d+.\d%", ran.out, re.M)
    assert "whitening" in (tmp_path / "r.html").read_text()
    collection = tmp_path / "c"
    cairn("index", collection, made.photos, "--descriptor", file, "--words", 200, "--workers", 1, "--json")
    hits = cairn("query", collection, "coffee0.png", "--json").json["results"]
    assert {hit["name"] for hit in hits[:2]} == {"coffee0.png", "coffee1.png"}


@pytest.mark.slow
@plots
def test_from_a_collection_of_which_nothing_overlaps_views_of_its_photos_are_learnt_from(
    made: Made, cairn: Cairn, tmp_path: Path
) -> None:
    of = index(cairn, tmp_path / "apart", *(made.photos / f"{name}0.png" for name in SHOWN))
    file, page = tmp_path / "d.npz", tmp_path / "r.html"
    reported = cairn("learn", "descriptor", of, "--out", file, "--report", page, "--workers", 1, "--json").json
    model = load_model(file)
    assert model.name == "rootsift-white" and model.provenance["matches"]["proposals"] == "views"
    assert reported["image_pairs"]["training"] + reported["image_pairs"]["validation"] == len(SHOWN)
    assert reported["verdict"]["outcome"] == "cannot say"
    shown = re.findall(r'alt="Close-up of (\w+) and (\w+)-view-\w+" src="data:image/jpeg;base64,', page.read_text())
    assert shown and all(one == other for one, other in shown)
    assert "was rendered" in page.read_text() and str(tmp_path) not in page.read_text()
    # The paper's way needs photos that show the same.
    for given in (("--geometry", "homography"), ("--stage", "both")):
        ran = cairn("learn", "descriptor", of, "--out", tmp_path / "e.npz", *given, "--workers", 1)
        assert "matches that agree on one map" in ran.refused()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--stage", "whitening", "--base", "pooled"), "choose the base rootsift, sift or nested"),
        (("--stage", "whitening", "--norm", "nuclear"), "a whitening takes none"),
        (("--stage", "whitening", "--power", 0.5), "the base rootsift takes none"),
        (("--stage", "whitening", "--rounds", 3), "a whitening has none"),
    ],
)
def test_what_a_whitening_does_not_have_is_refused(
    made: Made, cairn: Cairn, tmp_path: Path, given: tuple[object, ...], sentence: str
) -> None:
    assert sentence in cairn("learn", "descriptor", made.matches, "--out", tmp_path / "d.npz", *given).refused()
    assert not (tmp_path / "d.npz").exists()


@pytest.mark.parametrize("base", BASES)
def test_no_step_of_a_round_raises_the_objective(made: Made, base: str) -> None:
    history = made.reports[base]["history"]
    assert [entry["objective"] for entry in history] == made.reports[base]["objective"]
    assert {entry["stage"] for entry in history} == ({"projection", "pooling"} if base == "pooled" else {"projection"})
    for one, other in pairwise(history):
        if (one["stage"], one["round"]) == (other["stage"], other["round"]):
            assert other["objective"] <= one["objective"] + 1e-9
    assert {"parameters", "positives", "selection"} <= {entry["step"] for entry in history}


@pytest.mark.parametrize("base", BASES)
def test_provenance_tells_what_it_was_learnt_from_and_nothing_of_the_machine(made: Made, base: str) -> None:
    provenance = load_model(made.files[base]).provenance
    matches = MinedMatches.open(made.matches)
    mined = provenance["matches"]
    assert (mined["source"], mined["proposals"], mined["fingerprint"]) == ("views", "ranking", matches.fingerprint)
    assert mined["counts"]["features"] == matches.features
    assert mined["options"]["map"]["inliers"] == 50
    assert provenance["options"]["base"] == base
    assert provenance["options"]["shares"] == list(QUICK.shares)
    assert provenance["options"]["projection"]["norm"] == ("nuclear" if base == "pooled" else "frobenius")
    assert provenance["verdict"] == made.reports[base]["verdict"]
    retrieval = {"measured": True, **provenance["retrieval"]} if base == "pooled" else provenance["retrieval"]
    assert retrieval == (made.reports[base]["retrieval"] if base == "pooled" else None)
    assert provenance["projection"]["validation"] == pytest.approx(made.reports[base]["validation"]["recall"], abs=1e-6)
    assert (provenance["pooling"] is not None) == (base == "pooled")
    with zipfile.ZipFile(made.files[base]) as archive:
        contents = b"".join(archive.read(name) for name in archive.namelist())
    for place in (made.folder, made.folder.parent, Path.home(), Path.cwd()):
        assert str(place).encode() not in contents


def test_of_what_was_computed_on_the_way_only_the_models_are_left(made: Made) -> None:
    assert {Path(name).suffix for name in tree(made.folder / "pooled.learning")} == {".json", ".npy"}
    assert not (made.folder / "pooled.learning" / "matches.npz").exists()
    assert made.matches.is_file()


@pytest.mark.parametrize("base", BASES)
def test_photos_are_found_by_it(made: Made, cairn: Cairn, tmp_path: Path, base: str) -> None:
    collection, query = tmp_path / "c", tmp_path / "query.png"
    photos = [made.photos / f"{name}0.png" for name in SHOWN]
    options = ("--words", 200, "--workers", 1, "--json")
    report = cairn("index", collection, *photos, "--descriptor", made.files[base], *options).json
    assert (report["images"], report["failed"]) == (len(SHOWN), [])
    cv2.imwrite(str(query), view_of("coffee", 1)[0])
    best, *others = cairn("query", collection, query, "--json").json["results"]
    assert best["name"] == "coffee0.png" and best["inliers"] >= 15
    assert all(entry["inliers"] < best["inliers"] / 2 for entry in others)


def test_the_verdict_is_told_in_words(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    ran = cairn("learn", "descriptor", made.matches, "--out", tmp_path / "d.npz", *POOL, "--workers", 1)
    assert (ran.code, ran.err) == (0, "")
    words = " ".join(ran.out.split())
    report = made.reports["pooled"]
    named = {"better": "is better than", "worse": "is worse than", "same": "neither better nor worse", "mixed": "and"}
    assert named[report["verdict"]["nearest_neighbours"]] in words
    assert "What searches find may differ, and was not measured: a file of matches has no photos to search" in words
    assert f"{report['pooled_dim']} to {report['dim']} dimensions" in words
    assert f"Of {report['verdict']['features']} features of {report['verdict']['pairs']} image pairs" in words
    assert f"{100 * report['verdict']['learnt']['recall']:.1f}%, with rootsift" in words
    # To mine by hand and to let it be done is the same.
    assert load_model(tmp_path / "d.npz").fingerprint == load_model(made.files["pooled"]).fingerprint


@pytest.mark.parametrize("gain", [0.1, 0.0, -0.1])
@pytest.mark.slow
def test_what_searches_find_decides(
    made: Made, cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gain: float
) -> None:
    requested: dict[str, Any] = {}

    def judge(
        source: Collection, descriptor: str, learnt_from: set[str], work: Path, chosen: JudgeOptions, **options: Any
    ) -> Any:
        assert chosen.staged is not None and list(chosen.staged.rglob("*.npy"))  # what mining has extracted is there
        requested.update(options, staged=chosen.staged, learnt_from=learnt_from, name=load_model(Path(descriptor)).name)
        gains = gain + np.array([[0.01, 0.01], [-0.01, -0.01], [0.0, 0.02]])
        return RetrievalVerdict("rootsift", 12, 4, 20, 0.5 + gains, np.full((3, 2), 0.5))

    monkeypatch.setattr("learning.judge.conclusion.judge", judge)
    command = ("learn", "descriptor", made.collection, *POOL, "--workers", 1, "--out", tmp_path / "d.npz")
    report = cairn(*command, "--json").json
    outcome = {0.1: "better", 0.0: "same", -0.1: "worse"}[gain]
    assert report["verdict"]["outcome"] == report["retrieval"]["outcome"] == outcome
    words = " ".join(cairn(*command).out.split())
    assert ("index with it" if gain > 0 else "stay with rootsift") in words
    assert "mAP verified" in words and "the nearest neighbour is right for" in words
    # The photos of pairs held out, and nothing else that was mined, are not learnt from.
    matches = MinedMatches.open(made.matches)
    training, validation = matches.pair_split(QUICK.held_out, QUICK.seed)
    seen = {str(made.photos / f"{matches.names[photo]}.png") for photo in np.unique(matches.pairs[training])}
    assert requested["learnt_from"] == seen and requested["name"] == report["name"]
    held_out = {str(made.photos / f"{matches.names[photo]}.png") for photo in np.unique(matches.pairs[validation])}
    assert requested["needed"] == seen | held_out and held_out - seen
    assert requested["staged"].name == FEATURES and not (tmp_path / "d.learning" / "mined").exists()


@pytest.mark.slow
def test_without_the_judge_nothing_is_searched(
    made: Made, cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learning.judge.conclusion.judge", lambda *_, **__: pytest.fail("judged"))
    command = ("learn", "descriptor", made.collection, *POOL, "--no-judge", "--workers", 1, "--json")
    report = cairn(*command, "--out", tmp_path / "d.npz").json
    assert report["retrieval"] == {"measured": False, "reason": "--no-judge leaves it out"}
    assert report["verdict"]["outcome"] == made.reports["pooled"]["verdict"]["nearest_neighbours"]
    assert report["fingerprint"] == made.reports["pooled"]["fingerprint"]


@pytest.mark.slow
def test_what_was_learnt_is_kept_though_it_cannot_be_judged(
    made: Made, cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(*_: Any, **__: Any) -> Any:
        raise CairnError("No photo is where it was.")

    monkeypatch.setattr("learning.judge.conclusion.judge", judge)
    ran = cairn("learn", "descriptor", made.collection, *POOL, "--workers", 1, "--out", tmp_path / "d.npz")
    assert ran.code == 0 and "was not measured: No photo is where it was." in " ".join(ran.out.split())
    assert load_model(tmp_path / "d.npz").provenance["retrieval"] is None


# The same result, whatever happens


@pytest.mark.slow
def test_a_second_run_with_the_same_folder_learns_nothing_anew(
    made: Made, cairn: Cairn, tmp_path: Path, learnt: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("learn", "descriptor", made.collection, *POOL, "--work", tmp_path / "work", "--workers", 1, "--json")
    assert cairn(*command, "--out", tmp_path / "a.npz").json["tried"] == len(learnt) > 3
    learnt.clear()
    monkeypatch.setattr("learning.library.from_photos.mine_matches", lambda *_, **__: pytest.fail("mined again"))
    again = cairn(*command, "--out", tmp_path / "b.npz").json
    assert not learnt and again["tried"] > 3
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert (tmp_path / "a.npz").read_bytes() == made.files["pooled"].read_bytes()
    # Another dimension has the pooling regions in common.
    assert cairn(*changed(command, "--dim", 20), "--out", tmp_path / "c.npz").json["dim"] <= 20
    assert "pooling" not in learnt
    assert cairn(*changed(command, "--dim", 1), "--out", tmp_path / "d.npz").json["dim"] == 1


@pytest.mark.slow
def test_an_interrupted_run_is_picked_up_by_the_same_command(
    made: Made, cairn: Cairn, tmp_path: Path, learnt: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("learn", "descriptor", made.collection, *POOL, "--out", tmp_path / "d.npz", "--workers", 1, "--json")
    learn = ProjectionWork.learn

    def stop(*arguments: Any) -> Any:
        if learnt.count("projection"):
            raise KeyboardInterrupt
        return learn(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ProjectionWork, "learn", stop)
        assert cairn(*command).code not in (0, 1, 2)
    assert not (tmp_path / "d.npz").exists()
    before = len(learnt)
    assert learnt.count("projection") == 1
    monkeypatch.setattr("learning.library.from_photos.mine_matches", lambda *_, **__: pytest.fail("mined again"))
    report = cairn(*command).json
    assert len(learnt) == report["tried"] == made.reports["pooled"]["tried"] > before
    assert (tmp_path / "d.npz").read_bytes() == made.files["pooled"].read_bytes()
    assert {Path(name).suffix for name in tree(tmp_path / "d.learning")} == {".json", ".npy"}


@pytest.mark.slow
def test_photos_that_are_added_are_mined_though_there_are_matches_of_the_others(
    made: Made, cairn: Cairn, tmp_path: Path
) -> None:
    photos, collection = write_views(tmp_path / "photos", *SHOWN[:2]), tmp_path / "c"
    index = ("index", collection, photos, "--workers", 1, "--json")
    assert cairn(*index, "--words", 200).code == 0
    command = ("learn", "descriptor", collection, *POOL, "--no-judge", "--work", tmp_path / "work", "--workers", 1)
    assert cairn(*command, "--out", tmp_path / "a.npz").code == 0
    write_views(photos, *SHOWN[2:])
    assert cairn(*index).code == 0
    assert cairn(*command, "--out", tmp_path / "b.npz").code == 0
    counts = [load_model(tmp_path / f"{name}.npz").provenance["matches"]["counts"]["photos"] for name in "ab"]
    assert counts[0] <= 6 < counts[1]


# Settings


def test_shares_are_those_that_are_given(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    command = ("learn", "descriptor", made.matches, "--base", "rootsift", "--workers", 1, "--json", "--rounds", 1)
    report = cairn(*command, "--out", tmp_path / "d.npz", "--share", 0.7, "--share", 0.3, "--share", 0.7).json
    records = json.loads(Path(report["models"]).read_text())
    assert sorted(record["share"] for record in records) == [0.3, 0.7]
    assert report["tried"] == 2
    provenance = load_model(tmp_path / "d.npz").provenance
    assert provenance["projection"]["share"] in (0.3, 0.7)
    assert provenance["options"]["rounds"] == 1


def test_as_published_what_is_given_wins(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    command = ("learn", "descriptor", made.matches, "--as-published", "--base", "rootsift", "--workers", 1, "--json")
    few = ("--samples", 60, "--negatives", 2, "--rounds", 1, "--alternations", 1, "--share", 0.5)
    grid = ("--projection-mu", 0.1, "--projection-gamma", 0.2)
    assert cairn(*command, "--out", tmp_path / "d.npz", *few, *grid).json["tried"] == 1
    provenance = load_model(tmp_path / "d.npz").provenance
    options = provenance["options"]
    assert provenance["as_published"] == "Simonyan14" and options["stage"] == "projection"
    counts = ("pooling_features", "projection_features", "pooling_negatives", "projection_negatives", "alternations")
    assert [options[name] for name in counts] == [60, 60, 2, 2, 1]
    assert (options["projection"]["mus"], options["projection"]["norm"]) == ([0.1], "frobenius")
    refused = cairn(*command, "--out", tmp_path / "e.npz", "--stage", "whitening").refused()
    assert "no whitening" in refused


@pytest.mark.parametrize("dim", [pytest.param(24, marks=pytest.mark.slow), 16])
def test_without_time_the_first_models_are_taken(made: Made, cairn: Cairn, tmp_path: Path, dim: int) -> None:
    pool = changed(POOL, "--dim", dim)
    command = ("learn", "descriptor", made.matches, *pool, "--hours", 1e-9, "--workers", 1, "--json")
    ran = cairn(*command, "--out", tmp_path / "d.npz")
    model = load_model(tmp_path / "d.npz")
    assert model.projection is not None
    assert ran.json["dim"] == len(model.projection) <= dim
    assert ran.json["tried"] < made.reports["pooled"]["tried"] + 3


@pytest.mark.slow
def test_with_the_usual_settings(made: Made, cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user has it, but for the time and the pool; so small a heap of photos gives no good descriptor."""
    monkeypatch.undo()  # what lets the other tests be quick
    command = ("learn", "descriptor", made.matches, "--pool-step", 5, "--hours", 1e-9, "--workers", 1, "--json")
    report = cairn(*command, "--out", tmp_path / "d.npz").json
    usual = UnlabelledOptions()
    assert report["dim"] <= usual.dim and report["pooled_dim"] <= usual.max_pooled_dim
    assert report["validation"]["recall"] > report["verdict"]["rootsift"]["recall"] - 0.1
    assert load_model(tmp_path / "d.npz").provenance["options"]["shares"] == list(usual.shares)


def test_a_given_pooling_is_projected(made: Made, cairn: Cairn, tmp_path: Path, learnt: list[str]) -> None:
    command = ("learn", "descriptor", made.matches, "--stage", "projection", "--pooling", made.files["pooled"])
    report = cairn(*command, "--dim", 24, "--out", tmp_path / "d.npz", "--workers", 1, "--json").json
    assert set(learnt) == {"projection"}
    assert report["fingerprint"] == made.reports["pooled"]["fingerprint"]


# The report


@plots
@pytest.mark.parametrize("source", ["collection", "matches"])
@pytest.mark.slow
def test_the_report_shows_the_verdict_and_close_ups(made: Made, cairn: Cairn, tmp_path: Path, source: str) -> None:
    page = tmp_path / "report.html"
    given = (made.collection, "--no-judge") if source == "collection" else (made.matches, "--photos", made.photos)
    command = ("learn", "descriptor", *given, *POOL, "--hours", 1e-9, "--out", tmp_path / "d.npz", "--workers", 1)
    ran = cairn(*command, "--report", page)
    assert ran.code == 0
    text = page.read_text()
    (verdict,) = re.findall(r'<p class="verdict">(.*?)</p>', text)
    assert verdict in " ".join(ran.out.split()) and "rootsift" in verdict
    shown = re.findall(r'alt="Close-up of (\w+) and (\w+)" src="data:image/jpeg;base64,', text)
    assert shown
    for one, other in shown:  # two views of one thing
        assert one[:-1] == other[:-1] in SHOWN and one != other
    assert "Learnt pooling regions" in text and "Objective and recall" in text
    assert str(made.folder) not in text and str(tmp_path) not in text


def test_a_report_without_matplotlib_is_refused_before_any_work(
    made: Made, cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    command = ("learn", "descriptor", made.matches, "--out", tmp_path / "d.npz")
    assert "pip install matplotlib" in cairn(*command, "--report", tmp_path / "r.html").refused()
    assert not tree(tmp_path)


# Requests that are wrong


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--augment", 1], "--pairs, --pair-file, --augment and --test are for labelled patches"),
        (["--augment", 0], "--pairs, --pair-file, --augment and --test are for labelled patches"),
        (["--pairs", 100], "--pairs, --pair-file, --augment and --test are for labelled patches"),
        (["--report", "r.txt"], "let it end with .html"),
        (["--report", "nowhere/r.html"], "nowhere"),
        (["--photos", "nowhere", "--report", "r.html"], "nowhere"),
        (["--catalogue", "sqlite://"], "--catalogue and --geometry are for a collection"),
        (["--share", 0], "share of features"),
        (["--share", 1.5], "share of features"),
        (["--share", 0.5, "--share", -1], "share of features"),
        (["--out", "d.npy"], "d.npy must end with .npz"),
        (["--out", "nowhere/d.npz"], "nowhere is not a folder"),
        (["--work", "file"], "file"),
        (["--work", "file/below"], "file"),
        (["--stage", "pool"], "no stage 'pool'"),
        (["--base", "surf"], "no base 'surf'"),
        (["--norm", "l1"], "no norm 'l1'"),
        (["--stage", "pooling", "--base", "sift"], "choose the stage projection"),
        (["--stage", "projection"], "name the descriptor file whose pooling regions it projects"),
        (["--pool-step", 15, "--max-pooled-dim", 8, "--keep", 0], "--max-pooled-dim"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_wrong_requests_are_refused(
    made: Made, cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[object], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("something else")
    command = ("learn", "descriptor", made.matches, "--out", "d.npz", *POOL, "--workers", 1)
    assert reason in cairn(*changed(command, *arguments)).refused()
    # Models are left that are of use once more dimensions are allowed, and nothing else ever.
    assert tree(tmp_path) == ["file"] or "--keep" in arguments
    assert not list(tmp_path.glob("*.npz"))


def damaged(source: Path, to: Path, how: str) -> Path:
    contents = bytearray(source.read_bytes())
    if how == "short":
        del contents[len(contents) // 2 :]
    elif how == "changed":
        contents[len(contents) // 2] ^= 0xFF  # among the patches
    elif how == "empty":
        contents.clear()
    else:
        contents = bytearray(b"<html>not found</html>")
    to.write_bytes(contents)
    return to


@pytest.mark.parametrize("how", ["short", "changed", "empty", "something else"])
def test_damaged_matches_are_refused(made: Made, cairn: Cairn, tmp_path: Path, how: str) -> None:
    file = damaged(made.matches, tmp_path / "m.npz", how)
    assert (
        "m.npz is damaged or no file of mined matches"
        in cairn("learn", "descriptor", file, "--out", tmp_path / "d.npz").refused()
    )
    assert tree(tmp_path) == ["m.npz"]


def test_files_that_are_no_matches_are_refused(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    command = ("learn", "descriptor", "--out", tmp_path / "d.npz")
    assert "no file of mined matches" in cairn(*command, made.files["pooled"]).refused()
    save_model(tmp_path / "sift.npz", LearntModel("sift"))
    assert "no file of mined matches" in cairn(*command, tmp_path / "sift.npz").refused()
    assert "There is no file of mined matches" in cairn(*command, tmp_path / "missing.npz").refused()
    (tmp_path / "folder.npz").mkdir()
    assert "folder.npz" in cairn(*command, tmp_path / "folder.npz").refused()
    assert tree(tmp_path) == ["folder.npz", "sift.npz"]


def test_nothing_is_learnt_from_together_with_photos(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    command = ("learn", "descriptor", "--out", tmp_path / "d.npz")
    for one, other in (
        (made.collection, made.photos),
        (made.photos, made.collection),
        (made.matches, made.matches),
        (made.matches, made.collection),
    ):
        assert "together with something else" in cairn(*command, one, other).refused()
    assert not tree(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--share", 0.5],
        ["--rounds", 3],
        ["--no-judge"],
        ["--report", "r.html"],
        ["--photos", "."],
        ["--catalogue", "sqlite://"],
    ],
)
def test_what_is_for_photos_is_refused_with_labelled_patches(
    made: Made, cairn: Cairn, tmp_path: Path, arguments: list[object]
) -> None:
    ran = cairn("learn", "descriptor", made.photos, "--out", tmp_path / "d.npz", *arguments)
    assert "are for photos without labels" in ran.refused()
    assert not tree(tmp_path)


# Nothing to learn from


def index(cairn: Cairn, folder: Path, *photos: Path) -> Path:
    """A collection of copies of photos."""
    (folder / "photos").mkdir(parents=True)
    for photo in photos:
        shutil.copy(photo, folder / "photos")
    assert cairn("index", folder / "c", folder / "photos", "--words", 50, "--workers", 1, "--quiet").code == 0
    return folder / "c"


@pytest.mark.slow
def test_a_collection_that_tells_too_little_is_one_sentence(made: Made, cairn: Cairn, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "none", CollectionOptions(signature="none")):
        pass

    def collection(folder: str, *names: str) -> Path:
        return index(cairn, tmp_path / folder, *(made.photos / f"{name}.png" for name in names))

    cases = {
        "none has no photos": tmp_path / "none",
        "has one photo": collection("one", "coffee0"),
        r"None of \d+ image pairs of c has 50 matches": collection(
            "apart", "coffee0", "rocket0", "chelsea0", "astronaut1"
        ),
        r"Only \d+ features of 1 image pairs of c have a match": collection("few", "coffee0", "coffee1", "rocket0"),
        "Validation is by image pair, and 1 was mined": collection("pair", "astronaut0", "astronaut1", "coffee0"),
    }
    out = tmp_path / "out"
    out.mkdir()
    for sentence, of in cases.items():
        ran = cairn("learn", "descriptor", of, "--out", out / "d.npz", *POOL, "--workers", 1)
        assert re.search(sentence, ran.refused()), (sentence, ran.err)
        assert ("Until then stay with rootsift." in ran.err) == ("match" in sentence), sentence
        assert not tree(out), sentence


@pytest.mark.parametrize("names", [("coffee0", "rocket0"), ("astronaut0", "astronaut1")], ids=" ".join)
def test_a_collection_of_two_photos_is_one_sentence(
    made: Made, cairn: Cairn, tmp_path: Path, names: tuple[str, str]
) -> None:
    """Words of both photos have no weight, so that none ranks the other."""
    of = index(cairn, tmp_path / "two", *(made.photos / f"{name}.png" for name in names))
    assert "pair" in cairn("learn", "descriptor", of, "--out", tmp_path / "d.npz", *POOL, "--workers", 1).refused()
    assert tree(tmp_path)[0].startswith("two")
