"""Matrix products and distances that are the same on every machine: see `index.kernels.product_kernels`."""

import numpy as np
from numpy.typing import NDArray


def product(rows: NDArray[np.floating], matrix: NDArray[np.floating]) -> NDArray[np.float32]:
    """Multiply rows (N, D) by a matrix (D, Q) in float32; each product depends on its row, not on the processor."""
    from index.kernels.product_kernels import multiply  # here: Numba takes its time to load

    if rows.shape[1] != matrix.shape[0]:
        raise ValueError(f"rows of {rows.shape[1]} numbers cannot be multiplied by a matrix of {matrix.shape[0]} rows")
    products = np.empty((len(rows), matrix.shape[1]), np.float32)
    multiply(np.ascontiguousarray(rows, np.float32), np.ascontiguousarray(matrix, np.float32), products)
    return products


def squared_distances(
    queries: NDArray[np.float32], points: NDArray[np.float32], numbers: NDArray[np.integer]
) -> NDArray[np.float32]:
    """Squared distances from each query to its own points. Each depends on its two rows alone, not on the processor."""
    from index.kernels import product_kernels

    distances = np.empty(numbers.shape, np.float32)
    product_kernels.squared_distances(
        np.ascontiguousarray(queries, np.float32),
        np.ascontiguousarray(points, np.float32),
        np.ascontiguousarray(numbers, np.int64),
        distances,
    )
    return distances
