"""Rankings scored by one function: worked by hand, and as the commands print them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from eval.library.retrieval import evaluate_retrieval
from index.errors import CairnError
from retrieval.search.engines.contract import load_engine
from tests.conftest import Indexed, Ran
from tests.support.toy_extensions import Nearest, no_extensions  # noqa: F401

Cairn = Callable[..., Ran]
TRUTH = {"door": {"good": {"a"}, "ok": ["b"], "junk": {"j"}}, "tower": {"t", "u"}, "nothing": set()}
RANKED = {"door": ["a", "j", "x", "b"], "tower": ["y", "u"]}


def test_rankings_worked_by_hand() -> None:
    found = evaluate_retrieval(RANKED, TRUTH)
    # Trapezoids, junk left out: 1/2 (1 + 1)/2 + 1/2 (1/2 + 2/3)/2; and 1/2 (0 + 1/2)/2, t being never found.
    assert found.ap == pytest.approx({"door": 1 / 2 + 7 / 24, "tower": 1 / 8})
    assert found.mean_ap == pytest.approx((19 / 24 + 1 / 8) / 2)
    assert found.unranked == ["nothing"] and found.protocols == {"": found.ap}
    assert [(row["query"], row["positives"], row["found"]) for row in found.rows] == [("door", 2, 2), ("tower", 2, 1)]
    recall, precision = found.curve("door")
    assert recall.tolist() == [0.5, 0.5, 1] and precision.tolist() == [1, 0.5, 2 / 3]
    recall, precision = found.curve()
    assert (recall[0], recall[-1], len(precision)) == (0, 1, 101)
    assert precision[0] == pytest.approx((1 + 1 / 2) / 2) and precision[-1] == pytest.approx((2 / 3 + 0) / 2)
    reported = found.to_dict()
    assert reported["mAP"] == round(found.mean_ap, 6) and reported["unranked"] == ["nothing"]


def test_names_may_be_numbers_and_results() -> None:
    class Hit:
        def __init__(self, name: str) -> None:
            self.name = name

    assert evaluate_retrieval({1: np.array([4, 3])}, {1: {3, 4}}).mean_ap == 1
    assert evaluate_retrieval({"q": [Hit("a"), Hit("b")]}, {"q": {"a"}}).mean_ap == 1


def test_a_file_of_rankings_gives_what_the_command_prints(cairn: Cairn, indexed: Indexed, tmp_path: Path) -> None:
    stems = sorted(path.stem for path in indexed.photos.iterdir())
    ranked = {"cat_1": stems, "coffee_1": [f"x/{stem}.jpg" for stem in stems[::-1]]}
    table = tmp_path / "ranking.json"
    table.write_text(json.dumps(ranked))
    reported = cairn("evaluate", "ranking", table, "--gt", indexed.gt, "--json").json
    of_file, of_dict = evaluate_retrieval(table, indexed.gt), evaluate_retrieval(ranked, str(indexed.gt))
    assert of_file.to_dict() == reported
    assert of_dict.ap == of_file.ap and of_dict.unranked == reported["unranked"]


def test_a_benchmark_gives_what_the_command_prints(cairn: Cairn, indexed: Indexed, tmp_path: Path) -> None:
    kept = tmp_path / "kept.cairn"
    steps: set[str] = set()
    found = evaluate_retrieval(
        indexed.photos,
        indexed.gt,
        vocabulary=indexed.folder,
        collection=kept,
        max_side=240,
        turns=1,
        share=0.3,
        workers=1,
        save=tmp_path / "ranking.csv",
        progress=lambda step, *_: steps.add(step),
    )
    command = ("evaluate", "retrieval", "--images", indexed.photos, "--gt", indexed.gt, "--collection", kept)
    options = ("--max-side", 240, "--turns", 1, "--share", 0.3, "--workers", 1, "--work", tmp_path / "work")
    reported = cairn(*command, "--vocabulary", indexed.folder, *options, "--json").json
    assert steps >= {"extract", "queries"}
    for key in ("mAP", "engine", "descriptor", "vocabulary", "images", "share"):
        assert found.to_dict()[key] == reported[key], key
    assert found.ap == pytest.approx({query["name"]: query["ap"] for query in reported["queries"]}, abs=1e-6)
    assert found.mean_ap == pytest.approx(reported["mAP"], abs=1e-6)
    assert evaluate_retrieval(tmp_path / "ranking.csv", indexed.gt).ap.items() >= found.ap.items()


@pytest.mark.slow
def test_engines_and_verifiers_are_given_as_objects_and_get_the_descriptors_that_they_need(indexed: Indexed) -> None:
    class Seen(Nearest):
        rows: ClassVar[list[int]] = []

        def verify(self, query: Any, photo: Any) -> Any:
            self.rows.append(len(query.descriptors))
            return super().verify(query, photo)

    how = {"vocabulary": indexed.folder, "max_side": 240, "turns": 1, "share": 0.3, "workers": 1}
    assert evaluate_retrieval(indexed.photos, indexed.gt, verifier=Seen(), **how).mean_ap > 0.5 and min(Seen.rows) > 0

    class Words(load_engine("tf-idf")):  # type: ignore[misc]
        pass

    own, theirs = (
        evaluate_retrieval(indexed.photos, indexed.gt, engine=engine, **how).ap for engine in (Words, "tf-idf")
    )
    assert own == theirs


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((RANKED, {"door": TRUTH["door"]}, {}), "'tower', which is no query"),
        (({"door": ["a", "a"]}, TRUTH, {}), "a photo twice"),
        (({"door": "ab"}, TRUTH, {}), "list or set of names"),
        (({"door": [["a"]]}, TRUTH, {}), "names or numbers"),
        ((RANKED, {"door": {"good": "a"}}, {}), "list or set of names"),
        ((RANKED, {"door": {"best": {"a"}}}, {}), "has 'best'"),
        ((RANKED, {"door": {"good": {"a"}, "junk": {"a"}}, "tower": {"t"}}, {}), "junk of 'door'"),
        (({"nothing": ["a"]}, {"nothing": set()}, {}), "has a positive"),
        ((RANKED, TRUTH, {"engine": "raw"}), "engine is for photos that are searched"),
        ((RANKED, TRUTH, {"progress": 3}), "progress is None"),
        ((RANKED, 3, {}), "truth must be a path"),
        ((RANKED, "nowhere", {}), "no ground-truth folder"),
        (("nowhere", TRUTH, {}), "ground truth in files"),
        ((3, "nowhere", {}), "photos must be a path"),
        (("nowhere", "nowhere", {}), "no ground-truth folder"),
    ],
)
def test_what_cannot_be_scored_is_said(given: tuple[Any, Any, dict[str, Any]], sentence: str) -> None:
    with pytest.raises(CairnError, match=sentence):
        evaluate_retrieval(given[0], given[1], **given[2])


def test_paths_of_one_name_are_different_photos() -> None:
    ranked = {"q": [Path("a/1.jpg"), Path("b/1.jpg")]}
    assert evaluate_retrieval(ranked, {"q": {Path("b/1.jpg")}}).ap == {"q": 0.25}


def test_a_collection_is_no_folder_of_photos(indexed: Indexed) -> None:
    with pytest.raises(CairnError, match="is a collection"):
        evaluate_retrieval(indexed.folder, indexed.gt)


def test_what_is_not_there_is_said() -> None:
    found = evaluate_retrieval(RANKED, TRUTH)
    with pytest.raises(CairnError, match="no query 'nobody'"):
        found.curve("nobody")
    with pytest.raises(CairnError, match="no protocol 'easy'"):
        found.curve(protocol="easy")
