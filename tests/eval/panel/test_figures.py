"""Figures of the panel: each scene counts once, kinds weigh equally, and differences are those of scenes."""

import math
import re

import pytest

from eval.panel.figures import Figure, differences, mean_of, scores_of, summarise
from eval.panel.measuring import QueryOutcome
from retrieval.search.probability import LIKELY
from tests.support.paths import ROOT


def found(kind: str, scene: str, score: float, *photos: tuple[float, int, bool]) -> QueryOutcome:
    return QueryOutcome(kind, scene, score, 4, list(photos), [], scene == "castle", 0.5)


RUN = {
    "a/1": found(
        "façade", "castle", 1.0, (0.99, 40, True), (0.96, 0, True), (0.85, 0, False), (0.6, 0, False), (0.2, 0, True)
    ),
    "a/2": found("façade", "castle", 0.5, (0.97, 9, False)),
    "a/3": found("façade", "tower", 0.25),
    "b/1": found("solid thing", "toy", 0.5, (0.8, 0, True)),
}


def test_a_scene_counts_once_however_often_it_is_asked_for() -> None:
    assert scores_of(RUN) == {"façade": {"castle": 0.75, "tower": 0.25}, "solid thing": {"toy": 0.5}}
    kinds = summarise(RUN)
    assert list(kinds) == ["façade", "solid thing"]
    facade = kinds["façade"]
    assert facade.score == Figure(0.5, pytest.approx(0.25), 2)  # deviation of .75 and .25, over the root of two
    assert (facade.queries, facade.turned, facade.seconds) == (3, pytest.approx(2 / 3), (0.5, 0.5))
    assert math.isnan(kinds["solid thing"].score.error)


def test_found_needs_inliers_and_likely_is_what_is_not_found() -> None:
    kinds = summarise(RUN)
    assert (kinds["façade"].found, kinds["façade"].likely) == ((1, 1), (1, 1))
    assert (kinds["solid thing"].found, kinds["solid thing"].likely) == ((0, 0), (1, 0))
    assert kinds["façade"].shown.mean == pytest.approx((0.5 / 2 + 0 / 2 + 0) / 2)  # of castle (.5, 0) and tower


def test_pages_call_likely_what_figures_do() -> None:
    script = (ROOT / "retrieval/web/static/js/results.js").read_text(encoding="utf-8")
    assert re.findall(r"const LIKELY = ([\d.]+);", script) == [str(LIKELY)]


def test_differences_are_of_the_scenes_of_queries_that_both_asked() -> None:
    later = {**RUN, "a/3": found("façade", "tower", 0.45), "a/4": found("façade", "bridge", 0.0)}
    gains = differences(later, RUN)
    assert gains["façade"] == Figure(pytest.approx(0.1), pytest.approx(0.1), 2)
    assert gains["solid thing"].mean == 0
    assert mean_of(gains).mean == pytest.approx(0.05)
    assert mean_of(gains).error == pytest.approx(0.05)  # what has one scene has no error of its own
