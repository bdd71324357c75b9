"""Casting between single and half precision (IEEE 754, binary16): compiled, without branches, many at a time."""

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, UINT16, UINT32, array, compiled, written


@compiled(array(FLOAT32), array(UINT32), written(UINT16), makes_arrays=False)
def round_to_half(values: NDArray[np.float32], bits: NDArray[np.uint32], halves: NDArray[np.uint16]) -> None:
    """Round to the nearest half, ties to even; larger values than the largest half become infinite. `values` (N,)
    float32. `bits` (N,) uint32: the same memory. `halves` (N,) uint16: bits of the halves; output.
    """
    for place in range(len(values)):
        sign = (bits[place] >> np.uint32(16)) & np.uint32(0x8000)
        size = bits[place] & np.uint32(0x7FFFFFFF)
        odd = (size >> np.uint32(13)) & np.uint32(1)
        normal = (size - np.uint32(0x38000000) + np.uint32(0xFFF) + odd) >> np.uint32(13)
        # Subnormal halves: multiples of 2 ** -24; 1024 of these make the smallest normal half.
        small = np.uint32(np.rint(min(abs(values[place]), np.float32(1)) * np.float32(16777216)))
        half = small if size < np.uint32(0x38800000) else normal
        half = np.uint32(0x7C00) if size >= np.uint32(0x477FF000) else half
        half = np.uint32(0x7E00) if size > np.uint32(0x7F800000) else half  # not a number
        halves[place] = np.uint16(sign | half)


@compiled(array(UINT16), written(UINT32), makes_arrays=False)
def widen_halves(halves: NDArray[np.uint16], bits: NDArray[np.uint32]) -> None:
    """Write the bits of single-precision numbers that, multiplied by 2 ** 112, equal the halves. `halves` (N,) uint16:
    bits of the halves. `bits` (N,) uint32: output.
    """
    for place in range(len(halves)):
        sign = (np.uint32(halves[place]) & np.uint32(0x8000)) << np.uint32(16)
        size = (np.uint32(halves[place]) & np.uint32(0x7FFF)) << np.uint32(13)
        beyond = np.uint32(0x70000000) if size >= np.uint32(0x0F800000) else np.uint32(0)  # infinite, or not a number
        bits[place] = sign | (size + beyond)
