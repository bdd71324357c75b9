"""Rows of training pairs, in memory or in blocks on disk."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

BYTE_VALUES = np.concatenate([[0], 2.0 ** np.linspace(-16, 6, 255)]).astype(np.float32)
"""Values of the byte codes, ascending: up to 64 to within 3%, or 0 below 2^-16."""

_BETWEEN = np.sqrt(BYTE_VALUES[1:-1] * BYTE_VALUES[2:])  # bounds between the values of adjacent codes
_ROWS = 1_024  # of a block at a time
_PAIRS = 8_192  # differences computed at a time


def in_bytes(rows: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Encode non-negative values (…) as bytes (…) uint8."""
    codes = 1 + np.searchsorted(_BETWEEN, rows)
    return np.asarray(np.where(rows < BYTE_VALUES[1] / 2, 0, codes), np.uint8)


def values_of(rows: NDArray[np.floating | np.uint8]) -> NDArray[np.floating]:
    """Return the values (…) of rows, decoding bytes."""
    return BYTE_VALUES[rows] if rows.dtype == np.uint8 else rows  # type: ignore[return-value]


class ArrayRows:
    """Rows in memory. `array` (M, N): one row a pair."""

    def __init__(self, array: NDArray[np.float32]) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def take(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return rows (K, N) float32."""
        return self._array[numbers].astype(np.float32, copy=False)

    def dot(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the product (M,) float32 of all rows with weights (N,)."""
        return self._array @ weights.astype(np.float32)


class BlockRows:
    """Rows in blocks (any, N) on disk, of `ring_distances.write_ring_distances`, at least one; uint8 if `in_bytes`.

    `scale` (N,) is the factor of each column, applied when read.
    """

    def __init__(
        self, blocks: Sequence[NDArray[np.floating | np.uint8]], scale: NDArray[np.float64] | None = None
    ) -> None:
        self.blocks = [block for block in blocks if len(block)]
        self.scale = None if scale is None else scale.astype(np.float32)
        self._starts = np.cumsum([0] + [len(block) for block in self.blocks])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def scaled(self, scale: NDArray[np.float64]) -> "BlockRows":
        """Return the same rows with ``scale`` (N,) as the factors of columns."""
        return BlockRows(self.blocks, scale)

    def take(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return rows (K, N) float32."""
        rows = np.empty((len(numbers), self.blocks[0].shape[1]), np.float32)
        owner = np.searchsorted(self._starts, numbers, side="right") - 1
        for block in np.unique(owner):
            members = owner == block
            rows[members] = values_of(self.blocks[block][numbers[members] - self._starts[block]])
        if self.scale is not None:
            rows *= self.scale
        return rows

    def columns(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return some columns (M, K) float32 of all rows."""
        values = np.empty((len(self), len(chosen)), np.float32)
        for block, first in zip(self.blocks, self._starts, strict=False):
            for start in range(0, len(block), _ROWS):
                part = block[start : start + _ROWS]
                values[first + start : first + start + len(part)] = values_of(part[:, chosen])
        if self.scale is not None:
            values *= self.scale[chosen]
        return values

    def dot(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the product (M,) float32 of all rows with sparse weights (N,)."""
        used = np.nonzero(weights)[0]
        few = (weights[used] if self.scale is None else weights[used] * self.scale[used]).astype(np.float32)
        # In parts: with many rings the columns of all rows would not fit in memory.
        parts = [
            values_of(block[start : start + _ROWS][:, used]).astype(np.float32) @ few
            for block in self.blocks
            for start in range(0, len(block), _ROWS)
        ]
        return np.concatenate(parts)

    def mean(self) -> NDArray[np.float64]:
        """Return the mean row (N,) float64."""
        total = np.zeros(self.blocks[0].shape[1])
        for block in self.blocks:
            for start in range(0, len(block), _ROWS):
                total += values_of(block[start : start + _ROWS]).sum(axis=0, dtype=np.float32)
        mean = total / len(self)
        return mean if self.scale is None else mean * self.scale


class DifferenceRows:
    """Differences of the descriptors (U, n) float32 of pairs, rows `first`, `second` (M,), computed when read."""

    def __init__(self, descriptors: NDArray[np.float32], first: NDArray[np.int64], second: NDArray[np.int64]) -> None:
        self.descriptors = descriptors
        self.first = first
        self.second = second

    def __len__(self) -> int:
        return len(self.first)

    def take(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return differences (K, n) float32."""
        return self.descriptors[self.first[numbers]] - self.descriptors[self.second[numbers]]

    def distances(self, projection: NDArray[np.float64]) -> NDArray[np.float32]:
        """Squared distances (M,) float32 of the pairs once their descriptors are projected by W (m, n)."""
        projected = self.descriptors @ projection.T.astype(np.float32)
        return squared_distances(projected.__getitem__, self.first, self.second)

    def moment(self) -> NDArray[np.float64]:
        """Mean of θθᵀ over the pairs (n, n) float64."""
        total = np.zeros((self.descriptors.shape[1],) * 2)
        for start in range(0, len(self), _PAIRS):
            rows = self.take(np.arange(start, min(start + _PAIRS, len(self))))
            total += rows.T @ rows
        return total / len(self)


def squared_distances(
    take: Callable[[NDArray[np.integer]], NDArray[np.float32]], first: NDArray[np.integer], second: NDArray[np.integer]
) -> NDArray[np.float32]:
    """Squared distances (M,) float32 of pairs of rows (K, n), which `take` reads by number, in parts."""
    parts = [
        np.square(take(first[start : start + _PAIRS]) - take(second[start : start + _PAIRS])).sum(1)
        for start in range(0, len(first), _PAIRS)
    ]
    return np.concatenate(parts)


def signed_products(
    take: Callable[[NDArray[np.integer]], NDArray[np.float32]],
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    signs: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Inner products (M,) float32 of pairs of rows (K, n) with signs (n,); `take` as for `squared_distances`."""
    parts = [
        (take(first[start : start + _PAIRS]) * take(second[start : start + _PAIRS])) @ signs
        for start in range(0, len(first), _PAIRS)
    ]
    return np.concatenate(parts)
