"""`cairn evaluate ranking` and `cairn plot pr`: output, files and refusals."""

from collections.abc import Callable
from pathlib import Path

import pytest

from eval.demo.synthetic import DemoCollection
from eval.rankings.curves import read_curves
from tests.conftest import Ran

Cairn = Callable[..., Ran]


def test_a_ranking_is_scored_written_and_drawn(cairn: Cairn, demo: DemoCollection, tmp_path: Path) -> None:
    from learning.labels.ground_truth import read_ground_truth

    queries = read_ground_truth(demo.gt)
    stems = sorted(path.stem for path in demo.images.iterdir())
    lines = []
    for number, query in enumerate(queries[:-1]):
        # The first finds all positives at once; the others find them last.
        ranked = sorted(stems, key=lambda stem, query=query, number=number: (stem in query.positives) == (number > 0))
        lines += [f"{query.name}\t{rank}\timages/{stem}.jpg" for rank, stem in enumerate(ranked)]
    table = tmp_path / "ranking.tsv"
    table.write_text("\n".join(lines))
    requested = ("evaluate", "ranking", table, "--gt", demo.gt, "--images", demo.images)
    ran = cairn(*requested, "--pr", tmp_path / "pr.csv", "--report", tmp_path / "page.html", "--json")
    scores = {entry["name"]: entry["ap"] for entry in ran.json["queries"]}
    assert list(scores) == [query.name for query in queries]
    assert scores[queries[0].name] == 1 and scores[queries[-1].name] == 0
    assert ran.json["mAP"] == pytest.approx(sum(scores.values()) / len(scores), abs=1e-6)
    assert ran.json["unranked"] == [queries[-1].name]
    assert read_curves(tmp_path / "pr.csv")[""].queries[queries[0].name].min() == 1
    assert (tmp_path / "page.html").read_text().count("<article>") == len(queries)
    plain = cairn(*requested)
    assert plain.out.splitlines()[0] == f"1.0000  {queries[0].name}"
    assert f"0.0000  {queries[-1].name}  (no ranking)" in plain.out and "have no ranking" in plain.err
    assert f"mAP {ran.json['mAP']:.4f} over {len(queries)} queries" in plain.out
    drawn = tmp_path / "pr.svg"
    assert cairn("plot", "pr", table, tmp_path / "pr.csv", "--gt", demo.gt, "--out", drawn).code == 0
    text = drawn.read_text()
    assert text.count("<!-- ") > 5 and f"ranking (mAP {ran.json['mAP']:.4f})" in text
    assert "--gt" in cairn("plot", "pr", table, "--out", drawn).refused()


def test_what_cannot_be_scored_is_said(cairn: Cairn, demo: DemoCollection, tmp_path: Path) -> None:
    table = tmp_path / "r.csv"
    table.write_text("query,rank,photo\nnobody,1,x\n")
    requested = ("evaluate", "ranking", table, "--gt", demo.gt)
    assert "'nobody', which is no query" in cairn(*requested).refused()
    assert "There is no photo in" in cairn(*requested, "--images", demo.gt).refused()
    assert "let it end with .csv" in cairn(*requested, "--pr", tmp_path / "pr.txt").refused()
    assert "let it end with .html" in cairn(*requested, "--report", tmp_path / "a.pdf").refused()
    assert "no file or folder of rankings" in cairn("evaluate", "ranking", "no.csv", "--gt", demo.gt).refused()
