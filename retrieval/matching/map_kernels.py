"""Maps of the plane defined by single matches: compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, FLOAT64, INT32, INT64, array, compiled

_LEAST = np.float32(1e-20)  # lower bound of areas and scales
_SMALLEST = 1e-80  # lower bound of a product of two areas
_FRAMES = array(FLOAT32, 2), array(FLOAT32, 3)


@compiled(makes_arrays=False)
def _area(linear: Any, one: Any) -> Any:
    """Area of a frame, one of (K, 2, 2), in units of a circle's."""
    return abs(linear[one, 0, 0] * linear[one, 1, 1] - linear[one, 0, 1] * linear[one, 1, 0])


@compiled(makes_arrays=False)
def _log_scale(query_linear: Any, image_linear: Any, one: Any) -> Any:
    """Logarithm of the scale of a match's own map."""
    scale = np.sqrt(_area(image_linear, one) / max(_area(query_linear, one), _LEAST))
    return np.log(max(scale, _LEAST))


@compiled(makes_arrays=False)
def _write_map(query: Any, query_linear: Any, image: Any, image_linear: Any, one: Any, freedom: Any, row: Any) -> Any:
    """Write a match's own map as a row of seven numbers."""
    source, target = query_linear[one], image_linear[one]
    s00, s01, s10, s11 = source[0, 0], source[0, 1], source[1, 0], source[1, 1]
    t00, t01, t10, t11 = target[0, 0], target[0, 1], target[1, 0], target[1, 1]
    source_area = max(_area(query_linear, one), _LEAST)
    scale = np.sqrt(_area(image_linear, one) / source_area)
    inverse = np.float32(1) / source_area
    # Lower-triangular frames: s01 and t01 are 0, and so is the map's own entry; turned ones are full.
    l00, l01 = (t00 * s11 - t01 * s10) * inverse, (t01 * s00 - t00 * s01) * inverse
    l10, l11 = (t10 * s11 - t11 * s10) * inverse, (t11 * s00 - t10 * s01) * inverse
    if freedom == 3:
        l00 = l11 = scale
        l01 = l10 = np.float32(0)
    elif freedom == 4:
        angle = np.arctan2(l10 - l01, l00 + l11)
        l00, l10 = scale * np.cos(angle), scale * np.sin(angle)
        l01, l11 = -l10, l00
    x, y = query[one, 0], query[one, 1]
    row[0], row[1], row[2], row[3] = l00, l01, l10, l11
    row[4], row[5] = image[one, 0] - (l00 * x + l01 * y), image[one, 1] - (l10 * x + l11 * y)
    row[6] = np.log(max(scale, _LEAST))


