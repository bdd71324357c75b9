"""SIFT and rootSIFT of a patch."""

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from retrieval.descriptors.contract import Both, check_patches
from retrieval.descriptors.gradients import orientation_ramps

_CHUNK = 48  # patches at a time: their gradients and a channel fit the second-level cache
_ORIENTATIONS = 8


class Sift:
    """SIFT on rectified patches (Lowe, IJCV 2004, section 6; the layout of VLFeat's `vl_covdet`).

    The 4x4 grid of bins spans the patch such that the outer bins' linear tails end at its border: a bin is a fifth of
    the patch. Magnitudes are weighted by a Gaussian of two bins, rows are normalised, clipped at 0.2, normalised again.

    Parameters
    ----------
    root : bool
        Give rootSIFT: L1-normalised, then the square root of each entry (Arandjelović & Zisserman, CVPR 2012).
    patch_size : int
        Samples along a patch's side.
    """

    dim = 128
    bytes = 4 * 128
    extent = 1.0

    def __init__(self, *, root: bool = False, patch_size: int = 31) -> None:
        self.name = "rootsift" if root else "sift"
        self.patch_size = patch_size
        self._root = root
        self._pooling = _pooling_weights(patch_size, bins=4)
        bins = np.arange(self.dim, dtype=np.int64).reshape(-1, _ORIENTATIONS)
        self._half_turn = np.roll(bins[::-1], _ORIENTATIONS // 2, axis=1).reshape(-1)
        # The parameters, not the arrays made of them: another processor may round those otherwise.
        self.fingerprint = fingerprint({}, {"descriptor": self.name, "patch": patch_size, "bins": 4, "version": 1})

    def describe(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        """Describe patches; see `Descriptor.describe`.

        Raises
        ------
        ValueError
            If the patches are not (N, patch_size, patch_size).
        """
        patches = check_patches(patches, self.patch_size)
        rows = np.empty((len(patches), self.dim), np.float32)
        for start in range(0, len(patches), _CHUNK):
            part = slice(start, start + _CHUNK)
            rows[part] = self._pool(patches[part])
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        np.minimum(rows, 0.2, out=rows)
        if self._root:
            rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1e-6)
            return np.sqrt(rows, out=rows)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        return rows

    def describe_both(self, patches: NDArray[np.uint8 | np.float32]) -> Both:
        """Take the bins of place from the other end, and of each the opposite orientations: see `Descriptor`."""
        rows = self.describe(patches)
        return rows, rows.take(self._half_turn, axis=1)

    def _pool(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Sums (N, 128) of the gradient's magnitude over the bins of place and orientation."""
        import cv2  # here: a descriptor is named without it

        number, size = len(patches), self.patch_size
        bins = len(self._pooling)
        # The patches of a chunk lie side by side, (S, S, N): a difference, and the pooling along an axis, is then one
        # operation on long rows.
        rows = cv2.transpose(patches.reshape(number, -1)).reshape(size, size * number)
        line = rows.reshape(-1)
        down = rows[2:] - rows[:-2]
        # In the first and last column, which have no weight, across the end of the row.
        across = line[(size + 1) * number : (1 - size) * number] - line[(size - 1) * number : -(size + 1) * number]
        pooled = np.empty((1 + _ORIENTATIONS, bins, size * number), np.float32)
        inner = np.ascontiguousarray(self._pooling[:, 1:-1])
        for place, ramp in zip(pooled, orientation_ramps(across.reshape(down.shape), down, _ORIENTATIONS), strict=True):
            np.matmul(inner, ramp, out=place)
        channels = pooled[:-1] - pooled[1:]
        channels[0] += pooled[-1]
        sums = np.matmul(self._pooling, channels.reshape(-1, size, number)).reshape(_ORIENTATIONS, -1, number)
        # Rounding may leave a little less than nothing.
        return np.asarray(np.maximum(sums.transpose(2, 1, 0).reshape(number, -1), 0))


def _pooling_weights(size: int, bins: int) -> NDArray[np.float32]:
    """Weights (bins, size) along an axis: triangles around bins, under a Gaussian of half their width; 0 at both ends.

    The weight of a sample in a bin of the plane is the product of those along the axes.
    """
    width = size / (bins + 1)
    axis = np.arange(size) - (size - 1) / 2
    centres = (np.arange(bins) - (bins - 1) / 2) * width
    weights = np.maximum(0, 1 - np.abs(axis - centres[:, None]) / width)
    weights *= np.exp(-0.5 * (axis / (bins / 2 * width)) ** 2)
    weights[:, [0, -1]] = 0  # where central differences lack a neighbour
    return weights.astype(np.float32)
