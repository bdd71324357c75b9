"""Logistic regression with non-negative weights, and cross-validated predictions."""

import numpy as np
from numpy.typing import NDArray

_RIDGE = 1e-5


def fit_logistic(
    table: NDArray[np.float64], signs: NDArray[np.float64], shares: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Fit a logistic regression to a table (N, D) whose last column is 1, and signs (N,) of 1 and -1, weighted by
    shares.

    All coefficients but the last are non-negative: evidence must not count against its label.
    """
    from scipy.optimize import minimize

    share = np.full(len(table), 1 / len(table)) if shares is None else shares / shares.sum()

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = signs * (table @ weights)
        pull = -signs * share / (1 + np.exp(np.clip(margin, -500, 500)))
        ridge = _RIDGE * weights[:-1]
        value = float(share @ np.logaddexp(0, -margin) + ridge @ weights[:-1])
        return value, table.T @ pull + np.append(2 * ridge, 0)

    bounds = [(0, None)] * (table.shape[1] - 1) + [(None, None)]
    return np.asarray(minimize(loss, np.zeros(table.shape[1]), jac=True, bounds=bounds).x)


def held_out(
    table: NDArray[np.float64],
    signs: NDArray[np.float64],
    parts: NDArray[np.integer],
    shares: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Log odds (N,) of samples, each predicted from the other parts. `parts` (N,): the part of each sample."""
    odds = np.zeros(len(table))
    for part in np.unique(parts).tolist():
        here = parts == part
        weights = fit_logistic(table[~here], signs[~here], None if shares is None else shares[~here])
        odds[here] = table[here] @ weights
    return odds
