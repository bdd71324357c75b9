"""Experiments from the command line to their pages, on tiny sets in the layouts of the published ones."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eval.papers.registry import experiments
from eval.reproduce.steps import Scale
from tests.conftest import Ran
from tests.support.made_once import made_once
from tests.support.published_sets import write_all

Cairn = Callable[..., Ran]

SCALE = "0.001"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> Path:
        write_all(folder)
        return folder

    return made_once(tmp_path_factory, "published-sets", make)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all experiments of a process are run, so that they share what they have in common."""
    return tmp_path_factory.mktemp("reproduced")


@pytest.mark.slow
def test_an_experiment_becomes_a_page_and_is_not_run_again(root: Path, tmp_path: Path, cairn: Cairn) -> None:
    arguments = ("reproduce", "brown11/figure6", "--root", root, "--scale", SCALE, "--out", tmp_path, "--json")
    reported = cairn(*arguments).json["experiments"][0]
    assert reported["experiment"] == "brown11/figure6"
    assert {cell["row"] for cell in reported["tables"][0]["cells"]} == {"SIFT, pca", "SIFT, glde", "SIFT"}
    assert all(0 <= cell["ours"] <= 100 for cell in reported["tables"][0]["cells"])
    assert len(reported["plots"][0]["series"][0]["points"]) == 3
    assert json.loads((tmp_path / "brown11" / "figure6.json").read_text()) == {
        key: value for key, value in reported.items() if key != "page"
    }
    assert reported["differs"][0].startswith("SIFT is Cairn's own")
    assert "Where this differs from the paper" in (tmp_path / "brown11" / "figure6.html").read_text()
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert {one["step"] for one in logged} == {step["title"] for step in reported["steps"]}
    best = next(one["value"] for one in logged if one["name"] == "printed.best.sift")
    assert (
        sum(f"--footprint {best}" in step["command"] for step in reported["steps"]) == 6
    )  # learnt twice, tested, drawn
    left = cairn(*arguments, "--dry-run").json
    assert (left["commands"], left["done"]) == ([], len(reported["steps"]))


def test_what_cannot_be_run_is_one_sentence(tmp_path: Path, cairn: Cairn) -> None:
    requested = ("reproduce", "revisited/table5", "--root", tmp_path, "--out", tmp_path / "out")
    assert "cairn data get roxford5k" in cairn(*requested).refused()
    assert "no experiment 'revisited/table9'" in cairn("reproduce", "revisited/table9").refused()
    assert "above 0 and not above 1" in cairn(*requested, "--scale", "2").refused()
    assert not (tmp_path / "out").exists()


def test_experiments_that_fail_leave_the_others_to_run(tmp_path: Path, cairn: Cairn) -> None:
    ran = cairn(
        "reproduce", "revisited/table5", "brown11/figure5", "--root", tmp_path, "--out", tmp_path / "out", "--json"
    )
    assert ran.code == 1
    assert [one["experiment"] for one in ran.json["failed"]] == ["revisited/table5", "brown11/figure5"]
    assert ran.json["experiments"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", list(experiments(Scale(float(SCALE)))))
def test_every_experiment_runs(name: str, root: Path, out: Path, cairn: Cairn) -> None:
    reported = cairn("reproduce", name, "--root", root, "--scale", SCALE, "--out", out, "--workers", 1, "--json").json
    (one,) = reported["experiments"]
    assert reported["failed"] == []
    known = experiments()[name]
    of_ours = {(cell.row, cell.column) for part in known.parts for cell in getattr(part, "cells", ()) if cell.ours}
    measured = [cell for table in one["tables"] for cell in table["cells"] if (cell["row"], cell["column"]) in of_ours]
    assert all(cell["ours"] is not None for cell in measured) or name == "yan13/figure2"  # a share asks few landmarks
    assert all(series["points"] or series["level"] for plot in one["plots"] for series in plot["series"])
    assert Path(one["page"]).is_file()
