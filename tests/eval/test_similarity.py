"""`cairn evaluate similarity`, and the test queries of `cairn learn similarity`, compared with searches with the same
files."""

import csv
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eval.benchmark import run_queries
from eval.similarity import WAYS
from index.similarity import SimilarityMatrix
from learning.labels.ground_truth import read_ground_truth
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.indexing.removal import remove_photos
from tests.conftest import Indexed, Ran

Cairn = Callable[..., Ran]


@pytest.fixture
def one_each(indexed: Indexed, tmp_path: Path) -> Path:
    """Ground truth of one query an object, so that the photos of others can be learnt from."""
    (tmp_path / "gt").mkdir()
    for path in indexed.gt.glob("*_1_*.txt"):
        shutil.copy(path, tmp_path / "gt")
    return tmp_path / "gt"


def mean_of(folder: Path, ground_truth: Path, way: str, file: Path | None = None) -> float:
    """Mean average precision of a ground truth's queries, by ordinary searches."""
    with Collection.open(folder) as collection:
        requested = read_ground_truth(ground_truth)
        scores, _ = run_queries(collection, requested, None, replace(WAYS[way], similarity=file))
    return sum(score.ap for score in scores) / len(scores)


def test_test_queries_are_measured_at_each_iteration(cairn: Cairn, indexed: Indexed, one_each: Path) -> None:
    out, curve = one_each.with_name("s.npz"), one_each.with_name("curve.csv")
    command = ("learn", "similarity", indexed.folder, "--out", out, "--gt", one_each, "--test-gt", one_each)
    ran = cairn(*command, "--iterations", 4, "--curve", curve, "--as-published", "--hold-out", 0, "--json")
    reported = ran.json
    assert "as in the paper" in ran.err  # the positives were in the training set
    assert reported["as_published"] and reported["options"]["objective"]["power"] == 2
    assert SimilarityMatrix.load(out).provenance["as_published"] == "Yan13"
    figures = [entry["test"] for entry in reported["history"]]
    assert (
        figures[0] == reported["test"]["tf-idf"] == pytest.approx(mean_of(indexed.folder, one_each, "alone"), abs=1e-6)
    )
    assert (
        figures[-1]
        == reported["test"]["learnt"]
        == pytest.approx(mean_of(indexed.folder, one_each, "alone", out), abs=1e-6)
    )
    assert reported["test"]["best"]["mAP"] == max(figures) and reported["test"]["queries"] == 4
    assert 0 < reported["test_seconds"] < reported["seconds"]  # a part of it
    with curve.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["test"]) for row in rows] == pytest.approx(figures)
    assert [int(row["iteration"]) for row in rows] == list(range(len(figures))) and rows[0]["held_out"] == ""
    # Queries of other labels are not learnt from, either.
    table = one_each.with_name("labels.csv")
    stems = [query.stem for query in read_ground_truth(one_each)]
    objects = {stem: stem.rsplit("_", 1)[0] for stem in (path.stem for path in indexed.photos.iterdir())}
    kept = {stem: name for stem, name in objects.items() if any(one.startswith(name) for one in stems)}
    table.write_text("".join(f"{stem},{name}\n" for stem, name in sorted(kept.items())))
    more = ("learn", "similarity", indexed.folder, "--out", out, "--gt", table, "--iterations", 1, "--hold-out", 0)
    assert cairn(*more, "--json").json["queries"] == 12
    assert cairn(*more, "--test-gt", one_each, "--json").json["queries"] == 8


