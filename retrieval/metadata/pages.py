"""Pages of one file, such as a scanned book: their names, and parsing of these.

Each page is a separate photo. One page has the path and content of the file itself, like the only page of other files:
the largest page of a TIFF, the first of a PDF. The others have a suffix: ``book.tif#2`` is page 2.

A frame of a film is a page whose number is its time, in milliseconds: ``film.mp4#00h13m07s040``. Such names are valid
on every system, and sort by time.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from types import MappingProxyType

from index.errors import CairnError

_LAST = 9_999_999
_PAGES = re.compile(r"([0-9]{1,7})(?:\s*([-–])\s*([0-9]{1,7})?)?", re.ASCII)
_PAGE = re.compile(r"(.*[^/])#([1-9][0-9]{0,6}|([0-9]{2})h([0-5][0-9])m([0-5][0-9])s([0-9]{3})?)", re.ASCII | re.DOTALL)

FILMS = MappingProxyType(
    {
        ".mp4": "video/mp4",
        ".m4v": "video/mp4",
        ".mov": "video/quicktime",
        ".webm": "video/webm",
        ".mkv": "video/x-matroska",
        ".avi": "video/x-msvideo",
        ".mpg": "video/mpeg",
        ".mpeg": "video/mpeg",
        ".3gp": "video/3gpp",
        ".wmv": "video/x-ms-wmv",
    }
)
"""Extensions of films, and the media type of each."""

LAST_MOMENT = 360_000_000 - 1
"""Milliseconds from the beginning of a film to the last frame that has a name."""


def is_film(file: str | os.PathLike[str]) -> bool:
    """Whether a file is a film, by its extension; of a frame of one it is False."""
    return os.path.splitext(file)[1].lower() in FILMS  # noqa: PTH122 (quick: all files of a folder are asked for)


def moment(milliseconds: int) -> str:
    """Write a time in a film as people do, to the second.

    >>> moment(787_040)
    '00:13:07'
    """
    minutes, seconds = divmod(milliseconds // 1000, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"


def page_mark(file: str | os.PathLike[str], page: int | None) -> str:
    """Return the suffix of a page after the name of its file.

    >>> page_mark("book.tif", 12), page_mark("film.mp4", 787_040)
    ('#12', '#00h13m07s040')
    """
    if page is None:
        return ""
    if not is_film(file):
        return f"#{page}"
    hours, minutes, seconds = moment(page).split(":")
    return f"#{hours}h{minutes}m{seconds}s{page % 1000:03}"


def page_path(file: str | os.PathLike[str], page: int | None) -> Path:
    """Return the path of a page of a file; None: the page that has the name of the file."""
    return Path(f"{os.fspath(file)}{page_mark(file, page)}")


def split_page(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Return the file that the path of a photo is of, and the page: from 1, or milliseconds of a film.

    The page is None for the one that has the name of the file. An existing file of this name takes precedence.

    >>> split_page("/there/is/no/book.tif#12")
    (PosixPath('/there/is/no/book.tif'), 12)
    """
    text = os.fspath(path)
    match = _PAGE.fullmatch(text) if "#" in text else None
    if match is None or os.path.lexists(path):
        return Path(path), None
    if is_film(match[1]) != (match[3] is not None):
        return Path(path), None
    if match[3] is None:
        return Path(match[1]), int(match[2])
    seconds = 3600 * int(match[3]) + 60 * int(match[4]) + int(match[5])
    return Path(match[1]), 1000 * seconds + int(match[6] or 0)


def file_of(path: str | os.PathLike[str]) -> Path:
    """Return the file that the path of a photo is of: see `split_page`."""
    return split_page(path)[0]


def read_pages(text: str) -> tuple[int, int]:
    """Parse the first and last of pages: one, from one to another, or from one on.

    >>> read_pages("12"), read_pages("1-10"), read_pages("5-")
    ((12, 12), (1, 10), (5, 9999999))
    """
    match = _PAGES.fullmatch(text.strip())
    first = int(match[1]) if match else 0
    last = int(match[3] or _LAST) if match and match[2] else first
    if not 0 < first <= last:
        raise CairnError("Write pages as 12, as 1-10 or, from one page on, as 5-.")
    return first, last


def page_content(sha256: str, page: int | None) -> str:
    """Return the content key of a page, from the SHA-256 of its file."""
    return sha256 if page is None else hashlib.sha256(f"{sha256}#{page}".encode()).hexdigest()


def hash_photo(path: str | os.PathLike[str]) -> str:
    """Return the content key of a photo: the SHA-256 of its file, or `page_content`."""
    from index.arrays import hash_file

    file, page = split_page(path)
    return page_content(hash_file(file), page)


def stem_of(name: str) -> str:
    """Return the last part of a photo's name or path without its extension, but with the suffix of its page.

    >>> stem_of("2020/cup.jpg"), stem_of("book.tif#12")
    ('cup', 'book#12')
    """
    match = _PAGE.fullmatch(name)
    return Path(name).stem if match is None else f"{Path(match[1]).stem}#{match[2]}"
