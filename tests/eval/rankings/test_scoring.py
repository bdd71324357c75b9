"""Scores of rankings: equal to the published program, with any spelling of names; errors."""

import pickle
import random
from dataclasses import replace
from pathlib import Path

import pytest

from eval.rankings.files import Rankings
from eval.rankings.ground_truth import GroundTruth, read_truth_of_rankings
from eval.rankings.scoring import score_rankings
from index.errors import CairnError
from learning.labels.ground_truth import GroundTruthQuery


def compute_ap(ranked: list[str], positives: set[str], junk: set[str]) -> float:
    """Average precision, computed like the program `compute_ap` of Oxford5K (its loop, rewritten)."""
    old_recall, old_precision, area, found, rank = 0.0, 1.0, 0.0, 0, 0
    for photo in ranked:
        if photo in junk:
            continue
        found += photo in positives
        recall, precision = found / len(positives), found / (rank + 1)
        area += (recall - old_recall) * (old_precision + precision) / 2
        old_recall, old_precision, rank = recall, precision, rank + 1
    return area


def query(name: str, good: str, junk: str = "", stem: str | None = None) -> GroundTruthQuery:
    return GroundTruthQuery(
        name, stem or name, (0, 0, 9, 9), frozenset(good.split()), frozenset(), frozenset(junk.split())
    )


QUERIES = [query("q_1", "a b c", "j"), query("q_2", "c", stem="p"), query("q_3", "a")]


def test_average_precision_is_that_of_the_published_program() -> None:
    draw = random.Random(3)
    photos = [f"photo{number}" for number in range(60)]
    for _ in range(20):
        chosen = draw.sample(photos, 20)
        requested = query("q", " ".join(chosen[:8]), " ".join(chosen[8:]))
        ranked = draw.sample(photos, draw.randint(20, 60))
        report = score_rankings(Rankings({"q": ranked}, "file"), GroundTruth({"oxford": [requested]}))
        assert report.mean("oxford") == pytest.approx(compute_ap(ranked, set(chosen[:8]), set(chosen[8:])), abs=1e-12)
        (scored,) = report.protocols["oxford"]
        counted = [photo for photo in ranked if photo not in requested.junk]
        assert {photo: counted.index(photo) + 1 for photo in counted if photo in requested.good} == scored.ranks
        assert set(scored.missed) == requested.good - set(ranked)


def test_names_with_folders_and_endings_are_the_same_photos_and_queries() -> None:
    plain = Rankings({"q_1": ["a", "j", "x", "b", "y.z"], "q_2": ["c"], "q_3": ["x", "a"]}, "file")
    dressed = Rankings(
        {"gt/q_1.txt_": [], "p.jpg": ["oxc1_c.jpg"], "q_3_query": ["deep/x.png", "C:\\photos\\a.JPEG"]}, "file"
    )
    dressed.photos.pop("gt/q_1.txt_")
    dressed.photos["q_1"] = ["img/a.jpg", "j.tif", "img/x.jpg", "b.png", "y.z"]
    one, other = (score_rankings(rankings, GroundTruth({"oxford": QUERIES})) for rankings in (plain, dressed))
    assert one.as_json() == other.as_json()
    assert [round(score.ap, 6) for score in one.protocols["oxford"]] == [0.527778, 1.0, 0.25]


def test_a_ground_truth_may_write_endings_case_and_accents_otherwise() -> None:
    plain = Rankings({"q_1": ["a", "x", "caf\u00e9", "j"], "q_2": ["x", "b.jpg"], "p": ["j.png", "A"]}, "file")
    written = [
        query("q_1", "a.JPG Cafe\u0301.jpg", "J.jpg"),
        query("q_2", "b.JPG"),
        query("q_3", "a.JPG", "J.jpg", stem="P.jpg"),
    ]
    report = score_rankings(plain, GroundTruth({"oxford": written}))
    assert [score.ap for score in report.protocols["oxford"]] == pytest.approx([19 / 24, 1 / 4, 1])
    # Of two photos whose names differ in case alone, each is itself.
    both = score_rankings(Rankings({"q": ["A", "a"]}, "file"), GroundTruth({"oxford": [query("q", "a", "A")]}))
    one = score_rankings(Rankings({"q": ["A", "a"]}, "file"), GroundTruth({"oxford": [query("q", "a")]}))
    assert (both.mean("oxford"), one.mean("oxford")) == (1, 1 / 4)


