"""Gaussian scale space in octaves, and the extrema of a response in it.

The levels serve three steps: detection looks for extrema, affine adaptation and patch sampling read the level whose
smoothing fits the region's scale, so that nothing is smoothed twice and nothing aliases.
"""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

NOMINAL_BLUR = 0.5
"""Smoothing (standard deviation, pixels) that a camera's image is taken to have already (Lowe, IJCV 2004)."""

_LARGEST_DOUBLED = 16_000
_TESTED = 1 << 17  # samples whose neighbours are compared at a time: they fit the second-level cache
_SMALLEST_SIDE = 16


@dataclass(frozen=True)
class ScaleSpaceOptions:
    """How a scale space is sampled."""

    double: bool = True  # begin with the image enlarged twice (octave -1)
    levels: int = 3  # levels an octave, S
    sigma: float = 1.6  # smoothing of the first level of an octave, in pixels of that octave


@dataclass(frozen=True)
class Octave:
    """The levels of one octave.

    A pixel (u, v) of a level is the point (u * step + offset, v * step + offset) of the image.
    """

    levels: list[NDArray[np.float32]]  # S + 3 arrays (H, W) float32, or S + 1 that patches alone are sampled from
    sigmas: NDArray[np.float64]  # (S + 3,) or (S + 1,) smoothing of each level, in pixels of the image
    step: float  # pixels of the image between two samples
    offset: float  # image coordinate of the first sample


