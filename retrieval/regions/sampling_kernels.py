"""Compiled loops that sample a level of the scale space through affine frames: patches, and the adaptation of shapes.

Samples are interpolated linearly, at places rounded to 1/32 of a pixel as `cv2.remap` does. Beyond its border the level
is continued by its border pixels.
"""

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, FLOAT64, INT64, array, compiled, together, use_wide_vectors, written

CONVERGED, STRETCHED, OUT_OF_STEPS = 0, 1, 2

Level = tuple[NDArray[np.float32], int, int, int, float, float]
"""See `sample`."""
_LEVEL = together(array(FLOAT32), INT64, INT64, INT64, FLOAT64, FLOAT64)


@compiled(makes_arrays=False)
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
    use_wide_vectors()
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
        left = max(min(np.int32(x >> five), last_x), zero)
        up = max(min(np.int32(y >> five), last_y), zero)
        rights[number] = np.float32(np.int32(x - np.int32(left << five))) * part
        downs[number] = np.float32(np.int32(y - np.int32(up << five))) * part
        places[number] = np.int32(np.int32(up * row) + left)


@compiled(makes_arrays=False)
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
        place = np.uint64(places[number])  # unsigned, so that no code is generated for negative places
        right, down = rights[number], downs[number]
        left, up = np.float32(1) - right, np.float32(1) - down
        patch[number] = (
            line[place] * (up * left)
            + right_of[place] * (up * right)
            + below[place] * (down * left)
            + right_below[place] * (down * right)
        )


@compiled(
    _LEVEL,
    array(FLOAT64, 2),
    array(FLOAT64, 3),
    array(FLOAT32, 2),
    written(FLOAT32, 2),
)
def sample(
    level: Level,
    centres: NDArray[np.float64],
    frames: NDArray[np.float64],
    grid: NDArray[np.float32],
    patches: NDArray[np.float32],
) -> None:
    """Sample a level through affine frames (N, 2, 2), maps from the `grid` (2, S²) to pixels around the centres, to
    `patches` (N, S²). `level`: its samples (H stride,), float32, row by row, each followed by padding; the stride from
    the begin of a row to that of the next; its height and width; step and offset, see `Octave`.
    """
    line, stride, height, width, step, offset = level
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


@compiled(makes_arrays=False)
def _second_moments(
    patch: NDArray[np.float32], weights: NDArray[np.float32], row: int, sums: NDArray[np.float32]
) -> tuple[float, float, float]:
    """Sums xx, xy and yy of the products of a patch's gradients, its rows as one line.

    Differences across the end of a row have zero weight. So have the first and the last row, which are skipped.
    Columns are summed in parallel, in `sums` (3, row), and then added.
    """
    sums[:] = 0
    of_xx, of_xy, of_yy = sums[0], sums[1], sums[2]
    for start in range(0, len(weights), row):
        up, middle, down = patch[start:], patch[start + row - 1 :], patch[start + 2 * row :]
        some = weights[start : start + row]
        for at in range(row):
            across, along = middle[at + 2] - middle[at], down[at] - up[at]
            of_xx[at] += some[at] * (across * across)
            of_xy[at] += some[at] * (across * along)
            of_yy[at] += some[at] * (along * along)
    xx = xy = yy = np.float32(0)
    for at in range(row):
        xx, xy, yy = xx + of_xx[at], xy + of_xy[at], yy + of_yy[at]
    return float(xx), float(xy), float(yy)


@compiled(makes_arrays=False)
def inverse_square_root(xx: float, xy: float, yy: float) -> tuple[float, float, float, float]:
    """Inverse square root xx, xy, yy of a matrix, of determinant 1, and the ratio of its eigenvalues in 0..1.

    For a flat window, whose matrix is 0, it is the identity.
    """
    if not xx + yy > 1e-9:
        return 1.0, 0.0, 1.0, 1.0
    trace = max(xx + yy, 1e-12)
    # A floor on the determinant bounds one step, so that a window with a single edge cannot collapse the frame.
    root = np.sqrt(max(xx * yy - xy * xy, 1e-4 * trace * trace))
    spread = np.sqrt(max(trace * trace / 4 - root * root, 0.0))
    # M^(1/2) = (M + sqrt(det) I) / sqrt(trace + 2 sqrt(det)); its inverse, scaled to determinant 1, needs no division
    # by the determinant: swap the diagonal and negate the off-diagonal.
    a, c = xx + root, yy + root
    scale = 1.0 / np.sqrt(max(a * c - xy * xy, 1e-24))
    return c * scale, -xy * scale, a * scale, (trace / 2 - spread) / (trace / 2 + spread)


@compiled(makes_arrays=False)
def anisotropy(shape: NDArray[np.float64]) -> float:
    """Ratio of the axes of the ellipse that a map (2, 2) makes of the unit circle."""
    p, q, r, s = shape[0, 0], shape[0, 1], shape[1, 0], shape[1, 1]
    half, area = 0.5 * (p * p + q * q + r * r + s * s), abs(p * s - q * r)
    spread = np.sqrt(max(half * half - area * area, 0.0))
    return float(np.sqrt((half + spread) / max(half - spread, 1e-12)))


@compiled(
    _LEVEL,
    array(FLOAT64, 2),
    array(FLOAT64),
    array(FLOAT32, 2),
    array(FLOAT32, 2),
    together(INT64, FLOAT64, FLOAT64),
    written(FLOAT64, 3),
    written(INT64),
)
def adapt(
    level: Level,
    centres: NDArray[np.float64],
    sigmas: NDArray[np.float64],
    grid: NDArray[np.float32],
    weights: NDArray[np.float32],
    limits: tuple[int, float, float],
    shapes: NDArray[np.float64],
    ends: NDArray[np.int64],
) -> None:
    """Adapt the `shapes` (N, 2, 2) of regions over their detection scales `sigmas` (N,) to a level, in place: see
    `affine.adapt_shapes`. `weights` (S, S): of the samples' gradients, 0 along the border. `ends` (N,): how each ended:
    `CONVERGED`, `STRETCHED` beyond the largest anisotropy, or `OUT_OF_STEPS`.
    """
    line, stride, height, width, step, offset = level
    iterations, converged, max_anisotropy = limits
    number, row = grid.shape[1], weights.shape[1]
    inner = weights.reshape(-1)[row:-row]
    places, shares = np.empty(number, np.int32), np.empty((2, number), np.float32)
    to_level, patch = np.empty((2, 3), np.float32), np.empty(number, np.float32)
    sums = np.empty((3, row), np.float32)
    for index in range(len(centres)):
        shape = shapes[index]
        ends[index] = OUT_OF_STEPS
        for _ in range(iterations):
            for axis in range(2):
                to_level[axis, 0] = shape[axis, 0] * sigmas[index] / step
                to_level[axis, 1] = shape[axis, 1] * sigmas[index] / step
                to_level[axis, 2] = (centres[index, axis] - offset) / step
            _find_places(to_level, grid, stride, height, width, places, shares)
            _interpolate(line, stride, places, shares, patch)
            xx, xy, yy, ratio = inverse_square_root(*_second_moments(patch, inner, row, sums))
            if not ratio < converged:
                ends[index] = CONVERGED
                break
            for axis in range(2):
                p, q = shape[axis, 0], shape[axis, 1]
                shape[axis, 0], shape[axis, 1] = p * xx + q * xy, p * xy + q * yy
            if anisotropy(shape) > max_anisotropy:
                ends[index] = STRETCHED
                break
