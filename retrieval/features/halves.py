"""Descriptors in half precision, in which they are kept: OpenCV casts ten times as fast as NumPy."""

import cv2
import numpy as np
from numpy.typing import NDArray


def to_half(rows: NDArray[np.float32]) -> NDArray[np.float16]:
    """Round rows (N, D) to half precision; what is beyond it becomes infinite, as in NumPy."""
    if not rows.size:  # which OpenCV refuses
        return rows.astype(np.float16)
    return cv2.convertFp16(np.asarray(rows, np.float32)).view(np.float16)


def to_single(rows: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return rows (N, D) of half precision in single precision."""
    if not rows.size:
        return rows.astype(np.float32)
    return np.asarray(cv2.convertFp16(rows.view(np.int16)), np.float32)