@dataclass(frozen=True)
class ScaleSpace:
    """A grey image and its octaves of smoothed copies."""

    image: NDArray[np.float32]  # (H, W) float32, the image itself
    fine: list[NDArray[np.float32]]  # (H, W) float32, levels between the image and a first octave that is not doubled
    octaves: list[Octave]
    options: ScaleSpaceOptions

    def finest(self, sigmas: NDArray[np.float64]) -> NDArray[np.int64]:
        """Choose for each wanted smoothing the most smoothed level that does not exceed it.

        Parameters
        ----------
        sigmas : ndarray, shape (N,)
            Wanted smoothing, in pixels of the image.

        Returns
        -------
        ndarray, shape (N,), int64
            Numbers to be given to `level`; the lowest is the image itself.
        """
        per_octave = self.options.levels
        first = self.options.sigma * (0.5 if self.options.double else 1.0)
        with np.errstate(divide="ignore"):
            steps = np.floor(per_octave * np.log2(np.maximum(sigmas, 1e-9) / first) + 1e-6)
        return np.clip(steps, -1 - len(self.fine), per_octave * len(self.octaves) - 1).astype(np.int64)

    def level(self, number: int) -> tuple[NDArray[np.float32], float, float]:
        """Look up a level by its number: its pixels, step and offset (see `Octave`)."""
        if number < 0:
            return (self.fine[number] if number >= -len(self.fine) else self.image), 1.0, 0.0
        octave = self.octaves[number // self.options.levels]
        return octave.levels[number % self.options.levels], octave.step, octave.offset


def build_scale_space(image: NDArray[np.float32], options: ScaleSpaceOptions, *, sampled: bool = False) -> ScaleSpace:
    """Smooth an image by steps of 2^(1/S), octave by octave (Lowe, IJCV 2004, section 3).

    Parameters
    ----------
    image : ndarray, shape (H, W), float32
        Grey values, 0 to 255.
    options : ScaleSpaceOptions
        Sampling of scale.
    sampled : bool
        Leave out the levels beyond those that patches are sampled from: extrema cannot be looked for.

    Returns
    -------
    ScaleSpace
        With no octave where the image is smaller than 16 pixels.
    """
    height, width = image.shape
    double = options.double and max(height, width) <= _LARGEST_DOUBLED
    options = ScaleSpaceOptions(double, options.levels, options.sigma)
    if min(height, width) < _SMALLEST_SIDE:
        return ScaleSpace(image, [], [], options)
    if double:
        # Linear enlargement is centred on pixels: sample u of the doubled image lies at (u + 0.5) / 2 - 0.5.
        doubled: NDArray[Any] = cv2.resize(image, (2 * width, 2 * height), interpolation=cv2.INTER_LINEAR)
        base, step, offset, blur = doubled, 0.5, -0.25, 2 * NOMINAL_BLUR
    else:
        base, step, offset, blur = image, 1.0, 0.0, NOMINAL_BLUR
    base = _smooth(base, np.sqrt(max(options.sigma**2 - blur**2, 0.01)))

    ratio = 2.0 ** (1.0 / options.levels)
    relative = options.sigma * ratio ** np.arange(options.levels + (1 if sampled else 3))
    increments = np.sqrt(relative[1:] ** 2 - relative[:-1] ** 2)
    octaves: list[Octave] = []
    while min(base.shape) >= _SMALLEST_SIDE:
        levels = [base]
        for increment in increments:
            levels.append(_smooth(levels[-1], increment))
        octaves.append(Octave(levels, relative * step, step, offset))
        base = np.ascontiguousarray(levels[options.levels][::2, ::2])
        step *= 2
    return ScaleSpace(image, [] if double else _fine_levels(image, options), octaves, options)


def _fine_levels(image: NDArray[np.float32], options: ScaleSpaceOptions) -> list[NDArray[np.float32]]:
    """Levels below the first octave's: without them patches of small regions would alias, or be smoothed too much."""
    number = int(options.levels * np.log2(options.sigma / NOMINAL_BLUR) - 1.5)
    sigmas = options.sigma * 2.0 ** (np.arange(-number, 0) / options.levels)
    return [_smooth(image, np.sqrt(sigma**2 - NOMINAL_BLUR**2)) for sigma in sigmas]


def _smooth(image: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    size = 2 * int(np.ceil(3.5 * sigma)) + 1
    smooth: NDArray[Any] = cv2.GaussianBlur(image, (size, size), sigma, borderType=cv2.BORDER_REFLECT_101)
    return smooth


@dataclass(frozen=True)
class Extrema:
    """Extrema of a response, refined below the pixel, in one octave."""

    x: NDArray[np.float64]  # (N,) float64, in samples of the octave
    y: NDArray[np.float64]  # (N,) float64, in samples of the octave
    level: NDArray[np.float64]  # (N,) float64, in levels of the octave
    value: NDArray[np.float64]  # (N,) float64, interpolated response
    edge: NDArray[np.float64]  # (N,) trace² / determinant of the spatial Hessian; infinite where it is a saddle


def find_extrema(responses: list[NDArray[np.float32]], threshold: float, border: int = 5) -> Extrema:
    """Find minima and maxima among the 26 neighbours in space and scale, refined by a quadratic fit.

    Parameters
    ----------
    responses : list of ndarray, shape (H, W), float32
        The response at consecutive levels of one octave.
    threshold : float
        Smallest absolute response kept.
    border : int
        Samples at the border where none is looked for, at least 1.

    Returns
    -------
    Extrema
        In no particular order of strength, but always in the same one.

    Notes
    -----
    Brown & Lowe, *Invariant features from interest point groups*, BMVC 2002.
    """
    height, width = responses[0].shape
    if len(responses) < 3 or height <= 2 * border + 2 or width <= 2 * border + 2:
        return Extrema(*(np.zeros(0) for _ in range(5)))
    lines = [np.ascontiguousarray(response).reshape(-1) for response in responses]
    found = []
    for level in range(1, len(lines) - 1):
        # A cheap first sieve at 0.8 of the threshold; the interpolated value decides below.
        for bound, beyond in ((0.8 * threshold, np.greater), (-0.8 * threshold, np.less)):
            at = _stand_out(lines[level], width, bound, beyond, border)
            at = _stand_out_in_scale(lines[level - 1 : level + 2], at, width, beyond)
            found.append(np.stack([at % width, at // width, np.full(len(at), level)]))
    return _refine(lines, (height, width), np.concatenate(found, axis=1), threshold, border)


def _stand_out(line: NDArray[np.float32], width: int, bound: float, beyond: np.ufunc, border: int) -> NDArray[np.int64]:
    """Places of samples, row by row, that lie beyond a bound and beyond the four samples next to them.

    All samples are tested, so this is what takes the time: on rows together (a neighbour is an offset), and on so many
    at a time that what is compared stays in the cache.
    """
    height = len(line) // width
    first, last = border * width, (height - border) * width
    rows = max(1, _TESTED // width) * width
    places = []
    for start in range(first, last, rows):
        end = min(start + rows, last)
        # Of neighbours that tie, as around a peak half way between samples, the first alone is taken: it is beyond
        # those before it, and those after it are not beyond it.
        here = beyond(line[start:end], np.float32(bound))
        vertical = beyond(line[start : end + width], line[start - width : end])
        here &= np.greater(vertical[:-width], vertical[width:])
        across = beyond(line[start : end + 1], line[start - 1 : end])
        here &= np.greater(across[:-1], across[1:])
        places.append(np.flatnonzero(here) + start)
    found = np.concatenate(places)
    column = found % width
    return found[(column >= border) & (column < width - border)]


def _stand_out_in_scale(
    lines: list[NDArray[np.float32]], at: NDArray[np.int64], width: int, beyond: np.ufunc
) -> NDArray[np.int64]:
    """Keep the places that lie beyond their neighbours at the corners, and those in the levels below and above."""
    below, line, above = lines
    square = [down * width + across for down in (-1, 0, 1) for across in (-1, 0, 1)]
    # Those that most fail by are asked first.
    tests = [(level, 0, True) for level in (below, above)]
    tests += [(line, corner, corner < 0) for corner in (-width - 1, 1 - width, width - 1, width + 1)]
    tests += [(level, offset, True) for level in (below, above) for offset in square if offset]
    values = line.take(at)
    for level, offset, strictly in tests:
        others = _beside(level, offset, at, width)
        keep = np.flatnonzero(beyond(values, others) if strictly else ~beyond(others, values))
        at, values = at.take(keep), values.take(keep)
    return at


def _beside(line: NDArray[np.float32], offset: int, at: NDArray[np.int64], width: int) -> NDArray[np.float32]:
    """Samples (N,) at an offset from places that do not lie on the border."""
    farthest = width + 1
    return line[farthest + offset :].take(at - farthest)


def _refine(
    lines: list[NDArray[np.float32]], shape: tuple[int, int], at: NDArray[np.int64], threshold: float, border: int
) -> Extrema:
    """Move each extremum to the top of the quadratic through its neighbours, in at most five steps of a sample."""
    height, width = shape
    low = np.array([[border], [border], [1]])
    high = np.array([[width - border - 1], [height - border - 1], [len(lines) - 2]])
    settled: list[NDArray[np.float64]] = []
    for _ in range(5):
        if at.shape[1] == 0:
            break
        gradient, hessian, value = _derivatives(lines, width, at)
        shift = _solve3(hessian, gradient)
        # What would leave the octave stays at its last sample, and is taken if the top is not far beyond.
        moved = np.clip(at + np.where(np.abs(shift) > 0.6, np.sign(shift), 0).astype(np.int64), low, high)
        moving = (moved != at).any(axis=0)
        done = ~moving & (np.abs(shift) < 1.5).all(axis=0)
        xx, yy, xy = hessian[0], hessian[1], hessian[3]
        determinant = xx * yy - xy * xy
        with np.errstate(divide="ignore", invalid="ignore"):
            edge = np.where(determinant > 0, (xx + yy) ** 2 / determinant, np.inf)
        peak = value + 0.5 * (gradient * shift).sum(axis=0)
        settled.append(np.concatenate([at + shift, peak[None], edge[None], at])[:, done])
        at = moved[:, moving]
    result = np.concatenate(settled, axis=1) if settled else np.zeros((8, 0))
    result = result[:, np.abs(result[3]) >= threshold]
    # Extrema that moved to the same sample are one.
    samples = np.ravel_multi_index(result[[7, 6, 5]].astype(np.int64), (len(lines), height, width))
    _, first = np.unique(samples, return_index=True)
    return Extrema(*result[:5, np.sort(first)])


def _derivatives(
    lines: list[NDArray[np.float32]], width: int, at: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Give gradient (3, N), second derivatives xx, yy, ss, xy, xs, ys (6, N) and value (N,), by central differences."""
    place = at[1] * width + at[0]
    plane = [0, 1, -1, width, -width, 1 + width, 1 - width, width - 1, -1 - width]
    cross = [0, 1, -1, width, -width]
    samples = np.empty((len(plane) + 2 * len(cross), at.shape[1]))
    for level in np.unique(at[2]):
        members = np.flatnonzero(at[2] == level)
        offsets = ((lines[level], plane), (lines[level + 1], cross), (lines[level - 1], cross))
        rows = ((line, offset) for line, several in offsets for offset in several)
        for row, (line, offset) in zip(samples, rows, strict=True):
            row[members] = _beside(line, offset, place[members], width)
    value, right, left, down, up, right_down, right_up, left_down, left_up = samples[:9]
    above, right_above, left_above, down_above, up_above = samples[9:14]
    below, right_below, left_below, down_below, up_below = samples[14:]
    gradient = 0.5 * np.stack([right - left, down - up, above - below])
    hessian = np.stack(
        [
            right + left - 2 * value,
            down + up - 2 * value,
            above + below - 2 * value,
            0.25 * (right_down - right_up - left_down + left_up),
            0.25 * (right_above - right_below - left_above + left_below),
            0.25 * (down_above - down_below - up_above + up_below),
        ]
    )
    return gradient, hessian, value


def _solve3(hessian: NDArray[np.float64], gradient: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve H shift = -g for N symmetric 3x3 systems; a singular one gives a huge shift, so that it is dropped."""
    xx, yy, ss, xy, xs, ys = hessian
    gx, gy, gs = -gradient
    c_xx, c_xy, c_xs = yy * ss - ys * ys, xs * ys - xy * ss, xy * ys - xs * yy
    c_yy, c_ys, c_ss = xx * ss - xs * xs, xs * xy - xx * ys, xx * yy - xy * xy
    determinant = xx * c_xx + xy * c_xy + xs * c_xs
    singular = np.abs(determinant) < 1e-12
    determinant = np.where(singular, 1.0, determinant)
    shift = np.stack(
        [
            c_xx * gx + c_xy * gy + c_xs * gs,
            c_xy * gx + c_yy * gy + c_ys * gs,
            c_xs * gx + c_ys * gy + c_ss * gs,
        ]
    )
    return np.where(singular, 1e9, shift / determinant)
