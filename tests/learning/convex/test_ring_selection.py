"""Selecting rings: minima of equation 6 compared with a linear program, units for any data, and fewer dimensions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from learning.convex.candidates import PoolOptions, candidate_pool
from learning.convex.dual_averaging import AveragingOptions, sparse_weights
from learning.convex.ring_distances import RingDistances
from learning.convex.ring_selection import (
    RankedPairs,
    SelectionOptions,
    WeightUnits,
    dim_of,
    fpr95_of,
    learn_weights,
    pooling_of,
)
from learning.convex.ring_selection import refine as refined
from learning.patches.rows import ArrayRows, BlockRows
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel
from retrieval.descriptors.pooling import ChannelOptions
from tests.support.learning.learnt_models import textures
from tests.support.learning.objectives import vector_objective

POOL = candidate_pool(PoolOptions(step=5, angles=8))  # 24 rings of 1 to 4 regions
RINGS = len(POOL)
FULL = SelectionOptions(iterations=2000, batch=0)  # all pairs an iteration
QUICK = SelectionOptions(iterations=150, batch=30)


def problem(number=40, seed=0, spread=True):
    """ψ of pairs (number, 24) twice: a third of the rings tell positive from negative pairs, more or less.

    Rings differ in how large their distances are, if asked: narrow Gaussians' are larger than wide ones'.
    """
    rng = np.random.default_rng(seed)
    means = np.where(np.arange(RINGS) % 3 == 0, 1.3 + rng.random(RINGS), 1)
    size = 2.0 ** (np.arange(RINGS) % 7 - 3) if spread else np.ones(RINGS)
    noise = rng.gamma(2, 0.5, (2 * number, RINGS)) * size
    return noise[:number].astype(np.float32), (noise[number:] * means).astype(np.float32)


def ranked(positive, negative):
    """Pairs as learning has them, in blocks, and their means."""
    pairs = RankedPairs(BlockRows(np.array_split(positive, 3)), BlockRows(np.array_split(negative, 2)))
    return pairs, (pairs.positive.mean(), pairs.negative.mean())


def linear_program(positive, negative, costs):
    """The least value of the mean hinge plus costs times non-negative weights."""
    positive, negative = positive.astype(np.float64), negative.astype(np.float64)
    number, rings = len(positive) * len(negative), positive.shape[1]
    # Slacks are above wᵀψ(positive) - wᵀψ(negative) + 1 and above 0.
    difference = (positive[:, None] - negative[None]).reshape(number, rings)
    matrix = np.column_stack([difference, -np.eye(number)])
    solved = linprog(np.concatenate([costs, np.full(number, 1 / number)]), matrix, np.full(number, -1.0))
    assert solved.status == 0
    return solved.fun


class TestObjective:
    def test_unbalanced_it_is_the_paper_s(self):
        """Equation 6: the hinge over all combinations, and μ₁ times the sum of the weights."""
        positive, negative = problem()
        pairs, means = ranked(positive, negative)
        found = learn_weights(pairs, means, 0.2, 0.1, SelectionOptions(iterations=4000, batch=0, balanced=False))
        slope = negative.mean(axis=0, dtype=np.float64) - positive.mean(axis=0, dtype=np.float64)
        mu = 0.2 * slope.max()
        assert found.objective == pytest.approx(vector_objective(positive, negative, found.weights, mu), rel=1e-5)
        best = linear_program(positive, negative, np.full(RINGS, mu))
        assert best * (1 - 1e-5) <= found.objective <= 1.01 * best
        # And the steps are those of RDA on the plain ψ.
        steps = AveragingOptions(4000, 0, 0.1 * slope @ slope)
        direct = sparse_weights(ArrayRows(positive), ArrayRows(negative), mu, steps)
        np.testing.assert_allclose(found.weights, direct, rtol=1e-3, atol=1e-4 * direct.max())
        assert (found.mu, found.gamma, found.refits) == (0.2, 0.1, 0)

    def test_balanced_a_ring_is_charged_by_its_part_in_the_distance_of_a_non_match(self):
        positive, negative = problem()
        pairs, means = ranked(positive, negative)
        found = learn_weights(pairs, means, 0.2, 0.1, FULL)
        share = negative.mean(axis=0, dtype=np.float64)
        mu = 0.2 * (1 - positive.mean(axis=0, dtype=np.float64) / share).max()
        reached = vector_objective(positive, negative, found.weights, 0) + mu * share @ found.weights
        assert found.objective == pytest.approx(reached, rel=1e-5)
        best = linear_program(positive, negative, mu * share)
        assert best * (1 - 1e-5) <= found.objective <= 1.01 * best

    @pytest.mark.slow
    @pytest.mark.parametrize("balanced", [True, False])
    def test_the_larger_mu_is_the_fewer_rings_there_are(self, balanced):
        pairs, means = ranked(*problem(spread=balanced))
        options = SelectionOptions(iterations=500, batch=0, balanced=balanced)
        found = [learn_weights(pairs, means, mu, 0.1, options).weights for mu in (0.05, 0.3, 0.7, 0.95, 1.001)]
        assert all((weights >= 0).all() for weights in found)
        counts = [np.count_nonzero(weights) for weights in found]
        assert counts == sorted(counts, reverse=True)
        # μ = 1 is where the last one goes.
        assert counts[0] > 4 and counts[-2] > 0 and counts[-1] == 0

    def test_nothing_selected_loses_all_combinations(self):
        pairs, means = ranked(*problem())
        assert learn_weights(pairs, means, 2.0, 0.1, FULL).objective == pytest.approx(1)

    def test_batches_are_drawn_by_the_seed(self):
        pairs, means = ranked(*problem())

        def learn(seed):
            return learn_weights(pairs, means, 0.2, 0.1, SelectionOptions(iterations=50, batch=10, seed=seed)).weights

        np.testing.assert_array_equal(learn(3), learn(3))
        assert (learn(3) != learn(4)).any()


class TestUnits:
    @pytest.mark.slow
    @settings(max_examples=15)
    @given(powers=st.lists(st.integers(-6, 6), min_size=RINGS, max_size=RINGS), seed=st.integers(0, 9))
    def test_how_large_a_ring_s_distances_are_does_not_matter(self, powers, seed):
        positive, negative = problem(seed=seed)
        factors = np.float32(2) ** np.array(powers, np.float32)  # nothing is rounded
        plain = learn_weights(*ranked(positive, negative), 0.3, 0.1, QUICK)
        scaled = learn_weights(*ranked(positive * factors, negative * factors), 0.3, 0.1, QUICK)
        np.testing.assert_allclose(scaled.weights * factors, plain.weights, rtol=1e-6)
        assert scaled.objective == pytest.approx(plain.objective, rel=1e-6)

    def test_unbalanced_it_does(self):
        positive, negative = problem(spread=False)
        factors = np.where(np.arange(RINGS) % 6 == 0, 0.125, 1).astype(np.float32)
        options = SelectionOptions(iterations=500, batch=0, balanced=False)
        plain = learn_weights(*ranked(positive, negative), 0.5, 0.1, options).weights > 0
        scaled = learn_weights(*ranked(positive * factors, negative * factors), 0.5, 0.1, options).weights > 0
        assert plain[::6].any() and not scaled[::6].any()

    @pytest.mark.parametrize("balanced", [True, False])
    def test_those_of_all_distances_do_not_matter_either(self, balanced):
        positive, negative = problem()
        options = SelectionOptions(iterations=150, batch=30, balanced=balanced)
        plain = learn_weights(*ranked(positive, negative), 0.3, 0.1, options)
        scaled = learn_weights(*ranked(positive * 16, negative * 16), 0.3, 0.1, options)
        np.testing.assert_allclose(scaled.weights * 16, plain.weights, rtol=1e-6)

    def test_a_ring_that_sees_nothing_is_never_selected(self):
        """Where all patches agree there is nothing to divide by."""
        positive, negative = problem()
        positive[:, [0, 3]], negative[:, [0, 3]] = 0, 0
        found = learn_weights(*ranked(positive, negative), 0.1, 0.1, QUICK)
        assert np.isfinite(found.weights).all() and found.weights.any() and not found.weights[[0, 3]].any()

    def test_where_matches_are_farther_than_others_nothing_is_selected(self):
        near, far = problem()
        pairs, means = ranked(1.5 * far, near)
        units = WeightUnits.of(*means, True)
        assert units.mu > 0 and units.gamma > 0
        assert not learn_weights(pairs, means, 0.5, 0.1, FULL).weights.any()


class TestRefining:
    LIMIT = 48

    def start(self, **options):
        options = SelectionOptions(**({"iterations": 2000, "batch": 0} | options))
        positive, negative = problem(spread=options.balanced)
        pairs, means = ranked(positive, negative)
        return positive, negative, pairs, means, options, learn_weights(pairs, means, 0.05, 0.1, options)

    @pytest.mark.parametrize("balanced", [True, pytest.param(False, marks=pytest.mark.slow)])
    def test_each_step_is_a_minimum_over_the_rings_that_contribute_most(self, balanced):
        positive, negative, pairs, means, options, first = self.start(balanced=balanced)
        steps = list(refined(pairs, means, first, POOL, 8, self.LIMIT, options))
        assert len(steps) >= 2
        # Units of keeping or dropping: a ring, or all rings that coincide in the centre.
        units: dict[tuple[int, int], list[int]] = {}
        for ring in range(len(POOL)):
            scale, column = divmod(ring, len(POOL.columns))
            units.setdefault((scale, int(POOL.columns[column])), []).append(ring)
        before = first
        for number, step in enumerate(steps, start=1):
            wanted = max(self.LIMIT, dim_of(POOL, before.weights, 8) // 2)
            # Rings from the one that contributes most, as long as they fit.
            left, room = [], wanted
            for rings in sorted(units.values(), key=lambda rings: -(before.weights * means[1])[rings].sum()):
                room -= 8 * POOL.sizes[rings[0]]
                if room < 0 or not before.weights[rings].any():
                    break
                left += rings
            left = np.sort(left)
            assert not np.delete(step.weights, left).any()
            near, far = positive[:, left], negative[:, left]
            share = far.mean(axis=0, dtype=np.float64) if balanced else np.ones(len(left))
            slope = (far.mean(axis=0, dtype=np.float64) - near.mean(axis=0, dtype=np.float64)) / share
            costs = 0.05 * slope.max() * share
            reached = vector_objective(near, far, step.weights[left], 0) + costs @ step.weights[left]
            assert step.objective == pytest.approx(reached, rel=1e-5)
            best = linear_program(near, far, costs)
            assert best * (1 - 1e-5) <= step.objective <= 1.01 * best
            averaging = AveragingOptions(options.iterations, options.batch, 0.1 * slope @ slope)
            direct = sparse_weights(ArrayRows(near / share), ArrayRows(far / share), 0.05 * slope.max(), averaging)
            np.testing.assert_allclose(step.weights[left] * share, direct, rtol=1e-2, atol=1e-3 * direct.max())
            assert (step.mu, step.gamma, step.refits) == (0.05, 0.1, number)
            before = step

    @pytest.mark.parametrize("keep", [0.5, 0.9, 0.1])
    @pytest.mark.parametrize("limit", [8, 48, 200])
    def test_it_ends_at_the_limit(self, keep, limit):
        *_, pairs, means, options, first = self.start(iterations=100, keep=keep)
        steps = list(refined(pairs, means, first, POOL, 8, limit, options))
        dims = [dim_of(POOL, selection.weights, 8) for selection in [first, *steps]]
        assert dims[0] > 200 and all(after < before for before, after in pairwise(dims))
        if limit >= 32:  # a ring's
            assert 0 < dims[-1] <= limit
            assert dims[-2] > limit
        else:  # it continues as long as the ring that contributes most fits
            assert len(dims) >= 2

    def test_what_is_small_enough_stays_and_so_does_everything_where_asked(self):
        *_, pairs, means, options, first = self.start(iterations=100)
        assert not list(refined(pairs, means, first, POOL, 8, dim_of(POOL, first.weights, 8), options))
        *_, pairs, means, options, first = self.start(iterations=100, keep=0)
        assert not list(refined(pairs, means, first, POOL, 8, self.LIMIT, options))


class TestErrors:
    def test_one_match_in_twenty_may_be_missed(self):
        positive = np.array([0.5] * 19 + [9.0])
        assert fpr95_of(positive, np.array([0.1, 0.5, 0.6, 3.0])) == 0.5
        assert fpr95_of(positive, np.array([0.6, 3.0])) == 0
        assert fpr95_of(np.append(positive[:18], [9.0, 9.0]), np.array([0.6, 10.0])) == 0.5

    def test_of_weights_it_is_that_of_their_distances(self):
        positive, negative = problem(200)
        pairs, _ = ranked(positive, negative)
        weights = np.where(np.arange(RINGS) % 3 == 0, 1.0, 0)
        near, far = pairs.distances(weights)
        np.testing.assert_allclose(near, positive @ weights, rtol=1e-5)
        np.testing.assert_allclose(far, negative @ weights, rtol=1e-5)
        assert pairs.error(weights) == fpr95_of(positive @ weights, negative @ weights)
        assert pairs.error(weights) < pairs.error(1 - weights)


@pytest.mark.parametrize("symmetric", [True, False])
def test_distances_of_the_descriptor_made_are_those_that_were_learnt_from(symmetric):
    """‖φ(x) - φ(y)‖² = wᵀψ(x, y), equation 4: rings that coincide in the centre among them."""
    pool, channels = candidate_pool(PoolOptions(step=5, angles=8, symmetric=symmetric)), ChannelOptions(smoothing=1.0)
    first, second = textures(20, 31, 1), textures(20, 31, 2)
    rng = np.random.default_rng(0)
    weights = rng.random(len(pool)) * (rng.random(len(pool)) < 0.6)
    weights[:2] = 0.7, 0.4
    pooling = pooling_of(pool, weights, channels)
    descriptor = LearntDescriptor(LearntModel("pooled", pooling))
    distances = ((descriptor.describe(first) - descriptor.describe(second)) ** 2).sum(axis=1)
    np.testing.assert_allclose(distances, RingDistances(pool, channels)(first, second) @ weights, rtol=1e-3)
    assert pooling.dim == descriptor.dim == dim_of(pool, weights, 8)
