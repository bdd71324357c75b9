"""Counts of the evidence for a map between two photos: compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, FLOAT64, INT32, INT64, array, compiled

_LOOSER = 1.001  # factor of a coarse first test, whose rounding is less exact than that of the final one
_SMALLEST = 1e-30  # lower bound of areas
_GRID = 256  # cells across and down that are marked one by one, at most
_PARTS = 3  # across and down, that a bounding box is divided into
_REGIONS = array(FLOAT32, 2), array(FLOAT32, 3)


@compiled(makes_arrays=False)
def _is_close(
    query: Any, query_linear: Any, one: Any, image: Any, image_linear: Any, other: Any, transform: Any, limits: Any
) -> Any:
    """Whether two features agree with a map within limits: of the squared error, of log scale and of shape."""
    a, b, c, d = transform[0, 0], transform[0, 1], transform[1, 0], transform[1, 1]
    x, y = np.float64(query[one, 0]), np.float64(query[one, 1])
    u, v = a * x + b * y + transform[0, 2] - image[other, 0], c * x + d * y + transform[1, 2] - image[other, 1]
    if not u * u + v * v < limits[0]:
        return False
    area = a * d - b * c
    back_u, back_v = (d * u - b * v) / area, (a * v - c * u) / area
    if not u * u + v * v + back_u * back_u + back_v * back_v < limits[0]:
        return False
    own, there = query_linear[one], image_linear[other]
    # The mapped region, and its difference from the photo's.
    m00, m01 = a * own[0, 0] + b * own[1, 0], a * own[0, 1] + b * own[1, 1]
    m10, m11 = c * own[0, 0] + d * own[1, 0], c * own[0, 1] + d * own[1, 1]
    t00, t01 = np.float64(there[0, 0]), np.float64(there[0, 1])
    t10, t11 = np.float64(there[1, 0]), np.float64(there[1, 1])
    mapped, found = max(abs(m00 * m11 - m01 * m10), _SMALLEST), max(abs(t00 * t11 - t01 * t10), _SMALLEST)
    if not abs(0.5 * np.log(found / mapped)) < limits[1]:
        return False
    unit = 1 / np.sqrt(mapped * found)
    r00, r01 = (t11 * m00 - t01 * m10) * unit - 1, (t11 * m01 - t01 * m11) * unit
    r10, r11 = (t00 * m10 - t10 * m00) * unit, (t00 * m11 - t10 * m01) * unit - 1
    return r00 * r00 + r01 * r01 + r10 * r10 + r11 * r11 < limits[2] * limits[2]


@compiled(*_REGIONS, *_REGIONS, array(FLOAT64, 2), array(FLOAT64))
def close_matches(
    query: NDArray[np.float32],
    query_linear: NDArray[np.float32],
    image: NDArray[np.float32],
    image_linear: NDArray[np.float32],
    transform: NDArray[np.float64],
    limits: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Return which matches agree with a map (2, 3) in place, scale and shape, from places (N, 2) and frames (N, 2, 2)
    in query and photo. `limits`: of the squared symmetric transfer error; of the logarithm of the ratio of scales; of
    the difference of shapes, Frobenius norm of D⁻¹ L Q - 1 with unit determinants.
    """
    close = np.empty(len(query), np.bool_)
    for one in range(len(query)):
        close[one] = _is_close(query, query_linear, one, image, image_linear, one, transform, limits)
    return close


