"""Codes: compressed forms of a real-valued descriptor's rows (Simonyan14 section 8), binary or product-quantised."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import one_thread

WORDS = 256
"""Codewords of a sub-quantiser: its part of a code is one byte."""

_MOST_ROTATED = 2048  # entries of rows that are turned before they are cut into parts
_BLOCK = 256  # rows that are coded at a time
_DAMAGED = "The descriptor's code is damaged: {}; compress the descriptor again."


class Code(Protocol):
    """The interface of codes. The packed code of a row does not depend on its batch."""

    @property
    def source_dim(self) -> int:
        """Length m of the rows that are coded."""

    @property
    def dim(self) -> int:
        """Length of rows from `apply`."""

    @property
    def bytes(self) -> int:
        """Bytes of a packed code."""

    def apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Encode and decode rows (N, m) to (N, dim): the squared Euclidean distance of two such rows is the
        distance of the codes, Hamming's or the symmetric one. Raises ValueError for rows of another length.
        """

    def encode(self, rows: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Return the packed codes (N, bytes) uint8 of rows (N, m) float32; raises as `apply` does."""

    def decode(self, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Decode packed codes (N, bytes) uint8 to rows like those of `apply`, (N, dim) float32."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays to be kept in a descriptor file."""

    def meta(self) -> dict[str, Any]:
        """Other parameters to store: the kind of code, and its bits."""


@dataclass(frozen=True, eq=False)
class BinaryCode:
    """Signs of an expansion: β = sgn(U (Ψ - mean) - t), sgn(a) = 1 iff a > 0 (Simonyan14 equation 14, where t = 0)."""

    mean: NDArray[np.float32]  # (m,) float32: of the descriptor, so that the expanded rows are centred on zero
    frame: NDArray[np.float32]  # (q, m) float32: U, one vector of the frame a row, one bit of the code each
    thresholds: NDArray[np.float32] | None = None  # (q,) float32: t; None: all are zero

    def __post_init__(self) -> None:
        _check_floats(self.frame, (None, None), "frame")
        _check_floats(self.mean, (self.frame.shape[1],), "mean")
        if self.thresholds is not None:
            _check_floats(self.thresholds, (len(self.frame),), "thresholds")

    @property
    def source_dim(self) -> int:
        """Length m of the rows that are coded."""
        return int(self.frame.shape[1])

    @property
    def dim(self) -> int:
        """Bits q."""
        return len(self.frame)

    @property
    def bytes(self) -> int:
        """Bytes of a packed code."""
        return (self.dim + 7) // 8

    def apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows (N, m) as their bits, (N, q) float32 of 0 and 1: their squared distance is Hamming's."""
        return self.decode(self.encode(rows))

    def encode(self, rows: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Return the packed bits (N, bytes) uint8 of rows (N, m), the lowest first."""
        rows = _check_rows(rows, self.source_dim)
        thresholds = 0 if self.thresholds is None else self.thresholds
        packed = np.empty((len(rows), self.bytes), np.uint8)
        for part in _blocks(len(rows)):
            positive = _exact_product(rows[part] - self.mean, self.frame.T) > thresholds
            packed[part] = np.packbits(positive, axis=1, bitorder="little")
        return packed

    def decode(self, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return packed bits (N, bytes) uint8 as (N, q) float32 of 0 and 1."""
        packed = _check_packed(packed, self.bytes)
        return np.unpackbits(packed, axis=1, count=self.dim, bitorder="little").astype(np.float32)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Arrays to be kept in a descriptor file."""
        arrays = {"mean": self.mean, "frame": self.frame}
        return arrays if self.thresholds is None else {**arrays, "thresholds": self.thresholds}

    def meta(self) -> dict[str, Any]:
        """What else is to be kept."""
        return {"kind": "binary", "bits": self.dim}


@dataclass(frozen=True, eq=False)
class ProductCode:
    """Product quantisation (Jégou, Douze, Schmid, PAMI 2011): each part of a row is replaced by its nearest codeword.
    Parts may differ in length, so nothing is padded if the number of parts does not divide m.
    """

    centroids: NDArray[np.float32]  # (256, m) float32: the codewords of all parts, side by side
    sizes: NDArray[np.int32]  # (G,) int32: length of each part; m in all
    rotation: NDArray[np.float32] | None = None  # (m, m) float32, orthogonal: rows @ rotation is divided into parts

    def __post_init__(self) -> None:
        _check_floats(self.centroids, (WORDS, None), "centroids")
        dim = self.centroids.shape[1]
        if self.sizes.ndim != 1 or self.sizes.dtype != np.int32:
            raise CairnError(_DAMAGED.format("its sizes are of the wrong type"))
        if not len(self.sizes) or self.sizes.min() < 1 or self.sizes.sum(dtype=np.int64) != dim:
            raise CairnError(_DAMAGED.format("its sizes do not add up to the length of a row"))
        if self.rotation is not None:
            _check_floats(self.rotation, (dim, dim), "rotation")
            if dim > _MOST_ROTATED:  # the time that the check below takes grows with its cube
                raise CairnError(_DAMAGED.format("its rotation is far larger than any descriptor's"))
            with one_thread():
                gram = self.rotation.T.astype(np.float64) @ self.rotation
            if np.abs(gram - np.eye(dim)).max() > 1e-3:
                raise CairnError(_DAMAGED.format("its rotation is not orthogonal"))

    @property
    def source_dim(self) -> int:
        """Length m of the rows that are coded."""
        return int(self.centroids.shape[1])

    @property
    def dim(self) -> int:
        """Length m of a decoded row."""
        return int(self.centroids.shape[1])

    @property
    def bytes(self) -> int:
        """Bytes of a code: one for each part."""
        return len(self.sizes)

    def apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows (N, m) as their codes stand for: their squared distance is the symmetric one."""
        return self.decode(self.encode(rows))

    def encode(self, rows: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Return the numbers (N, G) uint8 of the codewords nearest to the parts of rows (N, m)."""
        rows = self._rotated(_check_rows(rows, self.source_dim))
        packed = np.empty((len(rows), self.bytes), np.uint8)
        for block in _blocks(len(rows)):
            for part, (columns, centroids) in enumerate(self._parts):
                packed[block, part] = _nearest_words(rows[block, columns], centroids)
        return packed

    def decode(self, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Decode codes (N, G) uint8 to rows (N, m) float32, with the rotation undone."""
        packed = _check_packed(packed, self.bytes)
        rows = np.empty((len(packed), self.dim), np.float32)
        for part, (columns, centroids) in enumerate(self._parts):
            rows[:, columns] = centroids[packed[:, part]]
        return rows if self.rotation is None else _turned(rows, self.rotation.T)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays to be kept in a descriptor file."""
        arrays = {"centroids": self.centroids, "sizes": self.sizes}
        return arrays if self.rotation is None else {**arrays, "rotation": self.rotation}

    def meta(self) -> dict[str, Any]:
        """What else is to be kept."""
        return {"kind": "product", "bits": 8 * self.bytes}

    def _rotated(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return rows if self.rotation is None else _turned(rows, self.rotation)

    @cached_property
    def _parts(self) -> list[tuple[slice, NDArray[np.float32]]]:
        """Columns and codewords (256, size) of each part."""
        ends = np.cumsum(self.sizes).tolist()
        columns = [slice(end - size, end) for end, size in zip(ends, self.sizes.tolist(), strict=True)]
        return [(part, np.ascontiguousarray(self.centroids[:, part])) for part in columns]


def load_code(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Code:
    """Build a code from its `meta` and `arrays`."""
    if not isinstance(meta, Mapping) or meta.get("kind") not in ("binary", "product"):
        raise CairnError(_DAMAGED.format("it is neither binary nor a product"))
    names = ("mean", "frame") if meta["kind"] == "binary" else ("centroids", "sizes")
    missing = [name for name in names if name not in arrays]
    if missing:
        raise CairnError(_DAMAGED.format(f"its {missing[0]} is missing"))
    first, second = (arrays[name] for name in names)
    code: Code = (
        BinaryCode(first, second, arrays.get("thresholds"))
        if meta["kind"] == "binary"
        else ProductCode(first, second, arrays.get("rotation"))
    )
    if meta.get("bits") != code.meta()["bits"]:
        raise CairnError(_DAMAGED.format(f"it has {code.meta()['bits']} bits, and should have another number"))
    return code


def _nearest_words(parts: NDArray[np.float32], centroids: NDArray[np.float32]) -> NDArray[np.int64]:
    """Numbers (N,) intp of the codewords (K, d) float32 that are nearest to parts (N, d) float32 of rows."""
    if centroids.shape[1] == 1:  # on a line, the nearest is found by the midpoints
        order = np.argsort(centroids[:, 0], kind="stable")
        words = centroids[order, 0]
        return order[np.searchsorted((words[1:] + words[:-1]) / 2, parts[:, 0])]
    # |x - c|² = |x|² - 2 (x·c - |c|²/2), and |x|² is the same for all codewords.
    nearness = _exact_product(parts, centroids.T)
    nearness -= (centroids.astype(np.float64) ** 2).sum(axis=1) / 2
    return np.asarray(nearness.argmax(axis=1))


def _exact_product(rows: NDArray[np.float32], matrix: NDArray[np.float32]) -> NDArray[np.float64]:
    """Product (N, n) float64 of matrices of float32.

    The order in which a product's sums are taken, and with it their last bit, depends on the number of rows. In double
    precision that bit is far too small to decide a sign or which codeword is nearest; in single precision it is not.
    """
    with one_thread():
        return rows.astype(np.float64) @ matrix.astype(np.float64)


def _turned(rows: NDArray[np.float32], rotation: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows (N, m) float32 times a rotation (m, m)."""
    turned = np.empty_like(rows)
    for part in _blocks(len(rows)):
        turned[part] = _exact_product(rows[part], rotation)
    return turned


def _blocks(number: int) -> Iterator[slice]:
    """Slices of rows that are coded at a time, to bound the memory."""
    return (slice(start, start + _BLOCK) for start in range(0, number, _BLOCK))


def _check_rows(rows: NDArray[np.float32], dim: int) -> NDArray[np.float32]:
    rows = np.asarray(rows, np.float32)
    if rows.ndim != 2 or rows.shape[1] != dim:
        raise ValueError(f"rows must have the shape (N, {dim}), not {rows.shape}")
    return rows


def _check_packed(packed: NDArray[np.uint8], length: int) -> NDArray[np.uint8]:
    packed = np.asarray(packed)
    if packed.ndim != 2 or packed.shape[1] != length or packed.dtype != np.uint8:
        raise ValueError(f"packed codes must be (N, {length}) uint8, not {packed.shape} {packed.dtype}")
    return packed


def _check_floats(array: NDArray[Any], shape: tuple[int | None, ...], name: str) -> None:
    """Raise CairnError if an array is not of this shape (None: any length but 0), not float32 or not finite."""
    fits = array.ndim == len(shape) and all(
        length > 0 and wanted in (None, length) for length, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        raise CairnError(_DAMAGED.format(f"its {name} has the shape {array.shape}"))
    if array.dtype != np.float32 or not np.isfinite(array).all():
        raise CairnError(_DAMAGED.format(f"its {name} does not consist of finite 32-bit numbers"))