@compiled(*_FRAMES, *_FRAMES)
def points_and_scales(
    query: NDArray[np.float32],
    query_linear: NDArray[np.float32],
    image: NDArray[np.float32],
    image_linear: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return `points` (4, K), places in the query and in the photo, and `scales` (K,), logarithms of the scales of the
    matches' own maps, from places (K, 2) and frames (K, 2, 2).
    """
    number = len(query)
    points, scales = np.empty((4, number), np.float32), np.empty(number, np.float32)
    for one in range(number):
        points[0, one], points[1, one] = query[one, 0], query[one, 1]
        points[2, one], points[3, one] = image[one, 0], image[one, 1]
        scales[one] = _log_scale(query_linear, image_linear, one)
    return points, scales


@compiled(*_FRAMES, array(INT32), *_FRAMES, FLOAT64, FLOAT64)
def are_equal(
    query: NDArray[np.float32],
    query_linear: NDArray[np.float32],
    order: NDArray[np.int32],
    image: NDArray[np.float32],
    image_linear: NDArray[np.float32],
    place: float,
    shape: float,
) -> bool:
    """Whether all features of a photo equal those of the query. `order` (N,): feature of the query for each one of the
    photo. `place`, `shape`: largest differences of places, and of elements of frames, in units of the largest of the
    photo's.
    """
    for one in range(len(order)):
        other = order[one]
        if not max(abs(query[other, 0] - image[one, 0]), abs(query[other, 1] - image[one, 1])) <= place:
            return False
        largest = apart = np.float32(0)
        for row in range(2):
            for column in range(2):
                there = image_linear[one, row, column]
                largest = max(largest, abs(there))
                apart = max(apart, abs(query_linear[other, row, column] - there))
        if not apart <= shape * largest:
            return False
    return True


@compiled(*_FRAMES, *_FRAMES, array(INT64), INT64)
def own_maps(
    query: NDArray[np.float32],
    query_linear: NDArray[np.float32],
    image: NDArray[np.float32],
    image_linear: NDArray[np.float32],
    rows: NDArray[np.int64],
    freedom: int,
) -> NDArray[np.float32]:
    """Maps (H, 7) that take the frames of matches `rows` (H,) in the query to those in the photo: linear part, row by
    row, shift, and logarithm of the scale. `freedom`: 3 (scale and shift), 4 (and rotation) or 5 (affine; "down" is
    kept where the frames keep it).
    """
    maps = np.empty((len(rows), 7), np.float32)
    for place in range(len(rows)):
        _write_map(query, query_linear, image, image_linear, rows[place], freedom, maps[place])
    return maps


@compiled()
def _smallest(values: Any, number: Any, some: Any) -> Any:
    """Return the n-th smallest, from 1, of values (K,) above 0, sorting only those between two powers of two."""
    exponents = (values.view(np.int64) >> 52) & 2047
    counts = np.zeros(2048, np.int32)
    for exponent in exponents:
        counts[exponent] += 1
    before, wanted = 0, 0
    while before + counts[wanted] < number:
        before += counts[wanted]
        wanted += 1
    count = 0
    for place in range(len(values)):
        if exponents[place] == wanted:
            some[count] = values[place]
            count += 1
    return np.partition(some[:count], number - before - 1)[number - before - 1]


@compiled(*_FRAMES, *_FRAMES, array(FLOAT32), array(INT64), array(INT64), INT64, INT64, FLOAT64, FLOAT64)
def promising_maps(
    query: NDArray[np.float32],
    query_linear: NDArray[np.float32],
    image: NDArray[np.float32],
    image_linear: NDArray[np.float32],
    scales: NDArray[np.float32],
    starts: NDArray[np.int64],
    ambiguity: NDArray[np.int64],
    most: int,
    freedom: int,
    max_log_zoom: float,
    max_stretch: float,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    """Maps (H, 7), as in `own_maps`, of the most informative matches of each of some photos: those of unambiguous words
    and large regions, at most `most` of a photo. Maps that enlarge, reduce or stretch too much are left out. Also
    returns the places (H, 2) of the matches in the query, and the first map (B + 1,) of each photo.

    `max_log_zoom`, `max_stretch`: largest logarithm of a scale; largest ratio of a map's two scales.
    """
    photos = len(starts) - 1
    room = longest = 0
    for photo in range(photos):
        room += min(starts[photo + 1] - starts[photo], most)
        longest = max(longest, starts[photo + 1] - starts[photo])
    maps, middles = np.empty((room, 7), np.float32), np.empty((room, 2), np.float32)
    firsts, order, some = np.zeros(photos + 1, np.int64), np.empty(longest, np.float64), np.empty(longest, np.float64)
    stretch = max_stretch + 1 / max_stretch
    done = 0
    for photo in range(photos):
        start = starts[photo]
        number = starts[photo + 1] - start
        for one in range(start, start + number):
            order[one - start] = np.inf
            if abs(scales[one]) <= max_log_zoom:
                # Order by the ambiguity over the mean size of the two regions; its fourth power needs no roots.
                squared = np.float64(ambiguity[one]) * np.float64(ambiguity[one])
                areas = np.float64(_area(query_linear, one)) * np.float64(_area(image_linear, one))
                order[one - start] = squared * squared / max(areas, _SMALLEST)
        limit, equal = np.inf, most
        if number > most:
            limit = _smallest(order[:number], most, some)
            for one in range(number):
                equal -= order[one] < limit
        for one in range(start, start + number):
            if order[one - start] > limit or not np.isfinite(order[one - start]):
                continue
            if order[one - start] == limit:  # ties: the first
                if equal == 0:
                    continue
                equal -= 1
            row = maps[done]
            _write_map(query, query_linear, image, image_linear, one, freedom, row)
            # The sum of the squares of a map's two scales, and their product, determine their ratio.
            squares = row[0] * row[0] + row[1] * row[1] + row[2] * row[2] + row[3] * row[3]
            if squares <= stretch * np.exp(2 * min(row[6], np.float32(10))):
                middles[done, 0], middles[done, 1] = query[one, 0], query[one, 1]
                done += 1
        firsts[photo + 1] = done
    return maps[:done], middles[:done], firsts
