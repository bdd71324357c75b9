"""Compiled decoding of ascending lists, with comparison of signatures."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from index.kernels.compiling import (
    FLOAT64,
    INT64,
    UINT8,
    UINT64,
    array,
    ask_for,
    call,
    compiled,
    count_ones,
    lowest_one,
    spread,
    together,
    use_wide_vectors,
    written,
)

# Lists lie too far apart for the processor to predict the next one: prefetch this many lists ahead.
_AHEAD = 6
FITS = 0
"""Return value of successful decoding; other values mean damaged lists."""
_DAMAGED = 1

# Of `index.postings.sorted_lists.CodedRanges`.
_LISTS = together(array(UINT8), array(UINT8), array(INT64), array(INT64), array(INT64), INT64, INT64)
Lists = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, int]
"""See `decode_lists`."""
_QUERY = together(array(INT64), array(INT64), array(INT64), array(UINT64, 2), INT64)
QueryFeatures = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64], int]
"""See `near_entries`."""
SparseWeights = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""See `add_products`."""


def _generate_load(typing: Any, values: Any, place: Any) -> Any:
    """Code of `_load`: eight bytes of an array from an element on, little-endian; all must exist."""
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = context.make_array(signature.args[0])(context, builder, arguments[0])
        bits = builder.bitcast(builder.gep(of.data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(bits, align=1)

    return types.uint64(values, place), generate


def _generate_near(typing: Any, numbers: Any, first: Any, code: Any, most: Any) -> Any:
    """Code of `_near_eight`: a bit for each of eight consecutive numbers, set if it is near a code."""
    del typing
    word, eight = ir.IntType(64), ir.VectorType(ir.IntType(64), 8)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = context.make_array(signature.args[0])(context, builder, arguments[0])
        some = builder.bitcast(builder.gep(of.data, [arguments[1]]), eight.as_pointer())
        different = builder.xor(builder.load(some, align=1), spread(builder, arguments[2], eight))
        count = call(builder, "llvm.ctpop.v8i64", eight, different)
        near = builder.icmp_unsigned("<=", count, spread(builder, arguments[3], eight))
        return builder.zext(builder.bitcast(near, ir.IntType(8)), word)

    return types.uint64(numbers, first, code, types.uint64), generate


_load: Any = intrinsic(_generate_load)
_near_eight: Any = intrinsic(_generate_near)


@compiled(makes_arrays=False)
def _end_of(values: Any, place: Any) -> Any:
    """The last, fewer than eight, bytes from a place on, little-endian and padded with zeros."""
    bits = np.uint64(0)
    for byte in range(max(0, len(values) - place)):
        bits |= np.uint64(values[place + byte]) << np.uint64(8 * byte)
    return bits


@compiled(makes_arrays=False)
def _sixty_four(high: Any, place: Any) -> Any:
    """Eight bytes from a place on, little-endian; zeros beyond the end."""
    return _load(high, place) if place + 8 <= len(high) else _end_of(high, place)


@compiled()
def _grown(values: Any, room: Any) -> Any:
    """A copy of an array with more room at the end."""
    larger = np.empty(room, values.dtype)
    larger[: len(values)] = values
    return larger


@compiled(makes_arrays=False)
def _four_bytes(values: Any, place: Any) -> Any:
    """Four bytes from a place on, little-endian."""
    bits = np.uint64(0)
    for byte in range(4):
        bits |= np.uint64(values[place + byte]) << np.uint64(8 * byte)
    return bits


@compiled(makes_arrays=False)
def _low_of(low: Any, entry: Any, low_bits: Any) -> Any:
    """The low bits of an entry."""
    if low_bits == 8:
        return np.int64(low[entry])
    if low_bits == 16:
        return np.int64(low[2 * entry]) | np.int64(low[2 * entry + 1]) << 8
    if low_bits == 0:
        return np.int64(0)
    at = entry * low_bits
    return (np.int64(low[at >> 3]) >> (at & 7)) & ((1 << low_bits) - 1)


@compiled(makes_arrays=False)
def _place_of(bits: Any, number: Any) -> Any:
    """select(k): position of the k-th set bit, k from 1."""
    for _ in range(number - 1):
        bits &= bits - np.uint64(1)
    return lowest_one(bits)


@compiled(makes_arrays=False)
def _distance(signatures: Any, numbers: Any, length: Any, entry: Any, codes: Any, code: Any) -> Any:
    """Number of bits in which a signature differs from the code that begins at element `code`."""
    if length == 8:
        return np.int64(count_ones(numbers[entry] ^ codes[code]))
    if length == 4:
        return np.int64(count_ones(_four_bytes(signatures, 4 * entry) ^ codes[code]))
    total = np.int64(0)
    for part in range(length // 8):
        total += np.int64(count_ones(numbers[entry * (length // 8) + part] ^ codes[code + part]))
    return total


@compiled(makes_arrays=False)
def _between(high: Any, first_bit: Any, bits_of: Any, zeros: Any, before: Any, until: Any) -> Any:
    """First bit after some zeros of a list's unary bits, and after more zeros, between which entries of equal high
    parts lie.

    It is -1 if the list is damaged.
    """
    start, stop = 0 if before == 0 else -1, -1
    place: Any = first_bit >> 3
    following: Any = 64 - (first_bit & 7)
    passed: Any = 0
    seen: Any = 0
    bits = _sixty_four(high, place) >> np.uint64(first_bit & 7)
    while passed < bits_of:
        following = min(following, bits_of - passed)
        empty = ~bits & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - following))
        more = seen + np.int64(count_ones(empty))
        if start < 0 and more >= before:
            start = passed + _place_of(empty, before - seen) + 1
        if stop < 0 and more >= until:
            stop = passed + _place_of(empty, until - seen) + 1
        passed, seen, place, following = passed + following, more, place + 8, 64
        bits = _sixty_four(high, place)
    if seen != zeros or not 0 <= start <= stop:
        return -1, -1
    return start, stop


@compiled(makes_arrays=False)
def _decode_list(coded: Any, one: Any, universe: Any, values: Any) -> Any:
    """Decode a list into the beginning of `values`, `FITS` or damage: see `index.postings.sorted_lists`."""
    high, low, lists, begins, lengths, zeros, low_bits = coded
    begin, number = begins[one], lengths[one]
    first_bit = begin + lists[one] * zeros
    place = first_bit >> 3
    passed = (place << 3) - first_bit  # bits of the list before `place`
    bits = _sixty_four(high, place) >> np.uint64(-passed) << np.uint64(-passed)
    entry, before, falls = 0, 0, False
    while True:
        left = number + zeros - passed
        if left < 64:
            bits &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        last = entry + np.int64(count_ones(bits))
        if last > number:
            return _DAMAGED
        while entry < last:
            value = (passed + lowest_one(bits) - entry) << low_bits | _low_of(low, begin + entry, low_bits)
            bits &= bits - np.uint64(1)
            falls |= value < before
            values[entry] = before = value
            entry += 1
        if left <= 64:
            break
        place, passed = place + 8, passed + 64
        bits = _sixty_four(high, place)
    return FITS if entry == number and not falls and before < universe else _DAMAGED


@compiled(makes_arrays=False)
def _prefetch(coded: Any, one: Any, entry: Any) -> Any:
    """Prefetch the unary bits of a list, and the low bits from one of its entries on."""
    high, low, lists, begins, _, zeros, low_bits = coded
    byte = (begins[one] + lists[one] * zeros) >> 3
    for line in range(3):
        ask_for(high, byte + 64 * line)
    for line in range(3):
        ask_for(low, ((begins[one] + entry) * low_bits >> 3) + 64 * line)


@compiled(_LISTS, INT64)
def decode_lists(coded: Lists, universe: int) -> tuple[int, NDArray[np.int64]]:
    """Decode some lists: `FITS` or damage, and the concatenated values (sum of lengths,).

    `coded`: high and low (bytes,), the unary bits and the low bits of all lists; lists, begins and lengths (n,), the
    numbers of the lists, the first entry of each among all entries, and the number of entries; zeros and low bits, as
    in `SortedLists`.
    """
    lengths = coded[4]
    values = np.empty(lengths.sum(), np.int64)
    done = 0
    for one in range(len(lengths)):
        if one + _AHEAD < len(lengths):
            _prefetch(coded, one + _AHEAD, 0)
        wrong: int = _decode_list(coded, one, universe, values[done:])
        if wrong != FITS:
            return wrong, values
        done += lengths[one]
    return FITS, values


@compiled(_LISTS, array(INT64))
def find_values(
    coded: Lists,
    values: NDArray[np.int64],
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Find a value (n,), below the universe, in each of some lists, decoding little of them: `FITS` or damage, its
    first entry among all entries (n,), and its number of entries (n,). Damage is detected in the unary bits, not in the
    low bits.
    """
    high, low, lists, begins, lengths, zeros, low_bits = coded
    firsts, counts = np.empty(len(lists), np.int64), np.empty(len(lists), np.int64)
    for one in range(len(lists)):
        if one + _AHEAD < len(lists):
            _prefetch(coded, one + _AHEAD, lengths[one + _AHEAD] // 2)
        begin, before = begins[one], values[one] >> low_bits
        start, stop = _between(high, begin + lists[one] * zeros, lengths[one] + zeros, zeros, before, before + 1)
        if start < 0:
            return _DAMAGED, firsts, counts
        entry, end, rest = begin + start - before, begin + stop - before - 1, values[one] & ((1 << low_bits) - 1)
        while entry < end and _low_of(low, entry, low_bits) < rest:
            entry += 1
        firsts[one] = entry
        while entry < end and _low_of(low, entry, low_bits) == rest:
            entry += 1
        counts[one] = entry - firsts[one]
    return FITS, firsts, counts


@compiled(
    _LISTS, together(INT64, INT64), together(array(INT64), array(INT64), array(INT64), array(FLOAT64)), array(FLOAT64),
    written(FLOAT64, 2), written(INT64, 2), makes_arrays=False,
)  # fmt: skip
def add_products(
    coded: Lists,
    sizes: tuple[int, int],
    sparse: SparseWeights,
    frequencies: NDArray[np.float64],
    total: NDArray[np.float64],
    room: NDArray[np.int64],
) -> int:
    """Decode lists of words, and add the inner products of several vectors with the images to `total` (V, images), word
    by word; returns `FITS` or damage. `sparse`: words (m,), distinct, ascending; where the weights of each begin (m +
    1,); vector and value of each weight (n,); `frequencies` (c,): term frequency by an image's number of features of a
    word; the last also applies to larger numbers. `room` (3, N): for the N entries of the longest list.
    """
    _, _, lists, _, lengths, _, _ = coded
    images, words_a_list = sizes
    words, bounds, vectors, weights = sparse
    values, positions, ends = room[0], room[1], room[2]
    at = 0
    for one in range(len(lists)):
        if one + _AHEAD < len(lists):
            _prefetch(coded, one + _AHEAD, 0)
        number = lengths[one]
        wrong: int = _decode_list(coded, one, images * words_a_list, values)
        if wrong != FITS:
            return wrong
        first_word = lists[one] * words_a_list
        while at < len(words) and words[at] < first_word:
            at += 1
        entry = 0
        while at < len(words) and words[at] < first_word + words_a_list:
            base = (words[at] - first_word) * images
            while entry < number and values[entry] < base:
                entry += 1
            # Each image of the word once, and where its entries end; without branches, as runs cannot be predicted.
            run, image, start = -1, -1, entry
            while entry < number and values[entry] < base + images:
                run += values[entry] - base != image
                image = values[entry] - base
                entry += 1
                positions[run], ends[run] = image, entry
            for weight in range(bounds[at], bounds[at + 1]):
                row, factor, begin = total[vectors[weight]], weights[weight], start
                for one_run in range(run + 1):
                    count = ends[one_run] - begin
                    begin = ends[one_run]
                    row[positions[one_run]] += frequencies[min(count, len(frequencies) - 1)] * factor
            at += 1
    return FITS


@compiled(makes_arrays=False)
def _compare(signed: Any, first: Any, number: Any, codes: Any, code: Any, most: Any, into: Any) -> Any:
    """Find the signatures among `number` consecutive ones that are near a code: write their places, counted from
    `first`, into an array, and return how many they are.
    """
    signatures, numbers, length = signed
    found: Any = 0
    by_eight = number // 8 * 8 if length == 8 else 0
    for some in range(0, by_eight, 8):
        near = _near_eight(numbers, first + some, codes[code], most)
        # Without a branch, as it cannot be predicted whether one of them is near. If none is, what is written here is
        # overwritten.
        into[found] = some + lowest_one(near)
        found += np.int64(near != 0)
        near &= near - np.uint64(1)
        while near:
            into[found] = some + lowest_one(near)
            found += 1
            near &= near - np.uint64(1)
    for entry in range(by_eight, number):
        into[found] = entry
        found += np.int64(_distance(signatures, numbers, length, first + entry, codes, code) <= most)
    return found


@compiled(makes_arrays=False)
def _near_entries(coded: Any, signed: Any, query: Any, done: Any, into: Any) -> Any:
    """Continue `near_entries` from a list and a word on, as far as there is room.

    Returns whether lists are damaged, the list and the word to continue with, the number of entries found, and the
    additional room needed; 0 when done. It makes no arrays, to avoid reference counting in its loops.
    """
    use_wide_vectors()
    high, low, lists, begins, lengths, zeros, low_bits, images, words_a_list = coded
    signatures, numbers, length = signed
    words, firsts, counts, codes, parts, most, first_rank = query
    one, at, count = done
    rows, positions, ranks, distances, close = into
    while one < len(lists):
        begin, number = begins[one], lengths[one]
        first_bit, bits_of = begin + lists[one] * zeros, number + zeros
        if one + _AHEAD < len(lists) and at < len(words):
            soon = one + _AHEAD
            word = words[min(at + _AHEAD, len(words) - 1)] - lists[soon] * words_a_list
            # Estimate: all words of a list have equally many entries.
            entry = lengths[soon] * min(max(word, 0), words_a_list) // words_a_list
            _prefetch((high, low, lists, begins, lengths, zeros, low_bits), soon, entry)
            for line in range(-1, 8):
                ask_for(signatures, (begins[soon] + entry) * length + 64 * line)
        while at < len(words) and words[at] < lists[one] * words_a_list:
            at += 1
        # Most entries are of other words, or far: decode only near entries of the word.
        while at < len(words) and words[at] < (lists[one] + 1) * words_a_list:
            base = (words[at] - lists[one] * words_a_list) * images
            before, until = base >> low_bits, ((base + images - 1) >> low_bits) + 1
            start, stop = _between(high, first_bit, bits_of, zeros, before, until)
            if start < 0:
                return _DAMAGED, one, at, count, 0
            own, stop = start - before, stop - until
            if count + (stop - own) * counts[at] > len(rows):
                return FITS, one, at, count, (stop - own) * counts[at]
            for row in range(firsts[at], firsts[at] + counts[at]):
                code = row * parts
                # Position in the unary bits: place of 64 bits, the bits themselves, and the number of bits and ones
                # before them.
                place = (first_bit + start) >> 3
                bits = _sixty_four(high, place) >> np.uint64((first_bit + start) & 7)
                passed, following, ones = start, 64 - ((first_bit + start) & 7), own
                inside = np.int64(count_ones(bits))
                for which in range(_compare(signed, begin + own, stop - own, codes, code, most, close)):
                    entry = own + close[which]
                    while ones + inside <= entry:
                        ones += inside
                        passed += following
                        if passed > bits_of:
                            return _DAMAGED, one, at, count, 0
                        place += 8
                        bits, following = _sixty_four(high, place), 64
                        inside = np.int64(count_ones(bits))
                    for _ in range(entry - ones):
                        bits &= bits - np.uint64(1)
                    inside -= entry - ones
                    ones = entry
                    one_bit = passed + lowest_one(bits)
                    value = (one_bit - entry) << low_bits | _low_of(low, begin + entry, low_bits)
                    if one_bit - entry >= zeros or value >= images * words_a_list:
                        return _DAMAGED, one, at, count, 0
                    if not base <= value < base + images:
                        continue  # of another word
                    # Entries of the same image and word have adjacent ones, and the same low bits.
                    rank = 0
                    while (
                        rank < entry
                        and high[(first_bit + one_bit - rank - 1) >> 3] >> ((first_bit + one_bit - rank - 1) & 7) & 1
                        and _low_of(low, begin + entry - rank - 1, low_bits) == value & ((1 << low_bits) - 1)
                    ):
                        rank += 1
                    rows[count], positions[count] = row, value - base
                    ranks[count] = first_rank + rank
                    distances[count] = _distance(signatures, numbers, length, begin + entry, codes, code)
                    count += 1
            at += 1
        one += 1
    return FITS, one, at, count, 0


@compiled(_LISTS, together(INT64, INT64), array(UINT8, 2), _QUERY, INT64)
def near_entries(
    coded: Lists, sizes: tuple[int, int], signatures: NDArray[np.uint8], query_features: QueryFeatures, first_rank: int
) -> tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
    """Find the entries in lists of words whose signature is near that of a query's feature of the word: `FITS` or
    damage; `rows` (M,), row of the query's feature in the codes; `positions` (M,) of the images; `ranks` (M,), rank
    among the image's entries of the word; `distances` (M,). Damage in the low bits goes unnoticed: an entry may be of
    another image. `signatures` (features, length): of all entries of all lists, length 4 or a multiple of 8.

    `sizes`: images of the segment, and words a list: see `index.postings.word_lists.CodedLists`. `query_features`:
    words of the query (m,), int64, distinct and ascending; first row of the features of each in the codes, and their
    number, (m,), int64; codes (n, W), uint64, the signatures of these features; and the largest number of differing
    bits.
    """
    room, lengths = 1024, coded[4]
    rows, positions = np.empty(room, np.int32), np.empty(room, np.int32)
    ranks, distances = np.empty(room, np.int32), np.empty(room, np.uint8)
    close = np.empty(lengths.max() if len(lengths) else 0, np.int64)
    flat, length = signatures.reshape(-1), signatures.shape[1]
    words, firsts, counts, codes, most = query_features
    signed = flat, flat.view(np.uint64) if length >= 8 else np.empty(0, np.uint64), length
    query = words, firsts, counts, codes.reshape(-1), codes.shape[1], most, first_rank
    whole = coded + sizes
    one, at, count = 0, 0, 0
    while True:
        into = rows, positions, ranks, distances, close
        wrong, one, at, count, needed = _near_entries(whole, signed, query, (one, at, count), into)
        if wrong == _DAMAGED:
            return wrong, rows[:0], positions[:0], ranks[:0], distances[:0]
        if not needed:
            return wrong, rows[:count], positions[:count], ranks[:count], distances[:count]
        room = 2 * room + needed
        rows, positions = _grown(rows, room), _grown(positions, room)
        ranks, distances = _grown(ranks, room), _grown(distances, room)
