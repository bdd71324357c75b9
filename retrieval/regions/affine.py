"""Affine shape adaptation: the iterated second-moment matrix."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.regions.patches import sample_frames
from retrieval.regions.scalespace import ScaleSpace


@dataclass(frozen=True)
class AdaptationOptions:
    """How a region's shape is estimated."""

    iterations: int = 10  # steps at most; 0 leaves regions round
    window: float = 8.0  # half the side of the window in units of the detection scale
    samples: int = 21  # samples along that side
    converged: float = 0.93  # smallest eigenvalue ratio of the second-moment matrix that ends the iteration
    max_anisotropy: float = 5.0  # largest ratio of the ellipse's axes that is kept
    keep_unconverged: bool = True  # keep regions that ran out of steps, at their last shape


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
        active = np.arange(number)
        grid, weights = _window(options)
        for _ in range(options.iterations):
            moments = np.empty((len(active), 3))
            for level in np.unique(levels[active]):
                here = np.nonzero(levels[active] == level)[0]
                members = active[here]
                moments[here] = _second_moments(
                    space.level(int(level)),
                    centres[members],
                    shapes[members] * sigmas[members, None, None],
                    grid,
                    weights,
                )
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
    """Sampling grid (2, S, S) in units of the detection scale, and Gaussian weights (S-2, S-2) of its inner part."""
    axis = np.linspace(-options.window, options.window, options.samples)
    grid = np.stack(np.meshgrid(axis, axis)).astype(np.float32)
    inner = axis[1:-1]
    weight = np.exp(-0.5 * (inner / (options.window / 2.5)) ** 2)
    return grid, np.outer(weight, weight).astype(np.float32)


def _second_moments(
    level: tuple[NDArray[np.float32], float, float],
    centres: NDArray[np.float64],
    frames: NDArray[np.float64],
    grid: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Second-moment matrices (N, 3) as xx, xy, yy of patches sampled through frames, in chunks that fit the cache."""
    moments = np.empty((len(centres), 3))
    flat = weights.reshape(-1)
    for start in range(0, len(centres), 512):
        part = slice(start, start + 512)
        patches = sample_frames(level, centres[part], frames[part], grid)
        across = patches[:, 1:-1, 2:] - patches[:, 1:-1, :-2]
        down = patches[:, 2:, 1:-1] - patches[:, :-2, 1:-1]
        number = len(patches)
        moments[part, 0] = (across * across).reshape(number, -1) @ flat
        moments[part, 1] = (across * down).reshape(number, -1) @ flat
        moments[part, 2] = (down * down).reshape(number, -1) @ flat
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
