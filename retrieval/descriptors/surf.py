"""SURF of a patch."""

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from retrieval.descriptors.contract import Both, check_patches

_CELLS, _POINTS = 4, 5  # cells along a side, and sample points along a side of one
_STEP = 2  # samples of the patch between two points: s
_SIGMA = 3.3  # of the weight, in s
_CHUNK = 256  # patches at a time


class Surf:
    """SURF on rectified patches (Bay, Ess, Tuytelaars, Van Gool, CVIU 2008, section 4.2), of 64 dimensions.

    The window is of 20 s, in 4x4 cells of 5x5 points. At each point are Haar responses d_x and d_y of boxes of 2 s,
    weighted by a Gaussian of 3.3 s around the patch's centre. A cell gives Σ d_x, Σ d_y, Σ |d_x| and Σ |d_y|; the row
    has unit length. The boxes of the outermost points end at the patch's border: it is 21 s wide, 42 samples.
    """

    name = "surf"
    dim = 4 * _CELLS**2
    bytes = 4 * dim
    extent = 1.0
    patch_size = _STEP * (_CELLS * _POINTS + 1)

    def __init__(self) -> None:
        self.fingerprint = fingerprint({}, {"descriptor": self.name, "patch": self.patch_size, "version": 1})
        points = np.arange(_CELLS * _POINTS) - (_CELLS * _POINTS - 1) / 2
        weight = np.exp(-0.5 * (points / _SIGMA) ** 2)
        self._weights = np.outer(weight, weight).astype(np.float32)

    def describe(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        """Describe patches; see `Descriptor.describe`. Raises ValueError if the patches are not (N, 42, 42)."""
        patches = check_patches(patches, self.patch_size)
        rows = np.empty((len(patches), self.dim), np.float32)
        for start in range(0, len(patches), _CHUNK):
            part = slice(start, start + _CHUNK)
            rows[part] = self._sums(*haar_responses(patches[part]))
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-3))

    def describe_both(self, patches: NDArray[np.uint8 | np.float32]) -> Both:
        """Reverse the cells, and negate the sums of responses, but not of magnitudes: see `Descriptor`."""
        rows = self.describe(patches)
        turned = rows.reshape(len(rows), _CELLS**2, 4)[:, ::-1] * np.array([-1, -1, 1, 1], np.float32)
        return rows, np.ascontiguousarray(turned.reshape(rows.shape))

    def _sums(self, across: NDArray[np.float32], down: NDArray[np.float32]) -> NDArray[np.float32]:
        """Sums (N, 64) over the cells."""
        weighted = np.stack([across, down, np.abs(across), np.abs(down)], axis=1) * self._weights
        cells = weighted.reshape(len(across), 4, _CELLS, _POINTS, _CELLS, _POINTS).sum(axis=(3, 5))
        return np.asarray(cells.transpose(0, 2, 3, 1).reshape(len(across), -1))


def haar_responses(patches: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Haar responses d_x, d_y (N, S / 2 - 1, S / 2 - 1) at points of patches, of boxes of 4 x 4 samples, means of
    either half: grey values right less left, and below less above.
    """
    size = patches.shape[1] // _STEP
    quarters = patches.reshape(len(patches), size, _STEP, size, _STEP).mean(axis=(2, 4))
    left, right = quarters[:, :, :-1], quarters[:, :, 1:]
    across, along = right - left, right + left
    return (across[:, :-1] + across[:, 1:]) / 2, (along[:, 1:] - along[:, :-1]) / 2
