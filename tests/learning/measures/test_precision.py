import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from learning.measures.precision import average_precision, mean_average_precision, precision_at


def published_loop(ranking: Sequence[str], positives: set[str], junk: set[str]) -> float:
    """The loop of the benchmark's own program, image by image."""
    old_recall, old_precision, area = 0.0, 1.0, 0.0
    found = rank = 0
    for name in ranking:
        if name in junk:
            continue
        if name in positives:
            found += 1
        recall = found / len(positives)
        precision = found / (rank + 1.0)
        area += (recall - old_recall) * ((old_precision + precision) / 2.0)
        old_recall, old_precision = recall, precision
        rank += 1
    return area


# Worked by hand; letters a to d are positives, j is junk, everything else is wrong.
@pytest.mark.parametrize(
    ("ranking", "positives", "expected"),
    [
        ("abx", "ab", 1.0),  # perfect
        ("xa", "a", (0 + 1 / 2) / 2),
        ("axb", "ab", 1 / 2 + (1 / 2 + 2 / 3) / 4),
        ("xyza", "a", 1 / 8),  # worst possible place
        ("xyzab", "ab", (1 / 8 + (1 / 4 + 2 / 5) / 2) / 2),
        ("xyz", "a", 0.0),  # not found
        ("", "a", 0.0),
        ("ja", "a", 1.0),  # junk takes no rank
        ("xja", "a", 1 / 4),
        ("ajbx", "ab", 1.0),
        ("axb", "abcd", 1 / 4 + (1 / 2 + 2 / 3) / 8),  # c and d are missing from the ranking
        ("axj", "ab", 1 / 2),
    ],
)
def test_cases_worked_by_hand(ranking: str, positives: str, expected: float) -> None:
    assert average_precision(ranking, positives, "j") == pytest.approx(expected, abs=1e-12)


@st.composite
def rankings(draw: st.DrawFn) -> tuple[list[str], set[str], set[str]]:
    """A ranking of some of 40 images in any order, with any labels."""
    names = [f"i{number}" for number in range(40)]
    ranking = draw(st.permutations(names))[: draw(st.integers(0, 40))]
    labels = draw(st.lists(st.sampled_from("pjn"), min_size=40, max_size=40))
    positives = {name for name, label in zip(names, labels, strict=True) if label == "p"}
    assume(positives)
    return ranking, positives, {name for name, label in zip(names, labels, strict=True) if label == "j"}


@given(rankings())
def test_equals_the_published_program(case: tuple[list[str], set[str], set[str]]) -> None:
    assert average_precision(*case) == pytest.approx(published_loop(*case), abs=1e-12)


@given(rankings(), st.data())
def test_junk_anywhere_changes_nothing(case: tuple[list[str], set[str], set[str]], data: st.DataObject) -> None:
    ranking, positives, junk = case
    longer = list(ranking)
    longer.insert(data.draw(st.integers(0, len(ranking))), "more junk")
    assert average_precision(longer, positives, junk | {"more junk"}) == average_precision(ranking, positives, junk)


@given(rankings(), st.data())
def test_moving_a_positive_up_never_lowers(case: tuple[list[str], set[str], set[str]], data: st.DataObject) -> None:
    ranking, positives, junk = case
    places = [place for place, name in enumerate(ranking) if name in positives]
    assume(places)
    place = data.draw(st.sampled_from(places))
    better = list(ranking)
    better.insert(data.draw(st.integers(0, place)), better.pop(place))
    assert average_precision(better, positives, junk) >= average_precision(ranking, positives, junk) - 1e-12


@given(rankings())
def test_one_more_positive_that_is_never_found_scales_it(case: tuple[list[str], set[str], set[str]]) -> None:
    ranking, positives, junk = case
    expected = average_precision(*case) * len(positives) / (len(positives) + 1)
    assert average_precision(ranking, positives | {"lost"}, junk) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("ranking", "positives", "junk", "message"),
    [("ab", "", "", "without positives"), ("aba", "a", "", "twice"), ("ab", "ab", "b", "'b' is both")],
)
def test_what_has_no_defined_value_is_refused(ranking: str, positives: str, junk: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        average_precision(ranking, positives, junk)


def test_mean() -> None:
    assert mean_average_precision([1.0, 0.5, 0.0]) == pytest.approx(0.5)
    for values in ([], [math.nan], [1.5], [-0.1]):
        with pytest.raises(ValueError, match="average precision"):
            mean_average_precision(values)


# Worked by hand from the published rule: of the first min(k, place of the last positive), junk left out.
@pytest.mark.parametrize(
    ("ranking", "k", "expected"),
    [
        ("axb", 1, 1.0),
        ("axb", 2, 1 / 2),
        ("axb", 5, 2 / 3),  # the last positive is third
        ("ajbx", 10, 1.0),  # junk takes no rank
        ("jxa", 1, 0.0),
        ("xxxxxa", 5, 0.0),
        ("abxxx", 5, 1.0),
        ("xyz", 5, 0.0),  # none is there
    ],
)
def test_precision_at_k_worked_by_hand(ranking: str, k: int, expected: float) -> None:
    names = [f"x{place}" if name == "x" else name for place, name in enumerate(ranking)]
    assert precision_at(names, "ab", k, "j") == pytest.approx(expected, abs=1e-12)


@given(rankings(), st.integers(1, 45))
def test_precision_at_k_is_that_of_the_published_loop(case: tuple[list[str], set[str], set[str]], k: int) -> None:
    ranking, positives, junk = case
    clean = [name for name in ranking if name not in junk]
    ranks = [rank for rank, name in enumerate(clean, start=1) if name in positives]
    assume(ranks)
    last = min(max(ranks), k)
    assert precision_at(ranking, positives, k, junk) == pytest.approx(sum(rank <= last for rank in ranks) / last)


def test_precision_is_at_one_image_at_least() -> None:
    with pytest.raises(ValueError, match="one image"):
        precision_at("ab", "a", 0)
