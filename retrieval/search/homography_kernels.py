"""The homography that most matches agree on: compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT64, INT64, array, compiled, written

_UNKNOWNS = 8  # of a homography whose last element is 1
_STEPS = 10  # of Levenberg and Marquardt's method, at most
_DAMPING = 1e-3
_SMALL = 1e-12  # a pivot, or a triangle's area, that is nothing
_DEEPEST = 10.0  # times as far away as the nearest place, at most, the farthest is
_MISSED = 1e-3  # how often four matches that are right may not have been drawn


@compiled(makes_arrays=False)
def _solve(system: Any, found: Any) -> Any:
    """Solve equations (8, 9), which are overwritten, for `found` (8,); return whether they have one solution."""
    for step in range(_UNKNOWNS):
        pivot = step
        for row in range(step + 1, _UNKNOWNS):
            if abs(system[row, step]) > abs(system[pivot, step]):
                pivot = row
        if not abs(system[pivot, step]) > _SMALL:
            return False
        for column in range(step, _UNKNOWNS + 1):
            system[step, column], system[pivot, column] = system[pivot, column], system[step, column]
        for row in range(step + 1, _UNKNOWNS):
            factor = system[row, step] / system[step, step]
            for column in range(step, _UNKNOWNS + 1):
                system[row, column] -= factor * system[step, column]
    for step in range(_UNKNOWNS - 1, -1, -1):
        value = system[step, _UNKNOWNS]
        for column in range(step + 1, _UNKNOWNS):
            value -= system[step, column] * found[column]
        found[step] = value / system[step, step]
    return True


@compiled(makes_arrays=False)
def _turn(points: Any, one: Any, two: Any, three: Any) -> Any:
    """Twice the signed area of a triangle of points (2, K)."""
    return (points[0, two] - points[0, one]) * (points[1, three] - points[1, one]) - (
        points[1, two] - points[1, one]
    ) * (points[0, three] - points[0, one])


@compiled(makes_arrays=False)
def _is_view(source: Any, target: Any, four: Any) -> Any:
    """Whether all triples of four matches have equal orientation in both photos, as seen from one side of a plane."""
    for left_out in range(4):
        one, two, three = four[(left_out + 1) % 4], four[(left_out + 2) % 4], four[(left_out + 3) % 4]
        here, there = _turn(source, one, two, three), _turn(target, one, two, three)
        if not min(abs(here), abs(there)) > _SMALL or (here > 0) != (there > 0):
            return False
    return True


@compiled(makes_arrays=False)
def _through(source: Any, target: Any, four: Any, system: Any, found: Any) -> Any:
    """Find the map (8,) of four matches; return whether it exists (Hartley & Zisserman, section 4.1)."""
    for place in range(4):
        match = four[place]
        x, y, u, v = source[0, match], source[1, match], target[0, match], target[1, match]
        for row, value in ((2 * place, u), (2 * place + 1, v)):
            for column in range(_UNKNOWNS):
                system[row, column] = 0
            first = 3 * (row % 2)
            system[row, first], system[row, first + 1], system[row, first + 2] = x, y, 1
            system[row, 6], system[row, 7], system[row, 8] = -value * x, -value * y, value
    return _solve(system, found)


@compiled(makes_arrays=False)
def _count(source: Any, target: Any, found: Any, limit: Any, agrees: Any) -> Any:
    """Mark matches (K,) with a squared error below a limit, in front of the camera; return their number."""
    a, b, c, d, e, f, g, h = found[0], found[1], found[2], found[3], found[4], found[5], found[6], found[7]
    xs, ys, us, vs = source[0], source[1], target[0], target[1]
    number = np.int64(0)
    for k in range(len(xs)):
        depth = g * xs[k] + h * ys[k] + 1
        u, v = a * xs[k] + b * ys[k] + c - us[k] * depth, d * xs[k] + e * ys[k] + f - vs[k] * depth
        agree = (u * u + v * v <= limit * depth * depth) & (depth > 0)
        agrees[k] = agree
        number += agree
    return number


@compiled(makes_arrays=False)
def _gather(source: Any, target: Any, agrees: Any, found: Any, system: Any) -> Any:
    """Write the normal equations (8, 9) of a map's squared errors; return the sum of these.

    The elements of a row are the derivatives of the places in the other photo: x, y and 1 over the depth, once for each
    coordinate, and these times the place itself.
    """
    for row in range(_UNKNOWNS):
        for column in range(_UNKNOWNS + 1):
            system[row, column] = 0
    a, b, c, d, e, f, g, h = found[0], found[1], found[2], found[3], found[4], found[5], found[6], found[7]
    total = 0.0
    for k in range(source.shape[1]):
        if not agrees[k]:
            continue
        x, y = source[0, k], source[1, k]
        over = 1 / (g * x + h * y + 1)
        u, v = (a * x + b * y + c) * over, (d * x + e * y + f) * over
        off_u, off_v = target[0, k] - u, target[1, k] - v
        total += off_u * off_u + off_v * off_v
        p, q, r = x * over, y * over, over
        away, both = off_u * u + off_v * v, u * u + v * v
        # One coordinate's block; the other's is the same.
        system[0, 0] += p * p
        system[0, 1] += p * q
        system[0, 2] += p * r
        system[1, 1] += q * q
        system[1, 2] += q * r
        system[2, 2] += r * r
        system[0, 6] -= u * p * p
        system[0, 7] -= u * p * q
        system[1, 7] -= u * q * q
        system[2, 6] -= u * p * r
        system[2, 7] -= u * q * r
        system[3, 6] -= v * p * p
        system[3, 7] -= v * p * q
        system[4, 7] -= v * q * q
        system[5, 6] -= v * p * r
        system[5, 7] -= v * q * r
        system[6, 6] += both * p * p
        system[6, 7] += both * p * q
        system[7, 7] += both * q * q
        system[0, 8] += off_u * p
        system[1, 8] += off_u * q
        system[2, 8] += off_u * r
        system[3, 8] += off_v * p
        system[4, 8] += off_v * q
        system[5, 8] += off_v * r
        system[6, 8] -= away * p
        system[7, 8] -= away * q
    system[1, 6], system[4, 6] = system[0, 7], system[3, 7]
    for row in range(3):
        for column in range(row, 3):
            system[3 + row, 3 + column] = system[row, column]
    for row in range(_UNKNOWNS):
        for column in range(row):
            system[row, column] = system[column, row]
    return total


@compiled()
def _refine(source: Any, target: Any, agrees: Any, found: Any) -> Any:
    """Minimise the squared errors of the matches that agree with a map (8,), in place (Levenberg and Marquardt)."""
    system, kept = np.empty((_UNKNOWNS, _UNKNOWNS + 1)), np.empty((_UNKNOWNS, _UNKNOWNS + 1))
    tried, step = np.empty(_UNKNOWNS), np.empty(_UNKNOWNS)
    damping = _DAMPING
    least = _gather(source, target, agrees, found, kept)
    for _ in range(_STEPS):
        system[:] = kept
        for place in range(_UNKNOWNS):
            system[place, place] *= 1 + damping
        if not _solve(system, step):
            return
        tried[:] = found + step
        total = _gather(source, target, agrees, tried, system)
        if total < least:
            done = least - total <= 1e-9 * least
            found[:], kept[:], least = tried, system, total
            if done:
                return
            damping /= 10
        else:
            damping *= 10


@compiled(makes_arrays=False)
def _centred(points: Any, moved: Any) -> Any:
    """Move points (K, 2) so that their mean is the origin, and their mean square distance 1: (2, K).

    Returns the mean, and the distance that became 1; 0 if all are one.
    """
    number = len(points)
    x, y = points[:, 0].mean(), points[:, 1].mean()
    square = 0.0
    for k in range(number):
        moved[0, k], moved[1, k] = points[k, 0] - x, points[k, 1] - y
        square += moved[0, k] ** 2 + moved[1, k] ** 2
    size = np.sqrt(square / number)
    if size > 0:
        moved /= size
    return x, y, size


@compiled(makes_arrays=False)
def _shows(points: Any, matrix: Any) -> Any:
    """Whether a homography maps the area of points (K, 2) in front of the camera, without mirroring."""
    left, top, right, bottom = np.inf, np.inf, -np.inf, -np.inf
    for k in range(len(points)):
        left, right = min(left, points[k, 0]), max(right, points[k, 0])
        top, bottom = min(top, points[k, 1]), max(bottom, points[k, 1])
    nearest, farthest = np.inf, 0.0
    for x in (left, right):
        for y in (top, bottom):
            depth = matrix[2, 0] * x + matrix[2, 1] * y + matrix[2, 2]
            nearest, farthest = min(nearest, depth), max(farthest, abs(depth))
    volume = 0.0
    for row in range(3):
        one, two = (row + 1) % 3, (row + 2) % 3
        volume += matrix[0, row] * (matrix[1, one] * matrix[2, two] - matrix[1, two] * matrix[2, one])
    # With a number that is not finite no comparison holds.
    return (nearest * _DEEPEST >= farthest) & (volume > 0) & (volume < np.inf)


@compiled(array(FLOAT64, 2), array(FLOAT64, 2), FLOAT64, INT64, written(FLOAT64, 2))
def most_agreed(
    source: NDArray[np.float64], target: NDArray[np.float64], tolerance: float, draws: int, matrix: NDArray[np.float64]
) -> int:
    """Write the homography that most matches (K, 2) agree on, fitted to these, to `matrix`; return their number, 0 if
    there is none, or it maps their area behind the camera, or mirrors it. RANSAC, with deterministic draws, and least
    squares of the errors in the other photo (Hartley & Zisserman, *Multiple View Geometry*, sections 4.7 and 4.8, in
    normalised coordinates, 4.4.4). `draws`: of four matches, at most; fewer once one has almost surely held four right
    ones.

    `tolerance`: largest error of a match that agrees, in the units of `target`.
    """
    number = len(source)
    here, there = np.empty((2, number)), np.empty((2, number))
    x, y, size = _centred(source, here)
    u, v, other_size = _centred(target, there)
    if not min(size, other_size) > 0:
        return 0
    limit = (tolerance / other_size) ** 2
    four = np.empty(4, np.int64)
    system, found, best = np.empty((_UNKNOWNS, _UNKNOWNS + 1)), np.empty(_UNKNOWNS), np.empty(_UNKNOWNS)
    agrees, most, wanted, state = np.empty(number, np.bool_), 0, np.float64(draws), np.uint64(1)
    drawn = 0
    while drawn < wanted:
        drawn += 1
        for place in range(4):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            four[place] = np.int64((state >> np.uint64(33)) % np.uint64(number))
        # The same match twice makes a triangle without an area.
        if not _is_view(here, there, four) or not _through(here, there, four, system, found):
            continue
        count = _count(here, there, found, limit, agrees)
        if count > most:
            most, best[:] = count, found
            right = (count / number) ** 4
            if right >= 1:
                break
            wanted = min(wanted, np.ceil(np.log(_MISSED) / np.log(1 - right)))
    if most < 4:
        return 0
    # Once more with the matches that agree with the fit: four matches do not determine a map to the tolerance.
    for _ in range(2):
        _count(here, there, best, limit, agrees)
        _refine(here, there, agrees, best)
    most = int(_count(here, there, best, limit, agrees))
    # Normalise, apply the map, and denormalise.
    for row in range(3):
        first, second, third = best[3 * row], best[3 * row + 1], best[3 * row + 2] if row < 2 else 1.0
        matrix[row, 0], matrix[row, 1] = first / size, second / size
        matrix[row, 2] = third - (first * x + second * y) / size
    matrix[0] = other_size * matrix[0] + u * matrix[2]
    matrix[1] = other_size * matrix[1] + v * matrix[2]
    return most if _shows(source, matrix) else 0
