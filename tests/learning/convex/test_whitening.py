"""Whitening: effects on differences and rows, and learning from labelled pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from learning.convex.projection import DifferencePairs
from learning.convex.whitening import (
    RowMoments,
    WhiteningOptions,
    WhiteningSetting,
    fit_whitening,
    learn_whitening,
    whiten,
)
from learning.measures.roc import fpr95


def cloud(seed: int, number: int, dim: int) -> np.ndarray:
    """Points (N, n) float32 of a Gaussian that is no ball, off the origin."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(number, dim)) @ rng.normal(size=(dim, dim)) + rng.normal(size=dim), np.float32)


def moment(differences: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Weighted mean of their outer products (n, n) float64."""
    weights = np.ones(len(differences)) if weights is None else weights
    return np.asarray((differences.astype(np.float64) * weights[:, None]).T @ differences / weights.sum())


# The whitening itself


@given(st.integers(0, 10_000), st.integers(2, 12))
def test_differences_become_alike_in_all_directions_and_rows_uncorrelated(seed: int, dim: int) -> None:
    rows, differences = cloud(seed, 300, dim), cloud(seed + 1, 200, dim)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 200)
    found = fit_whitening(RowMoments.of(rows), moment(differences, weights), 0.0)
    projection, centre = found[:, :-1], found[:, -1]
    after = differences @ projection.T
    spread = (after * weights[:, None]).T @ after / weights.sum()
    np.testing.assert_allclose(spread, np.eye(dim), atol=2e-2)
    variance = np.cov(rows @ projection.T, rowvar=False)
    np.testing.assert_allclose(variance / variance.max(), np.diag(np.diag(variance)) / variance.max(), atol=2e-2)
    assert (np.diff(np.diag(variance)) <= 1e-2 * variance.max()).all()  # the direction of most variance first
    np.testing.assert_allclose(centre, projection @ rows.mean(axis=0), rtol=1e-3, atol=1e-3)


def test_it_is_the_inverse_root_of_the_shrunk_covariance() -> None:
    rows, differences = cloud(2, 500, 6), cloud(3, 400, 6)
    found = fit_whitening(RowMoments.of(rows), moment(differences), 0.3)[:, :-1]
    spread = differences.astype(np.float64).T @ differences / 400
    metric = np.linalg.inv(spread + 0.3 * np.trace(spread) / 6 * np.eye(6))
    np.testing.assert_allclose(found.T @ found, metric, rtol=1e-3, atol=1e-4 * np.abs(metric).max())
    # Its directions are those of the rows, once whitened.
    root = np.real(sqrtm(metric))
    values = np.linalg.eigvalsh(np.cov((rows @ root).T))[::-1]
    np.testing.assert_allclose(np.diag(np.cov((rows @ found.T).T)), values, rtol=1e-3)


def test_without_limit_nothing_but_the_directions_of_rows_is_left() -> None:
    # S is drowned by the identity: principal components, of one length.
    found = fit_whitening(RowMoments.of(cloud(4, 500, 5)), moment(cloud(5, 300, 5)), 1e6)[:, :-1]
    lengths = np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(found @ found.T, lengths.mean() ** 2 * np.eye(5), atol=1e-4 * lengths.mean() ** 2)


def test_whitened_rows_are_of_unit_length_and_a_row_at_the_centre_stays_finite() -> None:
    rows = cloud(6, 100, 8)
    parameters = fit_whitening(RowMoments.of(rows), moment(cloud(7, 100, 8)), 0.1)[:5]
    np.testing.assert_allclose(np.linalg.norm(whiten(rows, parameters), axis=1), 1, atol=1e-5)
    assert np.isfinite(whiten(rows.mean(axis=0, keepdims=True), parameters)).all()


# From labelled pairs


def labelled(seed: int, number: int = 400, dim: int = 10) -> DifferencePairs:
    """Pairs of points seen twice, each time moved a lot along a few directions, and of different points."""
    rng = np.random.default_rng(seed)
    loud = 3.0 * np.random.default_rng(1).normal(size=(3, dim))
    points = rng.normal(size=(number, dim))
    rows = np.concatenate(
        [points + rng.normal(size=(number, 3)) @ loud + 0.1 * rng.normal(size=(number, dim)) for _ in range(2)]
    )
    first = np.tile(np.arange(number), 2)
    second = number + np.concatenate([np.arange(number), np.roll(np.arange(number), 7)])
    return DifferencePairs.of(rows.astype(np.float32), first, second, np.arange(2 * number) < number)


def test_what_differs_between_views_of_the_same_no_longer_counts() -> None:
    train, validation = labelled(2), labelled(3)
    key = "0" * 64
    moments, spread = RowMoments.of(train.positive.descriptors), train.positive.moment()
    ((record, parameters),) = learn_whitening(train, validation, moments, spread, key, WhiteningSetting(0.01, 6))
    assert (record.stage, record.key, record.mu, record.dim, record.rings) == ("whitening", key, 0.01, 6, 0)
    assert parameters.shape == (6, 11)
    expected = fit_whitening(moments, spread, 0.01)[:6]
    np.testing.assert_array_equal(parameters, expected)
    seen = validation.positive.descriptors.astype(np.float64) @ expected[:, :-1].T - expected[:, -1]
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    distances, raw = (
        np.concatenate([np.linalg.norm(rows[pairs.first] - rows[pairs.second], axis=1) for pairs in both])
        for both in [(validation.positive, validation.negative)]
        for rows in (seen, validation.positive.descriptors)
    )
    match = np.arange(800) < 400
    assert record.fpr95 == pytest.approx(fpr95(distances, match), abs=0.005)
    assert record.fpr95 < 0.05 < 0.5 < fpr95(raw, match)
    ours = train.positive.descriptors.astype(np.float64) @ expected[:, :-1].T - expected[:, -1]
    ours /= np.linalg.norm(ours, axis=1, keepdims=True)
    between = np.square(ours[train.positive.first] - ours[train.positive.second]).sum(axis=1)
    assert record.objective == pytest.approx(between.mean(), rel=1e-4)


def test_settings_have_each_shrinkage_with_each_number_of_dimensions_once() -> None:
    settings = WhiteningOptions((0.1, 1.0), (1.0, 0.5, 1.0)).settings(100)
    assert settings == [WhiteningSetting(shrinkage, dim) for shrinkage in (0.1, 1.0) for dim in (100, 50)]
    assert [setting.dim for setting in WhiteningOptions((1.0,), (0.1,)).settings(1)] == [1]
