"""METS files next to the pages of a book: order and labels of pages, sections, and files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from index.files.names import is_plain_path
from retrieval.metadata.pages import split_page
from retrieval.metadata.xml_reading import WrongXmlError, parse_xml, read_own

MOST_PAGES = 20_000
"""Pages of one book."""

_MOST_FILES, _MOST_SECTIONS, _MOST_LINKS = 200_000, 20, 500_000
_MOST_BOOKS = 4  # METS files to read in one folder


@dataclass(frozen=True)
class BookPage:
    """A page of a book from METS."""

    order: int  # from 1
    label: str  # printed page number, such as xiv or 12r; may be ""
    sections: tuple[str, ...]  # labels of the parts that it is in, the whole first
    files: tuple[str, ...]  # of all kinds, as paths from the folder of the METS


@dataclass(frozen=True)
class Book:
    """Contents of a METS file."""

    title: str
    pages: tuple[BookPage, ...]
    places: dict[str, int]  # number of a page, by the path of its file, and by the stem of the path if unique

    def page_of(self, file: Path, folder: Path) -> BookPage | None:
        """Return the page of a photo's file, given the folder of the METS."""
        place = self.places.get(file.relative_to(folder).as_posix(), self.places.get(f"/{file.stem}"))
        return None if place is None else self.pages[place]


def find_page(photo: Path) -> tuple[Path, Book, BookPage] | None:
    """Find the METS next to a photo, or in the folder above, that lists it: the file, the book and the page."""
    file, number = split_page(photo)
    if number is not None:  # METS lists files, not their pages
        return None
    for mets in books_beside(file):
        book = _book(mets)
        page = None if book is None else book.page_of(file, mets.parent)
        if book is not None and page is not None:
            return mets, book, page
    return None


def books_beside(file: Path) -> Iterator[Path]:
    """List the files that may be METS of a photo's file: in its folder, then in the one above, by their names."""
    for folder in (file.parent, file.parent.parent):
        found: list[str] = []
        with contextlib.suppress(OSError):
            found = sorted(name for name in _names(folder, folder.stat().st_mtime_ns))
        yield from (folder / name for name in found[:_MOST_BOOKS])


@lru_cache(maxsize=64)
def _names(folder: Path, changed: int) -> tuple[str, ...]:
    return tuple(name for name in os.listdir(folder) if "mets" in name.lower() and name.lower().endswith(".xml"))  # noqa: PTH208 (names alone)


def _book(path: Path) -> Book | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return _kept(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _kept(path: Path, size: int, changed: int) -> Book | None:
    content = read_own(path)
    return None if content is None else read_mets(content)


def read_mets(content: bytes) -> Book | None:
    """Read METS; None if it is something else, damaged, or has no pages."""
    reader = _MetsReader()
    if not parse_xml(content, reader) or not reader.pages:
        return None
    return reader.book()


@dataclass
class _MetsReader:
    """Collects files, physical pages in order, and logical parts with the pages that they are linked to."""

    files: dict[str, str] = field(default_factory=dict)  # by identifier
    pages: list[tuple[str, dict[str, str], list[str]]] = field(default_factory=list)  # identifier, attributes, files
    titles: dict[str, str] = field(default_factory=dict)  # by the place of the element
    links: list[tuple[str, str]] = field(default_factory=list)  # logical part, physical page
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)  # logical parts: label, and the part above
    _path: list[str] = field(default_factory=list)
    _kind: str = ""  # of the structure that is being read
    _file: str = ""
    _open: list[str] = field(default_factory=list)  # logical parts
    _divs: list[bool] = field(default_factory=list)  # of the open ones, which is a page

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._path and name != "mets":
            raise WrongXmlError
        self._path.append(name)
        if name == "mets":
            self.titles["mets"] = attributes.get("LABEL", "")
        elif name == "structMap":
            self._kind = attributes.get("TYPE", "PHYSICAL").upper()
        elif name == "file":
            self._file = attributes.get("ID", "")
        elif name == "FLocat" and self._file and len(self.files) < _MOST_FILES:
            self.files.setdefault(self._file, attributes.get("href", ""))
        elif name == "div":
            self._div(attributes)
        elif name in ("fptr", "area") and self._divs and self._divs[-1]:
            self.pages[-1][2].append(attributes.get("FILEID", ""))
        elif name == "smLink" and len(self.links) < _MOST_LINKS:
            self.links.append((attributes.get("from", ""), attributes.get("to", "")))

    def _div(self, attributes: dict[str, str]) -> None:
        identifier = attributes.get("ID", "")
        if self._kind == "LOGICAL":
            if len(self.parts) < MOST_PAGES:
                label = attributes.get("LABEL") or attributes.get("ORDERLABEL") or ""
                self.parts.setdefault(identifier, (label, self._open[-1] if self._open else ""))
            self._open.append(identifier)
        is_page = self._kind == "PHYSICAL" and attributes.get("TYPE", "page").lower() in ("page", "leaf", "side")
        if is_page:
            if len(self.pages) >= MOST_PAGES:
                raise WrongXmlError
            self.pages.append((identifier, attributes, []))
        self._divs.append(is_page)

    def end(self, name: str, text: str) -> None:
        self._path.pop()
        if name == "div":
            self._divs.pop()
            if self._kind == "LOGICAL":
                self._open.pop()
        elif name == "structMap":
            self._kind = ""
        elif name == "title" and text and "dmdSec" in self._path and "relatedItem" not in self._path:
            self.titles.setdefault("dmd", text)

    def book(self) -> Book:
        of_page: dict[str, list[str]] = {}
        for part, page in self.links:
            if part in self.parts:
                of_page.setdefault(page, []).append(part)
        pages: list[BookPage] = []
        places: dict[str, int] = {}
        stems: dict[str, int] = {}
        for place, (identifier, attributes, files) in enumerate(self.pages):
            order = attributes.get("ORDER", "")
            here = tuple(name for one in files if (name := _local_path(self.files.get(one, ""))))
            number = int(order) if order.isascii() and order.isdigit() and len(order) < 9 else place + 1
            label = attributes.get("ORDERLABEL") or attributes.get("LABEL") or ""
            pages.append(BookPage(number, label.strip(), self._sections(of_page.get(identifier, [])), here))
            for name in here:
                places.setdefault(name, place)
                stem = f"/{PurePosixPath(name).stem}"
                stems[stem] = place if stems.get(stem, place) == place else -1
        places.update({stem: place for stem, place in stems.items() if place >= 0})
        first = next(iter(self.parts.values()), ("", ""))[0]
        return Book(self.titles.get("dmd") or self.titles.get("mets") or first, tuple(pages), places)

    def _sections(self, parts: list[str]) -> tuple[str, ...]:
        """Labels of the parts that a page is linked to, and of those above, except the whole book."""
        labels: dict[str, None] = {}
        for part in parts:
            chain: list[str] = []
            seen = set()
            while part in self.parts and part not in seen:
                seen.add(part)
                label, above = self.parts[part]
                if above and label:
                    chain.insert(0, label)
                part = above
            labels.update(dict.fromkeys(chain))
        return tuple(labels)[:_MOST_SECTIONS]


def _local_path(href: str) -> str:
    """Return the path of a file relative to the folder of the METS; the last part of an address; or ""."""
    path = unquote(href.partition("?")[0])
    scheme, is_address, rest = path.partition("://")
    if is_address:
        path = rest if scheme.lower() == "file" else rest.rpartition("/")[2]
    path = path.removeprefix("./")
    return path if is_plain_path(path) else ""
