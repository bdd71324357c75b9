"""Matches that agree with a map, and affine maps fitted to them: compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, FLOAT64, INT32, INT64, array, compiled, use_wide_vectors

# Of `settle`: successive limits of squared errors of matches that count, as multiples of the squared threshold; the
# same for matches that are considered; most fits within each; and the change of a converged map.
_WIDTHS = (16.0, 11.3, 8.0, 5.66, 4.0)
_REACH = 25.0
_FITS = 5
_STILL = 1e-6


@compiled(makes_arrays=False)
def _errors(transform: Any, points: Any, scales: Any, limit: Any, scale_limit: Any, error: Any, agrees: Any) -> Any:
    """Squared symmetric transfer errors (K,) of a map, and which matches agree with it; none if it is singular."""
    use_wide_vectors()
    a, b, x = np.float32(transform[0, 0]), np.float32(transform[0, 1]), np.float32(transform[0, 2])
    c, d, y = np.float32(transform[1, 0]), np.float32(transform[1, 1]), np.float32(transform[1, 2])
    area = transform[0, 0] * transform[1, 1] - transform[0, 1] * transform[1, 0]
    if not abs(area) >= 1e-8:
        for k in range(points.shape[1]):
            error[k], agrees[k] = np.inf, False
        return
    ia, ib = np.float32(transform[1, 1] / area), np.float32(-transform[0, 1] / area)
    ic, id_ = np.float32(-transform[1, 0] / area), np.float32(transform[0, 0] / area)
    own = np.float32(0.5 * np.log(abs(area)))
    most, apart = np.float32(limit), np.float32(scale_limit)
    xs, ys, us, vs = points[0], points[1], points[2], points[3]
    for k in range(len(xs)):
        u, v = a * xs[k] + b * ys[k] + x - us[k], c * xs[k] + d * ys[k] + y - vs[k]
        back_u, back_v = ia * u + ib * v, ic * u + id_ * v
        error[k] = u * u + v * v + back_u * back_u + back_v * back_v
        agrees[k] = (error[k] < most) & (abs(scales[k] - own) < apart)


@compiled()
def _numbers(values: Any, wanted: Any) -> Any:
    """Indices of the values (K,) that equal the wanted one."""
    count = 0
    places = np.empty(len(values), np.int64)
    for k in range(len(values)):
        places[count] = k
        count += values[k] == wanted
    return places[:count]


@compiled(array(FLOAT64, 2), array(FLOAT32, 2), array(FLOAT32), FLOAT64, FLOAT64)
def agreeing(
    transform: NDArray[np.float64],
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    limit: float,
    scale_limit: float,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Matches that agree with a map (2, 3), none if it is singular, and squared symmetric transfer errors (K,) of all.
    `points` (4, K): places in query and photo; `scales` (K,): logarithms of the scales of the matches' own maps.
    `limit`, `scale_limit`: square of the threshold; largest difference of logarithms of scale.
    """
    number = points.shape[1]
    error, agrees = np.empty(number, np.float32), np.empty(number, np.uint8)
    _errors(transform, points, scales, limit, scale_limit, error, agrees)
    return _numbers(agrees, np.uint8(1)), error


@compiled(array(FLOAT64, 3), array(FLOAT32, 2), array(FLOAT32), FLOAT64, FLOAT64, INT64)
def near_matches(
    transforms: NDArray[np.float64],
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    limit: float,
    scale_limit: float,
    most: int,
) -> NDArray[np.int64]:
    """Distinct matches, ascending, that agree best with maps (H, 2, 3), at most `most` of each, the first of equals."""
    number = points.shape[1]
    error, agrees = np.empty(number, np.float32), np.empty(number, np.uint8)
    wanted = np.zeros(number, np.uint8)
    best = np.empty(most + 1, np.int64)  # of one map, by error
    for one in range(len(transforms)):
        _errors(transforms[one], points, scales, limit, scale_limit, error, agrees)
        count = 0
        for k in range(number):
            if not agrees[k] or (count == most and error[k] >= error[best[most - 1]]):
                continue
            place = count
            while place > 0 and error[best[place - 1]] > error[k]:
                best[place] = best[place - 1]
                place -= 1
            best[place] = k
            count = min(count + 1, most)
        for place in range(count):
            wanted[best[place]] = 1
    near: NDArray[np.int64] = _numbers(wanted, np.uint8(1))
    return near