def test_a_query_without_a_ranking_scores_0_and_one_without_positives_leaves_the_mean() -> None:
    empty = query("q_9", "")
    report = score_rankings(
        Rankings({"q_2": ["c"]}, "file"), GroundTruth({"easy": [*QUERIES, empty], "hard": QUERIES[1:]})
    )
    assert (report.mean("easy"), report.mean("hard")) == (1 / 3, 1 / 2)
    assert report.unranked == ["q_1", "q_3", "q_9"]
    assert "3 of 4 queries, such as 'q_1', have no ranking" in report.notes[0]
    assert report.as_json()["protocols"]["hard"] == {
        "mAP": 0.5,
        "queries": [{"name": "q_2", "ap": 1.0}, {"name": "q_3", "ap": 0.0}],
    }


@pytest.mark.parametrize(
    ("ranked", "said"),
    [
        ({"q_7": ["a"]}, "'q_7', which is no query of the ground truth"),
        ({"q_2": ["c"], "p.jpg": ["a"]}, "two rankings for the query 'q_2', as 'q_2' and 'p.jpg'"),
        ({"q_1": ["a", "x", "in/a.jpg"]}, r"'a' twice for the query 'q_1', as number 1 \('a'\) and 3 \('in/a.jpg'\)"),
        ({"q_1": ["x", "y"]}, "None of the 2 photos in file, such as 'x', is named in the ground truth"),
        ({"q_1": ["a", "x", "strange"]}, "ranks 1 photos, such as 'strange', that are not among the 4 photos"),
    ],
)
def test_what_is_known_nowhere_is_said(ranked: dict[str, list[str]], said: str) -> None:
    searched = [str(Path("folder") / f"{name}.jpg") for name in "abcx"]
    with pytest.raises(CairnError, match=said):
        score_rankings(Rankings(ranked, "file"), GroundTruth({"oxford": QUERIES}), searched)


def test_photos_of_one_name_in_several_folders_are_several_where_the_ground_truth_names_none_of_them() -> None:
    ranked = Rankings({"q_3": ["one/z.jpg", "two/z.jpg", "a"]}, "file")
    report = score_rankings(ranked, GroundTruth({"oxford": QUERIES}), ["one/z.jpg", "two/z.jpg", "a.jpg"])
    assert report.protocols["oxford"][2].ranks == {"a": 3}


def test_revisited_is_scored_by_each_of_its_protocols(tmp_path: Path) -> None:
    path = tmp_path / "gnd_roxford5k.pkl"
    entry = {"bbx": [1, 2, 30, 40], "easy": [0, 1], "hard": [3], "junk": [5]}
    database = ["a_1", "a_2", "a_3", "b_1", "b_2", "c_1"]
    path.write_bytes(pickle.dumps({"gnd": [entry], "imlist": database, "qimlist": ["q_1"]}, 2))
    # As positions without junk: easy a_1 1, a_2 3; medium a_1 1, b_1 2, a_2 4; hard b_1 1.
    ranked = Rankings({"q_1.jpg": ["jpg/a_1.jpg", "c_1", "b_1", "strange", "a_2", "a_3"]}, "file")
    report = score_rankings(ranked, read_truth_of_rankings(path))
    by_hand = {
        "easy": compute_ap(["a_1", "x", "a_2", "y"], {"a_1", "a_2"}, set()),
        "medium": compute_ap(["a_1", "b_1", "x", "a_2", "y"], {"a_1", "a_2", "b_1"}, set()),
        "hard": 1.0,
    }
    assert {name: report.mean(name) for name in report.protocols} == pytest.approx(by_hand)
    # Precision at k ends where the last positive is (`compute_map` of Revisited): easy 2 of 3, medium 3 of 4, hard 1.
    assert [report.mean_precision("easy", k) for k in report.cutoffs] == [1, 2 / 3, 2 / 3]
    assert report.as_json()["protocols"]["medium"]["mP@10"] == 0.75
    assert report.as_json()["protocols"]["hard"]["mP@5"] == 1
    assert "Of the ranked photos 1, such as 'strange', are not in the database" in report.notes[0]


def test_rankings_of_one_protocol_and_distractors_are_taken_for_what_they_are() -> None:
    truth = GroundTruth({"easy": QUERIES[:1], "hard": QUERIES[:1]})
    ranked = Rankings(
        {"q_1": ["far/a.jpg", "a", "b", "c"]},
        "file",
        protocols={"hard": {"q_1.jpg": ["a", "b", "x", "c"]}},
        distractors={"far/a.jpg"},
    )
    report = score_rankings(ranked, truth)
    assert [report.protocols[name][0].ranks for name in truth.protocols] == [
        {"a": 2, "b": 3, "c": 4},
        {"a": 1, "b": 2, "c": 4},
    ]
    for changed, said in (
        ({"distractors": {"a"}}, "a distractor 'a', which is the name of a photo in the ground truth"),
        ({"protocols": {"medium": {}}}, "of the protocol 'medium', but the ground truth has easy, hard"),
    ):
        with pytest.raises(CairnError, match=said):
            score_rankings(replace(ranked, **changed), truth)  # type: ignore[arg-type]
