"""Differences beyond chance, by the table of Student's t."""

import numpy as np
import pytest

from learning.measures.differences import beyond_chance, mean_and_error


def test_the_error_is_that_of_a_mean() -> None:
    mean, error = mean_and_error(np.array([1.0, 2.0, 3.0, 6.0]))
    assert (mean, error) == pytest.approx((3, np.sqrt((4 + 1 + 0 + 9) / 3) / 2))
    assert mean_and_error(np.array([0.5])) == (0.5, np.inf)


def test_what_is_beyond_chance_is_so_by_a_t_test() -> None:
    from scipy.stats import ttest_1samp  # slow to import

    rng = np.random.default_rng(0)
    found = set()
    for trial in range(60):
        differences = rng.normal((trial % 3 - 1) * 0.6, 1, 2 + trial % 12)
        test = ttest_1samp(differences, 0)
        expected = int(np.sign(test.statistic)) if test.pvalue < 0.05 else 0
        assert beyond_chance(differences) == expected
        found.add(expected)
    assert found == {-1, 0, 1}


def test_one_difference_tells_nothing_and_none_at_all_is_none() -> None:
    assert beyond_chance(np.array([5.0])) == 0
    assert beyond_chance(np.zeros(4)) == 0
