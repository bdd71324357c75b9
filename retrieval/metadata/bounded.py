"""A file with a limit on the total bytes read, however often a parser seeks back."""

import io
from typing import BinaryIO

_CALL = 256  # least bytes counted for each read: millions of one-byte reads take long as well


class BoundedFile:
    """An open binary file, for Pillow's parsers: after too many bytes or calls it ends.

    Pillow treats an error of the disk as damage, and continues. So the first error is stored.
    """

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._left = most
        self._length = file.seek(0, io.SEEK_END)
        self.error: OSError | None = None
        file.seek(0)

    def read(self, size: int = -1, /) -> bytes:
        """Read bytes; empty if too many were read before. Never allocates more memory than the file needs."""
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
