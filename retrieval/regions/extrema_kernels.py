"""Compiled loops of `scalespace.find_extrema`: samples that stand out among their neighbours, and their refinement.

Levels are passed as one line of samples (see `scalespace.as_line`): they are the response, or it is their difference:
response i is level i + 1 less level i. Differences are computed on the fly, as writing them to memory takes longer.
"""

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import BOOL, FLOAT32, INT64, array, compiled, together, use_wide_vectors

_LAYOUT = together(INT64, INT64, INT64, INT64, INT64, INT64)
_STEPS = 5  # of a sample that an extremum is moved, at most

Layout = tuple[int, int, int, int, int, int]
"""See `find_places`."""


@compiled(makes_arrays=False)
def _fill(line: NDArray[np.float32], differences: bool, area: int, start: int, row: NDArray[np.float32]) -> None:
    """Write a row of the response, from a place in the line on."""
    use_wide_vectors()
    lower = line[start : start + len(row)]
    if differences:
        upper = line[start + area : start + area + len(row)]
        for x in range(len(row)):
            row[x] = upper[x] - lower[x]
    else:
        for x in range(len(row)):
            row[x] = lower[x]


@compiled(makes_arrays=False)
def _mark(
    up: NDArray[np.float32],
    left: NDArray[np.float32],
    row: NDArray[np.float32],
    right: NDArray[np.float32],
    down: NDArray[np.float32],
    below: NDArray[np.float32],
    above: NDArray[np.float32],
    bound: np.float32,
    marks: NDArray[np.uint8],
) -> None:
    """Mark samples beyond a bound and beyond their six nearest neighbours, in their level and in the adjacent ones.

    This is the bottleneck, as it tests all samples: it has no branches, so that the compiler can vectorise it.
    """
    use_wide_vectors()
    for x in range(len(marks)):
        value = row[x]
        # Of equal neighbours, as around a peak half way between samples, only the first is taken.
        high = (value > bound) & (value > up[x]) & (value >= down[x]) & (value > left[x]) & (value >= right[x])
        high &= (value > below[x]) & (value > above[x])
        low = (value < -bound) & (value < up[x]) & (value <= down[x]) & (value < left[x]) & (value <= right[x])
        low &= (value < below[x]) & (value < above[x])
        marks[x] = high | low


@compiled(makes_arrays=False)
def _stands_out(rows: NDArray[np.float32], level: int, y: int, x: int, sign: np.float32) -> bool:
    """Whether a marked sample is beyond its diagonal neighbours, too, and those in the adjacent levels.

    The rows (L, 3, W) are numbered modulo 3.
    """
    up, down = (y + 2) % 3, (y + 1) % 3
    y %= 3
    value = sign * rows[level, y, x]
    for across in (x - 1, x + 1):
        if not (value > sign * rows[level, up, across] and value >= sign * rows[level, down, across]):
            return False
    for other in (level - 1, level + 1):
        for row in range(3):
            for across in range(x - 1, x + 2):
                if not ((row == y and across == x) or value > sign * rows[other, row, across]):
                    return False
    return True


