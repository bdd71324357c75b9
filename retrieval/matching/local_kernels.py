"""Linking of neighbouring matches of two photos that predict each other: compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import BOOL, FLOAT32, INT64, array, compiled, use_wide_vectors

_LEAST = 1e-20  # lower bound of areas
_SCATTERING = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing
_REGIONS = array(FLOAT32, 2), array(FLOAT32, 3)


@compiled(makes_arrays=False)
def _choose(query: Any, image: Any, ambiguity: Any, start: Any, stop: Any, cell: Any, most: Any, work: Any) -> Any:
    """Choose the least ambiguous matches from start to stop, one for each pair of places; return their number.

    `work`: the chosen rows, a hash table of them by places, and these places (S, 4).
    """
    rows, table, taken = work
    table[:] = 0
    number = 0
    for level in range(1, most + 1):
        for row in range(start, stop):
            if ambiguity[row] != level:
                continue
            if number == len(rows):
                return number
            x, y = np.int64(np.floor(query[row, 0] / cell)), np.int64(np.floor(query[row, 1] / cell))
            u, v = np.int64(np.floor(image[row, 0] / cell)), np.int64(np.floor(image[row, 1] / cell))
            key = ((np.uint64(x) * _SCATTERING ^ np.uint64(y)) * _SCATTERING ^ np.uint64(u)) * _SCATTERING
            key = (key ^ np.uint64(v)) * _SCATTERING
            slot: Any = np.int64((key >> np.uint64(32)) & np.uint64(len(table) - 1))
            while table[slot] and not (
                taken[slot, 0] == x and taken[slot, 1] == y and taken[slot, 2] == u and taken[slot, 3] == v
            ):
                slot = (slot + 1) & (len(table) - 1)
            if table[slot]:
                continue
            table[slot] = 1
            taken[slot, 0], taken[slot, 1], taken[slot, 2], taken[slot, 3] = x, y, u, v
            rows[number] = row
            number += 1
    return number


@compiled(makes_arrays=False)
def _root(parents: Any, one: Any) -> Any:
    """The representative match of the piece of a match (union-find)."""
    while parents[one] != one:
        parents[one] = parents[parents[one]]
        one = parents[one]
    return one


@compiled(makes_arrays=False)
def _foretell(columns: Any, one: Any, stop: Any, map_: Any, limits: Any, agrees: Any) -> Any:
    """Mark the matches after one, up to stop, that the map of that one predicts."""
    use_wide_vectors()
    xs, ys, us, vs = columns[0], columns[1], columns[2], columns[3]
    x, y, u, v = xs[one], ys[one], us[one], vs[one]
    a, b, c, d = map_[0], map_[1], map_[2], map_[3]
    far, near = limits[0] * limits[0], limits[1] * limits[1]
    tolerance, least = limits[2] * limits[2], limits[3] * limits[3]
    for other in range(one + 1, stop):
        across, down, there_across, there_down = xs[other] - x, ys[other] - y, us[other] - u, vs[other] - v
        apart, there = across * across + down * down, there_across * there_across + there_down * there_down
        mapped_across, mapped_down = a * across + b * down, c * across + d * down
        mapped = mapped_across * mapped_across + mapped_down * mapped_down
        error_across, error_down = mapped_across - there_across, mapped_down - there_down
        error = error_across * error_across + error_down * error_down
        agrees[other] = (
            (apart >= near) & (apart <= far) & (there >= near) & ((error <= tolerance * mapped) | (error <= least))
        )


@compiled(makes_arrays=False)
def _link(
    rows: Any, order: Any, shift: Any, image: Any, image_linear: Any, work: Any, limits: Any, parents: Any
) -> Any:
    """Join neighbouring matches that predict each other; count the joins of two pieces.

    `order`: matches from left to right in the query. The query's side of match k is row k, the photo's side row k +
    shift.
    """
    columns, stops, inverses, maps, areas, agrees = work
    size, tolerance, least, ratio = len(order), limits[2] * limits[2], limits[3] * limits[3], limits[4]
    for place in range(size):
        one = order[place]
        parents[one] = one
        row = rows[(one + shift) % size]
        columns[2, place], columns[3, place] = image[row, 0], image[row, 1]
        for line in range(2):
            left, right = image_linear[row, line, 0], image_linear[row, line, 1]
            maps[place, 2 * line] = left * inverses[one, 0] + right * inverses[one, 2]
            maps[place, 2 * line + 1] = left * inverses[one, 1] + right * inverses[one, 3]
        areas[place] = abs(maps[place, 0] * maps[place, 3] - maps[place, 1] * maps[place, 2])
    links = 0
    for place in range(size):
        _foretell(columns, place, stops[place], maps[place], limits, agrees)
        for other in range(place + 1, stops[place]):
            if not agrees[other]:
                continue
            if areas[place] > ratio * areas[other] or areas[other] > ratio * areas[place]:
                continue
            x, y = columns[0, other] - columns[0, place], columns[1, other] - columns[1, place]
            u, v = columns[2, other] - columns[2, place], columns[3, other] - columns[3, place]
            across, down = maps[other, 0] * x + maps[other, 1] * y, maps[other, 2] * x + maps[other, 3] * y
            error = (across - u) * (across - u) + (down - v) * (down - v)
            if error <= tolerance * (across * across + down * down) or error <= least:
                root, second = _root(parents, order[place]), _root(parents, order[other])
                if root != second:
                    parents[max(root, second)] = min(root, second)
                    links += 1
    return links


@compiled(*_REGIONS, *_REGIONS, array(INT64), array(INT64), array(BOOL), array(FLOAT32), INT64, INT64, INT64, INT64)
def link_neighbours(
    query: NDArray[np.float32],
    query_linear: NDArray[np.float32],
    image: NDArray[np.float32],
    image_linear: NDArray[np.float32],
    ambiguity: NDArray[np.int64],
    starts: NDArray[np.int64],
    wanted: NDArray[np.bool_],
    limits: NDArray[np.float32],
    matches: int,
    most: int,
    least: int,
    shifts: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Join neighbouring matches that predict each other by their own maps into pieces, photo by photo.

    `ambiguity` (K,): matches of a word in its photo, at most `most`. `starts` (B + 1,): first match of each photo.
    `limits` (6,): largest distance of neighbours in the query; smallest in both; largest error, as a part of the
    predicted distance, and error allowed in any case; largest ratio of the areas by which two maps enlarge; side of a
    cell that counts as one place. Returns `rows` (B, matches), the matches used, padded with -1; `pieces` (B, matches),
    place in `rows` of the first match of each one's piece; `links` (B, 2), number of matches less that of pieces, and
    the same summed over all shifts; both 0 if there are fewer than `least` or half are by chance.
    """
    photos, size = len(starts) - 1, 8
    while size < 2 * matches:
        size *= 2
    rows, pieces = np.full((photos, matches), -1, np.int64), np.zeros((photos, matches), np.int64)
    links = np.zeros((photos, 2), np.int64)
    table, taken = np.empty(size, np.uint8), np.empty((size, 4), np.int64)
    inverses, maps = np.empty((matches, 4), np.float32), np.empty((matches, 4), np.float32)
    areas, columns = np.empty(matches, np.float32), np.empty((4, matches), np.float32)
    stops, agrees, parents = np.empty(matches, np.int64), np.empty(matches, np.bool_), np.empty(matches, np.int64)
    left = np.empty(matches, np.float32)
    for photo in range(photos):
        if not wanted[photo] or starts[photo + 1] - starts[photo] <= least:
            continue
        own = rows[photo]
        number = _choose(
            query, image, ambiguity, starts[photo], starts[photo + 1], limits[5], most, (own, table, taken)
        )
        if number <= least:
            continue
        for one in range(number):
            source = query_linear[own[one]]
            s00, s01 = np.float64(source[0, 0]), np.float64(source[0, 1])
            s10, s11 = np.float64(source[1, 0]), np.float64(source[1, 1])
            area = s00 * s11 - s01 * s10
            area = area if abs(area) >= _LEAST else np.float64(_LEAST)
            inverses[one, 0], inverses[one, 1] = s11 / area, -s01 / area
            inverses[one, 2], inverses[one, 3] = -s10 / area, s00 / area
            left[one] = query[own[one], 0]
        # From left to right, so that each match is only compared with those that may be near enough.
        order = np.argsort(left[:number], kind="mergesort")
        stop = 0
        for place in range(number):
            columns[0, place], columns[1, place] = query[own[order[place]], 0], query[own[order[place]], 1]
        for place in range(number):
            while stop < number and columns[0, stop] - columns[0, place] <= limits[0]:
                stop += 1
            stops[place] = stop
        work = (columns, stops, inverses, maps, areas, agrees)
        count = _link(own, order, 0, image, image_linear, work, limits, pieces[photo])
        if count < least:
            continue
        chance = 0
        for turn in range(1, shifts + 1):
            shift = 1 + turn * (number - 1) // (shifts + 1)
            chance += _link(own, order, shift, image, image_linear, work, limits, parents)
            if 2 * chance > count * turn:
                count = 0
                break
        if count == 0:
            continue
        links[photo, 0], links[photo, 1] = count, chance
        for one in range(number):
            pieces[photo, one] = _root(pieces[photo], one)
    return rows, pieces, links
