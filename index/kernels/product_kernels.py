"""Products and distances whose sums are taken in one order: compiled.

Libraries of linear algebra choose the order of sums by processor, number of rows and of threads, so the last bit of a
result varies, and with it words and bits of signatures. Here the order is fixed and there is no fused multiply-add: the
same rows give the same numbers on every machine.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, INT64, array, ask_for, compiled, use_wide_vectors, written

_cgutils: Any = cgutils
_LANES = 16  # sums of a distance that are taken side by side
_AHEAD = 4  # prefetch a point this many distances ahead


@compiled(makes_arrays=False)
def _add_four(row: Any, matrix: Any, at: Any, sums: Any) -> Any:
    """Add the products of four entries of a row with four rows of the matrix, in order, to sums (Q,)."""
    use_wide_vectors()
    a, b, c, d = row[at], row[at + 1], row[at + 2], row[at + 3]
    first, second, third, fourth = matrix[at], matrix[at + 1], matrix[at + 2], matrix[at + 3]
    for column in range(len(sums)):
        sums[column] = (((sums[column] + a * first[column]) + b * second[column]) + c * third[column]) + d * fourth[
            column
        ]


@compiled(array(FLOAT32, 2), array(FLOAT32, 2), written(FLOAT32, 2), makes_arrays=False)
def multiply(rows: NDArray[np.float32], matrix: NDArray[np.float32], products: NDArray[np.float32]) -> None:
    """Write rows (N, D) times matrix (D, Q) to `products`. Each sum runs from the first to the last entry of a row."""
    dim = rows.shape[1]
    whole = dim - dim % 4
    for number in range(len(rows)):
        row, sums = rows[number], products[number]
        sums[:] = 0
        for at in range(0, whole, 4):
            _add_four(row, matrix, at, sums)
        for at in range(whole, dim):
            one, of = row[at], matrix[at]
            for column in range(len(sums)):
                sums[column] += one * of[column]


def _generate_distance(typing: Any, first: Any, second: Any) -> Any:
    """Code of `_distance`: the squared distance of two rows (D,), without the last D mod 16 entries.

    Written as vectors of 16 numbers: a compiler that must keep the order of sums does not vectorise the loop.
    """
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one, number = ir.FloatType(), ir.IntType(32)
        lanes = ir.VectorType(one, _LANES)
        rows = [
            context.make_array(kind)(context, builder, row) for kind, row in zip(signature.args, arguments, strict=True)
        ]
        length = builder.extract_value(rows[0].shape, 0)
        total: Any = _cgutils.alloca_once_value(builder, ir.Constant(lanes, [0.0] * _LANES))
        with _cgutils.for_range(builder, builder.udiv(length, length.type(_LANES))) as loop:
            start = builder.mul(loop.index, length.type(_LANES))
            entries = [
                builder.load(builder.bitcast(builder.gep(row.data, [start]), lanes.as_pointer()), align=4)
                for row in rows
            ]
            difference = builder.fsub(*entries)
            builder.store(builder.fadd(builder.load(total), builder.fmul(difference, difference)), total)
        sums, left = builder.load(total), _LANES
        while left > 1:
            left //= 2
            halves = (ir.Constant(ir.VectorType(number, left), list(range(at, at + left))) for at in (0, left))
            sums = builder.fadd(*(builder.shuffle_vector(sums, sums, places) for places in halves))
        return builder.extract_element(sums, number(0))

    return types.float32(first, second), generate


_distance: Any = intrinsic(_generate_distance)


@compiled(array(FLOAT32, 2), array(FLOAT32, 2), array(INT64, 2), written(FLOAT32, 2), makes_arrays=False)
def squared_distances(
    queries: NDArray[np.float32],
    points: NDArray[np.float32],
    numbers: NDArray[np.int64],
    distances: NDArray[np.float32],
) -> None:
    """Write squared distances (M, K) from each query (M, D) to the points of its `numbers` (M, K). Entry k of a
    difference is added to sum k mod 16; the sums are added 8 to 8, 4 to 4, 2 to 2, 1 to 1; then entries beyond a
    multiple of 16, one by one.
    """
    of_query, dim = numbers.shape[1], points.shape[1]
    flat_points, flat_numbers = points.reshape(-1), numbers.reshape(-1)
    whole = dim - dim % _LANES
    for query in range(len(queries)):
        asking = queries[query]
        for one in range(of_query):
            soon = min(query * of_query + one + _AHEAD, len(flat_numbers) - 1)
            for line in range(0, dim, _LANES):
                ask_for(flat_points, flat_numbers[soon] * dim + line)
            point = points[numbers[query, one]]
            total = _distance(asking, point)
            for at in range(whole, dim):
                difference = asking[at] - point[at]
                total += difference * difference
            distances[query, one] = total
