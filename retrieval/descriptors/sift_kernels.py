"""Compiled loops of `Sift`: the gradients of a patch, summed over the bins of place and orientation."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, array, compiled, use_wide_vectors, written

_ORIENTATIONS = 8
_LANES = 32  # patches that are pooled at once


@compiled(makes_arrays=False)
def _find_gradients(
    line: NDArray[np.float32], row: int, magnitudes: NDArray[np.float32], turns: NDArray[np.float32]
) -> None:
    """Magnitudes of gradients; and these times the angle, in steps of orientations from x towards y.

    The angle is known to a third of a degree: the polynomial is that of OpenCV's `cartToPolar`.
    """
    use_wide_vectors()
    left, right, up, down = line[row - _LANES :], line[row + _LANES :], line, line[2 * row :]
    for at in range(len(magnitudes)):
        across, along = right[at] - left[at], down[at] - up[at]
        magnitude = np.sqrt(across * across + along * along)
        width, height = abs(across), abs(along)
        ratio = min(width, height) / (max(width, height) + np.float32(2.220446e-16))
        square = ratio * ratio
        angle = np.float32(-0.04432655554792128) * square + np.float32(0.1555786518463281)
        angle = (angle * square + np.float32(-0.3258083974640975)) * square + np.float32(0.9997878412794807)
        angle *= ratio * np.float32(_ORIENTATIONS / (2 * np.pi))
        if height > width:
            angle = np.float32(_ORIENTATIONS / 4) - angle
        if across < 0:
            angle = np.float32(_ORIENTATIONS / 2) - angle
        if along < 0:
            angle = np.float32(_ORIENTATIONS) - angle
        magnitudes[at] = magnitude
        turns[at] = magnitude * angle


@compiled(makes_arrays=False)
def _add_ramp(
    magnitudes: NDArray[np.float32],
    turns: NDArray[np.float32],
    first: np.float32,
    weight: np.float32,
    next_weight: np.float32,
    sums: NDArray[np.float32],
    next_sums: NDArray[np.float32],
) -> None:
    use_wide_vectors()
    for at in range(len(sums)):
        magnitude = magnitudes[at]
        ramp = min(max(turns[at] - first * magnitude, np.float32(0)), magnitude)
        sums[at] += weight * ramp
        next_sums[at] += next_weight * ramp


@compiled(makes_arrays=False)
def _add_pair(
    values: NDArray[np.float32], weights: NDArray[np.float32], sums: NDArray[np.float32], next_sums: NDArray[np.float32]
) -> None:
    use_wide_vectors()
    first, second = weights[0], weights[1]
    for lane in range(_LANES):
        sums[lane] += first * values[lane]
        next_sums[lane] += second * values[lane]


@compiled(makes_arrays=False)
def _pool(
    flat: Any, rows: Any, line: Any, magnitudes: Any, turns: Any, sums: Any, pooled: Any, places: Any, pairs: Any
) -> None:
    """Pool the patches (N, S²) of `pool_gradients` with its buffers."""
    bins, ramps, size = len(pooled) - 1, pooled.shape[1], len(places)
    width = size * _LANES
    for begin in range(0, len(flat), _LANES):
        together = min(_LANES, len(flat) - begin)
        for at in range(size * size):
            for lane in range(together):
                line[at * _LANES + lane] = flat[begin + lane, at]
        _find_gradients(line, width, magnitudes, turns)
        sums[:] = 0
        for y in range(1, size - 1):
            place, start = places[y], (y - 1) * width
            for ramp in range(ramps):
                # The magnitude itself is a ramp that has ended everywhere.
                _add_ramp(
                    magnitudes[start : start + width],
                    turns[start : start + width],
                    np.float32(ramp - 1),
                    pairs[y, 0],
                    pairs[y, 1],
                    sums[place, ramp],
                    sums[place + 1, ramp],
                )
        for down in range(bins):
            pooled[:] = 0
            for ramp in range(ramps):
                for x in range(1, size - 1):
                    _add_pair(
                        sums[down, ramp, x * _LANES : (x + 1) * _LANES],
                        pairs[x],
                        pooled[places[x], ramp],
                        pooled[places[x] + 1, ramp],
                    )
            for right in range(bins):
                entry = (down * bins + right) * _ORIENTATIONS
                for lane in range(together):
                    pooled[right, 0, lane] += pooled[right, _ORIENTATIONS, lane]
                for orientation in range(_ORIENTATIONS):
                    for lane in range(together):
                        channel = pooled[right, orientation, lane] - pooled[right, orientation + 1, lane]
                        # Rounding may leave a little less than nothing.
                        rows[begin + lane, entry + orientation] = max(channel, np.float32(0))


@compiled(array(FLOAT32, 3), array(FLOAT32, 2), written(FLOAT32, 2))
def pool_gradients(patches: NDArray[np.float32], weights: NDArray[np.float32], rows: NDArray[np.float32]) -> None:
    """Sum the gradients of patches (N, S, S) over bins of place and orientation into `rows` (N, 8 B²).

    A magnitude is shared linearly between the two orientations next to its angle by ramps, as in
    `gradients.orientation_ramps`; the difference is taken after the sums over place. `weights` (B, S): of the samples
    in the bins along an axis: 0 at both ends, and elsewhere not 0 in one bin or in two that follow each other.
    """
    bins, size = weights.shape
    flat = patches.reshape(len(patches), size * size)
    ramps = _ORIENTATIONS + 1
    # Several patches at once, (S, S, lanes): each operation on a sample applies to all lanes.
    width = size * _LANES
    line = np.zeros(size * width + _LANES, np.float32)
    inner = (size - 2) * width
    magnitudes, turns = np.empty(inner, np.float32), np.empty(inner, np.float32)
    sums = np.empty((bins + 1, ramps, width), np.float32)
    pooled = np.empty((bins + 1, ramps, _LANES), np.float32)
    places = np.zeros(size, np.int64)  # the first bin of two that a sample is in
    pairs = np.zeros((size, 2), np.float32)  # its weights in them
    for at in range(1, size - 1):
        places[at] = places[at - 1]
        while places[at] + 1 < bins and weights[places[at], at] == 0:
            places[at] += 1
        for one in range(min(2, bins - places[at])):
            pairs[at, one] = weights[places[at] + one, at]
    _pool(flat, rows, line, magnitudes, turns, sums, pooled, places, pairs)
