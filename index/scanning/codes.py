"""Codes of one byte per dimension, laid out for `index.scanning.scan_kernels`."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

BLOCK = 32
"""Codes of a block."""
NONE = -(1 << 30)
"""The bias of a padding code: less than any score."""
GROUP = 32
"""Codes are zero-padded to a multiple of this number of dimensions."""


class Codes(NamedTuple):
    """Codes of points in groups; each group fills blocks of its own."""

    bytes: NDArray[np.uint8]  # (b 32 d,): block by block, four dimensions of all its codes after another
    biases: NDArray[np.int32]  # (b 32,): added to the product of a query and a code
    names: NDArray[np.int32]  # (b 32,): of codes; -1 for padding
    ends: NDArray[np.int64]  # (groups + 1,): first block of each group, and the end of the last

    @classmethod
    def of(cls, codes: NDArray[np.int8], names: NDArray[np.int32], sizes: NDArray[np.integer]) -> Self:
        """Lay out codes (n, d), group by group, of `sizes` (g,); `names` (n,): numbers to report for them."""
        dim = codes.shape[1]
        ends = np.append(0, np.cumsum(-(-sizes // BLOCK)))
        places = np.arange(len(codes)) + np.repeat(BLOCK * ends[:-1] - (np.cumsum(sizes) - sizes), sizes)
        there = BLOCK * int(ends[-1])
        padded = np.zeros((there, GROUP * -(-dim // GROUP)), np.uint8)
        padded[places, :dim] = codes.view(np.uint8) ^ 0x80  # 128 more, without a sign
        # The nearer, the larger q c - c c / 2. The 128 adds the same to the products of a query with all codes.
        biases = np.full(there, NONE, np.int32)
        biases[places] = -np.einsum("nd,nd->n", codes, codes, dtype=np.int32) // 2
        called = np.full(there, -1, np.int32)
        called[places] = names
        blocks = padded.reshape(-1, BLOCK, padded.shape[1] // 4, 4).transpose(0, 2, 1, 3)
        return cls(blocks.reshape(-1), biases, called, ends.astype(np.int64))

    @classmethod
    def of_one_group(cls, codes: NDArray[np.int8]) -> Self:
        """Lay out codes (n, d) in one group, named by their row numbers."""
        return cls.of(codes, np.arange(len(codes), dtype=np.int32), np.array([len(codes)]))

    def parts(self, dim: int) -> tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.int64]]:
        """Codes by dimension, names and sizes: the inverse of `of`."""
        there = self.names >= 0
        padded = len(self.bytes) // max(1, len(self.names))
        rows = self.bytes.reshape(-1, padded // 4, BLOCK, 4).transpose(0, 2, 1, 3).reshape(-1, padded)
        before = np.append(0, np.cumsum(there))[BLOCK * self.ends]
        return (rows[there, :dim] ^ 0x80).view(np.int8), self.names[there], np.diff(before)


def asked_as(queries: NDArray[np.int8]) -> NDArray[np.int32]:
    """Pack queries (n, d) for scanning: (n, d / 4), four dimensions in one number, d padded to a multiple."""
    number, dim = queries.shape
    padded = np.zeros((number, GROUP * -(-dim // GROUP)), np.int8)
    padded[:, :dim] = queries
    return padded.view(np.int32)
