"""SIFT and rootSIFT of a patch."""

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from retrieval.descriptors.contract import check_patches
from retrieval.descriptors.gradients import orientation_channels

_CHUNK = 128  # patches at a time: their channels fit the second-level cache


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

    def __init__(self, *, root: bool = False, patch_size: int = 31) -> None:
        self.name = "rootsift" if root else "sift"
        self.patch_size = patch_size
        self._root = root
        self._pooling = _bilinear_grid(patch_size, bins=4)
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
            channels = orientation_channels(patches[start : start + _CHUNK])
            pooled = channels.reshape(-1, channels.shape[2]) @ self._pooling
            pooled = pooled.reshape(len(channels), -1, self._pooling.shape[1])  # (8, n, 16)
            rows[start : start + _CHUNK] = pooled.transpose(1, 2, 0).reshape(-1, self.dim)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        np.minimum(rows, 0.2, out=rows)
        if self._root:
            rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1e-6)
            return np.sqrt(rows, out=rows)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        return rows


def _bilinear_grid(size: int, bins: int) -> NDArray[np.float32]:
    """Pooling weights ((size-2)², bins²): triangles around a grid of bins, under a Gaussian of half its width."""
    width = size / (bins + 1)
    axis = np.arange(1, size - 1) - (size - 1) / 2
    centres = (np.arange(bins) - (bins - 1) / 2) * width
    triangle = np.maximum(0, 1 - np.abs(axis[:, None] - centres) / width)
    weighted = triangle * np.exp(-0.5 * (axis / (bins / 2 * width)) ** 2)[:, None]
    return np.asarray(np.einsum("yi,xj->yxij", weighted, weighted).reshape(axis.size**2, bins**2).astype(np.float32))
