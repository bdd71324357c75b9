"""A file that gives out a limited number of bytes, however often a parser goes back to the same ones."""

import io
from typing import BinaryIO

_CALL = 256  # bytes that reading anything at all counts for: millions of single bytes take long as well


class BoundedFile:
    """An open file, for Pillow's parsers: after too many bytes or calls it ends.

    Pillow takes an error of the disk for damage, and goes on without what it wanted. So the first one is kept.

    Parameters
    ----------
    file : binary file
    most : int
        Bytes that are given out.
    """

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._left = most
        self._length = file.seek(0, io.SEEK_END)
        self.error: OSError | None = None
        file.seek(0)

    def read(self, size: int = -1, /) -> bytes:
        """Read bytes, none where too many were read before; never set more room aside than the file needs."""
        there = max(0, self._length - self._file.tell())
        wanted = there if size < 0 else min(size, there)
        self._left -= _CALL + wanted
        if self._left < 0:
            return b""
        try:
            return self._file.read(wanted)
        except OSError as error:
            self.error = self.error or error
            raise

    def seek(self, place: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place in the file."""
        return self._file.seek(place, whence)

    def tell(self) -> int:
        """Position of the next read."""
        return self._file.tell()
