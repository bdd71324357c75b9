"""The contract of descriptors of patches."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError

Both = tuple[NDArray[np.float32], NDArray[np.float32] | None]
"""Rows of patches, and rows of the patches turned by half."""


class Descriptor(Protocol):
    """The interface of all descriptors, designed or learnt.

    The same patches give the same rows, to rounding, whatever else is in the batch; an affine change of the patch's
    grey values leaves a row nearly unchanged; a patch without contrast gives a finite row.
    """

    name: str
    dim: int
    patch_size: int
    extent: float  # side of the patch over that of the detector's own measurement region
    fingerprint: str
    bytes: int  # of one descriptor in its own stored form

    def describe(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        """Describe patches (N, S, S), uint8 or float32, as rows (N, D) float32; N may be 0."""
        ...

    def describe_both(self, patches: NDArray[np.uint8 | np.float32]) -> Both:
        """Describe patches, and the same turned by half a turn if that needs no second pass, else None; optional."""
        ...


def describe_both(descriptor: Descriptor, patches: NDArray[np.uint8 | np.float32]) -> Both:
    """Describe patches by `Descriptor.describe_both`, if a descriptor has it."""
    both = getattr(descriptor, "describe_both", None)
    return (descriptor.describe(patches), None) if both is None else both(patches)


def check_patches(patches: NDArray[np.uint8 | np.float32], size: int) -> NDArray[np.float32]:
    """Return patches as float32 (N, S, S); raises ValueError if they have another shape."""
    if patches.ndim != 3 or patches.shape[1:] != (size, size):
        raise ValueError(f"patches must have the shape (N, {size}, {size}), not {patches.shape}")
    return np.ascontiguousarray(patches, np.float32)


def signs_of(descriptor: Descriptor) -> NDArray[np.float32] | None:
    """Return the signs (D,), 1 or -1, of the inner product that a descriptor's rows are compared by; None: by distance.

    A few learnt descriptors have them (Trzcinski12 equation 7): the more similar, the larger the sum of the products of
    entries times their sign. No nearest-neighbour search knows that.
    """
    signs: NDArray[np.float32] | None = getattr(descriptor, "signs", None)
    return signs


def check_distance(descriptor: Descriptor) -> None:
    """Raise CairnError if a descriptor's rows are not compared by their distance."""
    if signs_of(descriptor) is not None:
        raise CairnError(
            "{descriptor} uses a signed inner product, which no search supports: learn it with {--comparison} "
            "distance, or measure it with {cairn evaluate patches}.",
            descriptor=descriptor.name,
        )
