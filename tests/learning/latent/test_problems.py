"""Latent problems of a metric and of weights: their optimum compared with a convex solver's, their distances by
loops."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.convex.dual_averaging import AveragingOptions
from learning.latent.alternation import GroupedRows, alternate
from learning.latent.anchors import Anchors
from learning.latent.described_patches import Described
from learning.latent.metric_problem import MetricProblem, units_of
from learning.latent.pooling_problem import PoolingProblem
from learning.mining.matches import MinedMatches
from learning.patches.rows import BlockRows
from tests.support.learning.latent_cases import KINDS, Case, drawn_rows, make_case, planted_rows, rows_of
from tests.support.learning.mined_files import drawn, in_memory

seeds = st.integers(0, 2**32 - 1)
FEW = AveragingOptions(iterations=40, batch=0, gamma=0.1)


def start_of(case: Case) -> np.ndarray:
    """Plain squared distances."""
    size = case.positives[0].shape[1]
    return np.ones(size) if case.kind == "weights" else np.eye(size)


def solved(case: Case) -> float:
    """Minimum of equation 16 by another solver, where each feature has one positive and all of them count."""
    cp = pytest.importorskip("cvxpy")
    size = case.positives[0].shape[1]
    unknown = cp.Variable(size, nonneg=True) if case.kind == "weights" else cp.Variable((size, size), PSD=True)

    def distances(rows: np.ndarray) -> Any:
        if case.kind == "weights":
            return rows @ unknown
        outer = np.einsum("ni,nj->nij", rows, rows).reshape(len(rows), -1)
        return outer @ cp.vec(unknown, order="C")

    losses = [
        cp.pos(distances(near)[0] - cp.min(distances(far)) + 1)
        for near, far in zip(case.positives, case.negatives, strict=True)
    ]
    penalty = {
        "weights": lambda: case.mu * cp.sum(unknown),
        "nuclear": lambda: case.mu * cp.trace(unknown),
        "frobenius": lambda: case.mu / 2 * cp.sum_squares(unknown),
    }[case.kind]()
    program = cp.Problem(cp.Minimize(sum(losses) / len(losses) + penalty))
    with warnings.catch_warnings():
        # Solutions that it calls inaccurate have about five digits, enough here.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL)
    assert program.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return float(program.value)


class TestLearning:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("share", [0.02, pytest.param(0.1, marks=pytest.mark.slow)])
    def test_the_optimum_is_the_solver_s_within_one_percent(self, kind: str, share: float) -> None:
        rng = np.random.default_rng(4)
        case = make_case(kind, *drawn_rows(kind, rng, ([1] * 60, [3] * 60), size=4), share, iterations=1000)
        found = alternate(case.problem, 60, distances=case.problem.distances(start_of(case)), alternations=1)
        best = solved(case)
        assert best * (1 - 1e-4) <= found.objective <= 1.01 * best
        assert best < 0.97  # far from the empty solution, of value 1

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    def test_some_features_at_a_time_come_to_the_same_optimum_and_the_seed_alone_decides(self, kind: str) -> None:
        rng = np.random.default_rng(5)
        rows = drawn_rows(kind, rng, ([2] * 200, [3] * 200))
        start = make_case(kind, *rows).problem.distances(np.eye(5) if kind != "weights" else np.ones(5))
        steps: tuple[dict[str, int], ...] = ({}, {"batch": 40}, {"batch": 40}, {"batch": 40, "seed": 1})
        whole, drawn, again, other = (
            alternate(make_case(kind, *rows, iterations=600, **each).problem, 150, distances=start, alternations=1)
            for each in steps
        )
        assert drawn.objective == pytest.approx(whole.objective, rel=0.03)
        np.testing.assert_array_equal(again.parameters, drawn.parameters)
        assert again.history == drawn.history
        assert other.parameters.shape != drawn.parameters.shape or (other.parameters != drawn.parameters).any()

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("batch", [0, 5])
    def test_only_the_features_and_matches_that_count_are_learnt_from(self, kind: str, batch: int) -> None:
        rng = np.random.default_rng(7)
        lengths = [2] * 30, [3, 1] * 15
        positives, negatives = drawn_rows(kind, rng, lengths)
        features = np.flatnonzero(rng.random(30) < 0.5)
        matches = 2 * features + rng.integers(0, 2, len(features))
        others, unlike = drawn_rows(kind, rng, lengths)
        for x, match in zip(features.tolist(), matches.tolist(), strict=True):
            others[x][match % 2], unlike[x] = positives[x][match % 2], negatives[x]
        one: Any = make_case(kind, positives, negatives, batch=batch).problem
        other: Any = make_case(kind, others, unlike).problem
        other = replace(other, mu=one.mu, averaging=one.averaging)
        learnt = one.learn(features, matches)
        assert learnt.any()
        np.testing.assert_array_equal(other.learn(features, matches), learnt)

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_order_of_negatives_makes_no_difference_to_what_is_learnt(self, kind: str) -> None:
        rng = np.random.default_rng(6)
        positives, negatives = drawn_rows(kind, rng, ([2] * 40, [4] * 40))
        one = make_case(kind, positives, negatives)
        other = make_case(kind, positives, [rng.permutation(rows) for rows in negatives])
        start = start_of(one)
        for mine, others in zip(one.problem.distances(start), other.problem.distances(start), strict=True):
            np.testing.assert_array_equal(np.sort(mine), np.sort(others))
        found = [
            alternate(case.problem, 30, distances=case.problem.distances(start), alternations=1)
            for case in (one, other)
        ]
        # Not to the last digit: RDA begins at 0, where all distances are equal and the first negative counts.
        assert found[1].objective == pytest.approx(found[0].objective, rel=0.01)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
    def test_unmatchable_features_are_left_out_and_the_model_is_better_for_it(self, kind: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        matchable, total = 60, 100
        rows = planted_rows(kind, rng, matchable, total - matchable)
        case = make_case(kind, *rows, 0.02, of=matchable)
        problem = case.problem
        fresh = make_case(kind, *planted_rows(kind, rng, 400, 0, 30)).problem
        recall = []
        for count in (matchable, total):
            found = alternate(problem, count, distances=problem.distances(start_of(case)), alternations=5)
            near, far = fresh.distances(found.parameters)
            recall.append(float((fresh.positives.least(near) < fresh.negatives.least(far)).mean()))
            if count == matchable:
                assert (found.features < matchable).mean() > 0.9
        assert recall[0] > recall[1] + 0.1


# --- A metric, of rows of patches.


def some_anchors(seed: int, size: int = 5) -> tuple[MinedMatches, Anchors, Described, np.random.Generator]:
    rng = np.random.default_rng(seed)
    while True:
        arrays = drawn(rng)
        matches = in_memory(arrays)
        features = np.arange(matches.features)
        hardest = np.full((len(features), 6), -1, np.int32)
        for x in features.tolist():
            negatives = rng.permutation(matches.negatives(x))[:6]
            hardest[x, : len(negatives)] = negatives
        anchors = Anchors.of(matches, features, hardest)
        if len(anchors) > 2:
            rows = rng.normal(size=(len(matches.patches), size)).astype(np.float16)
            return matches, anchors, Described(np.arange(len(rows)), rows), rng


def pairs_of(anchors: Anchors, kind: str) -> list[tuple[int, int]]:
    """Patches of each feature with each of its candidates."""
    rows = anchors.positives if kind == "positives" else anchors.negatives
    patches = anchors.positive_patches if kind == "positives" else anchors.negative_patches
    return [
        (int(reference), int(patch))
        for x, reference in enumerate(anchors.references)
        for patch in patches[rows.starts[x] : rows.starts[x + 1]]
    ]


class TestMetric:
    @given(seed=seeds, chunk=st.integers(1, 9))
    def test_distances_are_those_of_projected_rows(self, seed: int, chunk: int) -> None:
        _, anchors, described, rng = some_anchors(seed)
        problem = MetricProblem.of(anchors, described, 0.5, "nuclear", FEW)
        assert (problem.positives, problem.negatives) == (anchors.positives, anchors.negatives)
        projection = rng.normal(size=(int(rng.integers(0, 4)), 5))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("learning.patches.rows._PAIRS", chunk)
            found = problem.distances(projection)
        rows = described.rows.astype(np.float64)
        for distances, kind in zip(found, ("positives", "negatives"), strict=True):
            wanted = [float(np.square(projection @ (rows[x] - rows[y])).sum()) for x, y in pairs_of(anchors, kind)]
            np.testing.assert_allclose(distances, wanted, rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("norm", ["nuclear", "frobenius"])
    def test_units_are_those_of_mean_moments(self, norm: str) -> None:
        _, anchors, described, _ = some_anchors(7)
        rows = described.rows.astype(np.float64)
        moments = []
        for kind in ("negatives", "positives"):
            thetas = [rows[x] - rows[y] for x, y in pairs_of(anchors, kind)]
            moments.append(np.mean([np.outer(theta, theta) for theta in thetas], axis=0))
        slope = moments[0] - moments[1]
        units = units_of(anchors, described, norm)
        largest = np.linalg.eigvals(slope).real.max()
        assert units.gamma == pytest.approx(np.trace(slope @ slope), rel=1e-4)
        assert units.mu == pytest.approx(largest if norm == "nuclear" else np.trace(slope @ slope), rel=1e-4)

    def test_units_of_a_sample_are_about_those_of_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Some of each kind are drawn by a seed, not the first ones."""
        _, anchors, described, _ = some_anchors(8)
        whole = units_of(anchors, described, "nuclear")
        monkeypatch.setattr("learning.latent.metric_problem._SAMPLE", 6)
        drawn = [units_of(anchors, described, "nuclear", seed).gamma for seed in range(100)]
        assert len(set(drawn)) > 90 and drawn[3] == units_of(anchors, described, "nuclear", 3).gamma
        most = max(len(anchors.positive_patches), len(anchors.negative_patches))
        monkeypatch.setattr("learning.latent.metric_problem._SAMPLE", most)
        assert units_of(anchors, described, "nuclear", 5).gamma == pytest.approx(whole.gamma, rel=1e-5)

    @pytest.mark.parametrize("norm", ["nuclear", "frobenius"])
    def test_in_these_units_the_length_of_rows_makes_no_difference(self, norm: str) -> None:
        _, anchors, described, _ = some_anchors(9)
        longer = Described(described.numbers, described.rows * np.float16(4))
        found = []
        for each in (described, longer):
            units = units_of(anchors, each, norm)
            steps = replace(FEW, gamma=FEW.gamma * units.gamma)
            problem = MetricProblem.of(anchors, each, 0.05 * units.mu, norm, steps)
            found.append(alternate(problem, len(anchors) - 1, distances=problem.distances(np.eye(5))))
        assert found[0].parameters.any()
        np.testing.assert_allclose(4 * found[1].parameters, found[0].parameters, rtol=1e-4, atol=1e-5)
        assert found[1].objective == pytest.approx(found[0].objective, rel=1e-5)

    def test_at_one_unit_of_mu_nothing_is_left(self) -> None:
        _, anchors, described, _ = some_anchors(10)
        features = np.arange(len(anchors))
        # One candidate of each kind, so that the subgradient at 0 is the difference of the means.
        starts = anchors.positives.starts[:-1], anchors.negatives.starts[:-1]
        one = rows_of([1] * len(anchors))
        anchors = replace(
            anchors,
            positives=one,
            negatives=one,
            positive_patches=anchors.positive_patches[starts[0]],
            negative_patches=anchors.negative_patches[starts[1]],
        )
        units = units_of(anchors, described, "nuclear")
        ranks = []
        for share in (1 + 1e-4, 0.97):
            problem = MetricProblem.of(anchors, described, share * units.mu, "nuclear", replace(FEW, gamma=units.gamma))
            ranks.append(len(problem.learn(features, features)))
        assert ranks[0] == 0 < ranks[1]


