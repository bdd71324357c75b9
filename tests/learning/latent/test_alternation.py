"""The alternation of the latent learner: each step compared with a term-by-term evaluation of equation 16."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from learning.latent.alternation import (
    Alternation,
    ConvexProblem,
    GroupedRows,
    alternate,
    nearest_batch,
    nearest_counts,
)
from tests.support.learning.latent_cases import KINDS, Case, drawn_rows, make_case, rows_of

seeds = st.integers(0, 2**32 - 1)
# Quarters, so that equal distances and those that differ by just the margin are common; and finer ones.
quarters = st.integers(0, 12).map(lambda value: value / 4)
fine = st.integers(0, 2**32).map(lambda value: value / 2**30)
ragged = st.lists(st.lists(quarters, min_size=1, max_size=5), min_size=1, max_size=7)


class TestRows:
    @given(ragged)
    def test_least_and_nearest_are_those_of_each_feature(self, lists: list[list[float]]) -> None:
        rows, distances = rows_of([len(each) for each in lists]), np.concatenate(lists)
        assert len(rows) == len(lists)
        assert rows.least(distances).tolist() == [min(each) for each in lists]
        starts = [sum(len(each) for each in lists[:place]) for place in range(len(lists))]
        wanted = [start + each.index(min(each)) for start, each in zip(starts, lists, strict=True)]
        assert rows.nearest(distances).tolist() == wanted

    @given(ragged, st.data())
    def test_rows_of_some_features_come_in_their_order(self, lists: list[list[float]], data: st.DataObject) -> None:
        rows, distances = rows_of([len(each) for each in lists]), np.concatenate(lists)
        features = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=10))
        found, begins = rows.of(np.array(features, np.int64))
        assert distances[found].tolist() == [value for x in features for value in lists[x]]
        assert begins.tolist() == [sum(len(lists[x]) for x in features[:place]) for place in range(len(features))]


@st.composite
def distances(draw: st.DrawFn, element: st.SearchStrategy[float]) -> tuple[list[float], list[list[float]]]:
    """Distances of features to their matches, and to the negatives of each."""
    far = draw(st.lists(st.lists(element, min_size=1, max_size=4), min_size=1, max_size=6))
    return draw(st.lists(element, min_size=len(far), max_size=len(far))), far


def counts_of(near: list[float], far: list[list[float]]) -> tuple[float, np.ndarray, np.ndarray]:
    return nearest_counts(np.array(near), np.concatenate(far), rows_of([len(each) for each in far]).starts[:-1])


def mean_hinge(near: list[float], far: list[list[float]]) -> float:
    return sum(max(own - min(others) + 1, 0) for own, others in zip(near, far, strict=True)) / len(near)


class TestCounts:
    @given(distances(quarters | fine))
    def test_the_loss_is_the_mean_over_features(self, case: tuple[list[float], list[list[float]]]) -> None:
        loss, by_near, by_far = counts_of(*case)
        assert loss == pytest.approx(mean_hinge(*case), rel=1e-12, abs=1e-12)
        assert by_near.shape == (len(case[0]),) and by_far.shape == (sum(map(len, case[1])),)

    @given(distances(fine), st.data())
    def test_slopes_are_those_of_finite_differences(
        self, case: tuple[list[float], list[list[float]]], data: st.DataObject
    ) -> None:
        near, far = case
        step = 1e-6
        for own, others in zip(near, far, strict=True):  # away from where the loss bends
            least = sorted(others)
            assume(abs(own - least[0] + 1) > 10 * step and (len(least) == 1 or least[1] - least[0] > 10 * step))
        _, by_near, by_far = counts_of(near, far)
        x = data.draw(st.integers(0, len(near) - 1))
        one = data.draw(st.integers(0, len(far[x]) - 1))
        shifted = [[[*near[:x], near[x] + s, *near[x + 1 :]], far] for s in (step, -step)]
        slope = (mean_hinge(*shifted[0]) - mean_hinge(*shifted[1])) / (2 * step)
        assert slope == pytest.approx(by_near[x], abs=1e-6)
        moved = [[*far[x][:one], far[x][one] + s, *far[x][one + 1 :]] for s in (step, -step)]
        values = [mean_hinge(near, [*far[:x], row, *far[x + 1 :]]) for row in moved]
        place = sum(len(each) for each in far[:x]) + one
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(-by_far[place], abs=1e-6)

    @given(distances(quarters), st.data())
    def test_slopes_are_a_subgradient_even_where_the_loss_bends(
        self, case: tuple[list[float], list[list[float]]], data: st.DataObject
    ) -> None:
        """The loss is convex in the distances, so nowhere is it below its tangent."""
        near, far = case
        loss, by_near, by_far = counts_of(near, far)
        other_near = data.draw(st.lists(quarters, min_size=len(near), max_size=len(near)))
        other_far = [data.draw(st.lists(quarters, min_size=len(each), max_size=len(each))) for each in far]
        tangent = loss + by_near @ np.subtract(other_near, near)
        tangent -= by_far @ (np.concatenate(other_far) - np.concatenate(far))
        assert mean_hinge(other_near, other_far) >= tangent - 1e-12

    @given(distances(fine), seeds)
    def test_the_order_of_negatives_changes_nothing(
        self, case: tuple[list[float], list[list[float]]], seed: int
    ) -> None:
        near, far = case
        assume(all(len(set(each)) == len(each) for each in far))  # ties go to the first
        rng = np.random.default_rng(seed)
        orders = [rng.permutation(len(each)) for each in far]
        loss, by_near, by_far = counts_of(near, far)
        again = counts_of(near, [[each[i] for i in order] for each, order in zip(far, orders, strict=True)])
        starts = rows_of([len(each) for each in far]).starts
        places = np.concatenate([start + order for start, order in zip(starts[:-1], orders, strict=True)])
        assert again[0] == loss
        np.testing.assert_array_equal(again[1], by_near)
        np.testing.assert_array_equal(again[2], by_far[places])

    def test_a_batch_counts_by_its_own_division(self) -> None:
        near, far = np.float32([[1], [2]]), np.float32([[3], [1], [2], [0.5]])
        divisions = [np.array(starts) for starts in ([0, 1], [0, 3], [0, 2])]
        batches = [nearest_batch(near, far, starts) for starts in divisions]
        for batch, starts, loss in zip(batches, divisions, (1.25, 1.75, 1.75), strict=True):
            found = batch.counts(batch.near[:, 0], batch.far[:, 0])
            assert found[0] == loss
            for one, other in zip(found, nearest_counts(near[:, 0], far[:, 0], starts), strict=True):
                np.testing.assert_array_equal(one, other)


# --- The alternation, on tables of distances first.


class Tables:
    """A problem whose parameters are names, each with distances and a penalty, learnt in a fixed order."""

    positives, negatives = rows_of([2, 1, 2]), rows_of([1, 1, 1])

    def __init__(self, tables: dict[str, tuple[list[float], list[float], float]], learnt: str) -> None:
        self.tables = tables
        self.learnt = iter(learnt)
        self.asked: list[tuple[list[int], list[int]]] = []

    def distances(self, parameters: str) -> tuple[np.ndarray, np.ndarray]:
        near, far, _ = self.tables[parameters]
        return np.array(near, np.float32), np.array(far, np.float32)

    def penalty(self, parameters: str) -> float:
        return self.tables[parameters][2]

    def learn(self, features: np.ndarray, matches: np.ndarray) -> str:
        self.asked.append((features.tolist(), matches.tolist()))
        return next(self.learnt)


BEGIN = np.array([2, 1, 1, 4, 3]), np.array([2, 2, 3])  # margins of the matches (rows 1, 2, 4): -1, -1 and 0
FIRST = [1, 2, 3, 0.5, 4], [2.0, 2, 3], 0.25
WORSE = FIRST[0], FIRST[1], 0.3
BETTER = [1, 2, 3, 0.5, 4], [2.0, 3, 3], 0.25


class TestAlternation:
    def test_the_steps_are_those_worked_out_by_hand(self) -> None:
        problem = Tables({"a": FIRST, "b": WORSE}, "ab")
        found = alternate(problem, 2, distances=BEGIN, stage="projection", round=4)
        # With a, the margins to rows 1, 2 and 4 are 0, 1 and 1. Then row 0 is nearer for feature 0, its margin -1,
        # and row 3 for feature 2, its margin -2.5. Then feature 2 is easier than feature 1.
        assert problem.asked == [([0, 1], [1, 2]), ([0, 2], [0, 3])]
        assert [(entry.step, entry.objective, entry.recall) for entry in found.history] == [
            ("parameters", (1 + 2) / 2 + 0.25, pytest.approx(0)),
            ("positives", (0 + 2) / 2 + 0.25, pytest.approx(2 / 3)),
            ("selection", 0.25, pytest.approx(2 / 3)),
        ]
        assert {(entry.stage, entry.round, entry.validation) for entry in found.history} == {("projection", 4, None)}
        # b has a larger penalty and nothing better: it is not taken.
        assert found.parameters == "a" and found.objective == 0.25
        assert found.features.tolist() == [0, 2] and found.matches.tolist() == [0, 2, 3]

    def test_parameters_to_begin_with_are_left_only_for_better_ones(self) -> None:
        found = alternate(Tables({"a": FIRST, "b": WORSE}, "b"), 3, initial=("rings", "a"))
        assert found.parameters == "a" and [entry.step for entry in found.history] == ["rings"]
        assert found.objective == found.history[0].objective == 2 / 3 + 0.25
        found = alternate(Tables({"a": FIRST, "c": BETTER}, "cc"), 3, initial=("rings", "a"))
        assert found.parameters == "c" and found.objective == 1 / 3 + 0.25
        turn = ["parameters", "positives", "selection"]
        assert [entry.step for entry in found.history] == ["rings", *turn, *turn]

    def test_it_ends_where_nothing_gets_better_or_at_the_limit(self) -> None:
        problem = Tables({"a": FIRST}, "a" * 9)
        alternate(problem, 3, distances=BEGIN, alternations=9)
        assert len(problem.asked) == 2
        problem = Tables({"a": FIRST, "c": BETTER}, "ac")
        assert alternate(problem, 3, distances=BEGIN, alternations=1).parameters == "a"

    @pytest.mark.parametrize("count", [0, -1, 4])
    def test_so_many_features_must_be_there(self, count: int) -> None:
        with pytest.raises(ValueError, match="features"):
            alternate(Tables({"a": FIRST}, "a"), count, distances=BEGIN)

    def test_it_must_begin_with_one_thing(self) -> None:
        with pytest.raises(ValueError, match="begins"):
            alternate(Tables({"a": FIRST}, "a"), 2)
        with pytest.raises(ValueError, match="begins"):
            alternate(Tables({"a": FIRST}, "a"), 2, distances=BEGIN, initial=("rings", "a"))


@dataclass
class Watched:
    """A problem that records calls and learnt parameters."""

    problem: ConvexProblem[np.ndarray]
    asked: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)  # features and their matches
    learnt: list[np.ndarray] = field(default_factory=list)

    @property
    def positives(self) -> GroupedRows:
        return self.problem.positives

    @property
    def negatives(self) -> GroupedRows:
        return self.problem.negatives

    def distances(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.problem.distances(parameters)

    def penalty(self, parameters: np.ndarray) -> float:
        return self.problem.penalty(parameters)

    def learn(self, features: np.ndarray, matches: np.ndarray) -> np.ndarray:
        self.asked.append((features, matches))
        self.learnt.append(self.problem.learn(features, matches))
        return self.learnt[-1]


def random_case(kind: str, rng: np.random.Generator) -> Case:
    """A few features, with one to four candidates of either sort; often too few steps of RDA to get near a minimum."""
    number = int(rng.integers(2, 9))
    lengths = rng.integers(1, 5, (2, number)).tolist()
    steps = {"iterations": int(rng.choice([1, 4, 60])), "batch": int(rng.choice([0, 1, 3]))}
    rows = drawn_rows(kind, rng, (lengths[0], lengths[1]))
    return make_case(kind, *rows, float(rng.choice([0.01, 0.1, 0.5])), float(rng.choice([0.02, 0.3])), **steps)


def check_state(case: Case, parameters: np.ndarray, features: np.ndarray, matches: np.ndarray) -> None:
    """The match of each feature is its nearest positive, and no other feature's loss is less; to rounding."""
    nearest = [min(case.near(parameters, x)) for x in range(len(case.positives))]
    losses = [max(near - case.far(parameters, x) + 1, 0) for x, near in enumerate(nearest)]
    slack = 1e-5 * (1 + max(nearest) + max(losses))
    assert (np.diff(features) > 0).all()
    for x, match in zip(features.tolist(), matches.tolist(), strict=True):
        assert case.loss(parameters, x, match) <= losses[x] + slack
    others = set(range(len(losses))) - set(features.tolist())
    assert max(losses[x] for x in features) <= min((losses[x] for x in others), default=np.inf) + slack


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", ["", "negatives"])
@settings(max_examples=20)
@given(seed=seeds)
def test_no_step_raises_the_objective_and_each_does_what_it_says(kind: str, step: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(kind, rng)
    total, size = len(case.positives), case.positives[0].shape[1]
    count = int(rng.integers(1, total + 1))
    watched = Watched(case.problem)
    start: np.ndarray = rng.uniform(0, 0.5, size) if kind == "weights" else rng.normal(size=(3, size)) / 2
    found: Alternation[np.ndarray]
    if step:
        found = alternate(watched, count, initial=(step, start), alternations=4)
    else:
        found = alternate(watched, count, distances=case.problem.distances(start), alternations=4)
    for before, after in pairwise(found.history):
        assert after.objective <= before.objective * (1 + 1e-12)
    assert found.objective == found.history[-1].objective

    # Features and matches at the start and after each turn, as passed to the next turn, accepted or not; and the
    # parameters they follow from.
    turns = len(found.history) // 3
    states = [*watched.asked, (found.features, found.matches[found.features])][: turns + 1]
    parameters = [start, *watched.learnt[:turns]]
    logged = [(entry.step, entry.objective) for entry in found.history]
    if step:
        assert logged.pop(0) == (step, about(case.objective(start, *states[0])))
    for (old, matches), state, learnt in zip(states[:-1], states[1:], parameters[1:], strict=True):
        near = [case.near(learnt, x) for x in range(total)]
        nearest = case.problem.positives.starts[:-1] + [int(np.argmin(each)) for each in near]
        assert [logged.pop(0) for _ in range(3)] == [
            ("parameters", about(case.objective(learnt, old, matches))),
            ("positives", about(case.objective(learnt, old, nearest[old]))),
            ("selection", about(case.objective(learnt, *state))),
        ]
    assert not logged
    for learnt, state in zip(parameters, states, strict=True):
        check_state(case, learnt, *state)

    np.testing.assert_array_equal(found.parameters, parameters[-1])
    np.testing.assert_array_equal(found.features, states[-1][0])
    assert len(found.features) == count and len(found.matches) == total
    check_state(case, found.parameters, np.arange(total), found.matches)
    held = [min(case.near(found.parameters, x)) < case.far(found.parameters, x) for x in range(total)]
    assert found.history[-1].recall == pytest.approx(np.mean(held))


def about(value: float) -> Any:
    """A number to the digits of distances in float32."""
    return pytest.approx(value, rel=1e-4, abs=1e-4)
