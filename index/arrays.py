"""Arrays and JSON on disk: fingerprints, crash-safe writing, and reading that never unpickles."""

import dataclasses
import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from mmap import ACCESS_READ
from mmap import mmap as map_file
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError, Damaged, LaterVersion, refuse_unreadable
from index.files.reading import IrregularFile, open_regular, read_regular
from index.messages import Message, said
from index.progress import silent
from index.text import csv_text, printable

# The header of a .npy file of numbers, or of text, as NumPy writes it. Sides of at most 19 digits fit 64 bits.
_HEADER = re.compile(
    rb"\{'descr': '([<>|=]?[a-zA-Z][0-9]{0,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:[0-9]{1,19},(?: [0-9]{1,19},)*(?: [0-9]{1,19})?)?)\), \} *\n"
)
_REMEDY = Message(said("if it is a collection's, run {cairn check}, then {cairn repair}; else restore it from a copy."))

# Hashed a block at a time, so that a memory-mapped array of any size is never copied whole.
HASH_BLOCK_BYTES = 1 << 24
_FILE_BLOCK_BYTES = 1 << 20
# A file that states a higher format is damaged.
_MOST_FORMATS = 1000


def fingerprint(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, object]) -> str:
    """SHA-256, in hexadecimal, of named arrays and options: names, dtypes, shapes and contents, in the order of the
    sorted names; memory layout makes no difference. Raises ValueError for an array of Python objects. `options`: hashed
    as canonical JSON: sorted keys, no spaces.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.hasobject:
            raise ValueError(f"array {name!r} holds Python objects and cannot be fingerprinted")
        header = json.dumps([name, array.dtype.descr if array.dtype.names else array.dtype.str, list(array.shape)])
        # The length first, so that no header can be mistaken for contents.
        digest.update(len(header).to_bytes(8, "little") + header.encode())
        _hash_contents(digest.update, array)
    digest.update(b"options")
    digest.update(_canonical_json(options).encode())
    return digest.hexdigest()


def _hash_contents(update: Callable[[Any], None], array: NDArray[Any]) -> None:
    """Feed the C-order bytes of an array to `update`, a block of rows at a time."""
    if array.size == 0:
        return
    if array.ndim == 0:
        update(array.tobytes())
        return
    rows = max(1, HASH_BLOCK_BYTES // max(1, array.nbytes // array.shape[0]))
    for start in range(0, array.shape[0], rows):
        update(np.ascontiguousarray(array[start : start + rows]).tobytes())


def _plain(value: object) -> object:
    """Convert a value that `json` cannot write to one that it can."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _canonical_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain)


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as .npy, atomically. Raises ValueError for an array of Python objects."""
    _write_safely(Path(path), lambda file: np.save(_PlainFile(file), np.asanyarray(array), allow_pickle=False))


class _PlainFile:
    """Hide the real file from NumPy, which would write to it in C and miss that the disk is full."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write


def save_json(path: Path, obj: object) -> None:
    """Write JSON (UTF-8, indented) atomically. `obj`: anything `json` writes, and dataclasses, paths, NumPy scalars and
    small arrays. NaN and infinities, which JSON cannot express, raise ValueError.
    """
    text = json.dumps(obj, indent=2, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"
    _write_safely(Path(path), lambda file: file.write(text.encode("utf-8")))


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], meta: object = None, *, deflated: bool = False) -> None:
    """Write arrays as .npz atomically. The same arrays always make the same file."""
    kind = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    contents = io.BytesIO()
    # Not np.savez, which stamps each entry with the time.
    with zipfile.ZipFile(contents, "w", kind) as archive:
        if meta is not None:
            archive.writestr(zipfile.ZipInfo("meta.json"), json.dumps(meta, indent=2, sort_keys=True))
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), entry.getvalue(), kind)
    save_bytes(path, contents.getvalue())