# --- Weights, of ψ in blocks.


@st.composite
def rings(draw: st.DrawFn) -> tuple[GroupedRows, np.ndarray, GroupedRows, np.ndarray]:
    """ψ (M, 7) of positives and (L, 7) of negatives, float16, in units that differ."""
    rng = np.random.default_rng(draw(seeds))
    lengths = rng.integers(1, 5, (2, int(rng.integers(2, 12)))).tolist()
    near, far = drawn_rows("weights", rng, (lengths[0], lengths[1]), size=7)
    unit = rng.choice([0.25, 1.0, 8.0], 7)
    psi = [(np.concatenate(rows) * unit).astype(np.float16) for rows in (near, far)]
    return rows_of(lengths[0]), psi[0], rows_of(lengths[1]), psi[1]


def pooling_problem(
    case: tuple[GroupedRows, np.ndarray, GroupedRows, np.ndarray],
    balanced: bool,
    kept: np.ndarray | None = None,
    mu: float = 0.05,
) -> PoolingProblem:
    positives, near, negatives, far = case
    blocks = [BlockRows(np.array_split(rows, 3)) for rows in (near, far)]
    means = near.mean(axis=0, dtype=np.float64), far.mean(axis=0, dtype=np.float64)
    both = (positives, blocks[0]), (negatives, blocks[1])
    return PoolingProblem.of(*both, means, mu, FEW, balanced=balanced, kept=kept)


