"""Experiments of papers in Python: pages and tables, and an error for missing data."""

from pathlib import Path

import pytest

import cairn as library
from eval.library.reproduce import run_experiments
from eval.reproduce.measures import Value
from eval.reproduce.plan import Cell, Experiment, Table
from eval.reproduce.running import Bench, Standing
from eval.reproduce.steps import Step
from index.errors import CairnError

STEP = Step("Measuring", ("evaluate", "bits"), 0.5)
TABLE = Table("Errors", "percent", (Cell("ours", "set", Value(STEP, ("fpr95",)), 0.25),))


def test_an_experiment_gives_its_tables_and_page(tmp_path: Path) -> None:
    def run(arguments: object) -> str:
        return '{"fpr95": 0.5}'

    reported: list[Standing] = []
    bench = Bench(tmp_path, tmp_path / "steps", run=run)
    experiment = Experiment("paper/table1", "Errors", "Table 1", (TABLE,), ("Half of it is drawn by chance.",))
    (found,) = run_experiments([experiment], bench, tmp_path, 1.0, reported.append, lambda one, error: None)
    assert (found.name, found.page) == ("paper/table1", tmp_path / "paper" / "table1.html") and found.page.is_file()
    assert found.differs == ("Half of it is drawn by chance.",)
    (cell,) = found.tables[0]["cells"]
    assert (cell["ours"], cell["published"], cell["difference"]) == (0.5, 0.25, 0.25)
    assert found.to_dict()["page"] == str(found.page) and [one.title for one in reported] == ["Measuring"]


def test_what_cannot_be_run_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="There is no experiment"):
        library.reproduce("nobody/table1", tmp_path, out=tmp_path)
    with pytest.raises(CairnError, match="cairn data get"):
        library.reproduce(["brown11"], tmp_path, out=tmp_path / "out")
