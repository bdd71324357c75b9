"""Photos of a collection as one archive: their files as indexed, under safe names."""

import hashlib
import os
import re
import stat
import time
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from index.errors import CairnError
from index.files.reading import open_regular
from retrieval.library.photos import PhotoRow
from retrieval.metadata.pages import file_of, hash_photo, is_film, page_content, page_mark, split_page
from retrieval.web.pool.workers import Refused
from retrieval.web.problems import ProblemError


@dataclass(frozen=True)
class ExportOptions:
    """Limits of a download."""

    files: bool = True  # the files of photos; otherwise contact sheets alone
    photos: int = 500
    bytes: int = 500_000_000  # of all files together
    requests: int = 4  # whose files are looked at at a time: all of them are read for that
    pictures: int = 120  # on one contact sheet: a page has 24


PART = 200  # bytes of a part of a name, at most, in UTF-8
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
"""Names that Windows takes for devices."""
_EARLIEST, _LATEST = 315_532_800, 4_354_819_198  # seconds of Unix time that a ZIP archive can store
_CHUNK = 1 << 20  # bytes


def archive_names(names: Sequence[str]) -> list[str]:
    """Choose names of photos that can be unpacked on every system, below one folder, without duplicates.

    They have slashes between the folders; no two are the same in upper and lower case, and none is a folder of another.

    >>> archive_names(["2020/cup.jpg", "2020/CUP.jpg", "../../etc/cup.jpg", "con.jpg"])
    ['2020/cup.jpg', '2020/CUP (2).jpg', 'etc/cup.jpg', '_con.jpg']
    """
    files: set[str] = set()
    folders: set[str] = set()

    def is_free(path: PurePosixPath) -> bool:
        above = {str(folder).casefold() for folder in path.parents}
        return str(path).casefold() not in files | folders and not above & files

    chosen = []
    for name in names:
        parts = [cleaned for part in re.split(r"[/\\]", name) if (cleaned := _clean(part))] or ["photo"]
        wanted = PurePosixPath(*parts[-8:])
        if any(str(folder).casefold() in files for folder in wanted.parents):
            wanted = PurePosixPath(_shorten("_".join(wanted.parts)))
        path, copies = wanted, 1
        while not is_free(path):
            copies += 1
            path = wanted.with_name(f"{wanted.stem} ({copies}){wanted.suffix}")
        files.add(str(path).casefold())
        folders |= {str(folder).casefold() for folder in path.parents} - {"."}
        chosen.append(str(path))
    return chosen


def _clean(part: str) -> str:
    """A part of a path without characters that are special on some system; "" for "." and ".."."""
    text = unicodedata.normalize("NFC", part)
    text = "".join("_" if unicodedata.category(one)[0] == "C" or one in '<>:"|?*' else one for one in text)
    text = text.strip(" ").rstrip(" .")
    if not text.strip("."):
        return ""
    text = _shorten(text)
    return f"_{text}" if _RESERVED.fullmatch(text) else text


def _shorten(text: str) -> str:
    """A part of a path, shortened in the middle if it is too long."""
    encoded = text.encode()
    if len(encoded) <= PART:
        return text
    start, end = (piece.decode(errors="ignore") for piece in (encoded[: PART // 2 - 3], encoded[-PART // 2 :]))
    return f"{start}…{end}"


def refuse_originals(options: ExportOptions) -> None:
    """Raise ProblemError if files of photos may not be downloaded."""
    if not options.files:
        raise ProblemError(403, "This server does not allow downloads of photo files: start it with {--originals}.")


def check_files(rows: Sequence[PhotoRow], options: ExportOptions) -> list[int]:
    """Return the sizes of photos' files; raises Refused if they are missing, changed, or too large together."""
    sizes = []
    for row in rows:
        try:
            status = os.stat(file_of(row.path))  # noqa: PTH116
        except (OSError, ValueError):
            raise _changed(row) from None
        if not stat.S_ISREG(status.st_mode):
            raise _changed(row)
        sizes.append(status.st_size)
    if sum(sizes) > options.bytes:
        most, total = (f"{value / 1e6:,.0f} MB" for value in (options.bytes, sum(sizes)))
        raise Refused(
            "These photos have {given} together, and at most {most} can be downloaded at once: select fewer.",
            "large",
            given=total,
            most=most,
        )
    for row in rows:
        # A file is only sent if it is the one that was indexed.
        try:
            same = hash_photo(row.path) == row.sha256
        except OSError:
            same = False
        if not same:
            raise _changed(row)
    return sizes


def one_a_file(rows: Sequence[PhotoRow]) -> list[PhotoRow]:
    """Return one photo for each file: pages of one file are sent as that file."""
    firsts: dict[Path, PhotoRow] = {}
    for row in rows:
        firsts.setdefault(file_of(row.path), row)
    return [*firsts.values()]


def _name_of_file(row: PhotoRow) -> str:
    return (row.name or "").removesuffix(page_mark(*split_page(row.path)))


def _changed(row: PhotoRow) -> Refused:
    return Refused(
        "The file of {name} is no longer there, or has changed since it was indexed.", "gone", name=repr(row.name)
    )


def open_film(row: PhotoRow) -> IO[bytes]:
    """Open the film that a photo is a frame of; raises Refused if size or time have changed (a checksum would take
    long).
    """
    file = file_of(row.path)
    if not is_film(file):
        raise Refused("{name} is not a frame of a film.", "missing", name=repr(row.name))
    try:
        film = open_regular(file)
    except (OSError, CairnError):
        raise _changed(row) from None
    status = os.fstat(film.fileno())
    if (status.st_size, status.st_mtime_ns) != (row.size, row.mtime_ns):
        film.close()
        raise _changed(row)
    return film


class _Sink:
    """A writable file that holds its contents until they are read."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def take(self) -> bytes:
        content = bytes(self._written)
        self._written.clear()
        return content


def stream_archive(rows: Sequence[PhotoRow], sizes: Sequence[int]) -> Iterator[bytes]:
    """Return a ZIP archive of photos' files, uncompressed, piece by piece: nothing is kept on disk or whole in memory.

    If a file has changed since `check_files`, OSError breaks off the archive, so that it does not seem complete.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:  # type: ignore[call-overload]
        for row, size, name in zip(rows, sizes, archive_names([_name_of_file(row) for row in rows]), strict=True):
            path, page = split_page(row.path)
            with open(path, "rb") as file:  # noqa: PTH123
                changed = min(max(os.fstat(file.fileno()).st_mtime, _EARLIEST), _LATEST)
                entry = zipfile.ZipInfo(name, time.gmtime(changed)[:6])
                entry.file_size = size
                entry.external_attr = 0o644 << 16
                digest = hashlib.sha256()
                left = size
                with archive.open(entry, "w") as packed:
                    while left and (chunk := file.read(min(_CHUNK, left))):
                        left -= len(chunk)
                        digest.update(chunk)
                        if not left and page_content(digest.hexdigest(), page) != row.sha256:
                            break  # the last piece is not sent
                        packed.write(chunk)
                        yield sink.take()
            if page_content(digest.hexdigest(), page) != row.sha256:
                raise OSError(f"{row.path} changed while it was sent")
    yield sink.take()
