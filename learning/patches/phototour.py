"""Labelled patches on disk, in the layout of the PhotoTour sets (Brown11, section VI; also called Brown's patch data).

A folder holds bitmaps ``patches0000.bmp``, ``patches0001.bmp``, … of 16 x 16 patches of 64 x 64 pixels, row by row
(1024 x 1024 pixels, 8-bit grey; what follows the last patch is black); ``info.txt``, for each patch a line with the
number of its 3-D point and that of its photo; and pair files ``m50_P_N_S.txt`` with lines
``patch1 point1 unused patch2 point2 unused unused``: a match if the points are the same. ``interest.txt``, with a line
``photo x y orientation scale`` for each patch, is optional and unused here. The published sets have pair files only
with S = 0, of several sizes; sets built here have one for each split: 0 train, 1 validation, 2 test.
"""

import hashlib
import re
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.arrays import size_of_file
from index.errors import CairnError
from index.progress import Step, silent

PATCH = 64
"""Pixels along a side of a patch."""

ROW = 16
"""Patches along a side of a bitmap."""

SPLITS = ("train", "validation", "test")
"""Meaning of the last number of a pair file's name in sets built here."""

PUBLISHED_TEST = "m50_100000_100000_0.txt"
"""Pair file for which results on the published sets are reported."""

SIDE, PER_BITMAP = ROW * PATCH, ROW * ROW
"""Pixels along a side of a bitmap, and patches in one."""

_KEPT = 16  # decoded bitmaps in memory, 1 MB each
_PAIR_FILE = re.compile(r"m50_(\d+)_(\d+)_(\d+)\.txt")


@dataclass(frozen=True)
class PatchPairs:
    """Pairs of patches."""

    first: NDArray[np.int64]  # (M,) int64, numbers of patches
    second: NDArray[np.int64]  # (M,) int64
    match: NDArray[np.bool_]  # (M,) bool: both show the same 3-D point

    def __len__(self) -> int:
        return len(self.match)