@compiled(array(FLOAT64, 2), array(FLOAT32, 2), array(INT32, 2), array(FLOAT32), FLOAT64, FLOAT64)
def count_agreeing(
    transform: NDArray[np.float64],
    points: NDArray[np.float32],
    pairs: NDArray[np.int32],
    scales: NDArray[np.float32],
    limit: float,
    scale_limit: float,
) -> int:
    """Count the features of query or photo, whichever are fewer, in matches that agree with a map: see `refine`."""
    use_wide_vectors()
    number = points.shape[1]
    error, agrees = np.empty(number, np.float32), np.empty(number, np.uint8)
    _errors(transform, points, scales, limit, scale_limit, error, agrees)
    fewest: int = number
    for side in range(2):
        features = 0
        for k in range(number):
            features = max(features, pairs[k, side] + 1)
        seen = np.zeros(features, np.uint8)
        distinct = 0
        for k in range(number):
            if agrees[k] and not seen[pairs[k, side]]:
                seen[pairs[k, side]] = 1
                distinct += 1
        fewest = min(fewest, distinct)
    return fewest


@compiled(makes_arrays=False)
def _keep_closest(near: Any, pairs: Any, error: Any, taken: Any, closest: Any) -> Any:
    """Mark matches that are the closest of both their features, of those that agree and are not taken.

    `near`: numbers of the matches that agree. `taken` (K,) uint8: 1 for accepted ones, 2 for those that share a feature
    with one. `closest`: a row for the features of each side, filled with -1 before and after.
    """
    for k in near:
        if not taken[k]:
            for side in range(2):
                best = closest[side, pairs[k, side]]
                # Ties: the last.
                if best < 0 or error[k] <= error[best]:
                    closest[side, pairs[k, side]] = k
    for k in near:
        if not taken[k] and closest[0, pairs[k, 0]] == k and closest[1, pairs[k, 1]] == k:
            taken[k] = 1
    for k in near:
        if not taken[k] and (taken[closest[0, pairs[k, 0]]] == 1 or taken[closest[1, pairs[k, 1]]] == 1):
            taken[k] = 2
    for k in near:
        closest[0, pairs[k, 0]] = closest[1, pairs[k, 1]] = -1


@compiled()
def _room_for(pairs: Any) -> Any:
    """Allocate `taken` and `closest` for `_keep_closest`."""
    features = 0
    for k in range(len(pairs)):
        features = max(features, pairs[k, 0] + 1, pairs[k, 1] + 1)
    closest = np.empty((2, features), np.int32)
    for feature in range(features):
        closest[0, feature] = closest[1, feature] = -1
    return np.empty(len(pairs), np.uint8), closest


@compiled()
def _one_to_one(agrees: Any, pairs: Any, error: Any, taken: Any, closest: Any) -> Any:
    """Choose matches that agree, each feature in one only; return them and the mean of their errors."""
    near = _numbers(agrees, np.uint8(1))
    for k in near:
        taken[k] = 0
    for _ in range(2):
        _keep_closest(near, pairs, error, taken, closest)
    chosen = near[taken[near] == 1]
    mean = 0.0
    for k in chosen:
        mean += error[k]
    return chosen, mean / len(chosen) if len(chosen) else np.inf


