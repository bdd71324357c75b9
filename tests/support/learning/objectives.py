"""Values of the convex objectives, for tests of minima."""

import numpy as np
from numpy.typing import NDArray

from learning.convex.dual_averaging import hinge_counts, metric_penalty, vector_penalty


def vector_objective(
    positive: NDArray[np.float32], negative: NDArray[np.float32], weights: NDArray[np.float64], mu: float
) -> float:
    """Return the value of equation 6, its loss the mean over combinations, for ψ (P, N) and (M, N)."""
    loss, _, _ = hinge_counts(positive @ weights, negative @ weights)
    return loss + vector_penalty(weights, mu)


def metric_objective(
    positive: NDArray[np.float32],
    negative: NDArray[np.float32],
    projection: NDArray[np.float64],
    mu: float,
    norm: str = "nuclear",
) -> float:
    """Return the value of equation 10, its loss the mean over combinations, for θ (P, n) and (M, n) and A = WᵀW."""
    near, far = ((rows @ projection.T) ** 2 for rows in (positive, negative))
    loss, _, _ = hinge_counts(near.sum(axis=1), far.sum(axis=1))
    return loss + metric_penalty(projection, mu, norm)
