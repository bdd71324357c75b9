"""Rows put in order by several keys, in one sort of whole numbers."""

from math import prod

import numpy as np
from numpy.typing import NDArray

_MOST = 1 << 63  # what a packed number stays below


def order_by(*keys: NDArray[np.integer]) -> NDArray[np.int64]:
    """Give the order of rows by a first key, of equals by a second, and so on; of equal rows the first stays the first.

    It is that of ``np.lexsort`` with the keys the other way round, in a tenth of its time: where all keys fit into one
    number of 64 bits, which they do as a rule, that is sorted, with the row's place as its last digits if they fit too.

    Parameters
    ----------
    *keys : ndarray, shape (n,), integer
        At least 0.

    Returns
    -------
    ndarray, shape (n,), int64
        Places of the rows.
    """
    number = len(keys[0])
    if not number:
        return np.zeros(0, np.int64)
    sizes = [int(key.max()) + 1 for key in keys]
    room = prod(sizes)
    if room > _MOST:
        return np.lexsort(keys[::-1])
    packed = keys[0].astype(np.int64)
    for key, size in zip(keys[1:], sizes[1:], strict=True):
        packed *= size
        packed += key
    if room * number <= _MOST:
        packed *= number
        packed += np.arange(number)
        packed.sort()
        packed %= number
        return packed
    order = np.argsort(packed)
    ordered = packed[order]
    # Equal rows are rare, and the sort that keeps their order takes four times as long.
    return np.argsort(packed, kind="stable") if (ordered[1:] == ordered[:-1]).any() else order
