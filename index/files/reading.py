"""Safe opening of untrusted files: only regular files, never pipes or devices."""

import stat
from io import BufferedReader
from pathlib import Path

from index.errors import Damaged
from index.messages import said

SQLITE_LOGS = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps next to a database."""


class IrregularFile(Damaged):
    """A folder, pipe, socket or device in place of a file."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(said("{path} is not a regular file: put a copy of the file in its place."), path=path)


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; raises IrregularFile for a pipe or the like, OSError if it cannot be read."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise IrregularFile(path)
    return path.open("rb")


def refuse_irregular_database(file: Path) -> None:
    """Raise IrregularFile if an SQLite file or a journal is not a regular file: SQLite might wait for a pipe."""
    for path in (file, *(file.with_name(file.name + end) for end in SQLITE_LOGS)):
        try:
            mode = (path.stat if path == file else path.lstat)().st_mode
        except OSError:
            continue
        if not stat.S_ISREG(mode):
            raise IrregularFile(path)


def read_regular(path: Path) -> bytes:
    """Read a regular file; raises as `open_regular` does."""
    with open_regular(path) as file:
        return file.read()
