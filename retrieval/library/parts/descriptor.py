"""Descriptors of patches, by name or file."""

from os import PathLike, fspath
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import CairnError
from index.extensions import check_contract
from index.parallel import one_thread
from retrieval.descriptors.contract import Descriptor as DescriptorContract
from retrieval.descriptors.contract import signs_of
from retrieval.descriptors.foreign import ForeignDescriptor
from retrieval.descriptors.registry import DESCRIPTORS, MODELS, find_descriptor
from retrieval.library.parts.arguments import LARGEST, as_array, checked_rows
from retrieval.regions.patches import resample_patches


class Descriptor:
    """Converts patches to rows of numbers, which are near each other if the patches show the same.

    Made by `load`.

    Attributes
    ----------
    NAMES : tuple of str
        Descriptors that come with Cairn.

    Examples
    --------
    >>> import numpy as np
    >>> import cairn
    >>> rootsift = cairn.Descriptor.load("rootsift")
    >>> rootsift.name, rootsift.dim, rootsift.side
    ('rootsift', 128, 31)
    >>> ramps = np.stack([np.tile(np.arange(31.0), (31, 1)), np.tile(np.arange(31.0)[:, None], (1, 31))])
    >>> rows = rootsift.describe(ramps)
    >>> rows.shape, rows.dtype
    ((2, 128), dtype('float32'))
    >>> bool(rootsift.distance(rows[0], rows[1]) > 1)
    True
    """

    NAMES = (*DESCRIPTORS, *MODELS)

    def __init__(self, made: DescriptorContract) -> None:
        self._made = made

    @classmethod
    def load(cls, name: "str | PathLike[str]") -> "Descriptor":
        """Look up a descriptor by name, or read it from its file.

        Parameters
        ----------
        name : str or path
            One of `Descriptor.NAMES`; a file (.npz) that `cairn.learn_descriptor` or `cairn learn` wrote; or building
            blocks, such as ``T3h-S4-25`` (Brown, Hua & Winder, PAMI 2011).

        Raises
        ------
        CairnError
            The name is unknown, or its file is missing or damaged.

        Examples
        --------
        >>> import cairn
        >>> cairn.Descriptor.load("sift")
        Descriptor('sift', dim=128, side=31)
        """
        if isinstance(name, Path) and name.suffix != ".npz":
            raise CairnError(f"{name} is no file of a descriptor, which ends in .npz.")
        text = fspath(name)
        if not isinstance(text, str):
            raise CairnError(f"A descriptor is named by text, not {text!r}.")
        contract = find_descriptor(text)
        if isinstance(contract, ForeignDescriptor):
            contract.describe(np.empty((0, 1, 1), np.float32))  # refuses
        return Descriptor(contract)  # the record of how it was learnt may be missing

    @property
    def contract(self) -> DescriptorContract:
        """The internal object, for the rest of Cairn."""
        return self._made

    @property
    def name(self) -> str:
        """How tables call it."""
        return self._made.name

    @property
    def dim(self) -> int:
        """Length of a row, D."""
        return self._made.dim

    @property
    def side(self) -> int:
        """Samples along the side of a patch, S."""
        return self._made.patch_size

    @property
    def extent(self) -> float:
        """Side of its patches over that of the detector's own measurement regions."""
        return self._made.extent

    @property
    def bytes(self) -> int:
        """Bytes of one stored row, for example of a code."""
        return self._made.bytes

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all data that determines rows: those of equal fingerprints can be compared."""
        return self._made.fingerprint

    def describe(self, patches: ArrayLike) -> NDArray[np.float32]:
        """Describe patches.

        Parameters
        ----------
        patches : array_like, shape (N, S, S)
            Grey values of any scale, as from `patches`; N may be 0. Patches of another side than `side` are resampled.

        Returns
        -------
        ndarray, shape (N, D), float32

        Raises
        ------
        CairnError
            They have another shape, or values that are not finite.

        Examples
        --------
        >>> import numpy as np
        >>> import cairn
        >>> cairn.Descriptor.load("surf").describe(np.zeros((0, 64, 64))).shape
        (0, 64)
        """
        array = as_array(patches, "patches")
        if array.ndim != 3 or array.shape[1] != array.shape[2] or array.shape[1] < 2:
            raise CairnError(f"Patches must have the shape (N, S, S), S of at least 2, not {array.shape}.")
        if array.dtype.kind not in "fiu" or not (np.abs(array) <= LARGEST).all():  # NaN is not, either
            raise CairnError(f"Patches must be finite numbers, at most {LARGEST:g}.")
        with one_thread():
            return self._made.describe(resample_patches(array.astype(np.float32, copy=False), self.side))

    def distance(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float32]:
        """Distance of rows, one to one: the smaller, the more alike.

        Parameters
        ----------
        first, second : array_like, shape (N, D) or (D,)
            Rows of `describe`. One row is compared with each of several.

        Returns
        -------
        ndarray, shape (N,) or (), float32
            Euclidean distance; of a descriptor that is compared by a signed inner product (Trzcinski & Lepetit, PAMI
            2013, equation 7), that product with its sign changed.

        Raises
        ------
        CairnError
            The rows have another length than this descriptor's, or their numbers differ.

        Examples
        --------
        >>> import numpy as np
        >>> import cairn
        >>> rows = np.eye(2, 128, dtype=np.float32)
        >>> cairn.Descriptor.load("sift").distance(rows[0], rows).round(3)
        array([0.   , 1.414], dtype=float32)
        """
        sides = [as_array(side, "descriptors") for side in (first, second)]
        rows = [checked_rows(np.atleast_2d(side), "descriptors", self.dim) for side in sides]
        if len(rows[0]) != len(rows[1]) and 1 not in map(len, rows):
            raise CairnError(
                f"Distances are of as many rows on both sides, or of one, not {len(rows[0])} and {len(rows[1])}."
            )
        signs = signs_of(self._made)
        if signs is not None:
            distances = -(rows[0] * rows[1]) @ signs
        else:
            difference = rows[0] - rows[1]
            distances = np.sqrt(np.einsum("nd,nd->n", difference, difference))
        return np.asarray(distances[0] if all(side.ndim == 1 for side in sides) else distances, np.float32)

    def __repr__(self) -> str:
        return f"Descriptor({self.name!r}, dim={self.dim}, side={self.side})"


def contract_of(descriptor: "str | PathLike[str] | Descriptor | DescriptorContract") -> DescriptorContract:
    """The internal descriptor of a name, a file, a `Descriptor` or an object that fulfils the contract."""
    if isinstance(descriptor, str | PathLike):
        return Descriptor.load(descriptor).contract
    if isinstance(descriptor, Descriptor):
        return descriptor.contract
    check_contract("descriptor", descriptor)
    return descriptor
