"""A patch's own grey values, as a baseline descriptor."""

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from retrieval.descriptors.contract import Both, check_patches

_FAINTEST = 0.1  # lower bound of the standard deviation, grey values


class RawPixels:
    """Grey values normalised for bias and gain, for the sum of squared differences (SSD; Brown11 section VI.B). A row
    is the patch's grey values less their mean, of unit length: the squared distance of two is 2 - 2 ρ, ρ being their
    correlation.
    """

    extent = 1.0

    def __init__(self, patch_size: int = 64) -> None:
        self.name = "ssd" if patch_size == 64 else f"ssd-{patch_size}"
        self.patch_size = patch_size
        self.dim = patch_size**2
        self.bytes = 4 * self.dim
        self.fingerprint = fingerprint({}, {"descriptor": "ssd", "patch": self.patch_size, "version": 1})

    def describe(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        """Describe patches; see `Descriptor.describe`. Raises ValueError for patches of another size."""
        grey = check_patches(patches, self.patch_size).reshape(len(patches), self.dim)
        rows: NDArray[np.float32] = grey - grey.mean(axis=1, keepdims=True)
        lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))
        rows /= np.maximum(lengths, np.float32(_FAINTEST * self.patch_size))[:, None]
        return rows

    def describe_both(self, patches: NDArray[np.uint8 | np.float32]) -> Both:
        """Reverse the samples: see `Descriptor`."""
        rows = self.describe(patches)
        return rows, np.ascontiguousarray(rows[:, ::-1])
