"""Opening files that others have written: regular files alone, so that no pipe is waited for, and no device read."""

import stat
from io import BufferedReader
from pathlib import Path
from typing import cast

from index.errors import CairnError


class IrregularFile(CairnError):
    """What lies where a file belongs is a folder, a pipe, a socket or a device."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(f"{path} is not a regular file: put a copy of the file in its place.")


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises
    ------
    IrregularFile
        It is none; it is not waited for, as the other end of a pipe would be.
    OSError
        It is not there, or cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise IrregularFile(path)
    return cast(BufferedReader, path.open("rb"))


def read_regular(path: Path, most: int | None = None) -> bytes:
    """Read a regular file.

    Parameters
    ----------
    path : Path
    most : int, optional
        Bytes that it may have.

    Raises
    ------
    ValueError
        It is larger.
    IrregularFile, OSError
        As `open_regular`.
    """
    with open_regular(path) as file:
        if most is None:
            return file.read()
        contents = file.read(most + 1)
    if len(contents) > most:
        raise ValueError("it is far larger than any should be")
    return contents
