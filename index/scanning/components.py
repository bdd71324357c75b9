"""Principal components that are the same on every machine."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Values (points times dimensions) from which components are learnt.
_SAMPLE = 1 << 23
# Points are rounded to whole numbers of at most this, and directions to this many steps: products of linear algebra are
# then exact in float64, whatever the order of their sums, and the last digits of a decomposition do not matter.
_MOST_STEPS = 1 << 10
_DIRECTION_STEPS = 1 << 11


class Components(NamedTuple):
    """A map to principal components: rows @ basis - offset."""

    basis: NDArray[np.float32]  # (D, d)
    offset: NDArray[np.float32]  # (d,)


def principal_components(
    points: NDArray[np.float32], *, kept: float, multiple: int, largest: float, within: float
) -> Components:
    """The first principal components of points (N, D), scaled so that a share `within` of them is at most `largest`.

    `kept`: least share of the variance that they keep; their number is a multiple of `multiple`, D at most.
    """
    count, dim = points.shape
    sample = points[:: -(-count // max(1, _SAMPLE // dim))].astype(np.float64)
    longest = float(np.abs(sample).max())
    scale = _MOST_STEPS / longest if longest > 0 else 0.0
    steps = np.rint(sample * scale)
    mean = steps.sum(axis=0) / len(steps)
    variances, directions = np.linalg.eigh((steps.T @ steps) / len(steps) - np.outer(mean, mean))
    share = np.cumsum(np.maximum(variances[::-1], 0))
    enough = int(np.searchsorted(share, kept * share[-1])) + 1
    whole = np.rint(directions[:, ::-1][:, : multiple * -(-enough // multiple)] * _DIRECTION_STEPS)
    # A decomposition leaves the sign open.
    whole *= np.where(np.take_along_axis(whole, np.abs(whole).argmax(axis=0)[None], axis=0) < 0, -1, 1)
    middle = np.rint(mean)
    values = np.sort(np.abs((steps - middle) @ whole), axis=None)
    longest = float(values[int(within * (len(values) - 1))])
    unit = largest / longest if longest > 0 else 0.0
    return Components(
        np.ascontiguousarray(whole * (scale * unit), dtype=np.float32), ((middle @ whole) * unit).astype(np.float32)
    )
