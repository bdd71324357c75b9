"""Descriptions of patches by other programs: rows of numbers or of packed bits in a file, and their distances."""

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.archive import open_archive
from index.arrays import load_array, reading, size_of_file
from index.errors import CairnError
from index.text import shown

SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".txt")
_NAMES = ("descriptions", "descriptors", "desc")  # of the array of a .npz with several
_PAIRS = 16_384  # measured at a time
_MEMORY = 1 << 29  # bytes of rows held in memory; more go to a temporary file
_LARGEST = 1 << 36  # most unpacked bytes of a .npz


@dataclass(frozen=True)
class Descriptions:
    """A row for every patch of a set, in the order of the set."""

    name: str  # name in reports
    rows: NDArray[np.generic]  # (N, D): numbers of any kind; of packed bits uint8. It may be memory-mapped.
    # whether rows are packed bits, compared by Hamming instead of Euclidean distance
    is_binary: bool = False

    @property
    def dim(self) -> int:
        """Numbers, or bits, of one row."""
        return int(self.rows.shape[1]) * (8 if self.is_binary else 1)

    @property
    def bytes(self) -> int:
        """Bytes of one stored row."""
        return int(self.rows.shape[1]) * self.rows.dtype.itemsize

    def check_number(self, patches: int, of: object) -> None:
        """Raise a CairnError if there is not one row for each patch of a set."""
        if len(self.rows) != patches:
            raise CairnError(
                f"{self.name} describes {len(self.rows):,} patches, but {of} has {patches:,}: give a row for every "
                "patch of the set, in its order."
            )

    def distances(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float32]:
        """Distances (M,) of rows, pair by pair: squared Euclidean, or Hamming."""
        distances = np.empty(len(first), np.float32)
        for start in range(0, len(first), _PAIRS):
            part = slice(start, start + _PAIRS)
            one, other = self.rows[first[part]], self.rows[second[part]]
            if self.is_binary:
                distances[part] = np.bitwise_count(one.astype(np.uint8) ^ other.astype(np.uint8)).sum(axis=1)
            else:
                difference = one.astype(np.float64) - other.astype(np.float64)
                distances[part] = np.einsum("md,md->m", difference, difference)
        wrong = ~np.isfinite(distances)
        if wrong.any():
            place = int(wrong.argmax())
            number = next((int(row) for row in (first[place], second[place]) if not self._is_finite(row)), first[place])
            raise CairnError(f"{self.name} has no finite description of patch {number}: it is NaN or too large.")
        return distances

    def _is_finite(self, row: np.int64) -> bool:
        return bool(np.isfinite(self.rows[row].astype(np.float64)).all())


def read_descriptions(path: Path, *, binary: bool = False) -> Descriptions:
    """Read a row for each patch of a set, of packed bits (`numpy.packbits`) if `binary`.

    ``.npy`` (memory-mapped), ``.npz`` with one array or one called ``descriptions``, or a table, with or without
    header.
    """
    path = Path(path)
    rows = read_rows(path)
    if binary:
        rows = _as_bytes(rows, path)
    return Descriptions(path.stem, rows, binary)


def read_rows(path: Path) -> NDArray[np.generic]:
    """Read a table of numbers (N, D), both above 0; see `read_descriptions`."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise CairnError(f"{path.name} is no name for descriptions: let it end with {', '.join(SUFFIXES[:3])}.")
    rows = {".npy": _read_npy, ".npz": _read_npz}.get(suffix, _read_text)(path)
    if rows.ndim != 2 or not rows.size:
        raise CairnError(f"{path} must have a row of numbers for each patch, shape (N, D), and has {rows.shape}.")
    if rows.dtype.kind not in "fiub":
        raise CairnError(f"{path} must hold numbers, and holds {rows.dtype}.")
    return rows


def _as_bytes(rows: NDArray[np.generic], path: Path) -> NDArray[np.generic]:
    if rows.dtype == np.uint8:
        return rows
    if path.suffix.lower() in SUFFIXES[2:]:  # text has no type of numbers
        packed = rows.astype(np.uint8)
        if (packed == rows).all():
            return packed
    raise CairnError(
        "{path} must hold bytes (uint8) of packed bits, as numpy.packbits gives them, and holds {dtype}: leave out "
        "{--binary} for numbers.",
        path=path,
        dtype=rows.dtype,
    )


def _read_npy(path: Path) -> NDArray[np.generic]:
    return load_array(path, mmap=True)


def _read_npz(path: Path) -> NDArray[np.generic]:
    with reading(path, "file of descriptions", "numpy.savez"), open_archive(path, _LARGEST) as archive:
        names = [name.removesuffix(".npy") for name in archive.names]
        chosen_names = names if len(names) == 1 else [name for name in _NAMES if name in names][:1]
        if not chosen_names:
            listed = ", ".join(shown(name, 40) for name in names[:4])
            raise CairnError(f"{path} has {len(names)} arrays, {listed}: call the one to take {shown(_NAMES[0])}.")
        return archive.array(chosen_names[0])


def _read_text(path: Path) -> NDArray[np.generic]:
    try:
        size_of_file(path)
        with path.open(encoding="utf-8-sig") as file:
            first = next((line for line in file if line.strip()), "")
        delimiter = next((mark for mark in ",;\t" if mark in first), None)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            rows = np.loadtxt(
                path,
                np.float32,
                delimiter=delimiter,
                skiprows=0 if _is_numeric(first, delimiter) else 1,
                ndmin=2,
                encoding="utf-8-sig",
                comments=None,
            )
    except FileNotFoundError:
        raise CairnError(f"There is no file of descriptions {path}: check the name.") from None
    except OSError as error:
        raise CairnError(f"{path} cannot be read ({error.strerror or error}): check the file and its rights.") from None
    except (ValueError, IndexError) as error:
        detail = " ".join(str(error).split())[:160]
        raise CairnError(f"{path} is no table of numbers ({detail}): give as many in each line.") from error
    return rows


def _is_numeric(line: str, delimiter: str | None) -> bool:
    try:
        [float(cell) for cell in line.split(delimiter)]
    except ValueError:
        return False
    return True


def room_for(number: int, dim: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Empty rows (number, dim); large arrays are in a file that is removed with the array."""
    if dtype.itemsize * number * dim <= _MEMORY:
        return np.empty((number, dim), dtype)
    with tempfile.TemporaryFile(prefix="cairn-descriptions-") as file:
        return np.memmap(file, dtype, "w+", shape=(number, dim))
