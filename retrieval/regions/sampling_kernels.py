"""Compiled loops that sample a level of the scale space through affine frames, for patches and second moments.

Samples are interpolated linearly, at places rounded to 1/32 of a pixel as `cv2.remap` does. Beyond its border the level
is continued by its border pixels.
"""

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, FLOAT64, INT64, array, compiled, written


@compiled()
def _find_places(
    to_level: NDArray[np.float32],
    grid: NDArray[np.float32],
    stride: int,
    height: int,
    width: int,
    places: NDArray[np.int32],
    shares: NDArray[np.float32],
) -> None:
    """Find the pixels above and to the left of the samples of a patch, and the shares of those to the right and below.

    Apart from `_interpolate`: this is done for many samples at once, while that waits for the pixels.
    """
    xu, xv, x0 = to_level[0, 0], to_level[0, 1], to_level[0, 2]
    yu, yv, y0 = to_level[1, 0], to_level[1, 1], to_level[1, 2]
    us, vs = grid[0], grid[1]
    rights, downs = shares[0], shares[1]
    scale, part, five, zero = np.float32(32), np.float32(1 / 32), np.int32(5), np.int32(0)
    right_end, down_end = np.float32(width - 1), np.float32(height - 1)
    last_x, last_y, row = np.int32(width - 2), np.int32(height - 2), np.int32(stride)
    for number in range(len(places)):
        # A place beyond the border has the value of the nearest one on it.
        across = min(max(xu * us[number] + xv * vs[number] + x0, np.float32(0)), right_end)
        along = min(max(yu * us[number] + yv * vs[number] + y0, np.float32(0)), down_end)
        x, y = np.int32(np.rint(across * scale)), np.int32(np.rint(along * scale))
        left, up = max(min(x >> five, last_x), zero), max(min(y >> five, last_y), zero)
        rights[number] = np.float32(x - (left << five)) * part
        downs[number] = np.float32(y - (up << five)) * part
        places[number] = up * row + left


@compiled(any_order=True)
def _interpolate(
    line: NDArray[np.float32],
    stride: int,
    places: NDArray[np.int32],
    shares: NDArray[np.float32],
    patch: NDArray[np.float32],
) -> None:
    rights, downs = shares[0], shares[1]
    right_of, below, right_below = line[1:], line[stride:], line[stride + 1 :]
    for number in range(len(patch)):
        place = np.uint64(places[number])  # unsigned, so that no code is made for places below 0
        right, down = rights[number], downs[number]
        left, up = np.float32(1) - right, np.float32(1) - down
        patch[number] = (
            line[place] * (up * left)
            + right_of[place] * (up * right)
            + below[place] * (down * left)
            + right_below[place] * (down * right)
        )


@compiled(
    array(FLOAT32),
    INT64,
    INT64,
    INT64,
    FLOAT64,
    FLOAT64,
    array(FLOAT64, 2),
    array(FLOAT64, 3),
    array(FLOAT32, 2),
    written(FLOAT32, 2),
)
def sample(
    line: NDArray[np.float32],
    stride: int,
    height: int,
    width: int,
    step: float,
    offset: float,
    centres: NDArray[np.float64],
    frames: NDArray[np.float64],
    grid: NDArray[np.float32],
    patches: NDArray[np.float32],
) -> None:
    """Sample a level through affine frames.

    Parameters
    ----------
    line : ndarray, shape (H stride,), float32
        The level, row by row, each followed by what is not looked at.
    stride : int
        Samples from the begin of a row to that of the next.
    height, width : int
        Rows, and samples in a row.
    step, offset : float
        Of the level: see `Octave`.
    centres : ndarray, shape (N, 2), float64
        Points (x, y), pixels of the image.
    frames : ndarray, shape (N, 2, 2), float64
        Maps from the grid's coordinates to pixels of the image, around the centres.
    grid : ndarray, shape (2, S²), float32
        Sampling points in the frame.
    patches : ndarray, shape (N, S²), float32
        Where they are written to.
    """
    number = grid.shape[1]
    places, shares = np.empty(number, np.int32), np.empty((2, number), np.float32)
    to_level = np.empty((2, 3), np.float32)
    for index in range(len(centres)):
        for axis in range(2):
            to_level[axis, 0] = frames[index, axis, 0] / step
            to_level[axis, 1] = frames[index, axis, 1] / step
            to_level[axis, 2] = (centres[index, axis] - offset) / step
        _find_places(to_level, grid, stride, height, width, places, shares)
        _interpolate(line, stride, places, shares, patches[index])


@compiled(array(FLOAT32, 2), array(FLOAT32, 2), any_order=True)
def second_moments(patches: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """Sum the products of the gradients of patches.

    Parameters
    ----------
    patches : ndarray, shape (N, S²), float32
        Patches.
    weights : ndarray, shape (S, S), float32
        Of the samples; 0 along the border.

    Returns
    -------
    ndarray, shape (N, 3), float64
        xx, xy and yy.
    """
    size = weights.shape[1]
    moments = np.empty((len(patches), 3))
    # All rows as one line: what is taken across the end of a row has no weight.
    weight = weights.reshape(-1)[size:-size]
    for index in range(len(patches)):
        line = patches[index]
        left, right, up, down = line[size - 1 :], line[size + 1 :], line, line[2 * size :]
        xx = xy = yy = np.float32(0)
        for at in range(len(weight)):
            across, along = right[at] - left[at], down[at] - up[at]
            xx += weight[at] * (across * across)
            xy += weight[at] * (across * along)
            yy += weight[at] * (along * along)
        moments[index, 0], moments[index, 1], moments[index, 2] = xx, xy, yy
    return moments
