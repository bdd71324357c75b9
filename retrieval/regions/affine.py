"""Affine shape adaptation: the iterated second-moment matrix."""

import numpy as np
from numpy.typing import NDArray

from retrieval.regions.options import AdaptationOptions
from retrieval.regions.patches import sample_frames, sampling_order
from retrieval.regions.scalespace import ScaleSpace

_CHUNK = 128  # regions at a time: their samples fit the second-level cache


def adapt_shapes(
    space: ScaleSpace, centres: NDArray[np.float64], sigmas: NDArray[np.float64], options: AdaptationOptions
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Estimate the affine shape of regions (Mikolajczyk & Schmid, IJCV 2004, section 3.2).

    The second-moment matrix is measured in the frame normalised so far; the frame is then stretched by its inverse
    square root at constant area, until the matrix is isotropic.

    Parameters
    ----------
    space : ScaleSpace
        The image's scale space.
    centres : ndarray, shape (N, 2)
        Points (x, y), pixels of the image.
    sigmas : ndarray, shape (N,)
        Detection scales, pixels of the image.
    options : AdaptationOptions
        Window and stopping rule.

    Returns
    -------
    shapes : ndarray, shape (N, 2, 2), float64
        Maps from the unit circle to the region; determinant sigma².
    kept : ndarray, shape (N,), bool
        False where the shape left the allowed range.
    """
    number = len(centres)
    shapes = np.broadcast_to(np.eye(2), (number, 2, 2)).copy()
    kept = np.ones(number, bool)
    if options.iterations and number:
        levels = space.finest(sigmas)
        active = sampling_order(levels, centres)
        grid, weights = _window(options)
        for _ in range(options.iterations):
            frames = shapes[active] * sigmas[active, None, None]
            moments = _second_moments(space, levels[active], centres[active], frames, grid, weights)
            step, ratio = _inverse_square_root(moments)
            moving = ratio < options.converged
            shapes[active[moving]] = shapes[active[moving]] @ step[moving]
            stretched = _anisotropy(shapes[active]) > options.max_anisotropy
            kept[active[stretched]] = False
            active = active[moving & ~stretched]
            if not len(active):
                break
        if not options.keep_unconverged:
            kept[active] = False
    return shapes * sigmas[:, None, None], kept


def _window(options: AdaptationOptions) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Sampling grid (2, S, S) in units of the detection scale, and Gaussian weights (S, S), 0 along the border."""
    axis = np.linspace(-options.window, options.window, options.samples)
    grid = np.stack(np.meshgrid(axis, axis)).astype(np.float32)
    weight = np.exp(-0.5 * (axis / (options.window / 2.5)) ** 2)
    weight[[0, -1]] = 0  # where a difference would need a sample beyond the window
    return grid, np.outer(weight, weight).astype(np.float32)


def _second_moments(
    space: ScaleSpace,
    levels: NDArray[np.int64],
    centres: NDArray[np.float64],
    frames: NDArray[np.float64],
    grid: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Second-moment matrices (N, 3) as xx, xy, yy of patches sampled through frames."""
    from retrieval.regions.sampling_kernels import second_moments  # here: Numba takes its time to load

    moments = np.empty((len(centres), 3))
    for start in range(0, len(centres), _CHUNK):
        part = slice(start, start + _CHUNK)
        patches = sample_frames(space, levels[part], centres[part], frames[part], grid)
        moments[part] = second_moments(patches.reshape(len(patches), -1), weights)
    return moments


def _inverse_square_root(moments: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Inverse square roots (N, 2, 2) of determinant 1, and eigenvalue ratios (N,) in 0..1; flat windows stay round."""
    xx, xy, yy = moments.T
    trace = np.maximum(xx + yy, 1e-12)
    # A floor on the determinant bounds one step, so that a window with a single edge cannot collapse the frame.
    root = np.sqrt(np.maximum(xx * yy - xy * xy, 1e-4 * trace * trace))
    spread = np.sqrt(np.maximum(trace * trace / 4 - root * root, 0))
    ratio = np.where(xx + yy > 1e-9, (trace / 2 - spread) / (trace / 2 + spread), 1.0)
    # M^(1/2) = (M + sqrt(det) I) / sqrt(trace + 2 sqrt(det)); its inverse, scaled to determinant 1, needs no division
    # by the determinant: swap the diagonal and negate the off-diagonal.
    a, b, c = xx + root, xy, yy + root
    scale = 1.0 / np.sqrt(np.maximum(a * c - b * b, 1e-24))
    step = np.stack([np.stack([c, -b], -1), np.stack([-b, a], -1)], -2) * scale[:, None, None]
    return np.where((xx + yy > 1e-9)[:, None, None], step, np.eye(2)), ratio


def _anisotropy(shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratio of the axes of ellipses given by maps (N, 2, 2) from the unit circle."""
    half = 0.5 * (shapes**2).sum(axis=(1, 2))
    area = np.abs(shapes[:, 0, 0] * shapes[:, 1, 1] - shapes[:, 0, 1] * shapes[:, 1, 0])
    spread = np.sqrt(np.maximum(half * half - area * area, 0))
    return np.asarray(np.sqrt((half + spread) / np.maximum(half - spread, 1e-12)))
