"""Gaussian scale space in octaves, and the extrema of a response in it.

The levels serve three steps: detection finds extrema, affine adaptation and patch sampling read the level whose
smoothing fits the region's scale. This avoids repeated smoothing and aliasing.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

NOMINAL_BLUR = 0.5
"""Smoothing (standard deviation, pixels) that a camera's image is taken to have already (Lowe, IJCV 2004)."""

_LARGEST_DOUBLED = 16_000
_LINE = 16  # float32 samples in a line of the processor's cache
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

    levels: NDArray[np.float32]  # (S + 3, H, W) float32, or only the S + 1 that patches are sampled from
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
        """For each wanted smoothing (N,), in pixels of the image, the number of the most smoothed level that does not
        exceed it; the lowest is the image itself.
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
    """Smooth an image (H, W) by steps of 2^(1/S), octave by octave (Lowe, IJCV 2004, section 3); without octaves if it
    is smaller than 16 pixels. `sampled`: only the levels that patches are sampled from: extrema cannot be detected.
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

    ratio = 2.0 ** (1.0 / options.levels)
    relative = options.sigma * ratio ** np.arange(options.levels + (1 if sampled else 3))
    increments = np.sqrt(relative[1:] ** 2 - relative[:-1] ** 2)
    octaves: list[Octave] = []
    shape = base.shape
    while min(shape) >= _SMALLEST_SIDE:
        levels = _empty_levels(len(relative), *shape)
        if octaves:
            levels[0] = octaves[-1].levels[options.levels, ::2, ::2]
        else:
            _smooth(base, np.sqrt(max(options.sigma**2 - blur**2, 0.01)), levels[0])
        for lower, upper, increment in zip(levels, levels[1:], increments, strict=False):
            _smooth(lower, increment, upper)
        octaves.append(Octave(levels, relative * step, step, offset))
        shape = levels[0, ::2, ::2].shape
        step *= 2
    return ScaleSpace(image, [] if double else _fine_levels(image, options), octaves, options)


def _empty_levels(number: int, height: int, width: int) -> NDArray[np.float32]:
    """Room for levels, (N, H, W) float32.

    A row begins an odd number of lines of the processor's cache after the one above it: with a power of two between
    them, as in a photo of 1,024 pixels across, all samples of a column would compete for the same few lines.
    """
    stride = _LINE * ((width + _LINE - 1) // _LINE | 1)
    return np.empty((number, height, stride), np.float32)[:, :, :width]


def as_line(levels: NDArray[np.float32]) -> tuple[NDArray[np.float32], tuple[int, ...]]:
    """View levels (..., H, W) as one line, from their first sample to their last with all that lies between.

    The second result is the number of samples from one level, row or column to the next. An array that is not float32,
    or not contiguous in this order, is copied.
    """
    sizes = levels.strides
    in_order = sizes[-1] == 4 and all(size % 4 == 0 and size >= next_ for size, next_ in pairwise(sizes))
    if levels.dtype != np.float32 or not in_order:
        levels = np.ascontiguousarray(levels, np.float32)
    strides = tuple(bytes // 4 for bytes in levels.strides)
    last = sum((number - 1) * stride for number, stride in zip(levels.shape, strides, strict=True))
    return np.lib.stride_tricks.as_strided(levels, (last + 1,), (4,), writeable=False), strides


def _fine_levels(image: NDArray[np.float32], options: ScaleSpaceOptions) -> list[NDArray[np.float32]]:
    """Levels below the first octave's: without them patches of small regions would alias, or be smoothed too much."""
    number = int(options.levels * np.log2(options.sigma / NOMINAL_BLUR) - 1.5)
    sigmas = options.sigma * 2.0 ** (np.arange(-number, 0) / options.levels)
    return [_smooth(image, np.sqrt(sigma**2 - NOMINAL_BLUR**2)) for sigma in sigmas]


def _smooth(image: NDArray[np.float32], sigma: float, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    size = 2 * int(np.ceil(3.5 * sigma)) + 1
    smooth: NDArray[Any] = cv2.GaussianBlur(image, (size, size), sigma, out, borderType=cv2.BORDER_REFLECT_101)
    return smooth


@dataclass(frozen=True)
class Extrema:
    """Extrema of a response, refined below the pixel, in one octave."""

    x: NDArray[np.float64]  # (N,) float64, in samples of the octave
    y: NDArray[np.float64]  # (N,) float64, in samples of the octave
    level: NDArray[np.float64]  # (N,) float64, in levels of the octave
    value: NDArray[np.float64]  # (N,) float64, interpolated response
    edge: NDArray[np.float64]  # (N,) trace² / determinant of the spatial Hessian; infinite at a saddle


def find_extrema(
    responses: list[NDArray[np.float32]] | NDArray[np.float32],
    threshold: float,
    border: int = 5,
    *,
    differences: bool = False,
) -> Extrema:
    """Minima and maxima among the 26 neighbours in space and scale, refined by a quadratic fit (Brown & Lowe, BMVC
    2002), always in the same order. `responses` (H, W): at consecutive levels of one octave, as one array they need not
    be copied; with `differences` the response is the difference of each level and the one below.
    """
    threshold = max(threshold, 0.0)  # below 0 a sample could be both a minimum and a maximum, which exceeds the buffer
    number, (height, width) = len(responses), responses[0].shape
    if number - differences < 3 or height <= 2 * border + 2 or width <= 2 * border + 2:
        return Extrema(*(np.zeros(0) for _ in range(5)))
    from retrieval.regions.extrema_kernels import find_places, refine  # imported here, as Numba loads slowly

    line, (area, stride, _) = as_line(np.asarray(responses, np.float32))
    levels = line, differences, (number, height, width, area, stride, border)
    # A cheap first sieve at 0.8 of the threshold; the interpolated value decides below.
    extrema = refine(*levels, find_places(*levels, np.float32(0.8 * threshold)))
    extrema = extrema[:, np.abs(extrema[3]) >= threshold]
    # Extrema that moved to the same sample are one.
    _, first = np.unique(extrema[5], return_index=True)
    return Extrema(*extrema[:5, np.sort(first)])
