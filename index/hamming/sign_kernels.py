"""The bits of signatures: compiled."""

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, INT64, array, compiled


@compiled(array(FLOAT32, 2), array(FLOAT32, 2), array(INT64, 2))
def sides_of(
    places: NDArray[np.float32], thresholds: NDArray[np.float32], rows: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Say on which side of several thresholds features lie.

    Parameters
    ----------
    places : ndarray, shape (N, bits), float32
        Of the features, in each dimension.
    thresholds : ndarray, shape (T, bits), float32
    rows : ndarray, shape (N, k), int64
        Which of the thresholds each feature is compared with.

    Returns
    -------
    ndarray, shape (N, k, bits / 8), uint8
        Bit i, which is bit i mod 8, counted from the lowest, of byte i div 8, says that place i is above its threshold.
    """
    number, several = rows.shape
    length = places.shape[1] // 8
    sides = np.empty((number, several, length), np.uint8)
    for feature in range(number):
        for one in range(several):
            row = rows[feature, one]
            for byte in range(length):
                code = 0
                for bit in range(8):
                    code |= int(places[feature, 8 * byte + bit] > thresholds[row, 8 * byte + bit]) << bit
                sides[feature, one, byte] = code
    return sides
