"""Safe unpacking of untrusted archives: completely, below one folder, or not at all.

Members are written into a temporary folder next to the target, and renamed when complete. Refused are absolute paths,
``..``, links, devices, names with control characters or backslashes, duplicate files, and more bytes than the manifest
declares.
"""

import bz2
import gzip
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from index.errors import CairnError
from index.progress import Step, silent
from index.text import shown

_CHUNK = 1 << 20
_MOST_MEMBERS = 1_000_000
_LONGEST_HEADER = 1 << 21
_LONGEST = 200  # bytes of a name
_PASSED_OVER = ("__MACOSX", ".DS_Store")
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    lzma.LZMAError,
    NotImplementedError,
    RuntimeError,
)

_COMPRESSED: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}

_Member = tuple[str, IO[bytes] | None]  # name, and content; None for a folder


class BadArchive(CairnError):
    """An archive that was refused."""


class DamagedArchive(BadArchive):
    """An archive that ends early, has wrong checksums, or is not an archive."""

    def __init__(self, archive: Path, reason: object) -> None:
        super().__init__(f"{archive} is damaged or no archive ({reason}): nothing of it is unpacked.")


class HostileArchive(BadArchive):
    """An archive with a suspicious member."""

    def __init__(self, archive: Path, reason: str) -> None:
        super().__init__(f"{archive} {reason}: nothing of it is unpacked.")


def unpack(archive: Path, folder: Path, limit: int, progress: Step = silent, *, strip: bool = False) -> None:
    """Unpack a tar with any compression, or a zip, by its first bytes. Raises HostileArchive if a member is refused,
    DamagedArchive if it is no archive or damaged.
    """
    try:
        with whole_folder(folder, strip=strip) as temporary:
            _write_members(archive, temporary, limit, progress)
    except _DAMAGE as error:
        raise DamagedArchive(archive, error) from error
    except OSError as error:
        if error.errno is not None:  # an error of the disk; errors of gzip have no number
            raise
        raise DamagedArchive(archive, error) from error


@contextmanager
def whole_folder(folder: Path, *, strip: bool) -> Iterator[Path]:
    """Yield a folder for unpacking; then rename it, or its only subfolder (`strip`). After an error nothing stays."""
    temporary = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        inside = list(temporary.iterdir())
        alone = strip and len(inside) == 1 and inside[0].is_dir()
        (inside[0] if alone else temporary).replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_members(archive: Path, folder: Path, limit: int, progress: Step) -> None:
    """Write all members below a folder, checking each first."""
    files: set[PurePosixPath] = set()
    written = 0
    for count, (name, content) in enumerate(_members(archive, progress)):
        if count >= _MOST_MEMBERS:
            raise HostileArchive(archive, f"has more than {_MOST_MEMBERS:,} members")
        place = check_name(archive, name)
        if place is None:
            continue
        target = folder / place
        if content is None:
            if place in files or any(above in files for above in place.parents):
                raise HostileArchive(archive, f"has {shown(name)} twice")
            target.mkdir(parents=True, exist_ok=True)
            continue
        if place in files or target.exists() or any(above in files for above in place.parents):
            raise HostileArchive(archive, f"has {shown(name)} twice")
        files.add(place)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            while chunk := content.read(_CHUNK):
                written += len(chunk)
                if written > limit:
                    raise HostileArchive(archive, f"unpacks to more than the {limit:,} bytes that are declared")
                file.write(chunk)
    if not files:
        raise DamagedArchive(archive, "it holds no file")


def check_name(archive: Path, name: str) -> PurePosixPath | None:
    """Path of a member below the folder, or None for files added by operating systems. Raises HostileArchive if it
    would leave the folder, or its name is deceptive.
    """
    pieces = [piece for piece in name.split("/") if piece not in ("", ".")]
    bad = name.startswith("/") or ".." in pieces or "\\" in name or not name.isprintable() or name[1:2] == ":"
    if bad or any(len(os.fsencode(piece)) > _LONGEST for piece in pieces):
        raise HostileArchive(archive, f"has a member {shown(name)}, which no published set has")
    if not pieces or any(piece in _PASSED_OVER or piece.startswith("._") for piece in pieces):
        return None
    return PurePosixPath(*pieces)


def _members(archive: Path, progress: Step) -> Iterator[_Member]:
    with archive.open("rb") as file:
        zipped = file.read(4) == b"PK\3\4"
    return _zip_members(archive, progress) if zipped else _tar_members(archive, progress)


def _tar_members(archive: Path, progress: Step) -> Iterator[_Member]:
    size = archive.stat().st_size
    with archive.open("rb") as raw:
        start = raw.read(6)
        raw.seek(0)
        opener = next((opener for magic, opener in _COMPRESSED.items() if start.startswith(magic)), None)
        plain = opener(raw) if opener else raw
        guarded: Any = _Guarded(archive, plain)
        with closing(plain), tarfile.open(fileobj=guarded, mode="r:", errorlevel=2) as tar:
            for member in tar:
                progress(min(raw.tell(), size), size)
                if member.isdir():
                    yield member.name, None
                elif member.isreg():
                    content = tar.extractfile(member)
                    assert content is not None
                    with closing(content):
                        yield member.name, content
                else:
                    _refuse_kind(archive, member.name)


class _Guarded:
    """A file wrapper for tarfile, which otherwise reads headers of any stated length into memory."""

    def __init__(self, archive: Path, file: IO[bytes]) -> None:
        self._archive = archive
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        """Read at most the size of a valid header."""
        if not 0 <= size <= _LONGEST_HEADER:
            raise HostileArchive(self._archive, f"has a header of {size:,} bytes")
        return self._file.read(size)


def _zip_members(archive: Path, progress: Step) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        members = opened.infolist()
        size = sum(member.compress_size for member in members)
        done = 0
        for member in members:
            kind = (member.external_attr >> 16) & 0o170000  # of Unix; 0 elsewhere
            if kind not in (0, 0o100000, 0o040000):
                _refuse_kind(archive, member.filename)
            if "\0" in member.orig_filename:  # zipfile cuts names there
                raise HostileArchive(archive, f"has a member {shown(member.orig_filename)}, which no published set has")
            if member.is_dir():
                yield member.filename, None
            else:
                with opened.open(member) as content:
                    yield member.filename, content
            done += member.compress_size
            progress(done, size)


def _refuse_kind(archive: Path, name: str) -> None:
    raise HostileArchive(archive, f"has {shown(name)}, which is neither a file nor a folder")