class TestPooling:
    @given(case=rings(), balanced=st.booleans(), kept=st.none() | st.sets(st.integers(0, 6), min_size=1), seed=seeds)
    def test_distances_are_those_of_the_pool_s_own_weights(
        self,
        case: tuple[GroupedRows, np.ndarray, GroupedRows, np.ndarray],
        balanced: bool,
        kept: set[int] | None,
        seed: int,
    ) -> None:
        """In numpy: wᵀψ for w = scale * weights on the rings that may have weight, and 0 elsewhere."""
        chosen = np.arange(7) if kept is None else np.array(sorted(kept))
        problem = pooling_problem(case, balanced, None if kept is None else chosen)
        weights = np.random.default_rng(seed).uniform(0, 1, len(chosen))
        weights[::2] *= weights[::2] > 0.3
        own = np.zeros(7)
        own[chosen] = problem.scale * weights
        for found, psi in zip(problem.distances(weights), case[1::2], strict=True):
            np.testing.assert_allclose(found, psi.astype(np.float64) @ own, rtol=1e-4, atol=1e-5)
        assert problem.penalty(weights) == pytest.approx(problem.mu * sum(weights))
        if balanced:  # a weight of one adds one to the distance of a negative in the mean
            np.testing.assert_allclose(problem.scale * case[3].mean(axis=0, dtype=np.float64)[chosen], 1, rtol=1e-6)
        else:
            np.testing.assert_array_equal(problem.scale, 1)

    @given(case=rings(), balanced=st.booleans(), kept=st.sets(st.integers(0, 6), min_size=1))
    def test_of_some_rings_it_is_the_whole_one_whose_other_columns_are_zero(
        self, case: tuple[GroupedRows, np.ndarray, GroupedRows, np.ndarray], balanced: bool, kept: set[int]
    ) -> None:
        chosen = np.array(sorted(kept))
        zeroed = [np.where(np.isin(np.arange(7), chosen), psi, np.float16(0)) for psi in case[1::2]]
        few = pooling_problem(case, balanced, chosen)
        whole = pooling_problem((case[0], zeroed[0], case[2], zeroed[1]), balanced)
        assert few.mu == pytest.approx(whole.mu) and few.averaging.gamma == pytest.approx(whole.averaging.gamma)
        features = np.arange(len(case[0]))
        one, other = (problem.learn(features, case[0].starts[:-1]) for problem in (few, whole))
        np.testing.assert_allclose(one, other[chosen], rtol=1e-3, atol=1e-4 * (1 + other.max()))
        assert not np.delete(other, chosen).any()

    @pytest.mark.parametrize("balanced", [False, True])
    def test_at_one_unit_of_mu_nothing_is_selected(self, balanced: bool) -> None:
        rng = np.random.default_rng(3)
        near, far = drawn_rows("weights", rng, ([1] * 50, [1] * 50), size=7)
        case = rows_of([1] * 50), np.concatenate(near), rows_of([1] * 50), np.concatenate(far) * np.float32(3)
        features = np.arange(50)
        nothing, some = (
            pooling_problem(case, balanced, mu=share).learn(features, features) for share in (1 + 1e-4, 0.97)
        )
        assert not nothing.any() and some.any()

    @settings(max_examples=20)
    @given(case=rings(), balanced=st.booleans())
    def test_in_these_units_those_of_psi_make_no_difference(
        self, case: tuple[GroupedRows, np.ndarray, GroupedRows, np.ndarray], balanced: bool
    ) -> None:
        """Of all rings together; balanced, of each."""
        factor = np.array([4, 1, 0.5, 2, 1, 4, 1] if balanced else [4], np.float16)
        problems = [pooling_problem((case[0], case[1] * by, case[2], case[3] * by), balanced) for by in (1, factor)]
        features = np.arange(len(case[0]))
        found = [problem.learn(features, case[0].starts[:-1]) * problem.scale for problem in problems]
        np.testing.assert_allclose(found[1] * factor, found[0], rtol=1e-3, atol=1e-4 * (1 + found[0].max()))
