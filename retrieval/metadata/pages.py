"""Pages of one file, such as a scanned book: what they are called, and which page of which file is meant.

Each page is a photo of its own. The one that stands for its file has the file's own path and content, as the only page
of a file has: of a TIFF the largest page, of a PDF the first. The others follow it: ``book.tif#2`` is page 2.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from index.errors import CairnError

_LAST = 9_999_999
_PAGES = re.compile(r"([0-9]{1,7})(?:\s*([-–])\s*([0-9]{1,7})?)?", re.ASCII)
_PAGE = re.compile(r"(.*[^/])#([1-9][0-9]{0,6})", re.DOTALL)


def page_path(file: str | os.PathLike[str], page: int | None) -> Path:
    """Return the path of a page of a file; None: of the page that stands for it."""
    return Path(file) if page is None else Path(f"{os.fspath(file)}#{page}")


def split_page(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Return the file that the path of a photo is of, and the page.

    A file that is really called so is meant before a page of another one.

    Parameters
    ----------
    path : path-like
        Of a photo.

    Returns
    -------
    file : Path
    page : int or None
        From 1; None for the page that stands for the file.

    Examples
    --------
    >>> split_page("/there/is/none/book.tif#12")
    (PosixPath('/there/is/none/book.tif'), 12)
    """
    text = os.fspath(path)
    found = _PAGE.fullmatch(text) if "#" in text else None
    if found is None or os.path.lexists(path):
        return Path(path), None
    return Path(found[1]), int(found[2])


def file_of(path: str | os.PathLike[str]) -> Path:
    """Return the file that the path of a photo is of: see `split_page`."""
    return split_page(path)[0]


def read_pages(text: str) -> tuple[int, int]:
    """Read which pages are meant: one of them, from one to another, or from one on.

    Returns
    -------
    first, last : int

    Raises
    ------
    CairnError
        It says something else.

    Examples
    --------
    >>> read_pages("12"), read_pages("1-10"), read_pages("5-")
    ((12, 12), (1, 10), (5, 9999999))
    """
    found = _PAGES.fullmatch(text.strip())
    first = int(found[1]) if found else 0
    last = int(found[3] or _LAST) if found and found[2] else first
    if not 0 < first <= last:
        raise CairnError("Give pages as 12, as 1-10 or, from one on, as 5-.")
    return first, last


def page_content(sha256: str, page: int | None) -> str:
    """Return what stands for the content of a page, by the SHA-256 of its file."""
    return sha256 if page is None else hashlib.sha256(f"{sha256}#{page}".encode()).hexdigest()


def hash_photo(path: str | os.PathLike[str]) -> str:
    """Return what stands for the content of a photo: the SHA-256 of its file, or `page_content`.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    from index.arrays import hash_file

    file, page = split_page(path)
    return page_content(hash_file(file), page)


def stem_of(name: str) -> str:
    """Return the last part of a photo's name or path without its extension, the page behind it.

    >>> stem_of("2020/cup.jpg"), stem_of("book.tif#12")
    ('cup', 'book#12')
    """
    found = _PAGE.fullmatch(name)
    return Path(name).stem if found is None else f"{Path(found[1]).stem}#{found[2]}"
