"""Findings of a check of a collection."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from os import walk
from pathlib import Path
from typing import Annotated

from index.progress import Progress, silent
from index.reports import Report

STEP = "check"

_MEGABYTE = 1e6


@dataclass(frozen=True)
class Damage(Report):
    """A file that is damaged."""

    file: Annotated[str, "Path in the collection."]
    what: Annotated[str, "The damage, in a sentence."]
    remedy: Annotated[str, "What to do about it, in a sentence."]


@dataclass(frozen=True)
class Check(Report):
    """Result of `Collection.check`."""

    ok: Annotated[bool, "Whether everything is undamaged."]
    files: Annotated[int, "Files that were read."]
    bytes: Annotated[int, "Bytes that were read."]
    damaged: Annotated[tuple[Damage, ...], "Damaged files."]
    notes: Annotated[list[str], "Notes other than damage."]
    seconds: Annotated[float, "Time."]


class Findings:
    """Collects the findings of the parts of a check."""

    def __init__(self, folder: Path, progress: Progress = silent) -> None:
        self.folder = folder
        self.damaged: list[Damage] = []
        self.notes: list[str] = []
        self._progress = progress
        self._total = sum(map(size_of, files_below(folder)))
        self._began, self._read = time.perf_counter(), 0
        self._files = self._bytes = 0  # that were read

    def damage(self, file: str, what: str, remedy: str | None = None) -> None:
        """Report a damaged file, once; repairing is the remedy if no other is given."""
        if not self.is_damaged(file):
            self.damaged.append(Damage(file, what, remedy or f"Run cairn repair {self.folder}."))

    def is_damaged(self, *files: str) -> bool:
        """Whether damage was reported of one of some files."""
        return any(one.file in files for one in self.damaged)

    def was_read(self, files: int, size: int) -> None:
        """Count files that were read to their end."""
        self._files += files
        self._bytes += size

    def tell(self, size: int) -> None:
        """Report progress in bytes."""
        self._read += size
        self._progress(STEP, min(megabytes(self._read), megabytes(self._total)), megabytes(self._total))

    def end(self) -> Check:
        """Report completed progress; return the findings."""
        self._progress(STEP, megabytes(self._total), megabytes(self._total))
        seconds = round(time.perf_counter() - self._began, 3)
        return Check(not self.damaged, self._files, self._bytes, tuple(self.damaged), self.notes, seconds)


def files_below(folder: Path) -> Iterator[Path]:
    """Files in a folder and all below it, in order; folders that vanish meanwhile are passed over."""
    for where, folders, names in walk(folder):
        folders.sort()
        yield from (Path(where) / name for name in sorted(names))


def size_of(path: Path) -> int:
    """Bytes of a file; 0 if it is missing or not a file."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def megabytes(size: int) -> int:
    """Whole megabytes of progress, at least one."""
    return int(size / _MEGABYTE) + 1
