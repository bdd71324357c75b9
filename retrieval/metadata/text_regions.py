"""Regions of printed text on a page, from ALTO or PAGE XML next to its photo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from retrieval.metadata.mets import find_page
from retrieval.metadata.pages import stem_of
from retrieval.metadata.xml_reading import WrongXmlError, parse_xml, read_own

Polygon = tuple[tuple[float, float], ...]
"""Corners x, y in parts of the page's width and height."""

_FOLDERS = ("page", "PAGE", "alto", "ALTO")
_MOST = 50_000  # regions of a page, and corners of one
_NUMBER = re.compile(r"-?\d{1,7}(?:\.\d{1,9})?")
_PICTURES = frozenset(
    (
        "Illustration",
        "GraphicalElement",
        "ImageRegion",
        "LineDrawingRegion",
        "GraphicRegion",
        "ChartRegion",
        "MapRegion",
    )
)
_BLOCKS = frozenset(("TextBlock", "TextRegion"))
_INITIAL = "drop-capital"  # a type of TextRegion: it may be a woodcut


@dataclass(frozen=True)
class TextRegions:
    """Regions of a page from a file."""

    text: tuple[Polygon, ...]  # lines of text, and blocks without lines
    pictures: tuple[Polygon, ...]  # illustrations, which may lie within blocks of text


def find_text_regions(photo: Path) -> TextRegions | None:
    """Read the ALTO or PAGE XML of a photo: that of its name, next to it or in a folder page or alto, or by METS."""
    for path in _candidates(photo):
        content = read_own(path)
        found = None if content is None else read_text_regions(content)
        if found is not None:
            return found
    return None


def text_changed(photo: Path) -> int:
    """The latest change time (st_ctime) of files that may say where text is on a photo, nanoseconds; 0 without any."""
    latest = 0
    for path in _candidates(photo):
        with suppress(OSError):
            latest = max(latest, path.lstat().st_ctime_ns)
    return latest


def _candidates(photo: Path) -> Iterator[Path]:
    stem, folder = stem_of(photo.name), photo.parent
    yield from (folder / f"{stem}{ending}" for ending in (".xml", ".alto.xml", ".page.xml"))
    yield from (above / name / f"{stem}.xml" for above in (folder, folder.parent) for name in _FOLDERS)
    page_of_book = find_page(photo)
    if page_of_book is not None:
        mets, _, page = page_of_book
        yield from (mets.parent / name for name in page.files if name.lower().endswith(".xml"))


def read_text_regions(content: bytes) -> TextRegions | None:
    """Read ALTO (2 to 4) or PAGE XML; None if it is neither, or damaged."""
    reader = _LayoutReader()
    if not parse_xml(content, reader):
        return None
    return TextRegions(tuple(reader.text), tuple(reader.pictures))


@dataclass(frozen=True)
class _OpenRegion:
    name: str
    is_text: bool
    lines: int  # regions of text before it
    depth: int


@dataclass
class _LayoutReader:
    """Collects lines, blocks without lines, and pictures of the first page."""

    text: list[Polygon] = field(default_factory=list)
    pictures: list[Polygon] = field(default_factory=list)
    _size: tuple[float, float] = (0.0, 0.0)
    _pages: int = 0
    _depth: int = 0
    _open: list[_OpenRegion] = field(default_factory=list)
    _shape: dict[int, Polygon] = field(default_factory=dict)  # by how many regions are open
    _points: list[str] = field(default_factory=list)  # of Coords of earlier versions of PAGE

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and name not in ("alto", "PcGts"):
            raise WrongXmlError
        if name == "Page":
            self._pages += 1
            width, height = (attributes.get(one, "") for one in ("WIDTH", "HEIGHT"))
            self._size = _pair(width or attributes.get("imageWidth"), height or attributes.get("imageHeight"))
        elif name in _BLOCKS or name == "TextLine" or name in _PICTURES:
            is_text = name not in _PICTURES and attributes.get("type") != _INITIAL
            self._open.append(_OpenRegion(name, is_text, len(self.text), self._depth))
            self._shape.pop(len(self._open), None)
            if "HPOS" in attributes:
                x, y, w, h = _four(attributes)
                self._keep_shape([x, y, x + w, y, x + w, y + h, x, y + h])
        elif self._is_own(name):
            self._points.clear()
            points = attributes.get("points") or attributes.get("POINTS")
            if points:
                self._keep_shape([float(one) for one in _NUMBER.findall(points)[: 2 * _MOST]])
        elif name == "Point" and self._is_own("Coords", 1) and len(self._points) < 2 * _MOST:
            self._points += (attributes.get("x", ""), attributes.get("y", ""))

    def end(self, name: str, text: str) -> None:
        if self._points and self._is_own(name):
            self._keep_shape(list(_numbers(*self._points)))
            self._points.clear()
        self._depth -= 1
        if not self._open or self._depth >= self._open[-1].depth:
            return
        shape = self._shape.pop(len(self._open), None)
        region = self._open.pop()
        within_picture = any(not one.is_text for one in self._open)
        if shape is None or self._pages > 1 or len(self.text) + len(self.pictures) >= _MOST:
            return
        if not region.is_text:
            self.pictures.append(shape)
        elif len(self.text) == region.lines and not within_picture:  # a line, or a block without any
            self.text.append(shape)

    def _is_own(self, name: str, deeper: int = 0) -> bool:
        """Whether an element, by its depth, is the outline of the open region, and not of a word in it."""
        depth = {"Coords": 1, "Polygon": 2}.get(name)
        return depth is not None and bool(self._open) and self._depth == self._open[-1].depth + depth + deeper

    def _keep_shape(self, numbers: list[float]) -> None:
        width, height = self._size
        if width > 0 and height > 0 and len(numbers) >= 6:
            corners = zip(numbers[::2], numbers[1::2], strict=False)
            self._shape[len(self._open)] = tuple((_part(x / width), _part(y / height)) for x, y in corners)


def _pair(one: str | None, other: str | None) -> tuple[float, float]:
    first, second = _numbers(one, other)
    return first, second


def _part(value: float) -> float:
    return min(max(value, -1.0), 2.0)


def _four(attributes: dict[str, str]) -> tuple[float, ...]:
    return _numbers(*(attributes.get(one, "") for one in ("HPOS", "VPOS", "WIDTH", "HEIGHT")))


def _numbers(*texts: str | None) -> tuple[float, ...]:
    return tuple(float(one) if one and _NUMBER.fullmatch(one) else 0.0 for one in texts)
