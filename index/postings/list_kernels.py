"""Decoding of ascending lists, and the comparison of signatures as they are decoded: compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT64, INT64, UINT8, UINT64, array, compiled, count_ones, written

FITS = 0
"""What decoding gives where nothing is wrong; other numbers say that lists are damaged."""
_DAMAGED = 1

# Of `index.postings.sorted_lists.CodedRanges`.
_LISTS = (array(UINT8), array(UINT8), array(INT64), array(INT64), array(INT64), INT64, INT64)


@compiled()
def _sixty_four(high: Any, place: Any) -> Any:
    """The bits of eight bytes from a place on, the lowest first; those beyond the end are 0."""
    bits = np.uint64(0)
    if place + 8 <= len(high):
        for byte in range(8):
            bits |= np.uint64(high[place + byte]) << np.uint64(8 * byte)
    else:
        for byte in range(max(0, len(high) - place)):
            bits |= np.uint64(high[place + byte]) << np.uint64(8 * byte)
    return bits


@compiled()
def _grown(values: Any, room: Any) -> Any:
    """The same array with more room behind it."""
    larger = np.empty(room, values.dtype)
    larger[: len(values)] = values
    return larger


@compiled()
def _four_bytes(values: Any, place: Any) -> Any:
    """The bits of four bytes from a place on, the lowest first."""
    bits = np.uint64(0)
    for byte in range(4):
        bits |= np.uint64(values[place + byte]) << np.uint64(8 * byte)
    return bits


@compiled()
def _ones_between(high: Any, first: Any, stop: Any) -> Any:
    """How many bits are set from one to before another."""
    ones = np.int64(0)
    for place in range(first >> 3, (stop + 7) >> 3, 8):
        bits = _sixty_four(high, place)
        if 8 * place < first:
            bits = (bits >> np.uint64(first & 7)) << np.uint64(first & 7)
        if 8 * place + 64 > stop:
            bits &= (np.uint64(1) << np.uint64(stop - 8 * place)) - np.uint64(1)
        ones += np.int64(count_ones(bits))
    return ones


@compiled()
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


@compiled()
def _compare(signatures: Any, numbers: Any, length: Any, begin: Any, number: Any, code: Any, differing: Any) -> Any:
    """Count in how many bits a code and the signatures of some entries, one behind the other, differ."""
    if length == 8:
        # Of slices of their own, so that several are compared in one step.
        some, told, only = numbers[begin : begin + number], differing[:number], code[0]
        for entry in range(len(some)):
            told[entry] = count_ones(some[entry] ^ only)
        return
    parts = len(code)
    for entry in range(number):
        total = np.uint64(0)
        for part in range(parts):
            if length == 4:
                total += count_ones(_four_bytes(signatures, 4 * (begin + entry)) ^ code[part])
            else:
                total += count_ones(numbers[(begin + entry) * parts + part] ^ code[part])
        differing[entry] = total


@compiled()
def _decode_list(
    high: Any, low: Any, first_bit: Any, begin: Any, count: Any, zeros: Any, low_bits: Any, universe: Any, values: Any
) -> Any:
    """Decode one list into the beginning of `values`: see `index.postings.sorted_lists`."""
    place = first_bit >> 3
    left = 64 - (first_bit & 7)  # bits of the word that were not looked at
    bits = _sixty_four(high, place) >> np.uint64(first_bit & 7)
    passed: Any = 0  # zeros
    for entry in range(count):
        while bits == np.uint64(0):
            passed += left
            if passed > zeros:
                return _DAMAGED
            place += 8
            bits = _sixty_four(high, place)
            left = 64
        skipped = np.int64(count_ones((bits & (~bits + np.uint64(1))) - np.uint64(1)))
        passed += skipped
        bits = (bits >> np.uint64(skipped)) >> np.uint64(1)
        left -= skipped + 1
        value = passed << low_bits | _low_of(low, begin + entry, low_bits)
        if value >= universe:
            return _DAMAGED
        values[entry] = value
    # A list ends with so many zeros that all lists have as many.
    while passed < zeros:
        if left < zeros - passed:
            if bits != np.uint64(0):
                return _DAMAGED
            passed += left
            place += 8
            bits = _sixty_four(high, place)
            left = 64
        else:
            rest = zeros - passed
            if rest > 0 and (bits << np.uint64(64 - rest)) != np.uint64(0):
                return _DAMAGED
            passed = zeros
    return FITS if passed == zeros else _DAMAGED


@compiled(*_LISTS, INT64)
def decode_lists(
    high: NDArray[np.uint8],
    low: NDArray[np.uint8],
    lists: NDArray[np.int64],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    zeros: int,
    low_bits: int,
    universe: int,
) -> tuple[int, NDArray[np.int64]]:
    """Decode some lists, one after the other.

    Parameters
    ----------
    high, low : ndarray, shape (bytes,), uint8
        The unary bits and the low bits of all lists, with room for all entries.
    lists, begins, lengths : ndarray, shape (n,), int64
        Which, where the entries of each begin among those of all, and how many they are.
    zeros, low_bits, universe : int
        As `SortedLists` has them.

    Returns
    -------
    int
        `FITS`, or the lists are damaged.
    ndarray, shape (sum of lengths,), int64
    """
    values = np.empty(lengths.sum(), np.int64)
    done = 0
    for one in range(len(lists)):
        first_bit = begins[one] + lists[one] * zeros
        wrong: int = _decode_list(
            high, low, first_bit, begins[one], lengths[one], zeros, low_bits, universe, values[done:]
        )
        if wrong != FITS:
            return wrong, values
        done += lengths[one]
    return FITS, values


@compiled(*_LISTS, INT64, INT64, array(INT64), array(FLOAT64, 2), array(FLOAT64), written(FLOAT64, 2))
def add_products(
    high: NDArray[np.uint8],
    low: NDArray[np.uint8],
    lists: NDArray[np.int64],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    zeros: int,
    low_bits: int,
    images: int,
    words_a_list: int,
    words: NDArray[np.int64],
    weights: NDArray[np.float64],
    frequencies: NDArray[np.float64],
    total: NDArray[np.float64],
) -> int:
    """Decode lists of words, and add the inner products of several vectors with the images, word after word.

    Parameters
    ----------
    high, low, lists, begins, lengths, zeros, low_bits
        See `decode_lists`; lists ascend.
    images, words_a_list : int
        Of the segment: see `index.postings.word_lists.CodedLists`.
    words : ndarray, shape (m,), int64
        Distinct, ascending.
    weights : ndarray, shape (m, V), float64
        Of each word in each vector.
    frequencies : ndarray, shape (c,), float64
        Term frequency of an image that has so many features of a word; the last stands for more, too.
    total : ndarray, shape (images, V), float64
        Added to.

    Returns
    -------
    int
        `FITS`, or the lists are damaged.
    """
    values = np.empty(lengths.max() if len(lengths) else 0, np.int64)
    vectors = weights.shape[1]
    at = 0
    for one in range(len(lists)):
        begin, number = begins[one], lengths[one]
        first_word = lists[one] * words_a_list
        wrong: int = _decode_list(
            high, low, begin + lists[one] * zeros, begin, number, zeros, low_bits, images * words_a_list, values
        )
        for entry in range(1, number):
            if values[entry] < values[entry - 1]:
                wrong = _DAMAGED
        if wrong != FITS:
            return wrong
        word, base, entry = first_word, 0, 0
        while entry < number:
            value = values[entry]
            again = entry + 1
            while again < number and values[again] == value:
                again += 1
            count = again - entry
            entry = again
            while value >= base + images:
                base += images
                word += 1
            while at < len(words) and words[at] < word:
                at += 1
            if at == len(words) or words[at] != word:
                continue
            frequency = frequencies[min(count, len(frequencies) - 1)]
            for vector in range(vectors):
                total[value - base, vector] += frequency * weights[at, vector]
    return FITS


@compiled(
    *_LISTS,
    INT64,
    INT64,
    array(UINT8),
    INT64,
    array(INT64),
    array(INT64),
    array(INT64),
    array(UINT64, 2),
    INT64,
    INT64,
)
def near_entries(
    high: NDArray[np.uint8],
    low: NDArray[np.uint8],
    lists: NDArray[np.int64],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    zeros: int,
    low_bits: int,
    images: int,
    words_a_list: int,
    signatures: NDArray[np.uint8],
    length: int,
    words: NDArray[np.int64],
    firsts: NDArray[np.int64],
    counts: NDArray[np.int64],
    codes: NDArray[np.uint64],
    most: int,
    first_rank: int,
) -> tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
    """Find the entries in lists of words whose signature is near that of a query's feature of the word.

    What is damaged in the unary bits is noticed, what is in the low bits is not: an entry may then be of another image.

    Parameters
    ----------
    high, low, lists, begins, lengths, zeros, low_bits
        See `decode_lists`; lists ascend.
    images, words_a_list : int
        Of the segment: see `index.postings.word_lists.CodedLists`.
    signatures : ndarray, shape (features * length,), uint8
        Of all entries of all lists, so many bytes each: 4, or a multiple of 8.
    length : int
    words, firsts, counts : ndarray, shape (m,), int64
        Distinct words of the query, ascending; where the features of each begin among the codes, and how many they are.
    codes : ndarray, shape (n, W), uint64
        Signatures of these features, as numbers.
    most : int
        Largest number of bits that differ.
    first_rank : int
        Of an image's first entry of a word.

    Returns
    -------
    int
        `FITS`, or the lists are damaged.
    rows : ndarray, shape (M,), int32
        Place of the query's feature among the codes.
    positions : ndarray, shape (M,), int32
        Of the images, in the segment.
    ranks : ndarray, shape (M,), int32
        Which of the image's entries of the word it is.
    distances : ndarray, shape (M,), uint8
    """
    room = 1024
    rows, positions = np.empty(room, np.int32), np.empty(room, np.int32)
    ranks, distances = np.empty(room, np.int32), np.empty(room, np.uint8)
    found = 0
    differing = np.empty(lengths.max() if len(lengths) else 0, np.uint8)
    numbers = signatures.view(np.uint64) if length >= 8 else np.empty(0, np.uint64)
    at = 0  # the word of the query
    for one in range(len(lists)):
        begin, number = begins[one], lengths[one]
        first_bit = begin + lists[one] * zeros
        while at < len(words) and words[at] < lists[one] * words_a_list:
            at += 1
        if at < len(words) and _ones_between(high, first_bit, first_bit + number + zeros) != number:
            return _DAMAGED, rows[:0], positions[:0], ranks[:0], distances[:0]
        # Most entries are far: signatures are compared first, and only what is near is decoded.
        while at < len(words) and words[at] < (lists[one] + 1) * words_a_list:
            base = (words[at] - lists[one] * words_a_list) * images
            for row in range(firsts[at], firsts[at] + counts[at]):
                _compare(signatures, numbers, length, begin, number, codes[row], differing)
                if found + number > room:
                    room = 2 * room + number
                    rows, positions = _grown(rows, room), _grown(positions, room)
                    ranks, distances = _grown(ranks, room), _grown(distances, room)
                # Where in the unary bits we are: the place of 64 bits, those of them, and bits and ones before them.
                place = first_bit >> 3
                bits = _sixty_four(high, place) >> np.uint64(first_bit & 7)
                passed, following, ones = 0, 64 - (first_bit & 7), 0
                inside: Any = np.int64(count_ones(bits))
                for entry in range(number):
                    if differing[entry] > most:
                        continue
                    while ones + inside <= entry:
                        ones += inside
                        passed += following
                        if passed > number + zeros:
                            return _DAMAGED, rows[:0], positions[:0], ranks[:0], distances[:0]
                        place += 8
                        bits, following = _sixty_four(high, place), 64
                        inside = np.int64(count_ones(bits))
                    rest = bits
                    for _ in range(entry - ones):
                        rest &= rest - np.uint64(1)
                    one_bit = passed + np.int64(count_ones((rest & (~rest + np.uint64(1))) - np.uint64(1)))
                    value = (one_bit - entry) << low_bits | _low_of(low, begin + entry, low_bits)
                    if one_bit - entry >= zeros or value >= images * words_a_list:
                        return _DAMAGED, rows[:0], positions[:0], ranks[:0], distances[:0]
                    if not base <= value < base + images:
                        continue  # of another word
                    # Entries of the same image and word have their bits side by side, and the same low bits.
                    rank = 0
                    while (
                        rank < entry
                        and high[(first_bit + one_bit - rank - 1) >> 3] >> ((first_bit + one_bit - rank - 1) & 7) & 1
                        and _low_of(low, begin + entry - rank - 1, low_bits) == value & ((1 << low_bits) - 1)
                    ):
                        rank += 1
                    rows[found], positions[found] = row, value - base
                    ranks[found], distances[found] = first_rank + rank, differing[entry]
                    found += 1
            at += 1
    return FITS, rows[:found], positions[:found], ranks[:found], distances[:found]
