"""Pooled gradient descriptors: Simonyan14 section 3 and equations 1, 2 and 7, applied to patches."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from retrieval.descriptors.gradients import orientation_channels

VERSION = 1
"""Of what is computed here; to be raised with any change of the numbers it gives."""

_FAINTEST = 0.1  # grey values a sample: T(x) is never less


@dataclass(frozen=True)
class ChannelOptions:
    """How a patch becomes normalised gradient channels."""

    patch_size: int = 31  # samples along a side
    smoothing: float = 2.0  # Gaussian smoothing before the gradient, standard deviation in samples; 0: none
    orientations: int = 8  # channels, p
    quantile: float = 0.7  # ζ: T(x) is this quantile of the gradient magnitudes over the patch
    # Ours: power of responses after cropping; 1: unchanged, as in the paper. Like rootSIFT for SIFT, the root keeps
    # strong edges from outweighing everything else.
    power: float = 0.5
    floor: float = 0.0  # T(x) = sqrt(quantile² + floor² + 0.1²), grey values a sample: so noise is not magnified


def normalised_channels(patches: NDArray[np.float32], options: ChannelOptions) -> NDArray[np.float32]:
    """Gradient channels (orientations, N, S²) of patches, divided by T(x) (Simonyan14 sections 3 and 4): pooling is
    linear, so that pooling these and cropping at 1 is equation 7.
    """
    padded = _smooth_and_pad(patches, options.smoothing)
    channels = orientation_channels(padded, options.orientations)
    # The two shares of a magnitude add up to it.
    magnitude = channels.sum(axis=0)
    size = magnitude.shape[1]
    rank = min(int(np.ceil(options.quantile * size)), size) - 1
    normaliser = np.partition(magnitude, rank, axis=1)[:, rank]
    # A patch without contrast stays near zero: rounding errors are not amplified.
    normaliser = np.sqrt(normaliser**2 + np.float32(options.floor**2 + _FAINTEST**2))
    channels /= normaliser[:, None]
    return channels


def region_kernels(regions: NDArray[np.floating], size: int) -> NDArray[np.float32]:
    """Unit-mass isotropic Gaussians (S², R) of regions x, y, σ, in samples from the patch's centre (equation 1)."""
    across, down = axis_kernels(regions[:, 0], regions[:, 2], size), axis_kernels(regions[:, 1], regions[:, 2], size)
    return np.asarray(np.einsum("rv,ru->vur", down, across).reshape(size * size, -1).astype(np.float32))


def axis_kernels(centres: NDArray[np.floating], sigmas: NDArray[np.floating], size: int) -> NDArray[np.float64]:
    """Unit-mass Gaussians (R, S) float64 along an axis of S samples around 0; their products are those of the plane."""
    axis = np.arange(size) - (size - 1) / 2
    sigmas = np.broadcast_to(np.asarray(sigmas, np.float64), np.shape(centres))
    exponent = -0.5 * ((axis - np.asarray(centres, np.float64)[:, None]) / sigmas[:, None]) ** 2
    # The largest is brought to 1 first: a narrow Gaussian beyond the border would underflow otherwise.
    kernels = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(kernels / kernels.sum(axis=1, keepdims=True))


def respond(pooled: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    """Crop pooled channels at 1 (equation 7) and raise them to a power, in place."""
    # Rounding may make them slightly negative, where roots are undefined.
    np.clip(pooled, 0, 1, out=pooled)
    while power <= 0.5:
        np.sqrt(pooled, out=pooled)
        power *= 2
    return pooled if power == 1 else np.power(pooled, np.float32(power), out=pooled)


def pool(channels: NDArray[np.float32], kernels: NDArray[np.float32], power: float = 1.0) -> NDArray[np.float32]:
    """Pool normalised channels (C, N, S²) over regions, and crop at 1 (equation 7): (N, R * C), region by region."""
    orientations, number, pixels = channels.shape
    pooled = channels.reshape(-1, pixels) @ kernels
    pooled = respond(pooled, power)
    return pooled.reshape(orientations, number, -1).transpose(1, 2, 0).reshape(number, -1)


def _smooth_and_pad(patches: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    """Smooth patches, and pad them by one sample on each side for the gradient."""
    operator = smoothing_operator(patches.shape[1], sigma)
    side = len(operator)
    across = (patches.reshape(-1, patches.shape[2]) @ operator.T).reshape(len(patches), -1, side)
    return np.asarray(np.matmul(operator, across))


@lru_cache(maxsize=8)
def smoothing_operator(size: int, sigma: float) -> NDArray[np.float32]:
    """Matrix (S + 2, S) float32 that smooths a line of samples and continues it by its border samples."""
    reach = int(np.ceil(4 * sigma)) + 1
    offsets = np.arange(-reach, reach + 1)
    taps = np.exp(-0.5 * (offsets / sigma) ** 2) if sigma > 0 else (offsets == 0).astype(np.float64)
    taps /= taps.sum()
    operator = np.zeros((size + 2, size))
    rows = np.arange(size + 2)
    for offset, tap in zip(offsets, taps, strict=True):
        # Clipping to the border sample extends the line.
        np.add.at(operator, (rows, np.clip(np.clip(rows - 1, 0, size - 1) + offset, 0, size - 1)), tap)
    return operator.astype(np.float32)
