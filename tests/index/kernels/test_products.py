"""Products and distances: equal to the bit to a plain loop in the documented order, on every machine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from index.kernels.products import product, squared_distances

Rows = NDArray[np.float32]


def drawn(seed: int, *shape: int) -> Rows:
    """Numbers of many sizes, so that each order of a sum has a different result."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 10 ** rng.uniform(-3, 3, shape)).astype(np.float32)


def plain_product(rows: Rows, matrix: Rows) -> Rows:
    sums = np.zeros((len(rows), matrix.shape[1]), np.float32)
    for at in range(rows.shape[1]):
        sums = sums + rows[:, at, None] * matrix[at]
    return sums


def plain_distance(query: Rows, point: Rows) -> np.float32:
    squares = (query - point) ** 2
    whole = len(squares) - len(squares) % 16
    lanes = np.zeros(16, np.float32)
    for start in range(0, whole, 16):
        lanes = lanes + squares[start : start + 16]
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    total = lanes[0]
    for square in squares[whole:]:
        total = total + square
    return np.float32(total)


@given(seed=st.integers(0, 1000), number=st.integers(0, 5), dim=st.integers(1, 70), columns=st.integers(0, 40))
def test_a_product_is_the_sum_from_the_first_entry_to_the_last(seed: int, number: int, dim: int, columns: int) -> None:
    rows, matrix = drawn(seed, number, dim), drawn(seed + 1, dim, columns)
    found = product(rows, matrix)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, plain_product(rows, matrix))
    exact = rows.astype(np.float64) @ matrix
    bound = dim * np.finfo(np.float32).eps * (np.abs(rows).astype(np.float64) @ np.abs(matrix))
    assert (np.abs(found - exact) <= bound).all()


@given(seed=st.integers(0, 1000), dim=st.integers(1, 70), of_query=st.integers(0, 6))
def test_a_distance_is_the_sum_of_sixteen_lanes(seed: int, dim: int, of_query: int) -> None:
    queries, points = drawn(seed, 4, dim), drawn(seed + 1, 9, dim)
    numbers = np.random.default_rng(seed).integers(0, 9, (4, of_query))
    found = squared_distances(queries, points, numbers)
    expected = [
        [plain_distance(query, points[number]) for number in row] for query, row in zip(queries, numbers, strict=True)
    ]
    np.testing.assert_array_equal(found, np.array(expected, np.float32).reshape(4, of_query))


def test_a_row_does_not_depend_on_those_beside_it_nor_on_how_it_lies_in_memory() -> None:
    rows, matrix = drawn(0, 300, 128), drawn(1, 128, 64)
    together = product(rows, matrix)
    for some in (slice(0, 1), slice(7, 40), slice(3, 300, 5)):
        np.testing.assert_array_equal(product(rows[some], matrix), together[some])
    turned = np.asfortranarray(rows).astype(np.float64)
    np.testing.assert_array_equal(product(turned, np.asfortranarray(matrix)), together)


def test_rows_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="rows of 3 numbers"):
        product(np.zeros((2, 3), np.float32), np.zeros((4, 5), np.float32))
