"""Descriptors of selected mined patches, in a file or in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import load_array
from index.parallel import one_thread, run
from index.progress import Step, silent
from learning.mining.matches import MinedMatches

_BATCH = 8_192  # patches described at a time


@dataclass(frozen=True)
class Described:
    """Rows of some patches of a mined file."""

    numbers: NDArray[np.integer]  # (V,) patches, ascending
    rows: NDArray[np.float16]  # (V, n)

    @property
    def dim(self) -> int:
        """Entries of a row."""
        return int(self.rows.shape[1])

    def places(self, patches: NDArray[np.integer]) -> NDArray[np.int64]:
        """Indices of the rows of patches (K,)."""
        return np.searchsorted(self.numbers, patches)

    def take(self, patches: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return the rows (K, n) float32 of patches."""
        return self.rows[self.places(patches)].astype(np.float32)


def describe_mined(
    matches: MinedMatches,
    numbers: NDArray[np.integer],
    describe: Callable[[NDArray[np.uint8 | np.float32]], NDArray[np.floating]],
    path: Path | None = None,
    *,
    workers: int = 1,
    progress: Step = silent,
) -> Described:
    """Describe patches of a file of matches by numbers (V,), ascending, at least one; `describe` takes (N, 31, 31)."""
    if path is not None and path.is_file():
        return Described(numbers, load_array(path, mmap=True))
    starts = range(0, len(numbers), _BATCH)
    jobs = (partial(_describe, matches.patches, numbers[start : start + _BATCH], describe) for start in starts)
    temporary = None if path is None else path.with_name(f".{path.name}.tmp")
    rows = np.zeros((0, 0), np.float16)
    for start, part in zip(starts, run(jobs, workers), strict=True):
        if not start:
            shape = (len(numbers), part.shape[1])
            if temporary is None:
                rows = np.empty(shape, np.float16)
            else:
                rows = np.lib.format.open_memmap(temporary, "w+", np.float16, shape)
        rows[start : start + len(part)] = part
        progress(start + len(part), len(numbers))
    if path is None or temporary is None:
        return Described(numbers, rows)
    del rows  # flushes them
    temporary.replace(path)
    return Described(numbers, load_array(path, mmap=True))


def _describe(
    patches: NDArray[np.uint8],
    numbers: NDArray[np.integer],
    describe: Callable[[NDArray[np.uint8 | np.float32]], NDArray[np.floating]],
) -> NDArray[np.float16]:
    with one_thread():
        return describe(np.asarray(patches[numbers])).astype(np.float16)
