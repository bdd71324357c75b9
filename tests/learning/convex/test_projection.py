"""Learning projections: units of μ* and γ, effects of norms on the rank, and reports."""

import numpy as np
import pytest

from index.errors import CairnError
from learning.convex.projection import DifferencePairs, MetricUnits, ProjectionOptions, learn_projection
from learning.convex.ring_selection import fpr95_of
from tests.support.learning.objectives import metric_objective

DIM = 12
OPTIONS = {norm: ProjectionOptions(iterations=400, batch=0, norm=norm) for norm in ("nuclear", "frobenius")}


def pairs_of(factor=1.0, seed=0, number=80):
    """Descriptors of points seen twice: matches differ little along four directions, much along the rest."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    points = rng.normal(size=(number, DIM)) * np.linspace(1, 0.6, DIM)
    noise = rng.normal(size=(2, number, DIM)) * np.where(np.arange(DIM) < 4, 0.2, 1.5)
    rows = factor * ((points + noise).reshape(-1, DIM) @ axes)
    views = np.arange(number)
    first, second = np.tile(views, 2), number + np.concatenate([views, np.roll(views, 1)])
    order = rng.permutation(2 * number)
    match = np.arange(2 * number) < number
    return DifferencePairs.of(rows.astype(np.float32), first[order], second[order], match[order])


@pytest.fixture(scope="module")
def pairs():
    return pairs_of()


def thetas(pairs):
    return [rows.take(np.arange(len(rows))) for rows in (pairs.positive, pairs.negative)]


def test_pairs_are_divided_by_their_labels():
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    found = DifferencePairs.of(rows, np.array([0, 3, 2]), np.array([1, 0, 1]), np.array([True, False, True]))
    assert (found.positive.first.tolist(), found.positive.second.tolist()) == ([0, 2], [1, 1])
    assert (found.negative.first.tolist(), found.negative.second.tolist()) == ([3], [0])


def test_distances_and_errors_are_those_of_the_metric(pairs):
    projection = np.random.default_rng(1).normal(size=(5, DIM))
    metric = projection.T @ projection
    expected = [np.einsum("mi,ij,mj->m", theta, metric, theta) for theta in thetas(pairs)]
    for found, direct in zip(pairs.distances(projection), expected, strict=True):
        np.testing.assert_allclose(found, direct, rtol=1e-4)
    assert pairs.error(projection) == fpr95_of(*expected)


def test_at_mu_one_the_nuclear_norm_leaves_nothing_and_below_it_something(pairs):
    units = MetricUnits.of(pairs, "nuclear")
    nothing = learn_projection(pairs, units, 1.001, 0.1, OPTIONS["nuclear"])
    assert nothing.projection.shape == (0, DIM)
    assert nothing.objective == 1  # every combination loses the margin
    assert len(learn_projection(pairs, units, 0.95, 0.1, OPTIONS["nuclear"]).projection) >= 1


def test_the_larger_mu_is_the_lower_the_rank(pairs):
    units = MetricUnits.of(pairs, "nuclear")
    ranks = [len(learn_projection(pairs, units, mu, 0.1, OPTIONS["nuclear"]).projection) for mu in (0.01, 0.1, 0.5)]
    assert ranks == sorted(ranks, reverse=True) and ranks[0] > ranks[-1] > 0


@pytest.mark.slow
def test_the_frobenius_norm_makes_it_no_lower(pairs):
    units = MetricUnits.of(pairs, "frobenius")
    found = [learn_projection(pairs, units, mu, 0.1, OPTIONS["frobenius"]) for mu in (0.01, 0.1, 0.5, 5)]
    ranks = [len(metric.projection) for metric in found]
    assert min(ranks) >= ranks[0] >= 4
    nuclear = learn_projection(pairs, MetricUnits.of(pairs, "nuclear"), 0.5, 0.1, OPTIONS["nuclear"])
    assert len(nuclear.projection) < min(ranks)
    # It is made smaller instead.
    sizes = [np.linalg.norm(metric.projection) for metric in found]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("norm", ["nuclear", "frobenius"])
def test_the_objective_is_told_over_all_pairs(pairs, norm):
    units = MetricUnits.of(pairs, norm)
    # Learnt from a part of the pairs an iteration.
    found = learn_projection(pairs, units, 0.05, 0.1, ProjectionOptions(iterations=100, batch=20, norm=norm))
    mu = 0.05 * units.mu
    direct = metric_objective(*thetas(pairs), found.projection, mu, norm)
    assert found.objective == pytest.approx(direct, rel=1e-5)
    assert found.objective < 1
    assert (found.mu, found.gamma) == (0.05, 0.1)


@pytest.mark.parametrize("norm", ["nuclear", "frobenius"])
def test_how_long_descriptors_are_does_not_matter(norm):
    """The metric makes up for it: A of rows 4 times as long is a 16th."""
    options = ProjectionOptions(iterations=100, batch=30, norm=norm)
    found = []
    for factor in (1.0, 4.0):
        pairs = pairs_of(factor)
        found.append(learn_projection(pairs, MetricUnits.of(pairs, norm), 0.05, 0.1, options))
    plain, scaled = (metric.projection.T @ metric.projection for metric in found)
    np.testing.assert_allclose(16 * scaled, plain, rtol=1e-4, atol=1e-5 * np.abs(plain).max())
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-5)


def test_it_tells_matches_apart_that_distances_do_not(pairs):
    """On other pairs of the same kind."""
    found = learn_projection(pairs, MetricUnits.of(pairs, "nuclear"), 0.05, 0.1, OPTIONS["nuclear"])
    fresh = pairs_of(seed=0, number=400)  # the same axes, other points
    assert fresh.error(found.projection) < 0.5 * fresh.error(np.eye(DIM))


def test_batches_are_drawn_by_the_seed(pairs):
    units = MetricUnits.of(pairs, "nuclear")

    def learn(seed):
        options = ProjectionOptions(iterations=30, batch=10, seed=seed)
        return learn_projection(pairs, units, 0.01, 0.1, options).projection

    np.testing.assert_array_equal(learn(1), learn(1))
    assert learn(1).shape != learn(2).shape or (learn(1) != learn(2)).any()


def test_an_unknown_norm_is_refused():
    with pytest.raises(CairnError, match="no norm 'trace'; choose one of nuclear, frobenius"):
        ProjectionOptions(norm="trace")
