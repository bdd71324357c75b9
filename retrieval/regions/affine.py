"""Affine shape adaptation: the iterated second-moment matrix."""

import numpy as np
from numpy.typing import NDArray

from retrieval.regions.options import AdaptationOptions
from retrieval.regions.patches import level_runs, sampling_order
from retrieval.regions.scalespace import ScaleSpace


def adapt_shapes(
    space: ScaleSpace, centres: NDArray[np.float64], sigmas: NDArray[np.float64], options: AdaptationOptions
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Affine shape of regions (Mikolajczyk & Schmid, IJCV 2004, section 3.2): the second-moment matrix is measured in
    the frame normalised so far, which is then stretched by its inverse square root at constant area, until it is
    isotropic. Returns maps (N, 2, 2) from the unit circle to the region, of determinant sigma², and whether each shape
    stayed in the allowed range. Centres and detection scales in pixels.
    """
    number = len(centres)
    shapes = np.broadcast_to(np.eye(2), (number, 2, 2)).copy()
    kept = np.ones(number, bool)
    if options.iterations and number:
        from retrieval.regions.sampling_kernels import OUT_OF_STEPS, STRETCHED, adapt  # here: Numba is slow to load

        levels = space.finest(sigmas)
        order = sampling_order(levels, centres)
        grid, weights = _window(options)
        limits = options.iterations, options.converged, options.max_anisotropy
        middles, scales, current, ends = centres[order], sigmas[order], shapes[order], np.empty(number, np.int64)
        for part, level in level_runs(space, levels[order]):
            adapt(level, middles[part], scales[part], grid, weights, limits, current[part], ends[part])
        shapes[order] = current
        kept[order] = (ends != STRETCHED) & (options.keep_unconverged | (ends != OUT_OF_STEPS))
    return shapes * sigmas[:, None, None], kept


def _window(options: AdaptationOptions) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Sampling grid (2, S²) in units of the detection scale, and Gaussian weights (S, S), 0 along the border."""
    axis = np.linspace(-options.window, options.window, options.samples)
    grid = np.stack(np.meshgrid(axis, axis)).reshape(2, -1).astype(np.float32)
    weight = np.exp(-0.5 * (axis / (options.window / 2.5)) ** 2)
    weight[[0, -1]] = 0  # differences there would need samples beyond the window
    return grid, np.outer(weight, weight).astype(np.float32)
