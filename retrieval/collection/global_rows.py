"""Global descriptors of a collection: one row for each photo, of what it looks like as a whole.

The file `global.npz` has the numbers of photos, their rows, and where these come from. It is replaced whole. The row of
a photo that was removed no longer counts, and leaves the file by `cairn compact`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.archive import open_archive
from index.arrays import check_format, fingerprint, reading, save_arrays
from index.messages import said
from index.parallel import one_thread
from retrieval.collection.layout import GLOBAL

_FORMAT = 1
_FACTS = ("name", "place", "model")


@dataclass(frozen=True)
class GlobalRows:
    """Global descriptors of photos."""

    numbers: NDArray[np.uint32]  # (N,) ascending
    rows: NDArray[np.float16]  # (N, D), at unit length; all 0 where a photo is like none
    name: str  # what people call them
    place: str | None = None  # extension that describes other photos, ``module:object``; None: they came from a file
    model: str | None = None  # fingerprint of that extension

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.rows.shape[1])

    @cached_property
    def _plain(self) -> NDArray[np.float32]:
        return self.rows.astype(np.float32)

    def row_of(self, number: int) -> NDArray[np.float32] | None:
        """The row (D,) of a photo, None if it has none."""
        place = int(np.searchsorted(self.numbers, number))
        is_there = place < len(self.numbers) and self.numbers[place] == number
        return self._plain[place] if is_there else None

    def likeness(self, row: NDArray[np.float32], numbers: NDArray[np.integer]) -> NDArray[np.float32]:
        """Cosines (n,) between a row (D,) at unit length and those of some photos; -1 for photos without."""
        with one_thread():
            found = self._plain @ row
        places = np.minimum(np.searchsorted(self.numbers, numbers), max(len(found) - 1, 0))
        there = self.numbers[places] == numbers if len(found) else np.zeros(len(numbers), bool)
        return np.where(there, found[places] if len(found) else 0, -1).astype(np.float32)

    def merged(self, numbers: Iterable[int], rows: NDArray[np.floating]) -> "GlobalRows":
        """With the rows (n, D) of other photos."""
        every = np.concatenate([self.numbers, np.fromiter(numbers, np.uint32)])
        order = np.argsort(every, kind="stable")
        return replace(self, numbers=every[order], rows=np.concatenate([self.rows, unit_rows(rows)])[order])

    def kept(self, numbers: NDArray[np.integer]) -> "GlobalRows":
        """Of some photos alone."""
        stay = np.isin(self.numbers, numbers)
        return replace(self, numbers=self.numbers[stay], rows=self.rows[stay])


def unit_rows(rows: NDArray[np.floating]) -> NDArray[np.float16]:
    """Bring rows (n, D) to unit length."""
    plain = rows.astype(np.float64)
    return np.asarray(plain / np.maximum(np.linalg.norm(plain, axis=1, keepdims=True), 1e-300), np.float16)


def stamp(folder: Path) -> tuple[int, int] | None:
    """Value that changes when the file is replaced; None if there is no file."""
    try:
        state = (folder / GLOBAL).stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def read_global(folder: Path) -> GlobalRows | None:
    """Read the global descriptors of a collection; None if it has none. Raises CairnError if they are damaged."""
    path = folder / GLOBAL
    if stamp(folder) is None:
        return None
    with reading(path, said("file of global descriptors"), "cairn global"), open_archive(path) as archive:
        facts = archive.table("meta.json")
        check_format(path, facts["format"], _FORMAT)
        numbers, rows = archive.array("numbers"), archive.array("rows")
        if facts["sha256"] != _checksum(numbers, rows, facts):
            raise ValueError("it is not what was written")
        is_sound = numbers.dtype == np.uint32 and rows.dtype == np.float16 and rows.ndim == 2
        if not is_sound or numbers.shape != rows.shape[:1] or (np.diff(numbers.astype(np.int64)) <= 0).any():
            raise ValueError("its arrays do not belong together")
        if not (np.abs(rows) <= 1.001).all():
            raise ValueError("its rows are not at unit length")
        texts = {key: facts[key] if key != "name" and facts[key] is None else str(facts[key]) for key in _FACTS}
        return GlobalRows(numbers, rows, **texts)


def write_global(folder: Path, made: GlobalRows) -> None:
    """Write the global descriptors of a collection."""
    facts: dict[str, Any] = {"format": _FORMAT, **{key: getattr(made, key) for key in _FACTS}}
    facts["sha256"] = _checksum(made.numbers, made.rows, facts)
    save_arrays(folder / GLOBAL, {"numbers": made.numbers, "rows": made.rows}, facts)


def remove_global(folder: Path) -> None:
    """Remove the global descriptors of a collection, if it has some."""
    (folder / GLOBAL).unlink(missing_ok=True)


def _checksum(numbers: NDArray[Any], rows: NDArray[Any], facts: dict[str, Any]) -> str:
    return fingerprint({"numbers": numbers, "rows": rows}, {key: facts[key] for key in ("format", *_FACTS)})
