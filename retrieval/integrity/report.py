"""Findings of a check of a collection."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import walk
from pathlib import Path

from index.progress import Progress, silent

STEP = "check"

_MEGABYTE = 1e6


@dataclass(frozen=True)
class DamagedFile:
    """A damaged file or folder."""

    file: str  # path in the collection, with slashes
    what: str  # the damage
    remedy: str  # what to do, with the command for it


@dataclass
class CheckReport:
    """Result of a check."""

    files: int = 0  # that were read
    bytes: int = 0
    damaged: list[DamagedFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # notes other than damage
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all is sound."""
        return not self.damaged


class Findings:
    """Collects the findings of the parts of a check."""

    def __init__(self, folder: Path, progress: Progress = silent) -> None:
        self.folder = folder
        self.report = CheckReport()
        self._progress = progress
        self._total = sum(map(size_of, files_below(folder)))
        self._read = 0

    def damage(self, file: str, what: str, remedy: str | None = None) -> None:
        """Report a damaged file, once; repairing is the remedy if no other is given."""
        if not self.is_damaged(file):
            self.report.damaged.append(DamagedFile(file, what, remedy or f"Run cairn repair {self.folder}."))

    def is_damaged(self, *files: str) -> bool:
        """Whether damage was reported of one of some files."""
        return any(one.file in files for one in self.report.damaged)

    def note(self, text: str) -> None:
        """Add a note other than damage."""
        self.report.notes.append(text)

    def was_read(self, files: int, size: int) -> None:
        """Count files that were read to their end."""
        self.report.files += files
        self.report.bytes += size

    def tell(self, size: int) -> None:
        """Report progress in bytes."""
        self._read += size
        self._progress(STEP, min(megabytes(self._read), megabytes(self._total)), megabytes(self._total))

    def end(self) -> None:
        """Report completed progress."""
        self._progress(STEP, megabytes(self._total), megabytes(self._total))


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
