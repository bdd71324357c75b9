"""Regularised dual averaging: its loss by brute force, its solutions compared with an independent convex solver."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learning.convex.dual_averaging import (
    AveragingOptions,
    hinge_counts,
    low_rank_metric,
    root_of,
    sparse_weights,
)
from learning.patches.rows import ArrayRows
from tests.support.learning.objectives import metric_objective, vector_objective

lengths = st.integers(1, 12)
# Quarters, so that distances that differ by just the margin are common; and finer ones, still without rounding.
ties = lengths.flatmap(lambda n: arrays(np.float64, n, elements=st.integers(0, 12).map(lambda value: value / 4)))
fine = lengths.flatmap(lambda n: arrays(np.float64, n, elements=st.integers(0, 2**32).map(lambda v: v / 2**30)))


def all_combinations(positive, negative):
    """d_p - d_n + 1 of every combination."""
    return positive[:, None] - negative[None] + 1


class TestHinge:
    @given(positive=ties | fine, negative=ties | fine)
    def test_loss_is_the_mean_over_all_combinations(self, positive, negative):
        loss, by_positive, by_negative = hinge_counts(positive, negative)
        assert loss == pytest.approx(np.maximum(all_combinations(positive, negative), 0).mean(), abs=1e-12)
        assert by_positive.shape == positive.shape and by_negative.shape == negative.shape

    def test_both_sides_agree_on_a_combination_that_rounding_puts_on_the_margin(self):
        loss, by_positive, by_negative = hinge_counts(np.array([1e-20]), np.array([1.0]))
        assert by_positive[0] == by_negative[0] and abs(loss) < 1e-12

    @given(positive=ties, negative=ties)
    def test_a_combination_counts_where_it_loses_and_not_at_the_margin_itself(self, positive, negative):
        _, by_positive, by_negative = hinge_counts(positive, negative)
        active = (all_combinations(positive, negative) > 0) / (len(positive) * len(negative))
        np.testing.assert_allclose(by_positive, active.sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(by_negative, active.sum(axis=0), atol=1e-12)

    @given(positive=fine, negative=fine, data=st.data())
    def test_slopes_are_those_of_finite_differences(self, positive, negative, data):
        step = 1e-6
        # Where no combination is at the margin, the loss is linear around.
        if np.abs(all_combinations(positive, negative)).min() < 10 * step:
            return
        _, by_positive, by_negative = hinge_counts(positive, negative)
        for distances, slopes, sign in ((positive, by_positive, 1), (negative, by_negative, -1)):
            entry = data.draw(st.integers(0, len(distances) - 1))
            kept, losses = distances[entry], []
            for shift in (step, -step):
                distances[entry] = kept + shift
                losses.append(hinge_counts(positive, negative)[0])
            distances[entry] = kept
            assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(sign * slopes[entry], abs=1e-6)

    def test_far_apart_nothing_is_lost_and_at_zero_everything_counts(self):
        loss, by_positive, by_negative = hinge_counts(np.zeros(3, np.float32), np.full(4, 5, np.float32))
        assert loss == 0 and not by_positive.any() and not by_negative.any()
        loss, by_positive, by_negative = hinge_counts(np.zeros(3, np.float32), np.zeros(4, np.float32))
        assert loss == 1 and by_positive.sum() == pytest.approx(1) == by_negative.sum()


# --- Problems that a solver of convex programs can solve as a whole.


def ring_problem(number=150, rings=24, seed=0):
    """ψ of pairs: a third of the rings tell positive from negative pairs, more or less; the rest are noise."""
    rng = np.random.default_rng(seed)
    means = np.where(np.arange(rings) % 3 == 0, 1 + rng.random(rings), 1)
    noise = rng.gamma(2, 0.5, (2 * number, rings))
    return noise[:number].astype(np.float32), (noise[number:] * means).astype(np.float32)


def difference_problem(number=60, dim=16, seed=0):
    """θ of pairs: positive pairs differ little along four directions, and as much as negative ones along the others."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    spread = np.where(np.arange(dim) < 4, 0.35, 1) * np.linspace(1, 0.6, dim)
    positive = rng.normal(size=(number, dim)) * spread @ axes
    negative = rng.normal(size=(number, dim)) * np.linspace(1, 0.6, dim) @ axes
    return positive.astype(np.float32), negative.astype(np.float32)


def vector_scale(positive, negative):
    """μ₁ from which on nothing is selected, and ‖g‖² of the subgradient g at w = 0."""
    slope = negative.mean(axis=0, dtype=np.float64) - positive.mean(axis=0, dtype=np.float64)
    return slope.max(), slope @ slope


def metric_scale(positive, negative):
    slope = [rows.T.astype(np.float64) @ rows / len(rows) for rows in (positive, negative)]
    slope = slope[1] - slope[0]
    return np.linalg.eigvalsh(slope)[-1], (slope**2).sum()


