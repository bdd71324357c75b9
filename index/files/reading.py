"""Opening files that others have written: regular files alone, so that no pipe is waited for, and no device read."""

import stat
from io import BufferedReader
from pathlib import Path

from index.errors import Damaged


class IrregularFile(Damaged):
    """What lies where a file belongs is a folder, a pipe, a socket or a device."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(f"{path} is not a regular file: put a copy of the file in its place.")


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises
    ------
    IrregularFile
        It is not a regular file. A pipe, say, is refused at once, without waiting for its other end.
    OSError
        It is not there, or cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise IrregularFile(path)
    return path.open("rb")


def refuse_irregular_database(file: Path) -> None:
    """Refuse an SQLite file that is not a regular file, or whose journals are not, as SQLite might wait for a pipe.

    Raises
    ------
    IrregularFile
        The file or one of its journals is not a regular file.
    """
    for path in (file, *(file.with_name(file.name + suffix) for suffix in ("-wal", "-shm", "-journal"))):
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
