"""A file that gives out so much and no more, however often a parser goes back to the same bytes."""

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
    zeros : bool
        What is asked for and goes beyond the end of the file is all zeros. Pillow would leave out what stands after a
        value that is not there.
    """

    def __init__(self, file: BinaryIO, most: int, zeros: bool = False) -> None:
        self._file = file
        self._left = most
        self._zeros = zeros
        self._length = file.seek(0, io.SEEK_END)
        self.error: OSError | None = None
        file.seek(0)

    def read(self, size: int = -1, /) -> bytes:
        """Read bytes, none where too many were read before; never set more room aside than the file needs."""
        there = max(0, self._length - self._file.tell())
        wanted = there if size < 0 else size
        self._left -= _CALL + (wanted if self._zeros else min(wanted, there))
        if self._left < 0:
            return b""
        if self._zeros and wanted > there:
            return bytes(wanted)
        try:
            return self._file.read(min(wanted, there))
        except OSError as error:
            self.error = self.error or error
            raise

    def seek(self, place: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place in the file."""
        return self._file.seek(place, whence)

    def tell(self) -> int:
        """Where the file is read next."""
        return self._file.tell()
