"""Rankings: any part of one is what sorting everything gives."""

from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval.matching.verification import Verification
from retrieval.search.probability import UNCONFIRMED, Calibration
from retrieval.search.ranking import Hit, Ranking, Tried, combine

PHOTOS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.1, 0.25, 0.5]),  # score: with many ties
        st.sampled_from([0, 0, 0, 5, 9]),  # inliers
        st.sampled_from([0, 0, 4]),  # matches that may agree by chance
        st.sampled_from("abcd"),  # how the name begins
    ),
    max_size=40,
)
Rows = list[tuple[float, int, int, str]]


EVIDENCE_ALONE = Calibration(evidence=1.0, contrast=0.0, constant=0.0, alone=1.0, alone_constant=-5.0)


def odds_of(inliers: int) -> float:
    """Logarithm of odds: of five inliers more than of nine, so that some with fewer come before those with more."""
    return {0: 0.0, 5: 5.0, 9: 1.0}[inliers]


def ranking_of(rows: Rows) -> Ranking:
    numbers = 10 * np.arange(len(rows), dtype=np.uint32) + 3
    called = {int(number): row[3] for number, row in zip(numbers, rows, strict=True)}
    found = {
        int(number): Tried(1, Verification(np.zeros((inliers, 2), np.int32), np.eye(2, 3), odds_of(inliers), unsure))
        for number, (_, inliers, unsure, _) in zip(numbers, rows, strict=True)
        if inliers or unsure
    }
    scores = np.array([row[0] for row in rows], np.float32)
    return Ranking(numbers, scores, np.zeros(len(rows), int), found, _names(called), 0.1, EVIDENCE_ALONE)


def _names(called: dict[int, str]) -> Callable[[list[int]], dict[int, str]]:
    return lambda wanted: {number: called[number] for number in wanted}


def sorted_by_hand(rows: Rows) -> list[int]:
    def key(place: int) -> tuple[object, ...]:
        score, inliers, unsure, name = rows[place]
        odds = odds_of(inliers) if inliers or unsure else np.log(score / 0.1) - 5 if score > 0 else -np.inf
        likely = 1 / (1 + np.exp(-odds))
        found = inliers == 5
        likely = likely if inliers else min(likely, UNCONFIRMED)
        return not found, -inliers * found, -likely, -score, name if score > 0 else "", place

    return [10 * place + 3 for place in sorted(range(len(rows)), key=key)]


@given(PHOTOS, st.integers(0, 45))
def test_the_best_are_the_beginning_of_all(rows: Rows, top: int) -> None:
    expected = sorted_by_hand(rows)
    assert [hit.number for hit in ranking_of(rows)[:top]] == expected[:top]
    ranking = ranking_of(rows)
    assert ranking.ordered.tolist() == expected
    assert [hit.number for hit in ranking] == expected
    assert [hit.number for hit in ranking[::-2]] == expected[::-2]


@given(PHOTOS)
def test_a_hit_says_what_verification_found(rows: Rows) -> None:
    for hit in ranking_of(rows):
        score, inliers, unsure, _ = rows[(hit.number - 3) // 10]
        assert hit.score == np.float32(score)
        assert hit.verification.strength == (inliers, unsure)
        assert hit.view == (1 if inliers or unsure else 0)
        assert hit.found == (inliers == 5) and 0 <= hit.probability <= 1
        assert hit.probability > 0 or (score == 0 and not inliers and not unsure)


@given(st.lists(st.lists(st.integers(0, 3), min_size=12, max_size=12), min_size=2, max_size=4), st.booleans())
def test_several_answers_count_by_their_best_or_their_worst(scores: list[list[int]], match_all: bool) -> None:
    answers = [ranking_of([(score / 4, 5 * (score == 3), 0, "a") for score in row]) for row in scores]

    def strength(hit: Hit) -> tuple[bool, int, float, float]:
        return hit.found, hit.verification.inliers, hit.probability, hit.score

    first = [hit.number for hit in answers[0]]
    expected = []
    for number in first:
        hits = [next(hit for hit in answer if hit.number == number) for answer in answers]
        choose = min if match_all else max
        which = choose(range(len(hits)), key=lambda one: strength(hits[one]))
        expected.append((which, hits[which]))
    expected.sort(key=lambda one: strength(one[1]), reverse=True)
    combined = combine(answers, match_all, 20)
    assert [(which, hit.number) for which, hit in combined] == [(which, hit.number) for which, hit in expected]
    assert combine(answers, match_all, 5) == combined[:5]
