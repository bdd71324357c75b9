"""XMP metadata: RDF in XML, as programs write it into photos (ISO 16684-1)."""

import contextlib
import re
from dataclasses import dataclass, field
from xml.parsers import expat

from retrieval.metadata.dates import read_date

LARGEST = 4 << 20
"""Bytes; a larger packet is not read."""

_DEEPEST = 64  # elements within each other
_MOST_VALUES = 1000  # of one property
_LONGEST = 10_000  # characters of a value

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns# "
_ROOT, _DESCRIPTION, _ITEM = f"{_RDF}RDF", f"{_RDF}Description", f"{_RDF}li"
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"
_DC, _PHOTOSHOP = "http://purl.org/dc/elements/1.1/ ", "http://ns.adobe.com/photoshop/1.0/ "
_EXIF, _XMP, _TIFF = "http://ns.adobe.com/exif/1.0/ ", "http://ns.adobe.com/xap/1.0/ ", "http://ns.adobe.com/tiff/1.0/ "
_WANTED = frozenset(
    (
        *(f"{_DC}title", f"{_DC}description", f"{_DC}subject"),
        *(f"{_PHOTOSHOP}DateCreated", f"{_XMP}CreateDate"),
        *(f"{_EXIF}DateTimeOriginal", f"{_EXIF}DateTimeDigitized", f"{_EXIF}GPSLatitude", f"{_EXIF}GPSLongitude"),
        *(f"{_TIFF}Make", f"{_TIFF}Model"),
    )
)
_COORDINATE = re.compile(
    r"\s*(\d{1,3})(?:,\s*(\d{1,3}(?:\.\d*)?)(?:,\s*(\d{1,3}(?:\.\d*)?))?)?\s*([NSEW])\s*", re.ASCII
)


@dataclass(frozen=True)
class Xmp:
    """What is used of XMP; empty if it is not there."""

    title: str = ""  # dc:title, in its default language
    caption: str = ""  # dc:description, the same
    subjects: tuple[str, ...] = ()  # dc:subject
    original: str | None = None  # exif:DateTimeOriginal; dates are as `retrieval.metadata.dates` writes them
    created: str | None = None  # photoshop:DateCreated
    digitised: str | None = None  # exif:DateTimeDigitized, else xmp:CreateDate
    make: str = ""  # tiff:Make
    model: str = ""  # tiff:Model
    latitude: float | None = None  # degrees, north positive
    longitude: float | None = None  # degrees, east positive


def read_xmp(data: bytes) -> Xmp:
    """Read an XMP packet; it ends where it is damaged.

    A document type is refused, so that there are no entities to expand.

    Parameters
    ----------
    data : bytes
        The packet, in an encoding that XML tells by itself.

    Returns
    -------
    Xmp
    """
    if len(data) > LARGEST:
        return Xmp()
    reader = _Reader()
    reader.read(data)

    def first(name: str) -> str:
        return next(iter(reader.found.get(name, ())), "")

    dates = [read_date(first(name)) for name in (f"{_EXIF}DateTimeDigitized", f"{_XMP}CreateDate")]
    return Xmp(
        title=reader.default(f"{_DC}title"),
        caption=reader.default(f"{_DC}description"),
        subjects=tuple(reader.found.get(f"{_DC}subject", ())),
        original=read_date(first(f"{_EXIF}DateTimeOriginal")),
        created=read_date(first(f"{_PHOTOSHOP}DateCreated")),
        digitised=dates[0] or dates[1],
        make=first(f"{_TIFF}Make"),
        model=first(f"{_TIFF}Model"),
        latitude=_coordinate(first(f"{_EXIF}GPSLatitude"), "NS"),
        longitude=_coordinate(first(f"{_EXIF}GPSLongitude"), "EW"),
    )


class _Stop(Exception):
    """Nothing more is to be read."""


@dataclass
class _Reader:
    """Collects wanted properties of rdf:Description: its attributes, and elements with a text or a list of texts."""

    found: dict[str, list[str]] = field(default_factory=dict)  # by name, as expat writes it with its namespace
    languages: dict[str, list[str]] = field(default_factory=dict)  # of each of these values
    _path: list[str] = field(default_factory=list)
    _property: str | None = None  # the wanted one that is being read
    _depth: int = 0  # at which it is
    _language: str = ""
    _text: list[str] = field(default_factory=list)
    _items: bool = False  # whether it has rdf:li

    def read(self, data: bytes) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        # In addition to expat's own: of an encoding that Python does not have, or that is invalid.
        with contextlib.suppress(_Stop, expat.ExpatError, LookupError, ValueError):
            parser.Parse(data.rstrip(b"\0"), True)

    def default(self, name: str) -> str:
        values, languages = self.found.get(name, []), self.languages.get(name, [])
        chosen = (value for value, language in zip(values, languages, strict=True) if language == "x-default")
        return next(chosen, next(iter(values), ""))

    def _refuse(self, *_: object) -> None:
        self.found.clear()
        raise _Stop

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._path) >= _DEEPEST:
            raise _Stop
        # rdf:RDF is the root, or in x:xmpmeta: one that is deeper is of something else.
        inside = self._path[-2:] if len(self._path) <= 3 else []
        if name == _DESCRIPTION and inside[-1:] == [_ROOT] and len(self._path) <= 2:
            for key, value in attributes.items():
                if key in _WANTED:
                    self._add(key, value, "")
        elif name in _WANTED and inside == [_ROOT, _DESCRIPTION]:
            self._property, self._depth, self._items = name, len(self._path), False
            self._begin(attributes)
        elif self._property is not None and name == _ITEM and len(self._path) == self._depth + 2:
            self._items = True
            self._begin(attributes)
        self._path.append(name)

    def _begin(self, attributes: dict[str, str]) -> None:
        self._language = attributes.get(_LANGUAGE, "").lower()
        self._text.clear()

    def _characters(self, text: str) -> None:
        if self._property is not None:
            self._text.append(text[:_LONGEST])

    def _end(self, name: str) -> None:
        self._path.pop()
        if self._property is None:
            return
        if name == _ITEM and len(self._path) == self._depth + 2:
            self._add(self._property, "".join(self._text), self._language)
        elif len(self._path) == self._depth:
            if not self._items:
                self._add(self._property, "".join(self._text), self._language)
            self._property = None

    def _add(self, name: str, value: str, language: str) -> None:
        values = self.found.setdefault(name, [])
        value = value.strip()[:_LONGEST]
        if value and len(values) < _MOST_VALUES:
            values.append(value)
            self.languages.setdefault(name, []).append(language)


def _coordinate(text: str, sides: str) -> float | None:
    """Read degrees and minutes, or degrees, minutes and seconds, as XMP writes them: 48,51.5N."""
    match = _COORDINATE.fullmatch(text[:64])
    if match is None or match[4] not in sides:
        return None
    minutes, seconds = float(match[2] or 0), float(match[3] or 0)
    if minutes >= 60 or seconds >= 60:
        return None
    degrees = int(match[1]) + minutes / 60 + seconds / 3600
    return -degrees if match[4] in "SW" else degrees
