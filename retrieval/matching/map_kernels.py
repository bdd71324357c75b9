"""Which matches agree with a map, maps that are fitted to them, and a first look at many photos: compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, FLOAT64, INT32, INT64, array, compiled

_SPREAD = 0.1  # of what a map counts for beside the matches that it is fitted to, as a part of the longer side


@compiled()
def _errors(transform: Any, points: Any, scales: Any, limit: Any, scale_limit: Any, error: Any, agrees: Any) -> Any:
    """Squared symmetric transfer errors (K,) of a map, and who agrees with it; 0 where it is singular, else 1."""
    a, b, x = np.float32(transform[0, 0]), np.float32(transform[0, 1]), np.float32(transform[0, 2])
    c, d, y = np.float32(transform[1, 0]), np.float32(transform[1, 1]), np.float32(transform[1, 2])
    area = transform[0, 0] * transform[1, 1] - transform[0, 1] * transform[1, 0]
    if not abs(area) >= 1e-8:
        for k in range(points.shape[1]):
            error[k], agrees[k] = np.inf, False
        return 0
    ia, ib = np.float32(transform[1, 1] / area), np.float32(-transform[0, 1] / area)
    ic, id_ = np.float32(-transform[1, 0] / area), np.float32(transform[0, 0] / area)
    own = np.float32(0.5 * np.log(abs(area)))
    most, apart = np.float32(limit), np.float32(scale_limit)
    xs, ys, us, vs = points[0], points[1], points[3], points[4]
    for k in range(len(xs)):
        u, v = a * xs[k] + b * ys[k] + x - us[k], c * xs[k] + d * ys[k] + y - vs[k]
        back_u, back_v = ia * u + ib * v, ic * u + id_ * v
        error[k] = u * u + v * v + back_u * back_u + back_v * back_v
        agrees[k] = (error[k] < most) & (abs(scales[k] - own) < apart)
    return 1


@compiled()
def _numbers(values: Any, wanted: Any) -> Any:
    """Where values (K,) are the one that is wanted."""
    found = 0
    places = np.empty(len(values), np.int64)
    for k in range(len(values)):
        places[found] = k
        found += values[k] == wanted
    return places[:found]


@compiled(array(FLOAT64, 2), array(FLOAT32, 2), array(FLOAT32), FLOAT64, FLOAT64)
def agreeing(
    transform: NDArray[np.float64],
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    limit: float,
    scale_limit: float,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the matches that agree with a map.

    Parameters
    ----------
    transform : ndarray, shape (2, 3), float64
    points : ndarray, shape (5, K), float32
        Places in the query, 1, and places in the photo.
    scales : ndarray, shape (K,), float32
        Logarithms of the scales of the matches' own maps.
    limit, scale_limit : float
        Square of the threshold; largest difference of logarithms of scale.

    Returns
    -------
    ndarray, shape (N,), int64
        Numbers of the matches; none for a singular map.
    ndarray, shape (K,), float32
        Squared symmetric transfer errors of all.
    """
    number = points.shape[1]
    error, agrees = np.empty(number, np.float32), np.empty(number, np.uint8)
    _errors(transform, points, scales, limit, scale_limit, error, agrees)
    return _numbers(agrees, np.uint8(1)), error


@compiled()
def _keep_closest(agrees: Any, pairs: Any, error: Any, taken: Any, closest: Any) -> Any:
    """Mark matches that are the closest of both their features, of those that agree and are not taken; say how many.

    `taken` (K,) uint8 is 1 for matches that are kept, 2 for those that share a feature with one; `closest` has a row
    for the features of each side, -1 everywhere, and so it is left.
    """
    number = len(pairs)
    for k in range(number):
        if agrees[k] and not taken[k]:
            for side in range(2):
                best = closest[side, pairs[k, side]]
                # Of equally close ones the last.
                if best < 0 or error[k] <= error[best]:
                    closest[side, pairs[k, side]] = k
    kept = 0
    for k in range(number):
        if agrees[k] and not taken[k] and closest[0, pairs[k, 0]] == k and closest[1, pairs[k, 1]] == k:
            taken[k] = 1
            kept += 1
    for k in range(number):
        if agrees[k] and not taken[k]:
            for side in range(2):
                if taken[closest[side, pairs[k, side]]] == 1:
                    taken[k] = 2
                    break
    for k in range(number):
        if agrees[k]:
            closest[0, pairs[k, 0]] = closest[1, pairs[k, 1]] = -1
    return kept


