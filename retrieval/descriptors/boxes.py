"""Responses of boxes within patches: the gradient energy of an orientation over that of all (Trzcinski12 section 3.3).

A box is a row ``x0, y0, x1, y1`` of samples: columns x0 to x1 - 1, rows y0 to y1 - 1.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from retrieval.descriptors.pooling import smoothing_operator

VERSION = 1
"""Of what is computed here; to be raised with any change of the numbers it gives."""

FAMILIES = ("gradient", "intensity")
"""Boosted gradient maps (equations 9 and 10), and the grey values of boosted similarity sensitive coding."""

_FAINTEST = 0.1  # lower bound of contrast, grey values for each sample


@dataclass(frozen=True)
class ResponseOptions:
    """Options of the responses of boxes."""

    family: str = "gradient"  # one of FAMILIES
    patch_size: int = 31  # samples along a side
    # Initial Gaussian smoothing, standard deviation in samples; 0: none, as in the paper. If patches are
    # seen at a slant it halves the errors (64 learners, graf: FPR95 8.6% with it, 15.8% without).
    smoothing: float = 2.0
    orientations: int = 24  # q
    # Ours: added to the energy of all orientations at each sample, in units of the mean gradient over the patch.
    # Equation 10 has no such term, so faint gradients weigh the same as strong ones; with a large one, responses are
    # energies over the contrast of the patch, as those of SIFT are. Of 0.01 to 10, 3 did best on validation pairs.
    floor: float = 3.0

    @property
    def channels(self) -> int:
        """Maps that a response can be of."""
        return self.orientations if self.family == "gradient" else 1


def integral_images(patches: NDArray[np.float32], options: ResponseOptions) -> NDArray[np.float64]:
    """Sum the maps of patches (N, S, S) from the top left corner on, so that a box's sum takes four look-ups: (N, C +
    1, S + 1, S + 1), of the channels, and last of the divisor of responses; row and column 0 are 0.
    """
    maps: NDArray[np.floating] = (
        _energies(patches, options) if options.family == "gradient" else _intensities(patches, options)
    )
    number, channels, size, _ = maps.shape
    # In double precision: a box's sum is a small difference of large ones.
    sums = np.empty((number * channels, size + 1, size + 1))
    for place, one in enumerate(maps.reshape(-1, size, size)):
        cv2.integral(one, sums[place], cv2.CV_64F)
    return sums.reshape(number, channels, size + 1, size + 1)


def responses(
    sums: NDArray[np.float64], boxes: NDArray[np.integer], channels: NDArray[np.integer]
) -> NDArray[np.float32]:
    """Responses φ (N, P) of boxes (equation 10): rows x0, y0, x1, y1 of `boxes`, each within the patch and not empty;
    `channels` (P,): the orientation e of each.
    """
    number, maps, side, _ = sums.shape
    corners = _corners(boxes, side)
    flat = sums.reshape(number, -1)
    above = _box_sums(flat, corners + channels.astype(np.intp) * side * side)
    below = _box_sums(flat, corners + (maps - 1) * side * side)
    above /= below
    return above.astype(np.float32)


def _corners(boxes: NDArray[np.integer], side: int) -> NDArray[np.int64]:
    """Places (4, P) in an integral image whose sums, with the signs + - - +, are those of boxes."""
    x0, y0, x1, y1 = boxes.T.astype(np.intp)
    return np.stack([y1 * side + x1, y0 * side + x1, y1 * side + x0, y0 * side + x0])


def _box_sums(flat: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    total = flat[:, places[0]]
    total -= flat[:, places[1]]
    total -= flat[:, places[2]]
    total += flat[:, places[3]]
    return total


def _energies(patches: NDArray[np.float32], options: ResponseOptions) -> NDArray[np.float32]:
    """Gradient energy ξ (N, q + 1, S, S) float32 along each orientation, and of all together (equation 10)."""
    operator = smoothing_operator(options.patch_size, options.smoothing)
    # One product for each patch, so that its result does not depend on their number.
    padded = np.matmul(np.matmul(operator, patches), operator.T)
    across = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    contrast = (across**2 + down**2).mean(axis=(1, 2), keepdims=True, dtype=np.float64) + _FAINTEST**2
    half = options.orientations // 2
    maps = np.empty((len(patches), options.orientations + 1, *across.shape[1:]), np.float32)
    for channel in range(half):
        angle = 2 * np.pi * channel / options.orientations
        along = np.float32(np.cos(angle)) * across + np.float32(np.sin(angle)) * down
        # Opposite orientations share a dot product, with opposite signs.
        np.maximum(along, 0, out=maps[:, channel])
        np.maximum(-along, 0, out=maps[:, channel + half])
    every = maps[:, -1]
    np.sum(maps[:, :-1], axis=1, out=every)
    every += (options.floor * options.orientations / np.pi * np.sqrt(contrast)).astype(np.float32)
    return maps


def _intensities(patches: NDArray[np.float32], options: ResponseOptions) -> NDArray[np.float64]:
    """Grey values (N, 2, S, S) float64 of mean 0 and deviation 1 over the patch, and ones."""
    operator = smoothing_operator(options.patch_size, options.smoothing)[1:-1]
    smooth = np.matmul(np.matmul(operator, patches), operator.T).astype(np.float64)
    smooth -= smooth.mean(axis=(1, 2), keepdims=True)
    smooth /= np.sqrt(np.square(smooth).mean(axis=(1, 2), keepdims=True) + _FAINTEST**2)
    return np.stack([smooth, np.ones_like(smooth)], axis=1)
