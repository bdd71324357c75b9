"""Bases of learnt descriptors with their own parameters, by their name in a descriptor file."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from retrieval.descriptors.blocks.descriptor import load_blocks
from retrieval.descriptors.boosted import load_boosted
from retrieval.descriptors.nested import load_nested


class BaseModel(Protocol):
    """A base under the contract of `descriptors.Descriptor`, with parameters for storage; a projection or code may
    follow.
    """

    @property
    def name(self) -> str:
        """How tables call the descriptor, its projection included."""

    @property
    def dim(self) -> int:
        """Entries of a row."""

    @property
    def bytes(self) -> int:
        """Bytes of one row in its own stored form."""

    @property
    def patch_size(self) -> int:
        """Samples along a patch's side."""

    def describe(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Describe patches (N, S, S) float32 as rows (N, dim) float32; N may be 0."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of parameters, by names in a descriptor file that `learnt` itself does not use."""

    def meta(self) -> dict[str, Any]:
        """Other parameters of the rows, for JSON."""


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
