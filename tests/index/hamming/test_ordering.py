"""Rows in order by several keys: as `np.lexsort` has them, whatever fits into a number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.hamming.ordering import order_by


@given(
    rows=st.integers(0, 60),
    most=st.lists(st.sampled_from([1, 2, 5, 2**16, 2**31 - 1]), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_the_order_is_that_of_lexsort(rows: int, most: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = [rng.integers(0, size, rows).astype(np.int32) for size in most]
    order = order_by(*keys)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(order, np.lexsort(keys[::-1]))


@pytest.mark.parametrize("largest", [2**28, 2**31 - 1, 2**40])
def test_equal_rows_stay_in_their_order_where_their_places_do_not_fit(largest: int) -> None:
    first = np.array([largest, 3, largest, 0, 3, largest])
    second = np.array([largest, 1, largest, 5, 1, 2])
    assert order_by(first, second).tolist() == [3, 1, 4, 5, 0, 2]
