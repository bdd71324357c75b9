"""The page of an experiment, and its numbers as CSV and JSON."""

import csv
import json
from pathlib import Path

import pytest

from eval.reproduce.measures import Listed, Value
from eval.reproduce.pages import Outcome, write_contents, write_outcome
from eval.reproduce.plan import Cell, Drawing, Experiment, Plot, Series, Table
from eval.reproduce.running import Bench
from eval.reproduce.steps import Data, Here, Step

TEST = Step("test <b>", ("evaluate", "patches", Data("liberty")), 0.5)
DRAW = Step("draw", ("plot", "regions", "d.npz", "--out", Here("r.svg")), 0.1, prints=False)
EXPERIMENT = Experiment(
    "paper/table1",
    "Errors & <dimensions>",
    "A paper, table 1",
    (
        Table(
            "Rates",
            "percent",
            (
                Cell("Yos → ND", "ours & theirs", Value(TEST, ("fpr95",), 100), 9.49, Value(TEST, ("dim",)), 544),
                Cell("Yos → ND", "of runs", Value(TEST, ("dim",)), 2, None, None, Value(TEST, ("fpr95",)), 0.4),
                Cell("Yos → ND", "theirs", None, 14.43),
                Cell("Yos → Lib", "ours & theirs", Value(TEST, ("nothing",)), None, None, 19),
            ),
        ),
        Plot(
            "By bits",
            "bits",
            "percent",
            (
                Series("measured", ((64.0, Value(TEST, ("fpr95",), 100)),), published=((64.0, 9.0), (128.0, 8.0))),
                Series("listed", listed=Listed(TEST, ("tried",), "dim", "error")),
                Series("level", level=Value(TEST, ("dim",))),
            ),
            log_x=True,
        ),
        Drawing("Drawn", DRAW, "r.svg"),
    ),
    ("Another way with <script>.",),
    ("A note with <script>.",),
)
PRINTED = {"fpr95": 0.1, "dim": 512, "nothing": None, "tried": [{"dim": 8, "error": 3.0}, {"dim": 4, "error": 5.0}]}


@pytest.fixture
def page(tmp_path: Path) -> Path:
    bench = Bench(tmp_path, tmp_path / "steps")
    bench.home(DRAW).mkdir(parents=True)
    (bench.home(DRAW) / "r.svg").write_text("<svg/>")
    results = {
        TEST.key: {"printed": PRINTED, "seconds": 90.0, "command": "cairn evaluate 'a <b>'"},
        DRAW.key: {"printed": {}, "seconds": 10.0, "command": "cairn plot"},
    }
    outcome = Outcome(EXPERIMENT, results, 0.05, "1.2.3")
    assert write_contents([outcome], tmp_path / "out") == tmp_path / "out" / "index.html"
    return write_outcome(outcome, bench, tmp_path / "out")


def test_numbers_stand_beside_the_published_ones(page: Path) -> None:
    reported = json.loads(page.with_suffix(".json").read_text())
    assert (reported["experiment"], reported["scale"], reported["cairn"], reported["seconds"]) == (
        "paper/table1",
        0.05,
        "1.2.3",
        100,
    )
    first, runs, second, third = reported["tables"][0]["cells"]
    assert (first["ours"], first["published"], first["difference"]) == (10, 9.49, pytest.approx(0.51))
    assert (first["detail"], first["published_detail"]) == (512, 544)
    assert (runs["spread"], runs["published_spread"], first["spread"]) == (0.1, 0.4, None)
    assert reported["differs"] == ["Another way with <script>."]
    assert (second["ours"], second["difference"], third["ours"]) == (None, None, None)
    assert [one["points"] for one in reported["plots"][0]["series"]] == [[[64, 10]], [[4, 5], [8, 3]], []]
    assert reported["plots"][0]["series"][2]["level"] == 512
    assert [step["command"] for step in reported["steps"]] == ["cairn evaluate 'a <b>'", "cairn plot"]


def test_the_csv_has_every_number(page: Path) -> None:
    with page.with_suffix(".csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["published"] for row in rows[:4]] == ["9.49", "2", "14.43", ""]
    assert (rows[1]["spread"], rows[1]["published_spread"]) == ("0.1", "0.4")
    assert [(row["column"], row["ours"], row["published"]) for row in rows[4:]] == [
        ("64.0", "10.0", ""),
        ("64.0", "", "9.0"),
        ("128.0", "", "8.0"),
        ("4.0", "5.0", ""),
        ("8.0", "3.0", ""),
        ("", "512.0", ""),
    ]


def test_the_page_shows_all_and_escapes_what_it_shows(page: Path) -> None:
    text = page.read_text()
    assert "<strong>10.00</strong> <small>[512]</small><br>" in text
    assert "9.49 <small>[544]</small> (+0.51)" in text
    assert text.count("data:image/png;base64,") == text.count("data:image/svg+xml;base64,") == 1
    assert '<span class="published">– <small>[19]</small></span>' in text  # the dimensions alone were published
    assert "Run at the scale 0.05" in text
    assert "<strong>512.00</strong> ± 0.10<br>" in text and "2.00 ± 0.40 (+510.00)" in text
    assert "<h2>Where this differs from the paper</h2><ul><li>Another way with &lt;script&gt;.</li>" in text
    for raw in ("<dimensions>", "test <b>", "a <b>", "<script>", "ours & theirs"):
        assert raw not in text
    other = Outcome(Experiment("paper/figure10", "Later", "A paper", (), ()), {}, 1.0, "1.2.3")
    (page.parent / "notes.html").write_text("Somebody's own.")
    write_contents([other], page.parent.parent)
    contents = (page.parent.parent / "index.html").read_text()
    assert '<a href="paper/table1.html">paper/table1</a>: Errors &amp; &lt;dimensions&gt; (scale 0.05)' in contents
    assert contents.count("<li>") == 2  # the page of an earlier run stays, before the text of a later one
    assert contents.index("paper/figure10") < contents.index("paper/table1")
