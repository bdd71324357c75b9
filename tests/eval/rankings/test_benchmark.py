"""Rankings of a benchmark run here: saved ones score the same, with any names of photos."""

import random
from pathlib import Path

from eval.rankings.benchmark import rankings_to_save, report_of
from eval.rankings.files import read_rankings, write_rankings
from eval.rankings.ground_truth import GroundTruth
from eval.rankings.scoring import score_rankings
from learning.labels.ground_truth import GroundTruthQuery

PROTOCOLS = ("easy", "medium", "hard")


def query(name: str, good: set[str], junk: set[str]) -> GroundTruthQuery:
    return GroundTruthQuery(name, name, (0, 0, 9, 9), frozenset(good), frozenset(), frozenset(junk))


def test_what_is_saved_scores_the_same_to_the_last_digit(tmp_path: Path) -> None:
    draw = random.Random(1)
    named = [f"photo{number}" for number in range(12)]
    # Called like photos of the ground truth, called alike in two folders, and with a name that needs quotes.
    others = [f"/far/{name}.jpg" for name in (*named[:4], "oxc1_photo5", 'odd, "name"', "photo99")]
    others += ["/one/twin.jpg", "/two/twin.png", "/one/sub/twin.jpg"]
    queries = [query(name, set(draw.sample(named, 4)), set()) for name in ("q_1", "q_2")]
    protocols = {name: queries if name == "medium" else queries[:1] for name in PROTOCOLS}
    truth = GroundTruth(protocols, (1, 5), frozenset(named))
    for differ in (False, True):
        rankings = {one.name: draw.sample([*named, *others], 22) for one in queries}
        ranked = {
            name: {one.name: draw.sample([*named, *others], 20) if differ else rankings[one.name] for one in requested}
            for name, requested in protocols.items()
        }
        saved = rankings_to_save(ranked, truth)
        assert bool(saved.protocols) == differ and saved.distractors == {*others[:4], "oxc1_photo5.jpg"}
        write_rankings(tmp_path / "ranking.csv", saved)
        lines = (tmp_path / "ranking.csv").read_text().splitlines()
        assert lines[0] == f"{'protocol,' * differ}query,rank,photo,distractor"
        assert any("photo99.jpg" in line and "/far/" not in line for line in lines)
        here = report_of(ranked, truth)
        read = score_rankings(read_rankings(tmp_path / "ranking.csv"), truth)
        for name in PROTOCOLS:
            assert [score.ap for score in read.protocols[name]] == [score.ap for score in here.protocols[name]]
            assert read.mean_precision(name, 5) == here.mean_precision(name, 5)
            assert [score.ranks for score in read.protocols[name]] == [score.ranks for score in here.protocols[name]]
        assert here.unranked == read.unranked == []


def test_queries_that_were_not_asked_do_not_count() -> None:
    truth = GroundTruth({"": [query("q_1", {"a"}, set()), query("q_2", {"b"}, set())]})
    report = report_of({"": {"q_2": ["/x.jpg", "b"]}}, truth)
    assert [score.query.name for score in report.protocols[""]] == ["q_2"]
    assert report.mean("") == report.protocols[""][0].ap == 0.25
