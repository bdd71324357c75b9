"""rootSIFT of a patch and of its middle: the surroundings are distinctive, and the middle is in full resolution."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.descriptors.contract import Both
from retrieval.descriptors.sift import Sift

VERSION = 1
"""Of what is computed here; to be raised with any change of the numbers it gives."""

EXTENT = 1.6
"""Side of the patches over that of measurement regions: with the usual sides the middle is as large as one of these."""

_MOST, _SMALLEST, _LARGEST = 8, 5, 256


@dataclass(frozen=True)
class NestedSift:
    """rootSIFT of nested squares of a patch, concatenated, with the contract of `bases.BaseModel`."""

    # samples along the sides of the squares, the whole patch first: all odd, or all even
    sides: tuple[int, ...] = (31, 19)

    @property
    def name(self) -> str:
        """As the contract has it."""
        return "-".join(["rootsift", *map(str, self.sides)])

    @property
    def dim(self) -> int:
        """As the contract has it."""
        return Sift.dim * len(self.sides)

    @property
    def bytes(self) -> int:
        """As the contract has it."""
        return Sift.bytes * len(self.sides)

    @property
    def patch_size(self) -> int:
        """As the contract has it."""
        return self.sides[0]

    @cached_property
    def _descriptors(self) -> list[Sift]:
        return [Sift(root=True, patch_size=side) for side in self.sides]

    def describe(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Describe patches; see `bases.BaseModel`."""
        return np.hstack([sift.describe(self._middle(patches, sift.patch_size)) for sift in self._descriptors])

    def describe_both(self, patches: NDArray[np.float32]) -> Both:
        """Describe patches, and the same turned by half; see `descriptors.Descriptor`."""
        both = [sift.describe_both(self._middle(patches, sift.patch_size)) for sift in self._descriptors]
        return np.hstack([rows for rows, _ in both]), np.hstack([rows for _, rows in both if rows is not None])

    def _middle(self, patches: NDArray[np.float32], side: int) -> NDArray[np.float32]:
        part = slice((self.patch_size - side) // 2, (self.patch_size + side) // 2)
        return np.ascontiguousarray(patches[:, part, part])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Empty: its parameters are in `meta`."""
        return {}

    def meta(self) -> dict[str, Any]:
        """Parameters of the rows, for JSON."""
        return {"version": VERSION, "sides": list(self.sides)}


def load_nested(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NestedSift:
    """Build the descriptor from untrusted `meta`; raises ValueError, KeyError or TypeError if it does not fit."""
    del arrays
    sides = meta["sides"]
    if meta["version"] != VERSION:
        raise ValueError("its nested patches are those of another version")
    if not 1 <= len(sides) <= _MOST or any(type(side) is not int for side in sides):
        raise ValueError("its nested patches are out of range")
    if not _SMALLEST <= sides[-1] <= sides[0] <= _LARGEST or sides != sorted(sides, reverse=True):
        raise ValueError("its nested patches are out of range")
    if any((side - sides[0]) % 2 for side in sides):
        raise ValueError("its nested patches have no common middle")
    return NestedSift(tuple(sides))
