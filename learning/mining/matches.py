"""The file of mined matches: for each reference feature x the sets P(x), N(x) and ambiguous, and all patches.

A zip archive of uncompressed entries, so that the patches can be memory-mapped: `meta.json`, and as .npy

- of the P photos: `names` (P,), stems of their files;
- of the K image pairs: `pairs` (K, 2) photos, `homographies` (K, 3, 3) from pixels of the first upright original to the
  second's, `inliers` (K,), and `target_starts` (K + 1,), `targets`: patches of all features of the second photo;
- of the U patches: `patches` (U, 31, 31) uint8, `photos` (U,), `ellipses` (U, 5) detected regions, pixels;
- of the F reference features: `reference` (F,) patches, `pair` (F,) image pairs, rising, and P(x) as `positive_starts`
  (F + 1,), `positives`, the ambiguous ones as `ambiguous_starts` (F + 1,), `ambiguous`: patches, rising in each row.
"""

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.archive import Archive, open_archive
from index.arrays import check_format, read_array_header, reading
from learning.mining.validation_split import split_image_pairs

FORMAT = 1
"""Version of the file."""

PATCH = 31
"""Samples along a patch's side (Simonyan14 10.2.3)."""

_BLOCK = 1 << 22  # bytes of an entry at a time
_META = "meta.json"
_ROWS = {"positive": "positives", "ambiguous": "ambiguous", "target": "targets"}  # entries with lists
_SHAPES: dict[str, tuple[str, tuple[int | str, ...]]] = {  # by name: dtype, and shape in the letters used above
    "names": ("U", ("P",)),
    "pairs": ("<i4", ("K", 2)),
    "homographies": ("<f8", ("K", 3, 3)),
    "inliers": ("<i4", ("K",)),
    "patches": ("|u1", ("U", PATCH, PATCH)),
    "photos": ("<i4", ("U",)),
    "ellipses": ("<f4", ("U", 5)),
    "reference": ("<i4", ("F",)),
    "pair": ("<i4", ("F",)),
    "positive_starts": ("<i8", ("F+1",)),
    "positives": ("<i4", ("*",)),
    "ambiguous_starts": ("<i8", ("F+1",)),
    "ambiguous": ("<i4", ("*",)),
    "target_starts": ("<i8", ("K+1",)),
    "targets": ("<i4", ("*",)),
}


@dataclass(frozen=True)
class ArrayWriter:
    """An array written piece by piece."""

    name: str
    shape: tuple[int, ...]
    pieces: Iterable[NDArray[Any]]  # along the first axis
    dtype: str = ""  # for text, which is not in `_SHAPES`


def write_mined(path: Path, entries: Iterable[ArrayWriter], meta: dict[str, Any]) -> None:
    """Write a file of mined matches atomically. Raises ValueError if the pieces of an entry do not make its shape."""
    # A fixed name, so that the next run overwrites a large unfinished file left by a killed process.
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            # Not np.savez, which stamps each entry with the time and holds whole arrays.
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(zipfile.ZipInfo(_META), json.dumps({"format": FORMAT, **meta}, indent=2))
                for entry in entries:
                    with archive.open(zipfile.ZipInfo(f"{entry.name}.npy"), "w", force_zip64=True) as stream:
                        _write_entry(stream, entry)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write_entry(stream: Any, entry: ArrayWriter) -> None:
    dtype = np.dtype(entry.dtype or _SHAPES[entry.name][0])
    header = io.BytesIO()
    description = {"descr": dtype.str, "fortran_order": False, "shape": entry.shape}
    np.lib.format.write_array_header_1_0(header, description)
    stream.write(header.getvalue())
    rows = 0
    for piece in entry.pieces:
        stream.write(np.ascontiguousarray(piece, dtype).tobytes())
        rows += len(piece)
    if rows != entry.shape[0]:
        raise ValueError(f"{entry.name} has {rows} rows instead of {entry.shape[0]}")


