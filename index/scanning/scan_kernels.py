"""Scan the codes of points for those near a query: compiled.

A code is a byte for each of a number of dimensions that 32 divides. Codes lie in blocks of 32, in groups of 32
dimensions, with four dimensions of one code adjacent: so one instruction, if the processor has it, multiplies 64 bytes.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from index.kernels.compiling import (
    INT32,
    INT64,
    UINT8,
    array,
    call,
    compiled,
    lowest_one,
    spread,
    use_wide_vectors,
    written,
)
from index.scanning.codes import BLOCK, GROUP, NONE

QUERIES = 4
"""Queries compared with a block at once."""
_AT_ONCE = 16  # 32-bit numbers that one instruction processes
_INSTRUCTION, _OF = "llvm.x86.avx512.vpdpbusd.512", "+avx512vnni"


def _generate_scores(
    typing: Any,
    codes: Any,
    at: Any,
    queries: Any,
    of: Any,
    more: Any,
    before: Any,
    start: Any,
    step: Any,
    scores: Any,
    to: Any,
    apart: Any,
    limits: Any,
    above: Any,
) -> Any:
    """Code of `_add_products` for these types: adds the products of some queries with a block of codes, in 32
    dimensions, to scores, and says by a bit for each code, the lowest for the first, which sums are above a limit.
    NumPy has no expression that compilers turn into that instruction. A loaded code is used for all queries.

    `codes`: from element `at`, eight times the codes (32, 4) of a block in four dimensions. `before`: the initial sums
    (32,), from element `start`, and `step` elements later for each further query. `scores`: the sums (32,) are written
    from element `to`, and `apart` elements later for each further query. `above`: receives the bits. Returns all bits
    combined by "or".
    """
    del typing
    number, byte, word = ir.IntType(32), ir.IntType(8), ir.IntType(64)
    numbers = ir.VectorType(number, _AT_ONCE)
    some_bytes = ir.VectorType(byte, 4 * _AT_ONCE)
    halves = range(BLOCK // _AT_ONCE)

    def products(builder: Any, sums: Any, some: Any, others: Any) -> Any:
        """Add products of bytes (64,), unsigned times signed, in groups of four to sums (16,)."""
        wide = ir.VectorType(number, 4 * _AT_ONCE)
        added = builder.mul(builder.zext(some, wide), builder.sext(builder.bitcast(others, some_bytes), wide))
        for left in (2 * _AT_ONCE, _AT_ONCE):
            every_other = ir.VectorType(number, left)
            nothing = ir.Constant(added.type, ir.Undefined)
            even, odd = (
                builder.shuffle_vector(added, nothing, ir.Constant(every_other, list(range(first, 2 * left, 2))))
                for first in (0, 1)
            )
            added = builder.add(even, odd)
        return builder.add(sums, added)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def place(parameter: int, first: Any, more: int, kind: Any) -> Any:
            """Addresses of equally spaced elements of an array."""
            of = context.make_array(signature.args[parameter])(context, builder, arguments[parameter])
            element = builder.add(first, ir.Constant(word, more))
            return builder.bitcast(builder.gep(of.data, [element]), kind.as_pointer())

        has_instruction = _OF in context.codegen().magic_tuple()[2]

        def row(first: Any, step: Any, query: int) -> Any:
            """First element of a query."""
            return builder.add(first, builder.mul(step, ir.Constant(word, query)))

        at, more, start, step, to, apart = (arguments[parameter] for parameter in (1, 4, 6, 7, 9, 10))
        nothing = ir.Constant(word, 0)
        asking = range(QUERIES)
        begins = [builder.add(builder.load(place(3, nothing, query, word)), more) for query in asking]
        sums = [
            [builder.load(place(5, row(start, step, query), _AT_ONCE * half, numbers), align=4) for half in halves]
            for query in asking
        ]
        for four in range(GROUP // 4):
            read = []
            for half in halves:
                offset = 4 * (BLOCK * four + _AT_ONCE * half)
                read.append(builder.load(place(0, at, offset, some_bytes), align=1))
            for query in asking:
                everywhere = spread(builder, builder.load(place(2, begins[query], four, number), align=4), numbers)
                for half, some in enumerate(read):
                    if has_instruction:
                        some = builder.bitcast(some, numbers)
                        sums[query][half] = call(builder, _INSTRUCTION, numbers, sums[query][half], some, everywhere)
                    else:
                        sums[query][half] = products(builder, sums[query][half], some, everywhere)
        together = ir.Constant(number, 0)
        for query in asking:
            limit = spread(builder, builder.load(place(11, nothing, query, number), align=4), numbers)
            bits = ir.Constant(number, 0)
            for half in halves:
                written_to = place(8, row(to, apart, query), _AT_ONCE * half, numbers)
                builder.store(sums[query][half], written_to, align=4)
                some = builder.bitcast(builder.icmp_signed(">", sums[query][half], limit), ir.IntType(_AT_ONCE))
                some = builder.shl(builder.zext(some, number), ir.Constant(number, _AT_ONCE * half))
                bits = builder.or_(bits, some)
            builder.store(bits, place(12, nothing, query, number), align=4)
            together = builder.or_(together, bits)
        return together

    parameters = codes, at, queries, of, more, before, start, step, scores, to, apart, limits, above
    return types.uint32(*parameters), generate


_add_products: Any = intrinsic(_generate_scores)


# Rows are passed as an offset into the array: views of rows are reference-counted, which is slow.


@compiled(makes_arrays=False)
def _order_largest(scores: Any, names: Any, first: Any, count: Any, wanted: Any) -> Any:
    """Move the `wanted` largest of `count` scores, and their names, to the front; return the least of these."""
    low, high, rank = first, first + count - 1, first + wanted - 1
    while low < high:
        pivot = scores[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while scores[left] > pivot:
                left += 1
            while scores[right] < pivot:
                right -= 1
            if left <= right:
                score, name = scores[left], names[left]
                scores[left], names[left] = scores[right], names[right]
                scores[right], names[right] = score, name
                left += 1
                right -= 1
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            break
    return scores[rank]


@compiled(makes_arrays=False)
def _insert(scores: Any, names: Any, first: Any, count: Any, most: Any, score: Any, name: Any) -> Any:
    """Insert a score and its name among the largest, sorted from element `first` on; if they are full, drop the
    smallest.

    If they are full, the score must be larger than the last. Returns the new number of entries.
    """
    place = first + min(count, most - 1)
    while place > first and scores[place - 1] < score:
        scores[place], names[place] = scores[place - 1], names[place - 1]
        place -= 1
    scores[place], names[place] = score, name
    return min(count + 1, most)


@compiled(makes_arrays=False)
def _least_of_largest(scores: Any, wanted: Any) -> Any:
    """The `wanted`-th largest of the scores, by bisection: counting is vectorised."""
    use_wide_vectors()
    low, high = scores[0], scores[0]  # 32 bits throughout, sums too: 64 bits take far longer
    for place in range(len(scores)):
        low, high = min(low, scores[place]), max(high, scores[place])
    while low < high:
        middle = np.int32((np.int64(low) + high + 1) >> 1)
        reached = np.int32(0)
        for place in range(len(scores)):
            reached = np.int32(reached + np.int32(scores[place] >= middle))
        if reached == wanted:
            return middle
        if reached > wanted:
            low = middle
        else:
            high = np.int32(middle - 1)
    return low


@compiled(array(UINT8), array(INT32), array(INT32, 2), INT64, written(INT32, 2))
def nearest_lists(
    codes: NDArray[np.uint8], biases: NDArray[np.int32], queries: NDArray[np.int32], wanted: int, lists: NDArray[Any]
) -> NDArray[np.int64]:
    """Choose at least `wanted` lists whose centres are nearest to each query; return their numbers (n,). The bound is
    found among the best of every four, so there may be more, up to the width of `lists` (n, w), which is filled with
    the lists, nearest first. `codes`, `biases` (b 32 d,): of the centres, in b blocks; `queries` (n, d / 4): bytes with
    a sign, by the four.
    """
    number, most = lists.shape
    there, groups = len(biases), 4 * queries.shape[1] // GROUP
    flat_queries = queries.reshape(-1)
    quarter = there // 4
    best = np.empty(quarter, np.int32)
    chosen = np.empty(number, np.int64)
    scores_of = np.empty(QUERIES * there, np.int32)
    of, limits, above = np.empty(QUERIES, np.int64), np.zeros(QUERIES, np.int32), np.empty(QUERIES, np.uint32)
    for query in range(number):
        if query % QUERIES == 0:
            for place in range(QUERIES):
                of[place] = min(query + place, number - 1) * groups * (GROUP // 4)
            for block in range(there // BLOCK):
                at, to = block * groups * BLOCK * GROUP, BLOCK * block
                _add_products(codes, at, flat_queries, of, 0, biases, to, 0, scores_of, to, there, limits, above)
                for group in range(1, groups):
                    at, more = at + BLOCK * GROUP, group * (GROUP // 4)
                    _add_products(
                        codes, at, flat_queries, of, more, scores_of, to, there, scores_of, to, there, limits, above
                    )
        scores = scores_of[there * (query % QUERIES) : there * (query % QUERIES + 1)]
        one, two = scores[:quarter], scores[quarter : 2 * quarter]
        three, four = scores[2 * quarter : 3 * quarter], scores[3 * quarter :]
        for place in range(quarter):
            best[place] = max(max(one[place], two[place]), max(three[place], four[place]))
        least = NONE + 1
        if wanted < quarter:
            least = max(least, _least_of_largest(best, wanted))
        count, nearest = 0, NONE
        for place in range(quarter):
            if best[place] >= least:
                for group in range(4):
                    score = scores[group * quarter + place]
                    if score >= least and count < most:
                        lists[query, count] = group * quarter + place
                        if score > nearest:
                            nearest = score
                            lists[query, 0], lists[query, count] = lists[query, count], lists[query, 0]
                        count += 1
        chosen[query] = count
    return chosen


@compiled()
def _by_list(lists: Any, chosen: Any, number: Any, first: Any, last: Any) -> Any:
    """The queries that chose each list, among choices `first` to `last`, exclusive, of each query; and the bounds of
    each list.
    """
    starts = np.zeros(number + 1, np.int64)
    for query in range(len(chosen)):
        for one in range(first, min(last, chosen[query])):
            starts[lists[query, one] + 1] += 1
    for one in range(number):
        starts[one + 1] += starts[one]
    queries = np.empty(starts[number], np.int32)
    free = starts.copy()
    for query in range(len(chosen)):
        for one in range(first, min(last, chosen[query])):
            place = lists[query, one]
            queries[free[place]] = query
            free[place] += 1
    return starts, queries


@compiled(
    array(UINT8),
    array(INT32),
    array(INT32),
    array(INT64),
    array(INT32, 2),
    array(INT32, 2),
    array(INT64),
    INT64,
    INT64,
    written(INT32, 2),
)
def scan_lists(
    codes: NDArray[np.uint8],
    biases: NDArray[np.int32],
    names: NDArray[np.int32],
    ends: NDArray[np.int64],
    queries: NDArray[np.int32],
    lists: NDArray[np.int32],
    chosen: NDArray[np.int64],
    sure: int,
    wanted: int,
    found: NDArray[np.int32],
) -> None:
    """Find the points of largest scores in the lists of each query.

    The nearest list of a query sets a bound for the others: the score of its `sure`-th best point. Lists are read in
    order, each for all queries that chose it. `codes`, `biases`, `names` (b 32 d,): of the points, in b blocks; names
    -1 for padding, whose bias is `NONE`. `ends` (L + 1,): first block of each list, and the end of the last. `found`
    (n, wanted) is filled with numbers, in no order, and -1.
    """
    number, all_lists, groups = len(queries), len(ends) - 1, 4 * queries.shape[1] // GROUP
    flat_queries = queries.reshape(-1)
    room = 2 * wanted + BLOCK
    best, called = np.empty(number * room, np.int32), np.empty(number * room, np.int32)
    counts = np.zeros(number, np.int64)
    least = np.full(number, NONE, np.int32)
    scores = np.empty(QUERIES * BLOCK, np.int32)
    of, limits, above = np.empty(QUERIES, np.int64), np.empty(QUERIES, np.int32), np.empty(QUERIES, np.uint32)
    for nearest in (True, False):
        first, last = (0, 1) if nearest else (1, lists.shape[1])
        starts, asking = _by_list(lists, chosen, all_lists, first, last)
        for one in range(all_lists):
            for start in range(starts[one], starts[one + 1], QUERIES):
                there = min(QUERIES, starts[one + 1] - start)
                for place in range(QUERIES):  # extra entries repeat the last one, and are skipped
                    query = asking[start + min(place, there - 1)]
                    of[place], limits[place] = query * groups * (GROUP // 4), least[query]
                for block in range(ends[one], ends[one + 1]):
                    at, to = block * groups * BLOCK * GROUP, BLOCK * block
                    any_above = _add_products(
                        codes, at, flat_queries, of, 0, biases, to, 0, scores, 0, BLOCK, limits, above
                    )
                    for group in range(1, groups):
                        at, more = at + BLOCK * GROUP, group * (GROUP // 4)
                        any_above = _add_products(
                            codes, at, flat_queries, of, more, scores, 0, BLOCK, scores, 0, BLOCK, limits, above
                        )
                    if not any_above:
                        continue
                    for place in range(there):
                        bits = above[place]
                        if not bits:
                            continue
                        query, limit = asking[start + place], limits[place]
                        count, own = counts[query], room * query
                        while bits:
                            point = lowest_one(np.uint64(bits))
                            bits &= bits - np.uint32(1)
                            score, name = scores[BLOCK * place + point], names[BLOCK * block + point]
                            if not nearest:
                                best[own + count], called[own + count] = score, name
                                count += 1
                            elif score > limit:
                                count = _insert(best, called, own, count, sure, score, name)
                                if count == sure:
                                    limit = best[own + sure - 1]
                        if count > 2 * wanted:
                            limit = _order_largest(best, called, own, count, wanted)
                            count = wanted
                        limits[place], counts[query] = limit, count
                for place in range(there):
                    least[asking[start + place]] = limits[place]
    for query in range(number):
        count, own = counts[query], room * query
        if count > wanted:
            _order_largest(best, called, own, count, wanted)
            count = wanted
        found[query, :count] = called[own : own + count]
        found[query, count:] = -1
