"""Gradients of patches, soft-assigned to orientation channels."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def orientation_ramps(
    across: NDArray[np.float32], down: NDArray[np.float32], orientations: int
) -> Iterator[NDArray[np.float32]]:
    """Split gradients (A, B) along x and y by their orientation: yields the magnitude m, then the ramps, each in the
    memory of the one before.

    With a the angle in steps of 2π / orientations, ramp k is m times a - k, cropped to 0..1. Of a magnitude that is
    shared linearly between its two nearest orientations, channel k has ramp k - 1 less ramp k, and channel 0 m less the
    first ramp plus the last. What is linear, as pooling is, may be done before that difference is taken.
    """
    import cv2  # here: a descriptor is named without it

    polar: Any = cv2.cartToPolar(across, down)
    magnitude, rest = polar
    yield magnitude
    rest *= orientations / (2 * np.pi)
    rest *= magnitude
    ramp = np.empty_like(magnitude)
    for _ in range(orientations):
        np.minimum(rest, magnitude, out=ramp)
        rest -= ramp
        yield ramp


def orientation_channels(patches: NDArray[np.float32], orientations: int = 8) -> NDArray[np.float32]:
    """Split the gradient of patches (N, S, S) into channels (orientations, N, S - 2, S - 2): each pixel's magnitude is
    shared linearly between its two nearest orientations (Lowe, IJCV 2004, section 6.1; Simonyan14 section 3). Central
    differences need neighbours: the outermost pixels are left out.

    `orientations`: number of channels; channel k is centred at the angle 2πk / orientations, from x towards y.
    """
    across = patches[:, 1:-1, 2:] - patches[:, 1:-1, :-2]
    down = patches[:, 2:, 1:-1] - patches[:, :-2, 1:-1]
    number = len(patches)
    ramps = orientation_ramps(across.reshape(number, -1), down.reshape(number, -1), orientations)
    magnitude = next(ramps)
    channels = np.zeros((orientations, *magnitude.shape), np.float32)
    channels[0] = magnitude
    for channel, ramp in enumerate(ramps):
        channels[channel] -= ramp
        channels[(channel + 1) % orientations] += ramp
    return channels


def dominant_orientation(patches: NDArray[np.float32], bins: int = 36) -> NDArray[np.float32]:
    """Dominant gradient orientation (N,) of patches, radians from x towards y: the peak of the smoothed histogram,
    weighted by magnitude and a Gaussian around the centre, refined by a parabola (Lowe, IJCV 2004, section 5).
    """
    if not len(patches):
        return np.zeros(0, np.float32)
    inner = patches.shape[1] - 2
    axis = np.linspace(-1, 1, inner)
    weight = np.exp(-0.5 * (np.add.outer(axis**2, axis**2)) / 0.4**2).astype(np.float32).reshape(-1)
    histogram: NDArray[np.floating] = np.empty((len(patches), bins), np.float32)
    for start in range(0, len(patches), 128):
        channels = orientation_channels(patches[start : start + 128], bins)
        histogram[start : start + 128] = (channels @ weight).T
    for _ in range(3):
        histogram = (np.roll(histogram, 1, 1) + histogram + np.roll(histogram, -1, 1)) / 3
    rows = np.arange(len(histogram))
    peak = histogram.argmax(axis=1)
    left, top, right = (histogram[rows, (peak + shift) % bins] for shift in (-1, 0, 1))
    curvature = left - 2 * top + right
    shift = np.where(curvature < 0, 0.5 * (left - right) / np.where(curvature < 0, curvature, 1), 0)
    angle = 2 * np.pi * (peak + shift) / bins
    return np.asarray((angle + np.pi) % (2 * np.pi) - np.pi, np.float32)
