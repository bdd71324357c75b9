"""Many ascending lists of integers, compressed by Elias-Fano codes.

A value v is split in two. Its low bits are stored verbatim; v >> low_bits, which rises slowly within a list, is stored
as steps in unary: a one for each entry, and a zero wherever the high part rises by one. Every list ends with as many
zeros as the largest value of all lists would need, so list k begins at bit starts[k] + k * zeros. Entries whose gaps
are g on average take about 2 + log2 g bits.

Elias: Efficient storage and retrieval by content and address of static files, JACM 1974; Vigna: Quasi-succinct
indices, WSDM 2013.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Possible widths of the low bits: those that fill bytes evenly.
LOW_BITS = (0, 1, 2, 4, 8, 16)
# Entries encoded or decoded at a time, so that the buffers stay in the processor's cache.
BLOCK_ENTRIES = 1 << 18
LONG = 32
"""Ranges of more bytes than this are copied one by one, shorter ones gathered by index."""
Bytes = NDArray[np.uint8]
_HEADER = np.dtype([("universe", "<u8"), ("low_bits", "<u8")])
# All positions in bits, and values, are far from overflowing 63 bits.
_MOST = 1 << 48


def encode_lists(values: NDArray[np.integer], starts: NDArray[np.integer], universe: int) -> NDArray[np.uint8]:
    """Encode ascending lists, list k being values[starts[k]:starts[k + 1]], all values in [0, universe): a header of 16
    bytes, the low bits, the unary bits. Values may be repeated. Raises ValueError for other arrays. `universe`:
    exclusive upper bound of the values, at least 1.
    """
    values, starts = np.asarray(values), np.asarray(starts).astype(np.int64)
    lists, entries = len(starts) - 1, len(values)
    if not 0 < universe < _MOST or starts[0] != 0 or starts[-1] != entries:
        raise ValueError(f"{lists} lists of {entries} values below {universe} cannot be encoded")
    low_bits = min(LOW_BITS, key=lambda bits: sum(_sizes(lists, entries, universe, bits)))
    low_bytes, high_bytes = _sizes(lists, entries, universe, low_bits)
    encoded = np.zeros(_HEADER.itemsize + low_bytes + high_bytes, np.uint8)
    encoded[: _HEADER.itemsize].view(_HEADER)[0] = (universe, low_bits)
    low, high = np.split(encoded[_HEADER.itemsize :], [low_bytes])
    zeros = _zeros(universe, low_bits)
    for first, last in blocks_of(np.diff(starts) + zeros, BLOCK_ENTRIES):
        begin, end = int(starts[first]), int(starts[last])
        some = values[begin:end].astype(np.int64)
        lengths = np.diff(starts[first : last + 1])
        inside = np.ones(len(some), bool)
        inside[(starts[first:last] - begin)[lengths > 0]] = False
        if len(some) and (some.min() < 0 or some.max() >= universe or (np.diff(some)[inside[1:]] < 0).any()):
            raise ValueError("the lists do not ascend, or have values beyond the universe")
        # Entry i of all lists is a one that follows i other ones, the zeros of earlier lists, and those of its high
        # part.
        at, skip = divmod(begin + first * zeros, 8)
        bits = np.zeros(skip + end - begin + (last - first) * zeros, bool)
        ones = (some >> low_bits) + np.arange(skip, skip + len(some))
        ones += np.repeat(np.arange(last - first) * zeros, lengths)
        bits[ones] = True
        packed = np.packbits(bits, bitorder="little")
        high[at : at + len(packed)] |= packed
        _write_fields(low, begin, some & ((1 << low_bits) - 1), low_bits)
    return encoded


class SortedLists:
    """Ascending lists encoded by `encode_lists`, perhaps memory-mapped: only requested lists are read. Raises
    ValueError if `encoded` and `starts` do not fit together.
    """

    def __init__(self, encoded: NDArray[np.uint8], starts: NDArray[np.unsignedinteger]) -> None:
        if encoded.dtype != np.uint8 or encoded.ndim != 1 or len(encoded) < _HEADER.itemsize:
            raise ValueError("encoded lists begin with a header")
        header = np.frombuffer(encoded[: _HEADER.itemsize].tobytes(), _HEADER)[0]
        self.universe, self._bits = int(header["universe"]), int(header["low_bits"])
        lists, entries = len(starts) - 1, int(starts[-1])
        if self._bits not in LOW_BITS or not 0 < self.universe < _MOST:
            raise ValueError("the header of encoded lists makes no sense")
        low_bytes, high_bytes = _sizes(lists, entries, self.universe, self._bits)
        if low_bytes + high_bytes != len(encoded) - _HEADER.itemsize:
            raise ValueError("encoded lists are not as long as they say")
        self.starts, self.entries = starts, entries  # `entries` as read now: the file may change
        self._zeros = _zeros(self.universe, self._bits)
        low, high = np.split(encoded[_HEADER.itemsize :], [low_bytes])
        self._low, self._high = low, high

    def __len__(self) -> int:
        return len(self.starts) - 1

    def decode(self, lists: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lengths of lists (n,), and their concatenated values, ascending in each. Raises ValueError if damaged."""
        firsts = lists.astype(np.int64)
        return self._decode(firsts, firsts + 1)

    def blocks(self) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """Decode all lists, block by block: the first list of the block, and the result of `decode`."""
        sizes = (self.starts[1:] - self.starts[:-1]).astype(np.int64) + self._zeros
        for first, last in blocks_of(sizes, BLOCK_ENTRIES):
            yield first, *self._decode(np.array([first]), np.array([last]))

    def _decode(
        self, firsts: NDArray[np.int64], lasts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Decode runs of adjacent lists: all from firsts[i] to before lasts[i]."""
        from index.postings.list_kernels import FITS, decode_lists

        sizes = lasts - firsts
        coded = self.coded(firsts if (sizes == 1).all() else concatenated_ranges(firsts, sizes))
        wrong, values = decode_lists(coded.parts, self.universe)
        if wrong != FITS:
            raise ValueError("encoded lists are damaged")
        return coded.lengths, values

    def coded(self, lists: NDArray[np.int64]) -> "CodedRanges":
        """Some encoded lists, for `index.postings.list_kernels`. Raises ValueError if their bounds are invalid."""
        begins = self.starts[lists].astype(np.int64)
        lengths = self.starts[lists + 1].astype(np.int64) - begins
        if len(lists) and (min(begins.min(), lengths.min()) < 0 or (begins + lengths).max() > self.entries):
            raise ValueError("encoded lists end before they begin")
        return CodedRanges(self._high, self._low, lists, begins, lengths, self._zeros, self._bits)


@dataclass(frozen=True, slots=True)
class CodedRanges:
    """Some lists in encoded form."""

    # (bytes,) uint8: the unary bits and the low bits of all lists
    high: NDArray[np.uint8]
    low: NDArray[np.uint8]
    # (n,) int64: numbers of the lists, first entry of each among all entries, and number of entries
    lists: NDArray[np.int64]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]
    # zeros in the unary bits of each list; low bits of an entry
    zeros: int
    low_bits: int

    @property
    def parts(self) -> tuple[Bytes, Bytes, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, int]:
        """All attributes, in the order of the parameters of `index.postings.list_kernels`."""
        return self.high, self.low, self.lists, self.begins, self.lengths, self.zeros, self.low_bits


def take_ranges(array: NDArray[np.uint8], firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Concatenate ranges of an array."""
    sizes = lasts - firsts
    if int(sizes.sum()) > LONG * len(firsts):
        ranges = map(slice, firsts.tolist(), lasts.tolist())
        return np.frombuffer(bytearray().join(map(array.data.__getitem__, ranges)), np.uint8)
    return array[concatenated_ranges(firsts, sizes)]


def _zeros(universe: int, low_bits: int) -> int:
    """Zeros of each list: the number of possible high parts."""
    return ((universe - 1) >> low_bits) + 1


def _sizes(lists: int, entries: int, universe: int, low_bits: int) -> tuple[int, int]:
    """Bytes of the low bits and of the unary ones."""
    return -(-entries * low_bits // 8), -(-(entries + lists * _zeros(universe, low_bits)) // 8)


def _write_fields(low: NDArray[np.uint8], begin: int, values: NDArray[np.int64], bits: int) -> None:
    """Put low bits in their place, entry `begin` and those after it."""
    if bits >= 8:
        width = bits // 8
        low[begin * width : (begin + len(values)) * width] = values.astype(f"<u{width}").view(np.uint8)
    elif bits:
        fields = 8 // bits
        at, skip = divmod(begin, fields)
        padded = np.zeros(-(-(skip + len(values)) // fields) * fields, np.uint8)
        padded[skip : skip + len(values)] = values
        for place in range(fields):
            some = padded[place::fields]
            low[at : at + len(some)] |= some << np.uint8(place * bits)


def blocks_of(lengths: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of lists, first and last exclusive, of at most `most` entries, or a single list."""
    ends = np.cumsum(lengths)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, last
        first = last


def concatenated_ranges(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Concatenate the ranges starts[i] to starts[i] + lengths[i]."""
    ends = np.cumsum(lengths)
    ranges = np.repeat(starts - (ends - lengths), lengths)
    ranges += np.arange(len(ranges))
    return ranges
