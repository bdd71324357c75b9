"""Significance of differences of independent trials."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

CHANCE = 0.05
"""Significance level: probability of a false positive."""


def mean_and_error(differences: NDArray[np.floating]) -> tuple[float, float]:
    """Mean of differences (K,), K above 0, and its standard error; infinite for a single difference."""
    error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else np.inf
    return float(differences.mean()), float(error)


def beyond_chance(differences: NDArray[np.floating]) -> int:
    """Sign of the mean of differences (K,) if it is significant, else 0.

    Two-sided t-test: about 2 standard errors for many differences, and far more for two or three. A
    single one is never significant.
    """
    mean, error = mean_and_error(differences)
    if not np.isfinite(error):
        return 0
    errors = float(stdtrit(len(differences) - 1, 1 - CHANCE / 2))
    return 0 if abs(mean) <= errors * error else int(np.sign(mean))
