"""SIFT and rootSIFT of a patch."""

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from retrieval.descriptors.contract import Both, check_patches

_ORIENTATIONS = 8


class Sift:
    """SIFT on rectified patches (Lowe, IJCV 2004, section 6; the layout of VLFeat's `vl_covdet`). The 4x4 grid of bins
    spans the patch such that the outer bins' linear tails end at its border: a bin is a fifth of the patch. Magnitudes
    are weighted by a Gaussian of two bins, rows are normalised, clipped at 0.2, normalised again.
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
        # The parameters, not the arrays made from them, which other processors may round differently.
        self.fingerprint = fingerprint({}, {"descriptor": self.name, "patch": patch_size, "bins": 4, "version": 1})

    def describe(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        """Describe patches; see `Descriptor.describe`. Raises ValueError for patches of another size."""
        from retrieval.descriptors.sift_kernels import pool_gradients  # imported here, as Numba loads slowly

        grey = check_patches(patches, self.patch_size)
        rows = np.empty((len(patches), self.dim), np.float32)
        pool_gradients(grey, self._pooling, rows)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        np.minimum(rows, 0.2, out=rows)
        if self._root:
            rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1e-6)
            return np.sqrt(rows, out=rows)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        return rows

    def describe_both(self, patches: NDArray[np.uint8 | np.float32]) -> Both:
        """Reverse the bins of place, and use the opposite orientations in each: see `Descriptor`."""
        rows = self.describe(patches)
        return rows, rows.take(self._half_turn, axis=1)


def _pooling_weights(size: int, bins: int) -> NDArray[np.float32]:
    """Weights (bins, size) along an axis: triangles around bins, under a Gaussian of half their width."""
    width = size / (bins + 1)
    axis = np.arange(size) - (size - 1) / 2
    centres = (np.arange(bins) - (bins - 1) / 2) * width
    weights = np.maximum(0, 1 - np.abs(axis - centres[:, None]) / width)
    weights *= np.exp(-0.5 * (axis / (bins / 2 * width)) ** 2)
    weights[:, [0, -1]] = 0  # central differences lack a neighbour there
    return weights.astype(np.float32)