@compiled(array(FLOAT32), BOOL, _LAYOUT, FLOAT32)
def find_places(line: NDArray[np.float32], differences: bool, layout: Layout, bound: np.float32) -> NDArray[np.int64]:
    """Find maxima above a bound, and minima below its negative, among their 26 neighbours in space and scale: x, y and
    level (3, N), from level to level, first maxima, then minima, row by row. `layout`: number of levels, height, width;
    samples of the line from one level to the next, and from one row to the next; and samples at the border that are not
    searched, at least 1.

    `differences`: whether the response is their difference, or they are it.
    """
    number, height, width, area, stride, border = layout
    responses = number - differences
    inner = width - 2 * border
    # Of samples that are neighbours in a level one at most is a maximum.
    most = ((height - 2 * border + 1) // 2) * ((inner + 1) // 2)
    places = np.empty((responses, 2, most), np.int64)
    counts, total = np.zeros((responses, 2), np.int64), 0
    eights = (inner + 7) // 8
    marks = np.zeros(8 * eights, np.uint8)
    packed = marks.view(np.uint64)
    rows = np.empty((responses, 3, width), np.float32)
    for y in range(border - 1, height - border + 1):
        for index in range(responses):
            _fill(line, differences, area, index * area + y * stride, rows[index, y % 3])
        middle = y - 1
        if middle < border:
            continue
        for level in range(1, responses - 1):
            up, row, down = rows[level, (middle + 2) % 3], rows[level, middle % 3], rows[level, y % 3]
            left, right = row[border - 1 : border - 1 + inner], row[border + 1 : border + 1 + inner]
            up, row, down = up[border:-border], row[border:-border], down[border:-border]
            below, above = rows[level - 1, middle % 3, border:-border], rows[level + 1, middle % 3, border:-border]
            _mark(up, left, row, right, down, below, above, bound, marks[:inner])
            for eight in range(eights):
                if not packed[eight]:
                    continue
                for column in range(8 * eight, 8 * eight + 8):
                    if not marks[column]:
                        continue
                    minimum = int(row[column] < 0)
                    if _stands_out(rows, level, middle, border + column, np.float32(1 - 2 * minimum)):
                        places[level, minimum, counts[level, minimum]] = middle * stride + border + column
                        counts[level, minimum] += 1
                        total += 1
    marked = np.empty((3, total), np.int64)
    end = 0
    for level in range(1, responses - 1):
        for minimum in range(2):
            for entry in range(counts[level, minimum]):
                place = places[level, minimum, entry]
                marked[0, end], marked[1, end], marked[2, end] = place % stride, place // stride, level
                end += 1
    return marked


@compiled(makes_arrays=False)
def _sample(line: NDArray[np.float32], differences: bool, area: int, place: int) -> np.float64:
    value = line[place]
    return np.float64(line[place + area] - value if differences else value)


@compiled(makes_arrays=False)
def _mixed(line: NDArray[np.float32], differences: bool, area: int, place: int, one: int, other: int) -> float:
    """Mixed second derivative along two offsets."""
    return 0.25 * (
        _sample(line, differences, area, place + one + other)
        - _sample(line, differences, area, place + one - other)
        - _sample(line, differences, area, place - one + other)
        + _sample(line, differences, area, place - one - other)
    )


@compiled(makes_arrays=False)
def _moved(at: int, shift: float, low: int, high: int) -> int:
    if abs(shift) > 0.6:
        at += 1 if shift > 0 else -1
    return min(max(at, low), high)


@compiled(array(FLOAT32), BOOL, _LAYOUT, array(INT64, 2))
def refine(
    line: NDArray[np.float32], differences: bool, layout: Layout, places: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Move each extremum (3, N) to the peak of the quadratic through its neighbours, in at most five steps of a sample:
    (6, M), x, y and level of the peak, its response, trace² / determinant of the spatial Hessian (infinite at a
    saddle), and the index in the line of the adjacent sample; ordered by the number of steps.
    """
    number, height, width, area, stride, border = layout
    responses = number - differences
    extrema = np.empty((6, places.shape[1]))
    settled = 0
    moving = places.copy()
    remaining = moving.shape[1]
    for _ in range(_STEPS):
        columns, remaining = remaining, 0
        for column in range(columns):
            x, y, level = moving[0, column], moving[1, column], moving[2, column]
            place = level * area + y * stride + x
            value = _sample(line, differences, area, place)
            right, left = _sample(line, differences, area, place + 1), _sample(line, differences, area, place - 1)
            down, up = (
                _sample(line, differences, area, place + stride),
                _sample(line, differences, area, place - stride),
            )
            above, below = (
                _sample(line, differences, area, place + area),
                _sample(line, differences, area, place - area),
            )
            # Gradient and Hessian, by central differences.
            gx, gy, gs = 0.5 * (right - left), 0.5 * (down - up), 0.5 * (above - below)
            xx, yy, ss = right + left - 2 * value, down + up - 2 * value, above + below - 2 * value
            xy = _mixed(line, differences, area, place, 1, stride)
            xs = _mixed(line, differences, area, place, 1, area)
            ys = _mixed(line, differences, area, place, stride, area)
            # Shift = -H⁻¹ g, by cofactors; a singular H gives a huge shift, so that the extremum is dropped.
            c_xx, c_xy, c_xs = yy * ss - ys * ys, xs * ys - xy * ss, xy * ys - xs * yy
            c_yy, c_ys, c_ss = xx * ss - xs * xs, xs * xy - xx * ys, xx * yy - xy * xy
            determinant = xx * c_xx + xy * c_xy + xs * c_xs
            dx = dy = ds = 1e9
            if not abs(determinant) < 1e-12:
                dx = (c_xx * -gx + c_xy * -gy + c_xs * -gs) / determinant
                dy = (c_xy * -gx + c_yy * -gy + c_ys * -gs) / determinant
                ds = (c_xs * -gx + c_ys * -gy + c_ss * -gs) / determinant
            # At the border of the octave stay at the last sample, and accept it if the peak is not far beyond.
            to_x = _moved(x, dx, border, width - border - 1)
            to_y = _moved(y, dy, border, height - border - 1)
            to_level = _moved(level, ds, 1, responses - 2)
            if to_x != x or to_y != y or to_level != level:
                moving[0, remaining], moving[1, remaining], moving[2, remaining] = to_x, to_y, to_level
                remaining += 1
            elif abs(dx) < 1.5 and abs(dy) < 1.5 and abs(ds) < 1.5:
                extrema[0, settled], extrema[1, settled], extrema[2, settled] = x + dx, y + dy, level + ds
                extrema[3, settled] = value + 0.5 * (gx * dx + gy * dy + gs * ds)
                extrema[4, settled] = (xx + yy) ** 2 / c_ss if c_ss > 0 else np.inf
                extrema[5, settled] = place
                settled += 1
    return extrema[:, :settled].copy()
