"""Copying of files into the folder of a backup, where each gets its name when it is complete."""

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from index.arrays import flush_to_disk, hash_file, publish_folder, temporary_path
from index.errors import CairnError
from index.progress import Progress
from index.reports import Report
from retrieval.integrity.report import Damage, megabytes, size_of

STEP = "backup"

_BLOCK = 1 << 26  # bytes


@dataclass(frozen=True)
class BackedUp(Report):
    """Result of `Collection.backup`."""

    ok: Annotated[bool, "Whether the whole backup is undamaged."]
    images: Annotated[int, "Photos in the backup."]
    copied: Annotated[int, "Files that were copied or linked."]
    bytes: Annotated[int, "Bytes that were copied."]
    kept: Annotated[int, "Files that the backup already had."]
    removed: Annotated[int, "Files and folders removed from the backup, as the collection no longer has them."]
    damaged: Annotated[tuple[Damage, ...], "Damaged files of the backup."]
    notes: Annotated[list[str], "Notes other than damage."]
    seconds: Annotated[float, "Time."]


class BackupFiles:
    """Copies files of a collection into the folder of its backup, and counts them."""

    def __init__(self, source: Path, target: Path, link: bool, progress: Progress) -> None:
        self.source, self.target = source, target
        self.counts = dict.fromkeys(("copied", "bytes", "kept", "removed"), 0)
        self.copied: set[str] = set()  # segments and vocabularies, by their names
        self._link_folders = link
        self._progress = progress
        self._done = self._total = 0  # bytes

    def begin(self, size: int) -> None:
        """Begin to copy files of a size in bytes."""
        self._done, self._total = 0, size
        self._tell(0)

    def end(self) -> None:
        """Report completed progress."""
        self._tell(self._total - self._done)

    def place(self, path: Path) -> Path:
        """The path in the backup of a file of the collection."""
        return self.target / path.relative_to(self.source)

    def has(self, path: Path) -> bool:
        """Whether a file was copied before, by size and time, or by content, as not every file system keeps times."""
        try:
            ours, theirs = path.stat(), self.place(path).lstat()
            if not stat.S_ISREG(theirs.st_mode) or ours.st_size != theirs.st_size:
                return False
            return ours.st_mtime_ns == theirs.st_mtime_ns or hash_file(path) == hash_file(self.place(path))
        except FileNotFoundError:
            return False

    def temporary(self, name: str, leaving: contextlib.ExitStack) -> Path:
        """A path in the backup for an unfinished file or folder, which is deleted at the end."""
        path = temporary_path(self.target / name)
        leaving.callback(remove, path)
        return path

    def replace(self, path: Path) -> None:
        """Copy a file, unless the backup has it, and replace the earlier one."""
        if self.has(path):
            self.counts["kept"] += 1
            return
        place = self.place(path)
        with contextlib.ExitStack() as leaving:
            temporary = self.temporary(path.name[:40], leaving)
            self.copy(path, temporary)
            flush_to_disk(temporary)
            temporary.replace(place)
            flush_to_disk(place.parent)

    def copy_upload(self, path: Path) -> None:
        """Copy an uploaded file into the same folder, which is created."""
        for folder in reversed(path.relative_to(self.source).parents[:-1]):
            make_folder(self.target / folder, self.source / folder)
        self.replace(path)

    def copy_folder(self, files: Sequence[Path], place: Path, is_sound: Callable[[Path], bool]) -> None:
        """Copy the files of a folder that never changes, or link them; it has its name when it is whole."""
        copy = self._link if self._link_folders else self.copy
        with contextlib.ExitStack() as leaving:
            temporary = self.temporary(place.name, leaving)
            temporary.mkdir()
            for path in files:
                copy(path, temporary / path.name)
            if not is_sound(temporary):
                raise CairnError("{parent} is damaged: run {cairn check}, then {cairn repair}.", parent=files[0].parent)
            remove(place)
            publish_folder(temporary, place)
        self.copied.add(place.name)

    def copy(self, path: Path, copy: Path) -> None:
        """Copy a file, with its rights and times."""
        _refuse_irregular(path)
        _copy_contents(path, copy, self._tell)
        with contextlib.suppress(OSError):  # not every file system supports these
            shutil.copystat(path, copy)
        self.counts["copied"] += 1
        self.counts["bytes"] += copy.stat().st_size

    def remove(self, path: Path) -> None:
        """Remove what the collection no longer has."""
        remove(path)
        self.counts["removed"] += 1

    def _link(self, path: Path, link: Path) -> None:
        _refuse_irregular(path)
        try:
            os.link(path, link)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CairnError(
                "{path} cannot be linked to from {target} ({value}): leave out {--link}, so that files are copied.",
                path=path,
                target=self.target,
                value=error.strerror,
            ) from error
        self._tell(size_of(link))
        self.counts["copied"] += 1

    def _tell(self, size: int) -> None:
        self._done += size
        self._progress(STEP, megabytes(min(self._done, self._total)), megabytes(self._total))


def make_folder(folder: Path, like: Path) -> None:
    """Create a folder with the permissions of another one."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        with contextlib.suppress(OSError):
            folder.chmod(stat.S_IMODE(like.stat().st_mode) | stat.S_IRWXU)


def is_plain_file(path: Path) -> bool:
    """Whether there is a plain file, and no link to one."""
    return path.is_file() and not path.is_symlink()


def remove(path: Path) -> None:
    """Remove a file or a folder, or a link to one, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _refuse_irregular(path: Path) -> None:
    if not stat.S_ISREG(path.lstat().st_mode):
        raise CairnError("{path} is not a regular file: run {cairn check}.", path=path)


def _copy_contents(path: Path, copy: Path, tell: Callable[[int], None]) -> None:
    """Copy the contents of a file; some file systems share the space until one of the two is changed."""
    with path.open("rb") as ours, copy.open("xb") as theirs:
        try:
            if hasattr(os, "copy_file_range"):
                with contextlib.suppress(OSError):  # not between any two file systems
                    while size := os.copy_file_range(ours.fileno(), theirs.fileno(), _BLOCK):
                        tell(size)
            while block := ours.read(_BLOCK):
                theirs.write(block)
                tell(len(block))
        except OSError as error:
            error.filename = str(copy)
            raise