def solve(cp, objective):
    problem = cp.Problem(cp.Minimize(objective))
    with warnings.catch_warnings():
        # Solutions that it calls inaccurate have about five digits, enough here.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL)
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return problem.value


def hinge_of(cp, near, far):
    """Mean of the hinge over all combinations, for vectors of distances that are expressions."""
    rows, columns = near.shape[0], far.shape[0]
    margin = cp.reshape(near, (rows, 1), order="C") @ np.ones((1, columns))
    margin -= np.ones((rows, 1)) @ cp.reshape(far, (1, columns), order="C")
    return cp.sum(cp.pos(margin + 1)) / (rows * columns)


def fit_vector(positive, negative, share, gamma=0.1, **more):
    """Weights, and μ, at this share of the μ that selects nothing."""
    largest, squared = vector_scale(positive, negative)
    options = AveragingOptions(**{"iterations": 2000, "batch": 0, "gamma": gamma * squared} | more)
    return sparse_weights(ArrayRows(positive), ArrayRows(negative), share * largest, options), share * largest


def fit_metric(positive, negative, share, norm="nuclear", gamma=0.1, **more):
    largest, squared = metric_scale(positive, negative)
    mu = share * (largest if norm == "nuclear" else squared)
    options = AveragingOptions(**{"iterations": 2000, "batch": 0, "gamma": gamma * squared} | more)
    return low_rank_metric(ArrayRows(positive), ArrayRows(negative), mu, options, norm), mu


class TestVector:
    @pytest.mark.parametrize("share", [0.1, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.02, 0.4))])
    def test_the_optimum_is_the_solver_s_within_one_percent(self, share):
        cp = pytest.importorskip("cvxpy")
        positive, negative = ring_problem(number=100)
        weights, mu = fit_vector(positive, negative, share)
        unknown = cp.Variable(positive.shape[1], nonneg=True)
        best = solve(cp, hinge_of(cp, positive @ unknown, negative @ unknown) + mu * cp.sum(unknown))
        reached = vector_objective(positive, negative, weights, mu)
        assert best * (1 - 1e-5) <= reached <= 1.01 * best
        # Far from empty: the empty configuration is worse.
        assert best < 0.97 * vector_objective(positive, negative, 0 * weights, mu)

    def test_weights_are_never_negative_and_become_fewer_with_mu(self):
        positive, negative = ring_problem(rings=40, seed=1)
        kept, loss = [], []
        for share in (0.003, 0.03, 0.1, 0.3, 0.9):
            weights, _ = fit_vector(positive, negative, share)
            assert (weights >= 0).all()
            kept.append(np.count_nonzero(weights))
            loss.append(vector_objective(positive, negative, weights, 0))
        assert kept == sorted(kept, reverse=True) and kept[0] > 2 * kept[-1] > 0
        assert loss == sorted(loss)

    @pytest.mark.parametrize("share", [1.0, 1.0001, 7])
    def test_from_a_certain_mu_on_nothing_is_selected(self, share):
        positive, negative = ring_problem(seed=2)
        weights, _ = fit_vector(positive, negative, share * (1 + 1e-6), iterations=50)
        assert not weights.any()
        some, _ = fit_vector(positive, negative, 0.99, iterations=50)
        assert some.any()

    def test_some_pairs_at_a_time_come_to_the_same_optimum(self):
        positive, negative = ring_problem(number=600, seed=3)
        whole, mu = fit_vector(positive, negative, 0.1)
        drawn, _ = fit_vector(positive, negative, 0.1, batch=100)
        reached, best = (vector_objective(positive, negative, weights, mu) for weights in (drawn, whole))
        assert best * (1 - 1e-3) <= reached <= 1.02 * best

    def test_the_seed_alone_decides(self):
        positive, negative = ring_problem(seed=4)
        first, second = (fit_vector(positive, negative, 0.1, batch=40, iterations=300, seed=5)[0] for _ in range(2))
        np.testing.assert_array_equal(first, second)
        other = fit_vector(positive, negative, 0.1, batch=40, iterations=300, seed=6)[0]
        assert (other != first).any()

    def test_the_monitor_sees_every_step(self):
        positive, negative = ring_problem(seed=4)
        seen = []
        options = AveragingOptions(iterations=30, batch=40, gamma=0.3)
        weights = sparse_weights(
            ArrayRows(positive), ArrayRows(negative), 0.01, options, lambda step, now: seen.append((step, now.copy()))
        )
        assert [step for step, _ in seen] == list(range(1, 31))
        np.testing.assert_array_equal(seen[-1][1], weights)

    def test_sets_of_unlike_sizes_and_smaller_than_a_batch_are_taken(self):
        positive, negative = ring_problem(number=50, seed=4)
        weights, mu = fit_vector(positive[:7], negative, 0.1, batch=20, iterations=500)
        assert np.isfinite(weights).all() and weights.any()
        nothing = vector_objective(positive[:7], negative, 0 * weights, mu)
        assert vector_objective(positive[:7], negative, weights, mu) < nothing


