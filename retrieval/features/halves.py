"""Descriptors in half precision, as stored: conversion with the results of NumPy in a tenth of its time."""

import numpy as np
from numpy.typing import NDArray

_WIDEN = np.float32(2.0**112)  # ratio of the exponent biases


def to_half(rows: NDArray[np.float32]) -> NDArray[np.float16]:
    """Round rows (N, D) to half precision; values out of range become infinite, as in NumPy."""
    from retrieval.features.half_kernels import round_to_half

    halves = np.empty(rows.shape, np.float16)
    single = np.ascontiguousarray(rows, np.float32).reshape(-1)
    round_to_half(single, single.view(np.uint32), halves.reshape(-1).view(np.uint16))
    return halves


def to_single(rows: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return rows (N, D) of half precision in single precision."""
    from retrieval.features.half_kernels import widen_halves

    single = np.empty(rows.shape, np.float32)
    widen_halves(np.ascontiguousarray(rows).reshape(-1).view(np.uint16), single.reshape(-1).view(np.uint32))
    with np.errstate(invalid="ignore"):  # NaN stays NaN
        single *= _WIDEN
    return single