def save_rows(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write the rows of a table as CSV atomically (see `printable`)."""
    save_bytes(path, printable(csv_text(rows)).encode())


def save_bytes(path: Path, contents: bytes, *, mode: int = 0o666) -> None:
    """Write or replace a file atomically, with the permissions `mode` before the umask."""
    _write_safely(Path(path), lambda file: file.write(contents), mode)


def load_array(path: Path, mmap: bool = False) -> NDArray[Any]:
    """Read a .npy file."""
    try:
        # Not np.load, which would open a zip archive too.
        with open_regular(path) as file:
            shape, fortran_order, dtype = read_array_header(file, os.fstat(file.fileno()).st_size)
            if mmap:
                # NumPy would open the file, read the header and resolve the path a second time.
                contents = map_file(file.fileno(), 0, access=ACCESS_READ)
                return np.ndarray(shape, dtype, contents, file.tell(), order="F" if fortran_order else "C")
            array = np.empty(shape, dtype, order="F" if fortran_order else "C")
            if file.readinto(array.reshape(-1, order="A").view(np.uint8).data) != array.nbytes:
                raise ValueError("the file has grown shorter")
            return array
    except CairnError:
        raise
    except _PickledObjects as error:
        raise CairnError(
            "{path} holds pickled objects, which are never loaded: {remedy}.", path=path, remedy=_REMEDY
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    except Exception as error:  # a damaged header can fail in any way: syntax, overflow, memory, length
        raise Damaged(
            "{path} is damaged and cannot be read as an array: {remedy}.", path=path, remedy=_REMEDY
        ) from error


class _PickledObjects(ValueError):
    """An array of Python objects, not of numbers."""


def read_array_header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape and dtype of a .npy file, checked against its size, so that a huge stated shape costs nothing. Raises
    ValueError if the header is damaged, has objects, or does not match the size of the file. `file`: positioned at its
    start; left where the array's contents begin.
    """
    # Later versions are for headers beyond 64 KB, which no array of numbers needs, and which may state 4 GB.
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("the array is of another format")
    length = int.from_bytes(file.read(2), "little")
    shape, fortran_order, dtype = _parse_header(file.read(length))
    # Python's integers: those of NumPy overflow.
    if math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError("the array is not as long as it says")
    return shape, fortran_order, dtype


@lru_cache(maxsize=1024)  # cached: a collection of many segments repeats the same few
def _parse_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    # NumPy's own reader asks `ast`, which in Python 3.11 fails now and then where two threads ask at once (gh-106905).
    match = _HEADER.fullmatch(header)
    if not match:
        raise ValueError("the array has no header that makes sense")
    kind, order, sides = (text.decode() for text in match.groups())
    dtype = np.dtype(kind)
    if dtype.hasobject:
        raise _PickledObjects("the array holds pickled objects")
    return tuple(int(side) for side in sides.split(",") if side.strip()), order == "True", dtype


def size_of_file(path: Path) -> int:
    """Size of a file in bytes. Raises OSError if it does not exist, CairnError if it is no regular file."""
    state = path.stat()
    if not stat.S_ISREG(state.st_mode):
        raise IrregularFile(path)
    return state.st_size


def hash_file(path: Path, tell: Callable[[int], None] = silent) -> str:
    """SHA-256 of a regular file; `tell` is called with the size of each block read."""
    digest = hashlib.sha256()
    try:
        opened = open_regular(path)
    except IrregularFile:
        raise FileNotFoundError(errno.ENOENT, "it is not a regular file", str(path)) from None
    with opened as file:
        while block := file.read(_FILE_BLOCK_BYTES):
            digest.update(block)
            tell(len(block))
    return digest.hexdigest()


def _unreadable(path: Path, error: OSError) -> CairnError:
    if isinstance(error, FileNotFoundError):
        return Damaged("{path} is missing: it was never written, or has been moved or deleted.", path=path)
    refuse_unreadable(path, error)
    return CairnError(
        "{path} cannot be read ({reason}): check the disk and its rights.",
        path=path,
        reason=error.strerror or str(error),
    )


def load_json(path: Path) -> Any:
    """Read a JSON file."""
    path = Path(path)
    try:
        return json.loads(read_regular(path))
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise Damaged("{path} is damaged and cannot be read as JSON: {remedy}.", path=path, remedy=_REMEDY) from error


def check_format(path: Path, version: object, known: int) -> None:
    """Check the format version of a file; raises LaterVersion beyond `known`, ValueError if it is malformed."""
    if type(version) is not int or not 0 < version < _MOST_FORMATS:
        raise ValueError("it does not say which format it has")
    if version != known:
        raise LaterVersion(
            "{path} was written by a later version of Cairn (it has the format {version}, and this Cairn reads format "
            "{known}): update Cairn.",
            path=path,
            version=version,
            known=known,
        )


@contextmanager
def reading(path: Path, kind: str, maker: str) -> Iterator[None]:
    """Turn any error raised in the block while a file is read into a CairnError that says what to do."""
    named = Message(kind)
    try:
        yield
    except CairnError:
        raise
    except FileNotFoundError:
        raise CairnError("There is no {what} {path}: {maker} writes one.", what=named, path=path, maker=maker) from None
    except OSError as error:
        raise _unreadable(path, error) from error
    except MemoryError as error:
        raise CairnError(
            "There is not enough memory to read the {what} {path}: close other programs.", what=named, path=path
        ) from error
    except Exception as error:  # a damaged archive can fail in any way
        # The error may quote the file: any length, any characters.
        detail = " ".join(str(error).split())[:160]
        why = f" ({detail})" if detail and detail.isprintable() else ""
        raise CairnError(
            "{path} is damaged or no {what}{why}: make it again with {maker}.",
            path=path,
            what=named,
            why=why,
            maker=maker,
        ) from error


def publish_folder(temporary: Path, final: Path) -> None:
    """Rename a finished folder on the same file system, so that `final` never names an unfinished one: its files are
    flushed to disk, the folder is renamed, and the rename is flushed. `final` must be missing or empty.
    """
    temporary, final = Path(temporary), Path(final)
    for folder, _, names in os.walk(temporary, topdown=False):
        for name in names:
            flush_to_disk(Path(folder) / name)
        flush_to_disk(Path(folder))
    try:
        temporary.rename(final)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise CairnError("{path} already exists: remove it first, or choose another name.", path=final) from error
        raise
    flush_to_disk(final.parent)


def temporary_path(path: Path) -> Path:
    """Path of a file or folder next to another one, which it replaces when it is complete."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def _write_safely(path: Path, write: Callable[[BinaryIO], Any], mode: int = 0o666) -> None:
    # Not tempfile, whose files only their owner may read.
    temporary = temporary_path(path)
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        # When the disk is full, the system does not say which file was being written.
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        temporary.unlink(missing_ok=True)
        raise
    flush_to_disk(path.parent)


def flush_to_disk(path: Path) -> None:
    """Flush a file or folder to the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders, and needs no such flush
        return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
