"""Multi-scale Harris corners: interest points to learn descriptors for (Brown11, section VI.E)."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

_NEAR = 1e-6  # corners of less curvature, relative to their response, are not refined


@dataclass(frozen=True)
class HarrisOptions:
    """Options of corners (Mikolajczyk & Schmid, *Scale & Affine Invariant Interest Point Detectors*, IJCV 2004)."""

    first: float = 1.5  # smallest integration scale σ_I, pixels
    levels: int = 3  # an octave
    octaves: float = 3.5  # of scales in all
    derivation: float = 0.7  # derivation scale over integration scale
    alpha: float = 0.05  # of cornerness, det(μ) - α trace(μ)²
    threshold: float = 1000.0  # least cornerness at its scale, in (grey values)⁴


def harris_corners(grey: NDArray[np.float32], options: HarrisOptions | None = None) -> NDArray[np.float64]:
    """Corners (N, 4) of a grey photo (H, W): x, y, integration scale (pixels) and cornerness, the strongest first.

    Each is a local maximum at its scale, so one corner may occur at several scales.
    """
    options = options or HarrisOptions()
    scales = options.first * 2 ** (np.arange(round(options.octaves * options.levels) + 1) / options.levels)
    corners = [_corners_at(np.asarray(grey, np.float32), float(scale), options) for scale in scales]
    rows = np.concatenate(corners)
    return rows[np.lexsort((rows[:, 1], rows[:, 0], rows[:, 2], -rows[:, 3]))]


def cornerness(grey: NDArray[np.float32], scale: float, options: HarrisOptions) -> NDArray[np.float32]:
    """Cornerness (H, W) float32 at an integration scale, of the scale-normalised second-moment matrix μ."""
    derivation = options.derivation * scale
    smooth = cv2.GaussianBlur(grey, (0, 0), derivation, borderType=cv2.BORDER_REPLICATE)
    # A derivative at scale σ is multiplied by σ, so that responses of all scales can be compared.
    across = cv2.Sobel(smooth, cv2.CV_32F, 1, 0, ksize=1, scale=derivation / 2, borderType=cv2.BORDER_REPLICATE)
    down = cv2.Sobel(smooth, cv2.CV_32F, 0, 1, ksize=1, scale=derivation / 2, borderType=cv2.BORDER_REPLICATE)
    xx, xy, yy = (
        cv2.GaussianBlur(product, (0, 0), scale, borderType=cv2.BORDER_REPLICATE)
        for product in (across * across, across * down, down * down)
    )
    return np.asarray(xx * yy - xy * xy - np.float32(options.alpha) * (xx + yy) ** 2)


def _corners_at(grey: NDArray[np.float32], scale: float, options: HarrisOptions) -> NDArray[np.float64]:
    response = cornerness(grey, scale, options)
    reach = 2 * round(scale) + 1
    largest = cv2.dilate(response, cv2.getStructuringElement(cv2.MORPH_RECT, (reach, reach)))
    peaks = (response == largest) & (response > options.threshold)
    peaks[[0, -1]] = peaks[:, [0, -1]] = False  # refinement needs a neighbour on each side
    y, x = np.nonzero(peaks)
    strength = response[y, x]
    shifts = [_vertex(response[y - dy, x - dx], strength, response[y + dy, x + dx]) for dx, dy in ((1, 0), (0, 1))]
    return np.column_stack([x + shifts[0], y + shifts[1], np.full(len(x), scale), strength]).astype(np.float64)


def _vertex(before: NDArray[np.float32], at: NDArray[np.float32], after: NDArray[np.float32]) -> NDArray[np.float64]:
    """Offset (N,) of the vertex of the parabola through three responses from the middle one, half a step at most."""
    curvature = before.astype(np.float64) - 2 * at + after
    steep = curvature < -_NEAR * np.abs(at)
    shift = 0.5 * (before - after) / np.where(steep, curvature, 1)
    return np.where(steep, np.clip(shift, -0.5, 0.5), 0)
