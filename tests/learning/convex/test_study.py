"""A study learns each setting once, side by side or not, and stops where time has run out and there is enough."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from learning.convex.records import ModelRecords, Record
from learning.convex.stages import hours_of_stages, learn_stages
from learning.convex.study import Study, Trial
from retrieval.descriptors.learnt import LearntModel

KEYS = [letter * 64 for letter in "abcde"]
MODEL = Record("pooling", KEYS[0], 0.3, 0.1, 64, 3, 0.05, 0.4, 0, 1.5)


def learn(key: str, learnt: Path) -> list[tuple[Record, np.ndarray]]:
    """Two models, the second made from the first; each call writes a file."""
    with (learnt / key).open("x"):
        pass
    return [(replace(MODEL, key=key, refits=refits), np.full(3, int(key[0], 16) + refits)) for refits in range(2)]


def trials(learnt: Path, keys: list[str] = KEYS) -> list[Trial[Record]]:
    learnt.mkdir(exist_ok=True)
    return [(key, partial(learn, key, learnt)) for key in keys]


def study(work: Path, hours: float = 0.0, workers: int = 1, told: list | None = None) -> Study[Record]:
    tell = (lambda *what: told.append(what)) if told is not None else (lambda *what: None)
    return Study(ModelRecords(work, Record), {"pooling": hours, "projection": 0.0}, workers, tell)


@pytest.mark.parametrize("workers", [1, 2])
def test_all_settings_are_learnt_in_their_order(tmp_path: Path, workers: int) -> None:
    told: list[tuple[str, int, int]] = []
    one = study(tmp_path / "work", workers=workers, told=told)
    found = one.learn("pooling", trials(tmp_path / "learnt"), bool)
    assert [(record.key, record.refits) for record in found] == [(key, refits) for key in KEYS for refits in range(2)]
    assert one.tried == found == ModelRecords(tmp_path / "work", Record).all
    np.testing.assert_array_equal(one.records.parameters(found[-1]), np.full(3, 15))
    assert told[0] == ("pooling", 0, 5) and told[-1] == ("pooling", 5, 5)


def test_what_is_there_is_not_learnt_again(tmp_path: Path) -> None:
    first = study(tmp_path / "work").learn("pooling", trials(tmp_path / "learnt", KEYS[1:3]), bool)
    assert len(first) == 4
    told: list[tuple[str, int, int]] = []
    again = study(tmp_path / "work", told=told)
    assert len(again.learn("pooling", trials(tmp_path / "learnt"), bool)) == 10
    assert told[0] == ("pooling", 2, 5)
    assert len(list((tmp_path / "learnt").iterdir())) == 5


def test_without_time_it_stops_as_soon_as_there_is_enough(tmp_path: Path) -> None:
    late = study(tmp_path / "work", hours=1e-12)
    found = late.learn("pooling", trials(tmp_path / "learnt"), lambda records: len(records) >= 4)
    assert [record.key for record in found[::2]] == KEYS[:2]
    # Models of earlier grids of the stage count too.
    assert late.learn("pooling", trials(tmp_path / "more", ["f" * 64]), bool) == []
    # And another stage has its own time.
    assert len(late.learn("projection", trials(tmp_path / "others", ["9" * 64, "8" * 64]), bool)) == 4


def test_half_of_the_time_is_for_pooling_where_both_are_learnt() -> None:
    assert hours_of_stages("both", 3.0) == {"pooling": 1.5, "projection": 3.0, "whitening": 3.0}
    assert hours_of_stages("pooling", 3.0)["pooling"] == hours_of_stages("projection", 3.0)["projection"] == 3.0


@pytest.mark.parametrize(
    ("stage", "base", "asked"),
    [("both", "pooled", "ab"), ("pooling", "pooled", "a"), ("projection", "pooled", "b"), ("both", "sift", "b")],
)
def test_only_the_wanted_stages_are_learnt(stage: str, base: str, asked: str) -> None:
    stages: list[str] = []

    class Learner:
        def learn_pooling(self) -> tuple[None, str]:
            stages.append("a")
            return None, "regions"

        def learn_projection(self, model: LearntModel) -> tuple[LearntModel, str]:
            stages.append("b")
            return model, "projection"

    model, pooling, projection = learn_stages(Learner(), stage, base, None)  # type: ignore[arg-type]
    assert "".join(stages) == asked and model.base == base
    assert (pooling, projection) == ("regions" if "a" in asked else None, "projection" if "b" in asked else None)
