"""Zip archives of arrays and JSON (.npz), read without trusting their headers."""

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import read_array_header, size_of_file

# The compression methods of our own files. Others may expand a few bytes without limit before we can stop them.
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)


class Archive:
    """An open archive. Every method raises some exception if an entry is missing or damaged; see `open_archive`."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self.zip = file
        self.names = [entry.filename for entry in file.infolist()]
        if len(set(self.names)) < len(self.names):
            raise ValueError("it has two entries of one name")

    def read(self, name: str) -> bytes:
        """Bytes of an entry; no more are unpacked than its stated size."""
        entry = self.zip.getinfo(name)
        if entry.compress_type not in _PACKINGS:
            raise ValueError("an entry is packed in an unusual way")
        with self.zip.open(entry) as stream:
            # Without a length, everything is unpacked first and cut to the stated size afterwards.
            contents = stream.read(entry.file_size)
        if len(contents) != entry.file_size:
            raise ValueError("an entry is shorter than it says")
        return contents

    def table(self, name: str) -> dict[str, Any]:
        """Value of a JSON entry, which must be an object."""
        value = json.loads(self.read(name))
        if not isinstance(value, dict):
            raise ValueError("its description is no table")
        return value

    def array(self, name: str) -> NDArray[Any]:
        """Array of an entry, by its name without .npy; arrays of objects and invalid Unicode are refused."""
        contents = self.read(f"{name}.npy")
        file = io.BytesIO(contents)
        shape, fortran_order, dtype = read_array_header(file, len(contents))
        rows = np.frombuffer(contents, np.uint8, offset=file.tell())
        array = np.empty(shape, dtype, order="F" if fortran_order else "C")
        array.reshape(-1, order="A").view(np.uint8)[:] = rows
        if dtype.kind == "U":
            check_text(array)
        return array

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays, by name."""
        return {name.removesuffix(".npy"): self.array(name.removesuffix(".npy")) for name in self.names}


@contextmanager
def open_archive(path: Path, largest: int | None = None) -> Iterator[Archive]:
    """Open an archive of at most `largest` bytes, packed and unpacked, for use within `arrays.reading`."""
    if size_of_file(path) > (largest or float("inf")):
        raise ValueError("it is far larger than any should be")
    with zipfile.ZipFile(path) as file:
        if sum(entry.file_size for entry in file.infolist()) > (largest or float("inf")):
            raise ValueError("it holds far more than any should")
        yield Archive(file)


def check_text(array: NDArray[Any]) -> None:
    """Raise ValueError if an array of text holds invalid characters."""
    if array.dtype.itemsize == 0 or array.size == 0:
        return
    order = array.dtype.byteorder
    codes = (
        np.ascontiguousarray(array).reshape(-1).view(np.dtype(np.uint32).newbyteorder(order if order in "<>" else "="))
    )
    if codes.max() > _LAST_CHARACTER or ((codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1])).any():
        raise ValueError("a text has what is no character")
