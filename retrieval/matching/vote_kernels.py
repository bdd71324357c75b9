"""Votes of matches for maps, and quick scores of the maps of many photos: compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, FLOAT64, INT32, INT64, array, compiled, use_wide_vectors

_STEPS = 1 << 15  # units of one whole vote
_SPREAD = 0.1  # spread of the prior match in a fit, as a part of the longer side: see `_fit_spread`


@compiled(makes_arrays=False)
def _agree(row: Any, points: Any, scales: Any, start: Any, stop: Any, narrow: Any, apart: Any, agrees: Any) -> Any:
    """Mark which of the matches from start to stop agree with a map, a row of seven numbers; return their number.

    A match agrees if error / threshold² + (log scale difference / limit)² < 1, a little stricter than the test for
    inliers. The symmetric transfer error is a quadratic form of the error in the photo.
    """
    use_wide_vectors()
    a, b, c, d, x, y, own = row[0], row[1], row[2], row[3], row[4], row[5], row[6]
    area = a * d - b * c
    back = narrow / max(area * area, np.float32(1e-24))
    of_uu, of_uv, of_vv = (
        narrow + (c * c + d * d) * back,
        np.float32(-2) * (a * c + b * d) * back,
        narrow + (a * a + b * b) * back,
    )
    # Contiguous slices, so that eight matches are tested in one step.
    xs, ys, us, vs = points[0, start:stop], points[1, start:stop], points[2, start:stop], points[3, start:stop]
    some = scales[start:stop]
    votes = np.int32(0)
    for k in range(len(xs)):
        u, v = a * xs[k] + b * ys[k] + x - us[k], c * xs[k] + d * ys[k] + y - vs[k]
        off = (some[k] - own) * apart
        agree = np.int32(u * (of_uu * u + of_uv * v) + of_vv * v * v + off * off < np.float32(1))
        agrees[k] = agree
        votes = np.int32(votes + agree)
    return votes


@compiled(makes_arrays=False)
def _keep_best(votes: Any, number: Any, most: Any, best: Any) -> Any:
    """Write the places of the most votes, the first of equals, into `best`; return their number. Overwrites `votes`."""
    taken = min(number, most)
    for place in range(taken):
        top = 0
        for one in range(number):
            if votes[one] > votes[top]:
                top = one
        best[place] = top
        votes[top] = -1
    return taken


@compiled(array(FLOAT32, 2), array(FLOAT32, 2), array(FLOAT32), array(INT32, 2), FLOAT64, FLOAT64, INT64)
def most_voted(
    maps: NDArray[np.float32],
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    pairs: NDArray[np.int32],
    limit: float,
    scale_limit: float,
    most: int,
) -> tuple[NDArray[np.int64], int]:
    """Numbers of the `most` maps (H, 7) that most matches `pairs` (K, 2) agree with, the best and first ones first; and
    the number of features with matches, of query or photo, whichever are fewer. A feature with many matches counts
    once. `maps`: linear part, row by row, shift, and logarithm of the scale.
    """
    use_wide_vectors()
    number = len(pairs)
    largest = 0
    for k in range(number):
        largest = max(largest, pairs[k, 0] + 1, pairs[k, 1] + 1)
    uses = np.zeros((2, largest), np.int32)
    features = number
    for side in range(2):
        seen = 0
        for k in range(number):
            seen += uses[side, pairs[k, side]] == 0
            uses[side, pairs[k, side]] += 1
        features = min(features, seen)
    # In whole units, so that sums do not depend on the order.
    share = np.empty(number, np.int32)
    for k in range(number):
        share[k] = np.int32(np.rint(_STEPS * (1 / max(uses[0, pairs[k, 0]], uses[1, pairs[k, 1]]))))
    votes, agrees = np.zeros(len(maps), np.int64), np.empty(number, np.int32)
    narrow, apart = np.float32(1 / limit), np.float32(1 / scale_limit)
    top = np.zeros(max(most, 1), np.int64)  # the most votes so far, ascending
    for one in range(len(maps)):
        agreeing = np.int64(_agree(maps[one], points, scales, 0, number, narrow, apart, agrees))
        # Skip the exact votes of a map that could not be among the best even with a whole vote for each match.
        if agreeing * _STEPS > top[0]:
            total = np.int32(0)
            for k in range(number):
                total = np.int32(total + agrees[k] * share[k])
            votes[one] = total
            place = 0
            while place < len(top) - 1 and top[place + 1] < total:
                top[place] = top[place + 1]
                place += 1
            if total > top[place]:
                top[place] = total
    best = np.empty(min(len(maps), most), np.int64)
    _keep_best(votes, len(maps), most, best)
    return best, features


@compiled(makes_arrays=False)
def _fit_spread(
    maps: Any, one: Any, points: Any, start: Any, stop: Any, agrees: Any, middle_x: Any, middle_y: Any
) -> Any:
    """Fit a map in place to the matches that agree with it, by least squares, with the map itself as a prior.

    The prior has the weight of one match, spread around the map's middle, that agrees exactly.
    """
    a, b, c, d = np.float64(maps[one, 0]), np.float64(maps[one, 1]), np.float64(maps[one, 2]), np.float64(maps[one, 3])
    # Relative to the middle, for the precision of sums.
    shift_u = maps[one, 4] + a * middle_x + b * middle_y - middle_x
    shift_v = maps[one, 5] + c * middle_x + d * middle_y - middle_y
    xx = yy = _SPREAD * _SPREAD
    n = 1.0
    xy = x = y = 0.0
    xu, yu, u = a * xx, b * yy, shift_u
    xv, yv, v = c * xx, d * yy, shift_v
    for k in range(start, stop):
        if not agrees[k - start]:
            continue
        px, py = points[0, k] - middle_x, points[1, k] - middle_y
        pu, pv = points[2, k] - middle_x, points[3, k] - middle_y
        n += 1
        x += px
        y += py
        u += pu
        v += pv
        xx += px * px
        xy += px * py
        yy += py * py
        xu += px * pu
        yu += py * pu
        xv += px * pv
        yv += py * pv
    # Invert the symmetric matrix of sums by its cofactors.
    c00, c01, c02 = yy * n - y * y, x * y - xy * n, xy * y - yy * x
    c11, c12, c22 = xx * n - x * x, xy * x - xx * y, xx * yy - xy * xy
    determinant = xx * c00 + xy * c01 + x * c02
    a, b = (c00 * xu + c01 * yu + c02 * u) / determinant, (c01 * xu + c11 * yu + c12 * u) / determinant
    c, d = (c00 * xv + c01 * yv + c02 * v) / determinant, (c01 * xv + c11 * yv + c12 * v) / determinant
    shift_u = (c02 * xu + c12 * yu + c22 * u) / determinant
    shift_v = (c02 * xv + c12 * yv + c22 * v) / determinant
    maps[one, 0], maps[one, 1], maps[one, 2], maps[one, 3] = a, b, c, d
    maps[one, 4] = shift_u - a * middle_x - b * middle_y + middle_x
    maps[one, 5] = shift_v - c * middle_x - d * middle_y + middle_y
    maps[one, 6] = 0.5 * np.log(max(abs(a * d - b * c), 1e-20))


@compiled(
    array(FLOAT32, 2),
    array(FLOAT32, 2),
    array(INT64),
    array(FLOAT32, 2),
    array(FLOAT32),
    array(INT64),
    array(INT64, 2),
    INT64,
    INT64,
    FLOAT64,
    FLOAT64,
)
def judge_maps(
    maps: NDArray[np.float32],
    middles: NDArray[np.float32],
    firsts: NDArray[np.int64],
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    starts: NDArray[np.int64],
    fewest: NDArray[np.int64],
    fitted: int,
    kept: int,
    limit: float,
    scale_limit: float,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Score maps of photos by the matches that agree with them; fit the best, twice, and score them again.

    `maps` (H, 7) and `middles` (H, 2), places in the query of the matches that define them: photo by photo, from
    `firsts` (B + 1,). `points` (4, K) and `scales` (K,) of matches: from `starts` (B + 1,). `fewest` (B, 2): fewest
    matches that agree with one of a photo's maps, and with a fitted one. `fitted`, `kept`: maps of a photo to fit, and
    to return, at most. Returns their numbers (B,), 0 for a photo without a good map, and the maps (B, kept, 7), the
    best first. `limit`, `scale_limit`: square of the threshold; largest difference of logarithms of scale.
    """
    photos = len(starts) - 1
    narrow, apart = np.float32(1 / limit), np.float32(1 / scale_limit)
    counts = np.zeros(photos, np.int64)
    results = np.empty((photos, kept, 7), np.float32)
    longest = most = 0
    for photo in range(photos):
        longest = max(longest, starts[photo + 1] - starts[photo])
        most = max(most, firsts[photo + 1] - firsts[photo])
    agrees, votes = np.empty(longest, np.int32), np.empty(max(most, fitted), np.int32)
    best, tops = np.empty(max(fitted, kept), np.int64), np.empty((fitted, 7), np.float32)
    for photo in range(photos):
        start, stop, first = starts[photo], starts[photo + 1], firsts[photo]
        number = firsts[photo + 1] - first
        top = np.int32(0)
        for one in range(number):
            votes[one] = _agree(maps[first + one], points, scales, start, stop, narrow, apart, agrees)
            top = max(top, votes[one])
        if number == 0 or top < fewest[photo, 0]:
            continue
        number = _keep_best(votes, number, fitted, best)
        top = np.int32(0)
        for one in range(number):
            which = first + best[one]
            for place in range(7):
                tops[one, place] = maps[which, place]
            for _ in range(2):
                _agree(tops[one], points, scales, start, stop, narrow, apart, agrees)
                _fit_spread(tops, one, points, start, stop, agrees, middles[which, 0], middles[which, 1])
            votes[one] = _agree(tops[one], points, scales, start, stop, narrow, apart, agrees)
            top = max(top, votes[one])
        if top < fewest[photo, 1]:
            continue
        counts[photo] = _keep_best(votes, number, kept, best)
        for one in range(counts[photo]):
            for place in range(7):
                results[photo, one, place] = tops[best[one], place]
    return counts, results
