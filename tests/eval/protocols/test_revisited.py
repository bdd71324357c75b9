"""The ground truth of Revisited is read as published, and each protocol uses the right photos."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.protocols.revisited import read_revisited
from eval.protocols.truth import CUTOFFS, QueryLabels, read_truth
from index.errors import CairnError

DATABASE = ["a_1", "a_2", "a_3", "b_1", "b_2", "c_1"]
ENTRY = {"bbx": [10.5, 20, 30, 40.0], "easy": [0, 1], "hard": [3], "junk": [5]}


def written(path: Path, **changed: Any) -> Path:
    content = {"gnd": [ENTRY], "imlist": DATABASE, "qimlist": ["q_1"], **changed}
    path.write_bytes(pickle.dumps(content, 2))
    return path


def test_each_protocol_has_its_positives_and_its_junk(tmp_path: Path) -> None:
    hard = {"bbx": np.array([5, 5, 1, 1.0]), "easy": np.zeros(0, np.int64), "hard": np.array([4, 5]), "junk": [0]}
    nothing = {"bbx": (0, 0, 9, 9), "easy": [], "hard": [], "junk": [1]}
    path = written(tmp_path / "gnd_roxford5k.pkl", gnd=[ENTRY, hard, nothing], qimlist=["q_1", b"q_2.jpg", "q_3"])
    truth = read_truth(path)
    assert truth.protocols == ("easy", "medium", "hard")
    assert truth.cutoffs == CUTOFFS == (1, 5, 10)
    assert truth.database == set(DATABASE) and truth.cropped
    first, second = truth.queries  # the third has no positive by any protocol
    assert (first.name, first.stem, first.box) == ("q_1", "q_1", (10.5, 20.0, 30.0, 40.0))
    assert first.labels == {
        "easy": QueryLabels(frozenset(("a_1", "a_2")), frozenset(("b_1", "c_1"))),
        "medium": QueryLabels(frozenset(("a_1", "a_2", "b_1")), frozenset(("c_1",))),
        "hard": QueryLabels(frozenset(("b_1",)), frozenset(("a_1", "a_2", "c_1"))),
    }
    assert second.box == (1.0, 1.0, 5.0, 5.0)
    assert set(second.labels) == {"medium", "hard"}  # it has no easy one
    assert truth.named == {"q_1", "q_2", "a_1", "a_2", "b_1", "b_2", "c_1"}


WRONG: dict[str, dict[str, Any]] = {
    "one entry a name": {"qimlist": ["q_1", "q_2"]},
    "no place": {"gnd": [{**ENTRY, "easy": [6]}]},
    "is no place": {"gnd": [{**ENTRY, "junk": [-1]}]},
    "what is no place": {"gnd": [{**ENTRY, "hard": [0.5]}]},
    "no place of imlist": {"gnd": [{**ENTRY, "hard": np.zeros((2, 2), int)}]},
    "as easy and as hard": {"gnd": [{**ENTRY, "hard": [1]}]},
    "as easy and as junk": {"gnd": [{**ENTRY, "junk": [0]}]},
    "four numbers": {"gnd": [{**ENTRY, "bbx": [1, 2, 3]}]},
    "no area": {"gnd": [{**ENTRY, "bbx": [1, 2, 1, 5]}]},
    "has no area": {"gnd": [{**ENTRY, "bbx": [1, 2, float("nan"), 5]}]},
    "easy and hard": {"gnd": [{"bbx": [1, 2, 3, 4], "ok": [1], "junk": []}]},
    "names a photo twice": {"imlist": ["a_1", "a_1"]},
    "not a list": {"imlist": "a_1"},
    "no name": {"imlist": ["a_1", 3]},
    "no query": {"gnd": [], "qimlist": []},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_is_no_ground_truth_of_revisited_is_refused(sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path / "gnd.pkl", **WRONG[sentence])
    with pytest.raises(CairnError, match=sentence):
        read_revisited(path)


def test_other_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gnd.pkl"
    path.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(CairnError, match="not a dict of gnd"):
        read_revisited(path)
