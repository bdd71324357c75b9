"""Output files of a benchmark's rankings: written on request, refused early if impossible."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eval.demo.synthetic import DemoCollection
from eval.rankings.curves import read_curves
from eval.rankings.files import read_rankings
from eval.rankings.ground_truth import read_truth_of_rankings
from eval.rankings.outputs import Outputs
from eval.rankings.scoring import score_rankings
from index.errors import CairnError
from tests.conftest import Ran

Cairn = Callable[..., Ran]


def test_each_file_that_is_named_is_written(demo: DemoCollection, tmp_path: Path) -> None:
    truth = read_truth_of_rankings(demo.gt)
    paths = {path.stem: str(path.resolve()) for path in demo.images.iterdir()}
    named = {name for query in truth.protocols[""] for name in (query.stem, *query.positives, *query.junk)}
    ranked = {
        "": {query.name: [stem if stem in named else paths[stem] for stem in paths] for query in truth.protocols[""]}
    }
    outputs = Outputs(tmp_path / "ranking.csv", tmp_path / "pr.csv", tmp_path / "page.html")
    outputs.write_benchmark(ranked, truth, [demo.images], title="demo", facts={"engine": "tf-idf"})
    read = score_rankings(read_rankings(tmp_path / "ranking.csv"), truth, paths.values())
    curves = read_curves(tmp_path / "pr.csv")[""]
    assert list(curves.queries) == [score.query.name for score in read.protocols[""]]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<article>") == len(ranked[""]) and "not there" not in page and "tf-idf" in page
    assert str(tmp_path) not in (tmp_path / "ranking.csv").read_text()  # names of files are clear here
    Outputs().write_benchmark(ranked, truth, [], title="", facts={})


def test_what_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    for wrong in (
        {"save": tmp_path / "a.txt"},
        {"pr": tmp_path / "no" / "a.csv"},
        {"report": tmp_path / "a.png"},
        {"report": tmp_path},
    ):
        with pytest.raises(CairnError):
            Outputs(**wrong)


@pytest.mark.slow
def test_a_benchmark_saves_what_evaluate_ranking_scores_the_same(
    cairn: Cairn, demo: DemoCollection, tmp_path: Path
) -> None:
    requested = ("evaluate", "retrieval", "--images", demo.images, "--gt", demo.gt, "--work", tmp_path / "work")
    saved, page, pr = tmp_path / "ranking.csv", tmp_path / "page.html", tmp_path / "pr.csv"
    assert "let it end with .csv" in cairn(*requested, "--save", tmp_path / "a.txt").refused()
    assert not (tmp_path / "work").exists()
    here = cairn(*requested, "--save", saved, "--report", page, "--pr", pr, "--json").json
    read = cairn("evaluate", "ranking", saved, "--gt", demo.gt, "--images", demo.images, "--json").json
    assert read["mAP"] == here["mAP"]
    for one, other in zip(read["queries"], here["queries"], strict=True):
        assert one == {key: other[key] for key in ("name", "ap")}
    assert page.read_text().count("<article>") == len(here["queries"]) and len(read_curves(pr)) == 1
    assert json.dumps(read["notes"]) == "[]"
