"""The verdict of retrieval: figures by scene, and conclusions."""

import json

import numpy as np
import pytest

from learning.judge.retrieval import ENGINES
from learning.judge.scenes import BoxQuery
from learning.judge.verdict import OUTCOMES, RetrievalVerdict, gains


def verdict_of(words: list[float], verified: list[float], scenes: int = 20) -> RetrievalVerdict:
    """Of differences by scene."""
    gains = np.column_stack([words, verified]).reshape(-1, 2)
    return RetrievalVerdict("rootsift", 1234, scenes, 4 * len(gains), 0.5 + gains / 2, 0.5 - gains / 2)


UP = [0.05, 0.06, 0.04, 0.05, 0.07, 0.05]
DOWN = [-one for one in UP]
NONE = [0.05, -0.06, 0.04, -0.05, 0.07, -0.05]
LEANS = [0.05, -0.06, 0.04, -0.05, 0.02, -0.06]  # a point less in the mean, which may be chance


@pytest.mark.parametrize(
    ("words", "verified", "outcome"),
    [
        (UP, UP, "better"),
        (UP, NONE, "better"),
        (NONE, UP, "better"),
        (DOWN, UP, "better"),  # what is verified decides
        (UP, DOWN, "worse"),
        (NONE, DOWN, "worse"),
        (DOWN, NONE, "worse"),
        (NONE, NONE, "same"),
        (UP, LEANS, "same"),  # it may well find less once verified
        ([0.3], [0.3], "cannot say"),
        ([], [], "cannot say"),
    ],
)
def test_what_follows_from_differences(words: list[float], verified: list[float], outcome: str) -> None:
    verdict = verdict_of(words, verified)
    assert verdict.outcome == outcome == verdict.as_json()["outcome"]
    assert outcome in OUTCOMES
    assert ("index with it" in verdict.sentence) == (outcome == "better")
    assert ("stay with rootsift" in verdict.sentence) == (outcome != "better")
    for line in [verdict.sentence, *verdict.details]:
        assert line.endswith(".") and "nan" not in line and "inf" not in line
    json.loads(json.dumps(verdict.as_json(), allow_nan=False))


def test_scenes_weigh_equally_however_many_queries_they_have() -> None:
    def query(scene: int) -> BoxQuery:
        return BoxQuery(scene, scene, 1.0, (0, 0, 1, 1), frozenset({9}), frozenset({scene}))

    queries = [query(scene) for scene in (1, 1, 1, 5)]
    learnt = np.array([[1.0, 0.9], [0.8, 0.9], [0.6, 0.9], [0.2, 0.5]])
    verdict = RetrievalVerdict.of("rootsift", 9, 3, queries, learnt, learnt - 0.1)
    assert verdict.held_out == 2 and verdict.queries == 4
    assert verdict.learnt == pytest.approx(np.array([[0.8, 0.9], [0.2, 0.5]]))
    assert verdict.difference(ENGINES[0]) == pytest.approx((0.1, 0))
    figures = verdict.as_json()["tf-idf"]
    assert figures == {"learnt": 0.5, "rootsift": 0.4, "difference": 0.1, "standard_error": 0.0, "won": 4, "lost": 0}


def test_the_details_tell_the_figures() -> None:
    first, words, verified = verdict_of([0.1, 0.2], [0.02, 0]).details
    assert "8 boxes" in first and "2 scenes not learnt from, among 1,234 photos" in first
    assert "mAP by words 57.5, with rootsift 42.5 (difference +15.0 ± 5.0 points)" in words
    assert "mAP verified 50.5, with rootsift 49.5 (difference +1.0 ± 1.0 points)" in verified


def test_it_says_why_it_cannot_say() -> None:
    assert "No two of 1,234 photos surely show the same" in verdict_of([], [], scenes=0).sentence
    assert "Of 20 scenes that surely overlap, none is free of photos" in verdict_of([], []).sentence
    assert "Of one scene that surely overlap" not in verdict_of([], []).sentence
    assert "only one is free" in verdict_of([0.5], [0.5]).sentence
    assert "mAP by words 75.0, with rootsift 25.0 (difference +50.0 points)" in verdict_of([0.5], [0.5]).details[1]


def test_without_queries_there_are_no_figures() -> None:
    none = np.zeros((0, 2))
    verdict = RetrievalVerdict.of("rootsift", 4, 0, [], none, none)
    assert (verdict.outcome, verdict.held_out, verdict.details) == ("cannot say", 0, [])
    assert verdict.as_json()["tf-idf"] == dict.fromkeys(("learnt", "rootsift", "difference", "standard_error"))


def test_it_says_where_nothing_is_left_to_gain() -> None:
    easy = RetrievalVerdict("rootsift", 9, 3, 8, np.full((3, 2), 0.99), np.full((3, 2), 0.995))
    assert easy.details[-1] == "rootsift finds nearly all of them, so that hardly any gain could show."
    assert not any("hardly any gain" in line for line in verdict_of(UP, UP).details)


def test_what_is_found_with_the_learnt_descriptor_alone_is_shown_of_as_many_scenes_as_there_are() -> None:
    def asked(photo: int, scene: int) -> BoxQuery:
        return BoxQuery(photo, scene, 1.0, (0.0, 1.0, 2.0, 3.0), frozenset(), frozenset())

    queries = [asked(1, 1), asked(2, 1), asked(1, 1), asked(8, 7), asked(9, 7)]
    learnt = [frozenset(some) for some in ({2, 3}, {1, 3}, {4}, {7}, {7})]
    other = [frozenset(some) for some in ({3}, {3}, set(), {7}, set())]
    numbers = {number: 10 * number for number in range(1, 9)}  # 9 is gone
    found = gains(queries, learnt, other, {**numbers, 9: 90})
    assert [(one.photo, one.found) for one in found] == [(10, 20), (90, 70), (10, 40)]
    assert [(one.photo, one.found) for one in gains(queries, learnt, other, numbers, most=1)] == [(10, 20)]
    assert found[0].box == (0.0, 1.0, 2.0, 3.0)