class PatchSet:
    """A folder of labelled patches: the 3-D point (N,) that each shows, and its photo (N,)."""

    def __init__(
        self, folder: Path, points: NDArray[np.int64], photos: NDArray[np.int64], pair_files: list[str]
    ) -> None:
        self.folder = folder
        self.points = points
        self.photos = photos
        self.pair_files = pair_files
        self._bitmaps: OrderedDict[int, NDArray[np.uint8]] = OrderedDict()

    @classmethod
    def open(cls, folder: Path) -> "PatchSet":
        """Open a folder; bitmaps are read on demand."""
        folder = Path(folder)
        info = folder / "info.txt"
        if not info.is_file():
            raise CairnError(
                "{folder} is no folder of patches in the PhotoTour layout: it has no info.txt. To learn from photos, "
                "make a collection of them with {cairn index} first.",
                folder=folder,
            )
        points, photos = _read_columns(info, (0, 1), "a point and a photo")
        if not len(points):
            raise CairnError(f"{info} is empty: it needs a line for each patch.")
        names = {path.name for path in folder.iterdir()}
        for number in range(bitmaps_of(len(points))):
            if bitmap_name(number) not in names:
                raise CairnError(
                    f"{folder / bitmap_name(number)} is missing: info.txt has {len(points)} patches, which fill "
                    f"{bitmaps_of(len(points))} bitmaps."
                )
        pair_files = sorted(
            (int(match[3]), int(match[1]) + int(match[2]), name)
            for name in names
            if (match := _PAIR_FILE.fullmatch(name))
        )
        return cls(folder, points, photos, [name for *_, name in pair_files])

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of ``info.txt`` and of all bitmaps."""
        digest = hashlib.sha256((self.folder / "info.txt").read_bytes())
        for bitmap in range(bitmaps_of(len(self))):
            digest.update((self.folder / bitmap_name(bitmap)).read_bytes())
        return digest.hexdigest()

    def read(self, numbers: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Read patches (K, 64, 64) by numbers, sorted ones fastest; raises IndexError for a missing one."""
        numbers = np.asarray(numbers, np.int64).reshape(-1)
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(self)):
            raise IndexError(f"patches are numbered from 0 to {len(self) - 1}")
        patches = np.empty((len(numbers), PATCH, PATCH), np.uint8)
        order = np.argsort(numbers, kind="stable")
        bitmaps, starts, counts = np.unique(numbers[order] // PER_BITMAP, return_index=True, return_counts=True)
        for bitmap, start, count in zip(bitmaps, starts, counts, strict=True):
            rows = order[start : start + count]
            patches[rows] = self._bitmap(int(bitmap))[numbers[rows] % PER_BITMAP]
        return patches

    def _bitmap(self, number: int) -> NDArray[np.uint8]:
        """Patches (256, 64, 64) of a bitmap."""
        if number in self._bitmaps:
            self._bitmaps.move_to_end(number)
            return self._bitmaps[number]
        path = self.folder / bitmap_name(number)
        try:
            size_of_file(path)
            # Only bitmaps: Pillow reads some other formats through external programs.
            with Image.open(path, formats=("BMP",)) as image:
                size = image.size
                if size == (SIDE, SIDE):
                    pixels = np.asarray(image.convert("L"))
        except CairnError:
            raise
        except Exception as error:  # a decoder may raise anything on a damaged file
            raise CairnError(f"{path} is missing, damaged or cut short: restore it or build the set again.") from error
        if size != (SIDE, SIDE):
            raise CairnError(
                f"{path} is {size[0]}x{size[1]} pixels, but a bitmap of {ROW} x {ROW} patches has {SIDE}x{SIDE}."
            )
        patches = np.ascontiguousarray(pixels.reshape(ROW, PATCH, ROW, PATCH).swapaxes(1, 2))
        self._bitmaps[number] = patches.reshape(PER_BITMAP, PATCH, PATCH)
        if len(self._bitmaps) > _KEPT:
            self._bitmaps.popitem(last=False)
        return self._bitmaps[number]

    def pairs(self, name: str | None = None) -> PatchPairs:
        """Read a pair file by its name, or the largest of a split, ``train``, ``validation`` or ``test``.

        None is the largest of the first existing split: ``train`` of a set built here, the largest file of a published
        set.
        """
        path = self.folder / self._pair_file(name)
        first, point1, second, point2 = _read_columns(path, (0, 1, 3, 4), "two patches with their points")
        for patches, points in ((first, point1), (second, point2)):
            outside = (patches < 0) | (patches >= len(self))
            if outside.any():
                row = int(outside.argmax())
                raise CairnError(
                    f"{path} names patch {patches[row]} in line {row + 1}, but info.txt has {len(self)} patches."
                )
            other = self.points[patches] != points
            if other.any():
                row = int(other.argmax())
                raise CairnError(
                    f"{path} and info.txt disagree on the point of patch {patches[row]} (line {row + 1}): "
                    "they are not of the same set, or one is damaged."
                )
        return PatchPairs(first, second, point1 == point2)

    def _pair_file(self, name: str | None) -> str:
        if not self.pair_files:
            raise CairnError(f"{self.folder} has no pair file (m50_…_0.txt).")
        if name is not None and name not in SPLITS:
            if not (self.folder / name).is_file():
                raise CairnError(f"{self.folder} has no pair file {name}; it has {', '.join(self.pair_files)}.")
            return name
        split = _split_of(self.pair_files[0]) if name is None else SPLITS.index(name)
        files = [file for file in self.pair_files if _split_of(file) == split]
        if not files:
            raise CairnError(f"{self.folder} has no {name} pairs; it has {', '.join(self.pair_files)}.")
        return files[-1]


def default_pair_file(patches: PatchSet) -> str:
    """Choose the pair file to test on: the test split of a built set, or the file of the published results."""
    built = [name for name in patches.pair_files if name.endswith(f"_{SPLITS.index('test')}.txt")]
    if built:
        return built[-1]  # the largest
    if PUBLISHED_TEST in patches.pair_files:
        return PUBLISHED_TEST
    contents = f"has {', '.join(patches.pair_files)}" if patches.pair_files else "has no pair file at all"
    raise CairnError(
        "{folder} has neither test pairs (m50_…_2.txt) nor {published_test}: it {found}; name the pairs to take by "
        "{--pairs}.",
        folder=patches.folder,
        published_test=PUBLISHED_TEST,
        found=contents,
    )


def bitmap_name(number: int) -> str:
    """Name of a bitmap, by its number from 0."""
    return f"patches{number:04d}.bmp"


def bitmaps_of(patches: int) -> int:
    """Number of bitmaps for a number of patches."""
    return -(-patches // PER_BITMAP)


def _split_of(name: str) -> int:
    match = _PAIR_FILE.fullmatch(name)
    assert match
    return int(match[3])


def _read_columns(path: Path, columns: tuple[int, ...], meaning: str) -> NDArray[np.int64]:
    """Columns (len(columns), rows) int64 of a text file of whole numbers."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            table = np.loadtxt(path, np.int64, comments=None, usecols=columns, ndmin=2, encoding="ascii")
    except FileNotFoundError:
        raise CairnError(f"{path} is missing: restore it or build the set again.") from None
    except (ValueError, IndexError, OverflowError, OSError) as error:
        number = _bad_line(path, columns)
        line = f" in line {number}" if number else ""
        raise CairnError(f"{path} is damaged{line}: each line must give {meaning} as whole numbers.") from error
    return np.ascontiguousarray(table.T) if table.size else np.zeros((len(columns), 0), np.int64)


def _bad_line(path: Path, columns: tuple[int, ...]) -> int | None:
    """Number, from 1, of the first line of a text file whose columns are not whole numbers; None if unknown."""
    with path.open(encoding="ascii", errors="replace") as file:
        for number, line in enumerate(file, 1):
            cells = line.split()
            try:
                for column in columns:
                    np.int64(int(cells[column]))
            except (ValueError, IndexError, OverflowError):
                if cells:
                    return number
    return None


def write_bitmaps(
    folder: Path,
    patches: NDArray[np.uint8],
    order: NDArray[np.int64] | None = None,
    progress: Step = silent,
) -> None:
    """Write patches (N, 64, 64), perhaps memory-mapped, in an order (M,), one bitmap at a time."""
    order = np.arange(len(patches)) if order is None else order
    total = bitmaps_of(len(order))
    for number in range(total):
        block = np.zeros((PER_BITMAP, PATCH, PATCH), np.uint8)
        part = patches[order[number * PER_BITMAP : (number + 1) * PER_BITMAP]]
        block[: len(part)] = part
        pixels = block.reshape(ROW, ROW, PATCH, PATCH).swapaxes(1, 2).reshape(SIDE, SIDE)
        Image.fromarray(pixels).save(Path(folder) / bitmap_name(number))
        progress(number + 1, total)


def write_info(folder: Path, points: NDArray[np.int64], photos: NDArray[np.int64]) -> None:
    """Write ``info.txt``: points (N,) and photos (N,), whole numbers."""
    np.savetxt(Path(folder) / "info.txt", np.stack([points, photos], axis=1), "%d")


def write_interest(folder: Path, photos: NDArray[np.int64], geometry: NDArray[np.float64]) -> None:
    """Write ``interest.txt``: photos (N,), and geometry (N, 4) of x, y, orientation (radians) and scale (log2)."""
    rows = np.column_stack([photos, geometry])
    np.savetxt(Path(folder) / "interest.txt", rows, ("%d", "%.6f", "%.6f", "%.6f", "%.6f"))


def write_pairs(
    folder: Path, split: int, first: NDArray[np.int64], second: NDArray[np.int64], points: NDArray[np.int64]
) -> str:
    """Write a pair file for a split, and return its name: see the module."""
    one, two = points[first], points[second]
    matches = int((one == two).sum())
    nothing = np.zeros_like(one)
    name = f"m50_{matches}_{len(one) - matches}_{split}.txt"
    rows = np.stack([first, one, nothing, second, two, nothing, nothing], axis=1)
    np.savetxt(Path(folder) / name, rows, "%d")
    return name
