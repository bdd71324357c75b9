"""Descriptors of patches, under one contract."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from index.arrays import fingerprint
from index.errors import CairnError
from retrieval.descriptors.gradients import orientation_channels

_CHUNK = 128  # patches at a time: their channels fit the second-level cache


class Descriptor(Protocol):
    """What every descriptor, designed or learnt, offers.

    The same patches give the same rows, to rounding, whatever else is in the batch; an affine change of the patch's
    grey values leaves a row nearly unchanged; a patch without contrast gives a finite row.
    """

    name: str
    dim: int
    patch_size: int
    fingerprint: str
    bytes: int  # that one descriptor takes where it is kept in its own form

    def describe(self, patches: np.ndarray) -> np.ndarray:
        """Describe patches (N, S, S), uint8 or float32, as rows (N, D) float32; N may be 0."""
        ...


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

    def describe(self, patches: np.ndarray) -> np.ndarray:
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


def check_patches(patches: np.ndarray, size: int) -> np.ndarray:
    """Give patches as float32 (N, S, S); raises ValueError where they have another shape."""
    if patches.ndim != 3 or patches.shape[1:] != (size, size):
        raise ValueError(f"patches must have the shape (N, {size}, {size}), not {patches.shape}")
    return np.ascontiguousarray(patches, np.float32)


def _bilinear_grid(size: int, bins: int) -> np.ndarray:
    """Pooling weights ((size-2)², bins²): triangles around a grid of bins, under a Gaussian of half its width."""
    width = size / (bins + 1)
    axis = np.arange(1, size - 1) - (size - 1) / 2
    centres = (np.arange(bins) - (bins - 1) / 2) * width
    triangle = np.maximum(0, 1 - np.abs(axis[:, None] - centres) / width)
    weighted = triangle * np.exp(-0.5 * (axis / (bins / 2 * width)) ** 2)[:, None]
    return np.einsum("yi,xj->yxij", weighted, weighted).reshape(axis.size**2, bins**2).astype(np.float32)


DESCRIPTORS: dict[str, Callable[[], Descriptor]] = {
    "sift": lambda: Sift(root=False),
    "rootsift": lambda: Sift(root=True),
}


MODELS = ("cairn", "rootsift-proj")
"""Learnt descriptors that come with Cairn; where they come from is told in their files."""

_SHIPPED = Path(__file__).parents[2] / "data" / "models"


def model_file(name: str, folder: Path | None = None) -> Path | None:
    """Give the file of a learnt descriptor, by its name or its own path; None for the others.

    Parameters
    ----------
    name : str
        See `find_descriptor`.
    folder : Path, optional
        What a relative path is relative to; the working folder otherwise.
    """
    if name in MODELS:
        return _SHIPPED / f"{name}.npz"
    return (folder or Path()) / name if name.endswith(".npz") else None


def find_descriptor(name: str, folder: Path | None = None) -> Descriptor:
    """Look a descriptor up by its name, or read it from its file.

    Parameters
    ----------
    name : str
        A name of `DESCRIPTORS` or `MODELS`; the path of a file (.npz) that `cairn learn` or `cairn compress` wrote; or
        building blocks, such as ``T3h-S4-25``, with the parameters that learning them begins with.
    folder : Path, optional
        What a relative path is relative to; the working folder otherwise.

    Raises
    ------
    CairnError
        There is none of that name, or its file is missing or damaged.
    """
    if name in DESCRIPTORS:
        return DESCRIPTORS[name]()
    file = model_file(name, folder)
    if file is not None:
        from retrieval.descriptors.learnt import LearntDescriptor, load_model

        return LearntDescriptor(load_model(file))
    from retrieval.descriptors.blocks.descriptor import is_blocks, named_blocks

    if is_blocks(name):
        from retrieval.descriptors.learnt import LearntDescriptor, LearntModel

        return LearntDescriptor(LearntModel("blocks", base_model=named_blocks(name)))
    known = ", ".join([*DESCRIPTORS, *MODELS])
    raise CairnError(
        f"There is no descriptor {name!r}; choose one of {known}, a file (.npz) of cairn learn, or blocks as T3h-S4-25."
    )