class MinedMatches:
    """Opened mined matches, by `MinedMatches.open`. Patches are memory-mapped, everything else is in memory.

    Attributes are the arrays of the file by their names, but for the lists of patches, which are `positive_patches`,
    `ambiguous_patches` and `target_patches`.
    """

    def __init__(self, path: Path, arrays: dict[str, NDArray[Any]], meta: dict[str, Any], fingerprint: str) -> None:
        self.path = path
        self.meta = meta
        self.fingerprint = fingerprint  # SHA-256 of the file's contents
        self.names = arrays["names"]
        self.pairs = arrays["pairs"]
        self.homographies = arrays["homographies"]
        self.inliers = arrays["inliers"]
        self.patches = arrays["patches"]
        self.photos = arrays["photos"]
        self.ellipses = arrays["ellipses"]
        self.reference = arrays["reference"]
        self.pair = arrays["pair"]
        self.positive_starts, self.positive_patches = arrays["positive_starts"], arrays["positives"]
        self.ambiguous_starts, self.ambiguous_patches = arrays["ambiguous_starts"], arrays["ambiguous"]
        self.target_starts, self.target_patches = arrays["target_starts"], arrays["targets"]

    @staticmethod
    def open(path: Path) -> "MinedMatches":
        """Open a file written by `cairn mine`."""
        path = Path(path)
        with reading(path, "file of mined matches", "cairn mine"):
            with open_archive(path) as archive:
                meta = archive.table(_META)
                if "base" in meta:  # a descriptor file, whose format numbers differ
                    raise ValueError("it is a descriptor")
                check_format(path, meta.get("format"), FORMAT)
                arrays = {name: _read_entry(path, archive, name) for name in _SHAPES}
                contents = sorted((entry.filename, entry.CRC, entry.file_size) for entry in archive.zip.infolist())
            _check(arrays)
            if not 0 < float(meta.get("extent", 1.0)) < math.inf:
                raise ValueError("the extent of its patches is no size")
        return MinedMatches(path, arrays, meta, hashlib.sha256(json.dumps(contents).encode()).hexdigest())

    @property
    def extent(self) -> float:
        """Ratio of the patches' side to that of the detector's own measurement regions."""
        return float(self.meta.get("extent", 1.0))

    @property
    def features(self) -> int:
        """Number F of the reference features."""
        return len(self.reference)

    def positives(self, x: int) -> NDArray[np.int32]:
        """P(x) of reference feature number x, 0 to F - 1: patches, ascending."""
        return self.positive_patches[self.positive_starts[x] : self.positive_starts[x + 1]]

    def ambiguous(self, x: int) -> NDArray[np.int32]:
        """Features of the second photo in neither P(x) nor N(x): patches, ascending."""
        return self.ambiguous_patches[self.ambiguous_starts[x] : self.ambiguous_starts[x + 1]]

    def targets(self, pair: int) -> NDArray[np.int32]:
        """Return the features of the second photo of an image pair: patches, ascending."""
        return self.target_patches[self.target_starts[pair] : self.target_starts[pair + 1]]

    def negatives(self, x: int) -> NDArray[np.int32]:
        """N(x): patches, ascending."""
        others = np.setdiff1d(self.targets(int(self.pair[x])), self.positives(x), assume_unique=True)
        return np.setdiff1d(others, self.ambiguous(x), assume_unique=True)

    def of_pair(self, pair: int) -> range:
        """Reference features of an image pair."""
        first, last = np.searchsorted(self.pair, [pair, pair + 1])
        return range(int(first), int(last))

    def pair_split(self, share: float = 0.2, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Split image pairs into training and, about a `share` of features, validation; see `split_image_pairs`."""
        sizes = np.bincount(self.pair, minlength=len(self.pairs))
        return split_image_pairs(self.pairs, sizes, share, np.random.default_rng(seed))


class MinedPatches:
    """The patches of a file of matches, with the protocol of `sources.Patches`."""

    def __init__(self, matches: MinedMatches) -> None:
        self.folder = matches.path
        self.fingerprint = matches.fingerprint
        self._patches = matches.patches

    def __len__(self) -> int:
        return len(self._patches)

    def read(self, numbers: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Read patches (K,) as (K, 31, 31) uint8."""
        return np.asarray(self._patches[numbers])


def _read_entry(path: Path, archive: Archive, name: str) -> NDArray[Any]:
    """Read an array, or memory-map the patches; may raise any exception if the file is damaged."""
    info = archive.zip.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is packed")
    if name != "patches":
        return archive.array(name)
    with archive.zip.open(info) as stream:
        shape, fortran, dtype = read_array_header(stream, info.file_size)
        header = stream.tell()
        if fortran or dtype != np.uint8:
            raise ValueError(f"{name} is not of the type it should be")
        while stream.read(_BLOCK):  # to the end, where the archive checks the checksum
            pass
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        lengths = np.frombuffer(file.read(4), "<u2")  # of the entry's name and extra field, before its contents
    start = info.header_offset + 30 + int(lengths.sum(dtype=np.int64)) + header
    if not math.prod(shape):
        return np.zeros(shape, np.uint8)
    return np.memmap(path, np.uint8, "r", start, shape)


def _check(arrays: dict[str, NDArray[Any]]) -> None:
    sizes = {
        "P": len(arrays["names"]),
        "K": len(arrays["pairs"]),
        "U": len(arrays["patches"]),
        "F": len(arrays["reference"]),
    }
    for name, (dtype, shape) in _SHAPES.items():
        array = arrays[name]
        counts = sizes | {"F+1": sizes["F"] + 1, "K+1": sizes["K"] + 1, "*": array.shape[0] if array.ndim else -1}
        wanted = tuple(side if isinstance(side, int) else counts[side] for side in shape)
        right = array.dtype.kind == "U" if dtype == "U" else array.dtype == np.dtype(dtype)
        if array.shape != wanted or not right:
            raise ValueError(f"{name} is not of the shape or type it should be")
    ranges = {"pairs": "P", "photos": "P", "pair": "K"} | dict.fromkeys(("reference", *_ROWS.values()), "U")
    for name, size in ranges.items():
        array = arrays[name]
        if array.size and not 0 <= array.min() <= array.max() < sizes[size]:
            raise ValueError(f"{name} names what is not there")
    for kind, rows in _ROWS.items():
        starts, row = arrays[f"{kind}_starts"], arrays[rows]
        if starts[0] != 0 or starts[-1] != len(row) or (np.diff(starts) < 0).any():
            raise ValueError(f"{kind}_starts do not divide {rows}")
        rising = np.diff(row) > 0
        rising[starts[(starts > 0) & (starts < len(row))] - 1] = True
        if not rising.all():
            raise ValueError(f"{rows} are not in order")
    if (np.diff(arrays["positive_starts"]) < 1).any():
        raise ValueError("a feature has no positive")
    if (np.diff(arrays["pair"]) < 0).any():
        raise ValueError("its features are not in the order of their image pairs")
    if not (np.isfinite(arrays["homographies"]).all() and np.isfinite(arrays["ellipses"]).all()):
        raise ValueError("it holds what is no finite number")
