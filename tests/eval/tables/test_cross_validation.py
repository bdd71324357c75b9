"""Cross-validation: each fold is measured with its own descriptor, and nothing is done twice."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from eval.tables import cross_validation
from eval.tables.cross_validation import Recipe, cross_validate, learn_fold
from eval.tables.folds import Fold, find_scenes, make_folds, queries_of
from eval.tables.retrieval import Measurement, measure
from eval.tables.sets import RetrievalSet
from index.progress import Progress
from learning.mining.mining import MiningOptions
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.learnt import load_model
from retrieval.indexing import adding
from retrieval.photos.options import ImageOptions
from scripts.cross_validation import main
from tests.conftest import Indexed
from tests.support.learning.unlabelled_cases import QUICK, SHOWN, write_views
from tests.support.paths import ROOT

SMALL = CollectionOptions(words=120, iterations=3, image=ImageOptions(max_side=200), seed=1, signature="none")
MODEL = ROOT / "data" / "models" / "rootsift-proj.npz"
RECIPE = Recipe("quick", QUICK, MiningOptions(least=50))


def no_progress(step: str, done: int, of: int) -> None:
    """No progress."""


@pytest.fixture(scope="module")
def photos(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> RetrievalSet:
    """The small collection's photos as a set."""
    folder = tmp_path_factory.mktemp("sets") / "small"
    folder.mkdir()
    (folder / "images").symlink_to(indexed.photos)
    (folder / "gt").symlink_to(indexed.gt)
    return RetrievalSet.find(folder)


@pytest.mark.slow
def test_each_fold_is_measured_with_what_was_learnt_for_it(photos: RetrievalSet, tmp_path: Path) -> None:
    """One fold uses rootSIFT, the other the shipped descriptor, so figures equal those of the whole set."""
    cell = Measurement(photos, photos, SMALL, "tf-idf", turns=1)
    folds = make_folds(find_scenes([photos]), 2)
    learnt_for = []

    def learn(recipe: Recipe, fold: Fold, work: Path, workers: int, progress: Progress) -> Path:
        learnt_for.append((recipe.label, fold.number))
        return Path("rootsift") if fold.number == 0 else MODEL

    (found,) = cross_validate([RECIPE], folds, [cell], tmp_path, learn=learn)
    assert learnt_for == [("quick", 0), ("quick", 1)]
    plain, shipped = measure([cell, replace(cell, options=replace(SMALL, descriptor=str(MODEL)))], tmp_path / "whole")
    expected = {name: plain.scores[name] for name in queries_of(folds[0].tested, photos)}
    expected |= {name: shipped.scores[name] for name in queries_of(folds[1].tested, photos)}
    assert expected.keys() == plain.scores.keys()
    assert found.reference == pytest.approx(plain.mean)
    assert found.learnt == pytest.approx(sum(expected.values()) / len(expected))
    assert (found.recipe, found.photos, found.engine, found.difference.scenes) == ("quick", "small", "tf-idf", 4)
    # One fold alone: its queries, and nothing of the other.
    (half,) = cross_validate([RECIPE], folds[:1], [cell], tmp_path, learn=learn)
    assert (half.difference.mean, half.difference.scenes) == (0, len(folds[0].tested))


@pytest.mark.slow
def test_a_fold_is_learnt_once_from_its_photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_views(tmp_path / "photos", *SHOWN)
    fold = Fold(0, tuple(sorted(folder.iterdir())), ())
    work = tmp_path / "work"
    file = learn_fold(RECIPE, fold, work, 1, no_progress)
    assert load_model(file).projection is not None
    written = file.read_bytes()

    def refuse(*args: object, **more: object) -> None:
        raise AssertionError("it is learnt already")

    with monkeypatch.context() as patch:
        patch.setattr(adding, "index_photos", refuse)
        for step in ("mine_matches", "learn_unlabelled"):
            patch.setattr(cross_validation, step, refuse)
        assert learn_fold(RECIPE, fold, work, 1, no_progress).read_bytes() == written
    # Another recipe reuses the matches; other photos do not.
    monkeypatch.setattr(cross_validation, "mine_matches", refuse)
    other = replace(RECIPE, learning=replace(QUICK, base="rootsift", stage="projection"))
    assert learn_fold(other, fold, work, 1, no_progress) != file
    with pytest.raises(AssertionError):
        learn_fold(RECIPE, replace(fold, training=fold.training[:-1]), work, 1, no_progress)


def run_script(*words: object, datasets: Path) -> subprocess.CompletedProcess[str]:
    """Run scripts/cross_validation.py."""
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "cross_validation.py", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CAIRN_DATASETS": str(datasets)},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_script_lists_folds_and_refuses_what_it_does_not_know(
    photos: RetrievalSet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CAIRN_DATASETS", str(photos.ground_truth.parents[1]))

    def call(*words: object) -> None:
        monkeypatch.setattr(sys, "argv", ["cross_validation.py", *map(str, words)])
        main()

    call("--set", "small", "--folds", 2, "--list")
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [int(row[0]) for row in rows] == [0, 1]
    assert sum(int(row[2]) for row in rows) == 4
    assert sum(int(row[3]) for row in rows) == len(photos.asked)
    for words, said in (
        (("--learn", "x=nothing"), "LABEL=BASE:STAGE"),
        (("--fold", 7), "choose from 0 to 1"),
        (("--folds", 5), "4 scenes cannot be dealt out to 5 folds"),
        (("--set", "nowhere"), "nowhere"),
    ):
        with pytest.raises(SystemExit) as refused:
            call("--set", "small", "--folds", 2, *words)
        assert refused.value.code == 2
        assert said in capsys.readouterr().err


@pytest.mark.slow
def test_the_script_learns_measures_and_goes_on(photos: RetrievalSet, tmp_path: Path) -> None:
    datasets, work = photos.ground_truth.parents[1], tmp_path / "work"
    words = ("--set", "small", "--folds", 2, "--learn", "proj=rootsift:projection", "--turns", 1, "--work", work)
    first = run_script(*words, datasets=datasets)
    assert first.returncode == 0, first.stderr
    assert "| proj | tf-idf-sp |" in first.stdout
    again = run_script(*words, "--json", datasets=datasets)
    figures = [json.loads(line) for line in again.stdout.splitlines()]
    assert [(one["recipe"], one["engine"]) for one in figures] == [("proj", "tf-idf"), ("proj", "tf-idf-sp")]
