"""Validation of callers' arrays, with one-sentence errors."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import CairnError

LARGEST = 1e15
"""Largest value of a row or a patch: squared distances of larger ones would not fit single precision."""


def checked_regions(regions: ArrayLike, name: str = "regions") -> NDArray[np.float32]:
    """Regions (N, 5), rows x, y, a, b, c, as float32; raises CairnError, with the name, if they are no ellipses."""
    rows = checked_rows(regions, name, width=5)
    a, b, c = rows[:, 2:].astype(np.float64).T
    if ((a <= 0) | (c <= 0) | (a * c <= b * b)).any():
        raise CairnError(
            f"A row of {name} is no ellipse: in x, y, a, b, c, a and c are positive and a c is larger than b squared."
        )
    return rows


def checked_rows(rows: ArrayLike, name: str, width: int | None = None) -> NDArray[np.float32]:
    """Finite rows (N, D) as float32, of length `width` if passed, or an empty list; raises CairnError otherwise."""
    array = as_array(rows, name)
    if array.size == 0 and array.ndim < 2:
        array = np.zeros((0, width or 0), np.float32)
    if array.ndim != 2 or (width is not None and array.shape[1] != width):
        raise CairnError(f"{name} must have the shape (N, {width or 'D'}), not {array.shape}.")
    if array.dtype.kind not in "fiu":
        raise CairnError(f"{name} must be numbers, not {array.dtype}.")
    if not np.isfinite(array).all():
        raise CairnError(f"{name} have values that are not finite: leave those rows out.")
    if array.size and max(abs(float(array.min())), abs(float(array.max()))) > LARGEST:
        raise CairnError(f"{name} have values above {LARGEST:g}, which are too large to compare.")
    return np.ascontiguousarray(array, np.float32)


def checked_indices(values: ArrayLike, name: str, below: int | None = None) -> NDArray[np.int64]:
    """A row of whole numbers (N,) from 0 on, all below a bound; raises CairnError if one is not."""
    array = as_array(values, name)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise CairnError(f"{name} must be a row of whole numbers, not {array.dtype} of shape {array.shape}.")
    if array.min() < 0 or (below is not None and array.max() >= below):
        bound = f"from 0 to {below - 1}" if below else "at least 0"
        raise CairnError(f"{name} must be {bound}, not {array.min()} to {array.max()}.")
    return array.astype(np.int64)


def checked_count(value: int, name: str, least: int) -> int:
    """A whole number not below a bound; raises CairnError if it is not one."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise CairnError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(value)


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Anything array-like as an array; raises CairnError if it is not."""
    try:
        return np.asarray(values)
    except ValueError:
        raise CairnError(f"{name} must be an array, not rows of several lengths.") from None
