"""The support vector machine, beside a case worked out by hand and a minimum found by other means."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from retrieval.search.linear_svm import train


def test_two_samples_by_hand() -> None:
    # x = (1, 0) and (0, 1): the dual is ½ αᵀ [[2 + ½, -1], [-1, 2 + ½]] α - Σ α for C = 1, so α = 1 / 1.5 each.
    np.testing.assert_allclose(train(np.eye(2), np.array([True, False]), 1.0), [2 / 3, -2 / 3])


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 40),
    dimensions=st.integers(1, 9),
    cost=st.sampled_from([0.1, 1, 10]),
)
def test_no_other_machine_costs_less(seed: int, n: int, dimensions: int, cost: float) -> None:
    generator = np.random.default_rng(seed)
    samples = generator.normal(size=(n, dimensions))
    positive = np.arange(n) < generator.integers(0, n + 1)
    signs = np.where(positive, 1, -1)

    def primal(machine: np.ndarray) -> float:
        margins = np.maximum(0, 1 - signs * (samples @ machine[:-1] + machine[-1]))
        return float(0.5 * machine @ machine + cost * margins @ margins)

    coefficients = train(samples @ samples.T, positive, cost)
    assert (coefficients * signs >= 0).all()
    found = np.append(samples.T @ coefficients, coefficients.sum())
    best = minimize(primal, np.zeros(dimensions + 1), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(primal(found), best.fun, rtol=1e-6)
    np.testing.assert_allclose(found, best.x, atol=1e-3)