@compiled()
def _fit(points: Any, chosen: Any, transform: Any) -> Any:
    """Fit an affine map to chosen matches by least squares, into `transform`; 0 where they do not say enough."""
    number = len(chosen)
    if number < 3:
        return 0
    mean_x = mean_y = mean_u = mean_v = 0.0
    for k in chosen:
        mean_x += points[0, k]
        mean_y += points[1, k]
        mean_u += points[3, k]
        mean_v += points[4, k]
    mean_x, mean_y, mean_u, mean_v = mean_x / number, mean_y / number, mean_u / number, mean_v / number
    xx = xy = yy = xu = yu = xv = yv = 0.0
    for k in chosen:
        x, y, u, v = points[0, k] - mean_x, points[1, k] - mean_y, points[3, k] - mean_u, points[4, k] - mean_v
        xx += x * x
        xy += x * y
        yy += y * y
        xu += x * u
        yu += y * u
        xv += x * v
        yv += y * v
    area = xx * yy - xy * xy
    if area < 1e-4 * max(xx + yy, 1e-12) ** 2:
        return 0
    transform[0, 0], transform[0, 1] = (xu * yy - yu * xy) / area, (yu * xx - xu * xy) / area
    transform[1, 0], transform[1, 1] = (xv * yy - yv * xy) / area, (yv * xx - xv * xy) / area
    transform[0, 2] = mean_u - transform[0, 0] * mean_x - transform[0, 1] * mean_y
    transform[1, 2] = mean_v - transform[1, 0] * mean_x - transform[1, 1] * mean_y
    return 1


