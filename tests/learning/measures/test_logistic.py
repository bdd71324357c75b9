"""Logistic regressions: odds of counts, weighted samples, non-negative weights, cross-validation."""

import numpy as np
import pytest

from learning.measures.logistic import fit_logistic, held_out

SIGNS = np.array([1.0, 1, 1, -1])
ONES = np.ones((4, 1))


def test_a_constant_is_the_logarithm_of_the_odds() -> None:
    assert fit_logistic(ONES, SIGNS) == pytest.approx([np.log(3)], abs=1e-4)


def test_what_counts_double_counts_as_if_it_were_there_twice() -> None:
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(size=60), np.ones(60)])
    signs = np.where(table[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    shares = np.where(np.arange(60) < 20, 2.0, 1.0)
    twice = np.r_[np.arange(60), np.arange(20)]
    assert fit_logistic(table, signs, shares) == pytest.approx(fit_logistic(table[twice], signs[twice]), abs=1e-4)


def test_nothing_counts_against() -> None:
    against = np.column_stack([-SIGNS + [0.1, 0, -0.1, 0], ONES])
    assert fit_logistic(against, SIGNS)[0] == 0


def test_parts_are_told_by_the_others_alone() -> None:
    parts = np.array([0, 0, 1, 1])
    odds = held_out(ONES, SIGNS, parts)
    assert odds[:2] == pytest.approx(0, abs=1e-4)  # of one right and one wrong
    assert (odds[2:] > 5).all()  # of two that are right
    assert np.array_equal(odds, held_out(ONES, SIGNS, parts, np.ones(4)))
