"""Compiled computation of the bits of signatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, FLOAT64, INT64, UINT8, array, ask_for, compiled, use_wide_vectors

_AHEAD = 4  # prefetch the thresholds this many features ahead: they lie far apart
_LINE = 16  # 32-bit numbers in a cache line


@compiled()
def _gathered(eight: Any) -> Any:
    """The lowest bits of the eight bytes of a number, the first byte's the lowest, as a byte."""
    return (eight * np.uint64(0x0102040810204080)) >> np.uint64(56)


@compiled(makes_arrays=False)
def _ask_for_rows(every: Any, rows: Any, bits: Any) -> Any:
    """Prefetch rows of thresholds into the processor's cache."""
    for row in rows:
        for line in range(0, bits, _LINE):
            ask_for(every, row * bits + line)


@compiled(array(FLOAT32, 2), array(FLOAT32, 2), array(INT64, 2))
def sides_of(
    places: NDArray[np.float32], thresholds: NDArray[np.float32], rows: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Compare features (N, bits) with thresholds (T, bits): signatures (N, k, bits / 8), by the `rows` (N, k) of
    thresholds for each feature. Bit i, which is bit i mod 8, from the lowest, of byte i div 8, is set above the
    threshold.
    """
    use_wide_vectors()
    number, several = rows.shape
    length = places.shape[1] // 8
    sides = np.empty((number, several, length), np.uint8)
    above, every = np.empty(8 * length, np.uint8), thresholds.reshape(-1)
    eight = above.view(np.uint64)
    for feature in range(number):
        _ask_for_rows(every, rows[min(feature + _AHEAD, number - 1)], 8 * length)
        place = places[feature]
        for one in range(several):
            threshold = thresholds[rows[feature, one]]
            for bit in range(8 * length):
                above[bit] = place[bit] > threshold[bit]
            for byte in range(length):
                sides[feature, one, byte] = _gathered(eight[byte])
    return sides


@compiled(array(UINT8, 2), array(FLOAT32, 2), array(INT64, 2), FLOAT64)
def recalled_sides(
    signatures: NDArray[np.uint8], thresholds: NDArray[np.float32], rows: NDArray[np.int64], usual: float
) -> NDArray[np.uint8]:
    """Estimate signatures (N, k, bits / 8) by other thresholds from (N, bits / 8) by the first of `rows` (N, 1 + k)."""
    use_wide_vectors()
    number, several = rows.shape
    length = signatures.shape[1]
    sides = np.empty((number, several - 1, length), np.uint8)
    above, below = np.empty(8 * length, np.uint8), np.empty(8 * length, np.uint8)
    eight_above, eight_below = above.view(np.uint64), below.view(np.uint64)
    far, every = np.float32(usual), thresholds.reshape(-1)
    for feature in range(number):
        _ask_for_rows(every, rows[min(feature + _AHEAD, number - 1)], 8 * length)
        own = thresholds[rows[feature, 0]]
        for one in range(1, several):
            # Both results of all bits at once, without a branch: half of the branches would be mispredicted.
            other = thresholds[rows[feature, one]]
            for bit in range(8 * length):
                above[bit] = own[bit] + far > other[bit]
                below[bit] = own[bit] - far > other[bit]
            for byte in range(length):
                if_above, if_below = _gathered(eight_above[byte]), _gathered(eight_below[byte])
                known = np.uint64(signatures[feature, byte])
                sides[feature, one - 1, byte] = (known & if_above) | (~known & if_below)
    return sides