@compiled(*_REGIONS, *_REGIONS, array(FLOAT64, 2), array(FLOAT64, 2))
def count_agreeing_pairs(
    query: NDArray[np.float32],
    query_linear: NDArray[np.float32],
    image: NDArray[np.float32],
    image_linear: NDArray[np.float32],
    transform: NDArray[np.float64],
    limits: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Count the pairs, of any feature of the query (N) and any of the photo (M), that agree by each of two sets of
    `limits` (2, 3), the wide ones first: see `close_matches`.
    """
    xs, ys = image[:, 0].copy(), image[:, 1].copy()
    near = np.empty(len(image), np.uint8)
    reach = np.float32(limits[0, 0] * _LOOSER)
    counts = np.zeros(2, np.int64)
    for one in range(len(query)):
        x, y = np.float64(query[one, 0]), np.float64(query[one, 1])
        u = np.float32(transform[0, 0] * x + transform[0, 1] * y + transform[0, 2])
        v = np.float32(transform[1, 0] * x + transform[1, 1] * y + transform[1, 2])
        some = np.uint8(0)
        for other in range(len(xs)):
            across, down = xs[other] - u, ys[other] - v
            near[other] = across * across + down * down < reach
            some |= near[other]
        if not some:
            continue
        for other in range(len(xs)):
            if near[other] and _is_close(query, query_linear, one, image, image_linear, other, transform, limits[0]):
                counts[0] += 1
                counts[1] += _is_close(query, query_linear, one, image, image_linear, other, transform, limits[1])
    return counts


@compiled(array(FLOAT32, 2), FLOAT64)
def count_places(points: NDArray[np.float32], threshold: float) -> int:
    """Count the cells of half a threshold that points (N, 2) lie in."""
    number, steps = len(points), np.float32(2 / threshold)
    if number == 0:
        return 0
    cells = np.empty((2, number), np.int64)
    for one in range(number):
        cells[0, one] = np.int64(np.floor(points[one, 0] * steps))
        cells[1, one] = np.int64(np.floor(points[one, 1] * steps))
    left, top = cells[0].min(), cells[1].min()
    across, down = cells[0].max() - left + 1, cells[1].max() - top + 1
    places = 0
    if 0 < across < _GRID and 0 < down < _GRID:  # true for points within a photo
        seen = np.zeros(across * down, np.uint8)
        for one in range(number):
            cell = (cells[0, one] - left) * down + cells[1, one] - top
            places += seen[cell] == 0
            seen[cell] = 1
        return places
    keys = np.sort((cells[0] << 32) + cells[1])
    for one in range(number):
        places += one == 0 or keys[one] != keys[one - 1]
    return places


@compiled(array(INT32, 2), INT64)
def first_rows(pairs: NDArray[np.int32], side: int) -> NDArray[np.int64]:
    """Return the row (F,) of the first match of each feature of a side of pairs (K, 2), by ascending features."""
    features = 0
    for row in range(len(pairs)):
        features = max(features, pairs[row, side] + 1)
    firsts = np.full(features, -1, np.int64)
    for row in range(len(pairs)):
        if firsts[pairs[row, side]] < 0:
            firsts[pairs[row, side]] = row
    rows: NDArray[np.int64] = firsts[firsts >= 0]
    return rows


@compiled()
def _may_hold(points: Any, height: Any) -> Any:
    """Upper bound of the number of points in a strip of this height, counted between three lines of that distance."""
    top = bottom = points[0, 1]
    for one in range(len(points)):
        top, bottom = min(top, points[one, 1]), max(bottom, points[one, 1])
    step = np.float64(height) * _LOOSER
    if not bottom - top < _GRID * step:
        return len(points)
    counts = np.zeros(_GRID + 2, np.int64)
    for one in range(len(points)):
        line: Any = np.int64((points[one, 1] - top) / step)
        counts[min(max(line, 0), _GRID)] += 1  # also for NaN
    return (counts[:-1] + counts[1:]).max()


@compiled()
def _keep_strip(points: Any, inside: Any, height: Any) -> Any:
    """Keep only the inside points within the strip of this height that holds most of them; return their number."""
    y = np.empty(len(points), np.float32)
    number = 0
    for one in range(len(points)):
        if inside[one]:
            y[number] = points[one, 1]
            number += 1
    y = y[:number]
    y.sort()
    most = top = end = 0
    for first in range(number):
        while end < number and y[end] <= y[first] + height:
            end += 1
        if end - first > most:
            most, top = end - first, first
    count = 0
    for one in range(len(points)):
        if inside[one]:
            inside[one] = y[top] <= points[one, 1] <= y[top] + height
            count += inside[one]
    return count


@compiled(makes_arrays=False)
def _is_wide(points: Any, inside: Any, aspect: Any) -> Any:
    """Whether the bounding strip of the points inside is at least this many times wider than high."""
    left = top = np.float32(np.inf)
    right = bottom = np.float32(-np.inf)
    for one in range(len(points)):
        if inside[one]:
            left, right = min(left, points[one, 0]), max(right, points[one, 0])
            top, bottom = min(top, points[one, 1]), max(bottom, points[one, 1])
    return right - left >= aspect * (bottom - top)


@compiled(array(FLOAT32, 2), array(FLOAT32, 2), array(FLOAT64, 2), INT64)
def is_strip(
    source: NDArray[np.float32], target: NDArray[np.float32], strips: NDArray[np.float64], outside: int
) -> bool:
    """Whether nearly all matched places (N, 2) lie in one low strip of both photos. `strips` (S, 3): heights, least
    parts of the matches, and least ratios of width to height. `outside`: matches outside a strip that make it a part of
    something larger.
    """
    number = len(source)
    inside = np.empty(number, np.bool_)
    if number == 0:
        return False
    for one in range(len(strips)):
        height, part, aspect = np.float32(strips[one, 0]), strips[one, 1], strips[one, 2]
        if _may_hold(source, height) < part * number or _may_hold(target, height) < part * number:
            continue  # the usual case, without sorting
        for k in range(number):
            inside[k] = True
        if _keep_strip(source, inside, height) < part * number:
            continue
        seen = _keep_strip(target, inside, height)
        if seen < part * number or number - seen >= outside:
            continue
        if _is_wide(source, inside, aspect) and _is_wide(target, inside, aspect):
            return True
    return False


@compiled()
def _corners(points: Any) -> Any:
    """Rows of the corners of the convex hull of points (N, 2), one after the other around it."""
    first = 0
    for one in range(len(points)):
        if (points[one, 0], points[one, 1]) < (points[first, 0], points[first, 1]):
            first = one
    corners = np.empty(len(points), np.int64)
    number, here = 0, first
    while number < len(points) and (number == 0 or here != first):
        corners[number] = here
        number += 1
        x, y = np.float64(points[here, 0]), np.float64(points[here, 1])
        best, across, down = first, points[first, 0] - x, points[first, 1] - y
        for one in range(len(points)):
            u, v = points[one, 0] - x, points[one, 1] - y
            side = across * v - down * u
            if side > 0 or (side == 0 and u * u + v * v > across * across + down * down):
                best, across, down = one, u, v
        here = best
    return corners[:number]


@compiled(array(FLOAT32, 2), array(FLOAT32, 2))
def empty_part(points: NDArray[np.float32], features: NDArray[np.float32]) -> float:
    """Share of the features (F, 2) within the convex hull of points (N, 2) that lie in ninths of its bounding box
    without any point, less the share expected if points were drawn from the features.
    """
    corners = _corners(points)
    low, size = np.empty(2), np.empty(2)
    for axis in range(2):
        low[axis] = points[:, axis].min()
        size[axis] = max(points[:, axis].max() - low[axis], _SMALLEST)
    counts = np.zeros((2, _PARTS * _PARTS))
    for which in range(2):
        some = features if which else points
        for one in range(len(some)):
            x, y = np.float64(some[one, 0]), np.float64(some[one, 1])
            inside = True
            for place in range(len(corners) if which else 0):
                here, there = corners[place], corners[(place + 1) % len(corners)]
                across, down = points[there, 0] - points[here, 0], points[there, 1] - points[here, 1]
                if across * (y - points[here, 1]) > down * (x - points[here, 0]):
                    inside = False
                    break
            if inside:
                column = min(max(int((x - low[0]) / size[0] * _PARTS), 0), _PARTS - 1)
                row = min(max(int((y - low[1]) / size[1] * _PARTS), 0), _PARTS - 1)
                counts[which, row * _PARTS + column] += 1
    number, empty = counts[1].sum(), 0.0
    for part in range(counts.shape[1] if number else 0):
        share = counts[1, part] / number
        empty += share * ((counts[0, part] == 0) - (1 - share) ** len(points))
    return empty