class TestMetric:
    @pytest.mark.parametrize(
        ("norm", "share"),
        [
            ("nuclear", 0.05),
            *(pytest.param(*one, marks=pytest.mark.slow) for one in (("nuclear", 0.3), ("frobenius", 0.1))),
        ],
    )
    def test_the_optimum_is_the_solver_s_within_one_percent(self, norm, share):
        cp = pytest.importorskip("cvxpy")
        positive, negative = difference_problem(number=40)
        projection, mu = fit_metric(positive, negative, share, norm)
        unknown = cp.Variable((16, 16), PSD=True)
        outer = [np.einsum("ni,nj->nij", rows, rows).reshape(len(rows), -1) for rows in (positive, negative)]
        distances = [rows @ cp.vec(unknown, order="C") for rows in outer]
        penalty = cp.trace(unknown) if norm == "nuclear" else cp.sum_squares(unknown) / 2
        best = solve(cp, hinge_of(cp, *distances) + mu * penalty)
        reached = metric_objective(positive, negative, projection, mu, norm)
        assert best * (1 - 1e-4) <= reached <= 1.01 * best
        assert best < 0.97 * metric_objective(positive, negative, projection[:0], mu, norm)

    @pytest.mark.slow
    def test_the_rank_falls_as_mu_grows(self):
        positive, negative = difference_problem(number=100, seed=1)
        ranks = []
        for share in (0.01, 0.1, 0.3, 0.9):
            projection, _ = fit_metric(positive, negative, share)
            assert projection.shape == (len(projection), 16)
            assert np.linalg.matrix_rank(projection) == len(projection)
            ranks.append(len(projection))
        assert ranks == sorted(ranks, reverse=True) and ranks[0] > ranks[-1] > 0

    @pytest.mark.slow
    def test_the_frobenius_norm_keeps_more_dimensions(self):
        positive, negative = difference_problem(number=100, seed=1)
        nuclear, frobenius = (fit_metric(positive, negative, 0.3, norm)[0] for norm in ("nuclear", "frobenius"))
        assert len(frobenius) > len(nuclear)

    def test_rows_are_orthogonal_and_fall_in_length(self):
        """W = √D Vᵀ: W Wᵀ is the diagonal of eigenvalues, by size; and so A = WᵀW is positive semi-definite."""
        positive, negative = difference_problem(seed=2)
        projection, _ = fit_metric(positive, negative, 0.1)
        gram = projection @ projection.T
        values = np.diag(gram)
        np.testing.assert_allclose(gram, np.diag(values), atol=1e-9 * values[0])
        assert (np.diff(values) <= 0).all() and (values > 0).all()

    @pytest.mark.parametrize("share", [1 + 1e-6, 3])
    def test_from_a_certain_mu_on_the_metric_is_zero(self, share):
        positive, negative = difference_problem(seed=3)
        projection, _ = fit_metric(positive, negative, share, iterations=20)
        assert projection.shape == (0, 16)
        assert metric_objective(positive, negative, projection, 1) == pytest.approx(1)
        assert len(fit_metric(positive, negative, 0.98, iterations=20)[0]) > 0

    @pytest.mark.slow
    def test_some_pairs_at_a_time_come_to_the_same_optimum(self):
        positive, negative = difference_problem(number=500, seed=4)
        whole, mu = fit_metric(positive, negative, 0.1)
        drawn, _ = fit_metric(positive, negative, 0.1, batch=100)
        reached, best = (metric_objective(positive, negative, one, mu) for one in (drawn, whole))
        assert best * (1 - 1e-3) <= reached <= 1.02 * best

    def test_the_seed_alone_decides(self):
        positive, negative = difference_problem(seed=4)
        first, second = (fit_metric(positive, negative, 0.1, batch=20, iterations=100, seed=5)[0] for _ in range(2))
        np.testing.assert_array_equal(first, second)
        other = fit_metric(positive, negative, 0.1, batch=20, iterations=100, seed=6)[0]
        assert other.shape != first.shape or (other != first).any()


@given(seed=st.integers(0, 10**6), size=st.integers(1, 12))
def test_the_root_is_that_of_the_nearest_positive_semi_definite_matrix(seed, size):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(size, size))
    matrix = (matrix + matrix.T) / 2
    root = root_of(matrix)
    values, vectors = np.linalg.eig(matrix)
    expected = ((vectors * np.maximum(values.real, 0)) @ np.linalg.inv(vectors)).real
    np.testing.assert_allclose(root.T @ root, expected, atol=1e-6 * np.abs(matrix).max())
    assert len(root) == (values.real > 0).sum()


def test_a_negative_matrix_and_zero_have_no_root_rows():
    assert root_of(-np.eye(5)).shape == (0, 5)
    assert root_of(np.zeros((5, 5))).shape == (0, 5)
