"""Sources of descriptors that can be read repeatedly: arrays, and sequences of files."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.arrays import load_array
from index.errors import CairnError

# 16 MiB of 128-D descriptors: larger blocks would be returned to the system, and cleared by it, each time.
BLOCK_ROWS = 32_768


class DescriptorSource(Protocol):
    """Descriptors that can be read from the start as often as needed, in the same order each time."""

    @property
    def dim(self) -> int:
        """Length of a descriptor; 0 if there are no descriptors."""

    def __len__(self) -> int:
        """Number of descriptors."""

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """All descriptors in order, as (n, D) float32 arrays of a bounded size."""


class ArraySource:
    """Descriptors in an array or a memory map."""

    def __init__(self, array: NDArray[np.floating], block_rows: int = BLOCK_ROWS) -> None:
        if array.ndim != 2 or array.dtype not in (np.float16, np.float32):
            raise ValueError(f"descriptors must be (N, D) float16 or float32, not {array.shape} {array.dtype}")
        self._array = array
        self._block_rows = block_rows

    @property
    def dim(self) -> int:
        """Length of a descriptor."""
        return int(self._array.shape[1])

    def __len__(self) -> int:
        return len(self._array)

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """All descriptors in order, as (n, D) float32 arrays."""
        for start in range(0, len(self), self._block_rows):
            yield np.ascontiguousarray(self._array[start : start + self._block_rows], dtype=np.float32)


class FileSource:
    """Descriptors in .npy files, one after the other, one block in memory at a time. Blocks are filled across files, so
    the division into files makes no difference.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        block_rows: int = BLOCK_ROWS,
        *,
        counts: Sequence[int] | None = None,
        opened: Callable[[Path], Path] | None = None,
    ) -> None:
        self.paths = [Path(path) for path in paths]
        self.block_rows = block_rows
        self._opened = opened
        self._dim = 0
        known = counts or []
        if counts is None:
            known = [len(self._load(path)) for path in self.paths]
        elif self.paths:
            self._load(self.paths[0])
        self.ends = np.cumsum(known, dtype=np.int64)

    @property
    def dim(self) -> int:
        """Length of a descriptor; 0 if there are no files."""
        return self._dim

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def blocks(self, first: int = 0, last: int | None = None) -> Iterator[NDArray[np.float32]]:
        """All descriptors in order, as (n, D) float32 arrays; or those of some blocks, up to `last`, exclusive."""
        start = first * self.block_rows
        end = len(self) if last is None else min(last * self.block_rows, len(self))
        block, filled = np.empty((min(end - start, self.block_rows), self._dim), np.float32), 0
        for number in range(int(np.searchsorted(self.ends, start, side="right")), len(self.paths)):
            if start >= end:
                return
            array = self._load(self.paths[number])
            before = int(self.ends[number]) - len(array)
            while start < min(before + len(array), end):
                part = array[start - before : min(start - before + len(block) - filled, end - before)]
                block[filled : filled + len(part)] = part
                start, filled = start + len(part), filled + len(part)
                if filled == len(block):
                    yield block
                    block, filled = np.empty((min(end - start, self.block_rows), self._dim), np.float32), 0

    def _load(self, path: Path) -> NDArray[np.floating]:
        array = load_array(self._opened(path) if self._opened else path, mmap=True)
        if array.ndim != 2 or array.dtype not in (np.float16, np.float32):
            raise CairnError(
                "{path} holds no descriptors, which are (n, D) float16 or float32: extract it again.", path=path
            )
        if self._dim not in (0, array.shape[1]):
            raise CairnError(
                "{path} has descriptors of {dim} numbers, the others of {others}.",
                path=path,
                dim=array.shape[1],
                others=self._dim,
            )
        self._dim = array.shape[1]
        return array