@compiled(makes_arrays=False)
def _fit(points: Any, error: Any, limit: Any, chosen: Any, transform: Any) -> Any:
    """Fit an affine map to chosen matches by least squares, into `transform`; return 0 if they do not determine it.

    A match of squared error e has Tukey's weight (1 - e / limit)²; with an infinite limit all weights are equal.
    """
    if len(chosen) < 3:
        return 0
    number = mean_x = mean_y = mean_u = mean_v = 0.0
    for k in chosen:
        weight = (1 - error[k] / limit) ** 2
        number += weight
        mean_x += weight * points[0, k]
        mean_y += weight * points[1, k]
        mean_u += weight * points[2, k]
        mean_v += weight * points[3, k]
    if not number > 1e-6:
        return 0
    mean_x, mean_y, mean_u, mean_v = mean_x / number, mean_y / number, mean_u / number, mean_v / number
    xx = xy = yy = xu = yu = xv = yv = 0.0
    for k in chosen:
        weight = (1 - error[k] / limit) ** 2
        x, y, u, v = points[0, k] - mean_x, points[1, k] - mean_y, points[2, k] - mean_u, points[3, k] - mean_v
        xx += weight * x * x
        xy += weight * x * y
        yy += weight * y * y
        xu += weight * x * u
        yu += weight * y * u
        xv += weight * x * v
        yv += weight * y * v
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
    """Alternate between fitting an affine map and finding the matches that agree with it, at most `rounds` times.
    Return the best: matches (N,), map (2, 3), and mean squared symmetric transfer error, infinite if nothing agrees.
    Each feature is in one match at most: the closest of both its features; then once more among the remaining features.

    `pairs`: feature of the query, feature of the photo.
    """
    number = points.shape[1]
    error, agrees = np.empty(number, np.float32), np.empty(number, np.uint8)
    taken, closest = _room_for(pairs)
    tried = transform.copy()
    best_map = tried
    best, best_error = np.zeros(0, np.int64), np.inf
    for _ in range(rounds + 1):
        _errors(tried, points, scales, limit, scale_limit, error, agrees)
        chosen, mean = _one_to_one(agrees, pairs, error, taken, closest)
        if len(chosen) < len(best) or (len(chosen) == len(best) and mean >= best_error):
            break
        best, best_map, best_error = chosen, tried.copy(), mean
        if not _fit(points, error, np.inf, chosen, tried):
            break
    return best, best_map, best_error


@compiled(array(FLOAT64, 2), array(FLOAT32, 2), array(INT32, 2), array(FLOAT32), FLOAT64, FLOAT64)
def settle(
    transform: NDArray[np.float64],
    points: NDArray[np.float32],
    pairs: NDArray[np.int32],
    scales: NDArray[np.float32],
    limit: float,
    scale_limit: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Fit an affine map to all matches near it, weighted by nearness, and choose those that agree with the fitted map;
    returns the same as `refine`. Rounding decides at which of several near maps `refine` ends. Here matches have
    Tukey's weights, iterated, at first within four times the threshold, then down to twice: maps that begin near each
    other converge to the same one.
    """
    number = points.shape[1]
    error, agrees = np.empty(number, np.float32), np.empty(number, np.uint8)
    # Matches farther off stay so, as the map moves little.
    _errors(transform, points, scales, limit * _REACH, 2 * scale_limit, error, agrees)
    near = _numbers(agrees, np.uint8(1))
    number = len(near)
    places, sizes, features = np.empty((4, number), np.float32), scales[near], np.empty((number, 2), np.int32)
    for at in range(number):
        for axis in range(4):
            places[axis, at] = points[axis, near[at]]
        features[at, 0], features[at, 1] = pairs[near[at], 0], pairs[near[at], 1]
    error, agrees = error[:number], agrees[:number]
    settled, before = transform.copy(), np.empty((2, 3))
    for width in _WIDTHS:
        for _ in range(_FITS):
            before[:] = settled
            _errors(settled, places, sizes, limit * width, scale_limit, error, agrees)
            if not _fit(places, error, np.float32(limit * width), _numbers(agrees, np.uint8(1)), settled):
                break
            if np.abs(settled - before).max() < _STILL:
                break
    taken, closest = _room_for(features)
    _errors(settled, places, sizes, limit, scale_limit, error, agrees)
    chosen, mean = _one_to_one(agrees, features, error, taken, closest)
    return near[chosen], settled, mean
