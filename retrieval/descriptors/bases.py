"""Bases of learnt descriptors that bring their own parameters, by the name that a descriptor file gives them."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from retrieval.descriptors.blocks.descriptor import load_blocks
from retrieval.descriptors.boosted import load_boosted
from retrieval.descriptors.nested import load_nested


class BaseModel(Protocol):
    """What such a base offers: it describes patches, and says what is to be kept of it.

    Rows keep the contract of `descriptors.Descriptor`; a projection or a code may follow them.
    """

    @property
    def name(self) -> str:
        """How tables call the descriptor, its projection included."""

    @property
    def dim(self) -> int:
        """Entries of a row."""

    @property
    def bytes(self) -> int:
        """Bytes that one row takes where it is kept in its own form."""

    @property
    def patch_size(self) -> int:
        """Samples along a patch's side."""

    def describe(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Describe patches (N, S, S) float32 as rows (N, dim) float32; N may be 0."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that shape the rows, by their names in a descriptor file: none that `learnt` itself gives."""

    def meta(self) -> dict[str, Any]:
        """What else shapes the rows, for JSON."""


NESTED = "nested"
"""rootSIFT of a patch and of its middle."""

LOADERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, NDArray[Any]]], BaseModel]] = {
    "blocks": load_blocks,
    "boosted": load_boosted,
    NESTED: load_nested,
}
"""What builds each from its `meta` and from all arrays of a file, neither of them trusted.

A loader checks everything, and raises ValueError, KeyError, TypeError or CairnError where something does not fit.
"""