@compiled(array(FLOAT64, 2), array(FLOAT32, 2), array(INT32, 2), array(FLOAT32), FLOAT64, FLOAT64, INT64)
def refine(
    transform: NDArray[np.float64],
    points: NDArray[np.float32],
    pairs: NDArray[np.int32],
    scales: NDArray[np.float32],
    limit: float,
    scale_limit: float,
    rounds: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Fit an affine map to the matches that agree with it, look for those again, and so on; keep the best.

    Each feature takes part in one match at most: the closest of both its features; then once more among what is left
    free.

    Parameters
    ----------
    transform, points, scales, limit, scale_limit
        See `agreeing`.
    pairs : ndarray, shape (K, 2), int32
        Feature of the query, feature of the photo.
    rounds : int
        Fits at most.

    Returns
    -------
    ndarray, shape (N,), int64
        Numbers of the matches.
    ndarray, shape (2, 3), float64
        The map.
    float
        Mean of the squared symmetric transfer errors; infinite where nothing agrees.
    """
    number = points.shape[1]
    error, agrees = np.empty(number, np.float32), np.empty(number, np.uint8)
    taken = np.empty(number, np.uint8)
    features = 0
    for k in range(number):
        features = max(features, pairs[k, 0] + 1, pairs[k, 1] + 1)
    closest = np.empty((2, features), np.int64)
    for feature in range(features):
        closest[0, feature] = closest[1, feature] = -1
    tried = transform.copy()
    best_map = tried
    best, best_error = np.zeros(0, np.int64), np.inf
    for _ in range(rounds + 1):
        _errors(tried, points, scales, limit, scale_limit, error, agrees)
        for k in range(number):
            taken[k] = 0
        for _ in range(2):
            _keep_closest(agrees, pairs, error, taken, closest)
        chosen = _numbers(taken, np.uint8(1))
        mean = 0.0
        for k in chosen:
            mean += error[k]
        mean = mean / len(chosen) if len(chosen) else np.inf
        if len(chosen) < len(best) or (len(chosen) == len(best) and mean >= best_error):
            break
        best, best_map, best_error = chosen, tried.copy(), mean
        if not _fit(points, chosen, tried):
            break
    return best, best_map, best_error


@compiled()
def _agree(row: Any, points: Any, scales: Any, start: Any, stop: Any, narrow: Any, apart: Any, agrees: Any) -> Any:
    """Say how many of the matches from start to stop agree with a map, a row of seven numbers, and mark which.

    A match agrees where error / threshold² + (log scale difference / limit)² < 1, a little stricter than the test that
    decides on inliers.
    """
    a, b, c, d, x, y, own = row[0], row[1], row[2], row[3], row[4], row[5], row[6]
    area = a * d - b * c
    weight = np.float32(1) / max(area * area, np.float32(1e-24))
    # Of their own slices, so that eight matches are looked at in one step.
    xs, ys, us, vs = points[0, start:stop], points[1, start:stop], points[3, start:stop], points[4, start:stop]
    some = scales[start:stop]
    votes = np.int32(0)
    for k in range(len(xs)):
        u, v = a * xs[k] + b * ys[k] + x - us[k], c * xs[k] + d * ys[k] + y - vs[k]
        back_u, back_v = d * u - b * v, a * v - c * u
        error = (u * u + v * v + (back_u * back_u + back_v * back_v) * weight) * narrow
        off = (some[k] - own) * apart
        agree = np.int32(error + off * off < np.float32(1))
        agrees[k] = agree
        votes += agree
    return votes


@compiled(array(FLOAT32, 2), array(FLOAT32, 2), array(FLOAT32), array(INT32), FLOAT64, FLOAT64)
def count_votes(
    maps: NDArray[np.float32],
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    share: NDArray[np.int32],
    limit: float,
    scale_limit: float,
) -> NDArray[np.int64]:
    """Sum the shares of the matches that agree with each of some maps.

    Parameters
    ----------
    maps : ndarray, shape (H, 7), float32
        Linear part, row by row, shift, and logarithm of the scale.
    points, scales, limit, scale_limit
        See `agreeing`. Agreement is a little stricter than there: error and scale are weighed together.
    share : ndarray, shape (K,), int32
        What each match counts for, in steps, so that the sum does not depend on its order.

    Returns
    -------
    ndarray, shape (H,), int64
    """
    number = points.shape[1]
    votes, agrees = np.zeros(len(maps), np.int64), np.empty(number, np.int32)
    narrow, apart = np.float32(1 / limit), np.float32(1 / scale_limit)
    for one in range(len(maps)):
        if _agree(maps[one], points, scales, 0, number, narrow, apart, agrees):
            total = np.int32(0)
            for k in range(number):
                total += agrees[k] * share[k]
            votes[one] = total
    return votes


@compiled()
def _fit_spread(
    maps: Any, one: Any, points: Any, start: Any, stop: Any, agrees: Any, middle_x: Any, middle_y: Any
) -> Any:
    """Fit a map to the matches that agree with it, by least squares, in its place; a few matches change it little.

    It counts for one match, spread around its middle, that agrees with it to the point.
    """
    a, b, c, d = np.float64(maps[one, 0]), np.float64(maps[one, 1]), np.float64(maps[one, 2]), np.float64(maps[one, 3])
    # Around the middle, where sums keep their precision.
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
        pu, pv = points[3, k] - middle_x, points[4, k] - middle_y
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
    # The inverse of the symmetric matrix of sums by its cofactors.
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


@compiled()
def _keep_best(votes: Any, number: Any, most: Any, best: Any) -> Any:
    """Take the places of the most votes, the first of equals, into `best`; say how many are taken. Votes are undone."""
    taken = min(number, most)
    for place in range(taken):
        top = 0
        for one in range(number):
            if votes[one] > votes[top]:
                top = one
        best[place] = top
        votes[top] = -1
    return taken


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
    """Judge maps of photos by the matches that agree with them; fit the best, twice, and judge them again.

    Parameters
    ----------
    maps : ndarray, shape (H, 7), float32
        Linear part, row by row, shift, and logarithm of the scale, of the maps of one photo after the other.
    middles : ndarray, shape (H, 2), float32
        Places in the query of the matches that the maps stand for.
    firsts : ndarray, shape (B + 1,), int64
        Where the maps of each photo begin.
    points : ndarray, shape (5, K), float32
        Places in the query, 1, and places in the photo, of the matches of one photo after the other.
    scales : ndarray, shape (K,), float32
        Logarithms of the scales of the matches' own maps.
    starts : ndarray, shape (B + 1,), int64
        Where the matches of each photo begin.
    fewest : ndarray, shape (B, 2), int64
        Fewest matches that agree with one of a photo's maps, and with one of the fitted ones.
    fitted, kept : int
        Maps of a photo that are fitted, and that are given, at most.
    limit, scale_limit : float
        Square of the threshold; largest difference of logarithms of scale.

    Returns
    -------
    ndarray, shape (B,), int64
        How many maps are given of each photo; 0: nothing speaks for it.
    ndarray, shape (B, kept, 7), float32
        The best first.
    """
    photos = len(starts) - 1
    narrow, apart = np.float32(1 / limit), np.float32(1 / scale_limit)
    given = np.zeros(photos, np.int64)
    found = np.empty((photos, kept, 7), np.float32)
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
        given[photo] = _keep_best(votes, number, kept, best)
        for one in range(given[photo]):
            for place in range(7):
                found[photo, one, place] = tops[best[one], place]
    return given, found