@pytest.mark.slow
def test_splits_are_learnt_from_and_measured_as_searches_are(cairn: Cairn, indexed: Indexed, one_each: Path) -> None:
    work = one_each.with_name("work")
    command = ("evaluate", "similarity", indexed.folder, "--gt", one_each, "--work", work, "--iterations", 2)
    command += ("--splits", 2, "--neighbours", 0, "--neighbours", 1, "--share", 0.9, "--hold-out", 0, "--workers", 1)
    command += ("--way", "alone", "--way", "verified")
    reported = cairn(*command, "--json").json
    (found,) = reported["searched"].values()
    for way in ("alone", "verified"):
        assert found["tf-idf"][way]["mAP"] == pytest.approx(mean_of(indexed.folder, one_each, way), abs=1e-6)
    files = {k: sorted(work.glob(f"*/k{k}-*-0.npz")) for k in (0, 1)}
    for row in found["learnt"]:
        means = [mean_of(indexed.folder, one_each, "alone", file) for file in files[row["neighbours"]]]
        assert row["alone"]["splits"] == pytest.approx(means, abs=1e-6) and len(means) == 2
        assert row["alone"]["mAP"] == pytest.approx(sum(means) / 2, abs=1e-6)
        assert row["alone"]["sd"] == pytest.approx(abs(means[0] - means[1]) / 2**0.5, abs=1e-5)
        assert set(row["alone"]["queries"]) == {query.name for query in read_ground_truth(one_each)}
    assert [row["parameters"]["mean"] for row in reported["learning"]] == sorted(
        row["parameters"]["mean"] for row in reported["learning"]
    )
    # A stopped run resumes without repeating finished work.
    times = {path: path.stat().st_mtime_ns for path in work.rglob("*.*")}
    files[0][0].with_suffix(".json").unlink()
    again = cairn(*command, "--json").json
    assert [one["learnt"][0]["alone"] for one in again["searched"].values()] == [found["learnt"][0]["alone"]]
    changed = {path for path in times if path.stat().st_mtime_ns != times[path]}
    assert changed == {files[0][0], files[0][0].with_suffix(".json")}
    said = cairn(*command)
    assert said.code == 0 and "words alone, k = 0: mAP" in said.out and "variables" in said.out


@pytest.mark.slow
def test_objects_are_measured_by_what_others_teach_elsewhere_too(
    cairn: Cairn, indexed: Indexed, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(indexed.folder, tmp_path / "other.cairn"))
    with Collection.open(other) as collection:
        distractors = [str(row.name) for row in collection.catalogue.read(all_indexed) if "distractor" in row.path]
        assert distractors and remove_photos(collection, distractors[:2])
    command = ("evaluate", "similarity", indexed.folder, "--gt", indexed.gt, "--splits", 1, "--by", "objects")
    command += ("--parts", 2, "--way", "alone", "--work", tmp_path / "work", "--iterations", 2, "--workers", 1)
    reported = cairn(*command, "--searched", other, "--as-published", "--json").json
    assert list(reported["searched"]) == [str(indexed.folder), str(other)]
    for name, found in reported["searched"].items():
        assert found["tf-idf"]["alone"]["mAP"] == pytest.approx(mean_of(Path(name), indexed.gt, "alone"), abs=1e-6)
    row, beside = (found["learnt"][0] for found in reported["searched"].values())
    assert beside["alone"]["queries"].keys() == row["alone"]["queries"].keys()
    assert len(row["alone"]["queries"]) == reported["queries"] == 8 and row["unseen"] is None and "verified" not in row
    assert len(reported["learning"][0]["splits"][0]["parts"]) == 2
    assert set(reported["learning"][0]["splits"][0]["photos"].values()) == {0}


def test_requests_that_make_no_sense_are_refused(cairn: Cairn, indexed: Indexed, one_each: Path) -> None:
    measure = ("evaluate", "similarity", indexed.folder, "--work", one_each.with_name("work"), "--gt", one_each)
    assert "by photos or by objects" in cairn(*measure, "--by", "chance").refused()
    assert "less than 1" in cairn(*measure, "--share", 1).refused()
    assert "'quickly'" in cairn(*measure, "--way", "quickly").refused()
    learn = ("learn", "similarity", indexed.folder, "--out", one_each.with_name("s.npz"))
    labelled = (*learn, "--gt", one_each)
    assert "--share" in cairn(*learn, "--verified", "--share", 0.5).refused()
    assert "--test-gt" in cairn(*labelled, "--test-queries", one_each).refused()
    assert ".csv" in cairn(*labelled, "--curve", one_each.with_name("curve.txt")).refused()
    other = one_each.with_name("other")
    other.mkdir()
    for part, text in (("query", "nowhere 0 0 9 9"), ("good", "cat_000"), ("ok", ""), ("junk", "")):
        (other / f"q_{part}.txt").write_text(text + "\n")
    assert "'nowhere'" in cairn(*labelled, "--test-gt", other).refused()
    assert "'nowhere'" in cairn("evaluate", "similarity", indexed.folder, "--gt", other).refused()
