"""XMP metadata: RDF in XML, as programs write it into photos (ISO 16684-1)."""

import contextlib
import re
from dataclasses import dataclass, field
from xml.parsers import expat

from retrieval.metadata.combining import SourceTexts
from retrieval.metadata.fields import SOURCES

LARGEST = 4 << 20
"""Bytes; a larger packet is not read."""

DEEPEST = 64
"""Elements within each other; a packet is not read further."""

_MOST_VALUES = 1000  # of one property
_LONGEST = 10_000  # characters of a value

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ROOT, _DESCRIPTION, _ITEM = (f"{RDF} {name}" for name in ("RDF", "Description", "li"))
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"
SPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "digiKam": "http://www.digikam.org/ns/1.0/",
    "exif": "http://ns.adobe.com/exif/1.0/",
    "Iptc4xmpCore": "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/",
    "lr": "http://ns.adobe.com/lightroom/1.0/",
    "mwg-rs": "http://www.metadataworkinggroup.com/schemas/regions/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    "tiff": "http://ns.adobe.com/tiff/1.0/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "xmpDM": "http://ns.adobe.com/xmp/1.0/DynamicMedia/",
}
"""Namespaces by the prefixes that `Field.sources` has."""

_SIDES = {"xmp:exif:GPSLatitude": "NS", "xmp:exif:GPSLongitude": "EW"}
_REGIONS = "xmp:mwg-rs:Regions"
_NAME, _TYPE = (f"{SPACES['mwg-rs']} {name}" for name in ("Name", "Type"))
_PEOPLE = ("", "Face", "Pet")  # types of regions whose names are tags


def _wanted() -> dict[str, str]:
    """The sources that are properties, by names as expat writes them."""
    sources = [source for source in SOURCES if source.startswith("xmp:")]
    parted = [(source, *source.split(":")[1:]) for source in (*sources, *(f"{one}Ref" for one in _SIDES))]
    return {f"{SPACES[prefix]} {name}": source for source, prefix, name in parted}


_WANTED = _wanted()
_COORDINATE = re.compile(
    r"\s*([+-]?)(\d{1,3}(?:\.\d*)?)(?:,\s*(\d{1,3}(?:\.\d*)?)(?:,\s*(\d{1,3}(?:\.\d*)?))?)?\s*°?\s*([NSEW]?)\s*",
    re.ASCII,
)


def read_xmp(data: bytes) -> SourceTexts:
    """Read an XMP packet, in any encoding that XML declares, up to the first damage.

    Returns texts of the properties used by fields, the default language first; degrees are signed. A document type is
    refused, so that no entities can be expanded.
    """
    if not data or len(data) > LARGEST:
        return {}
    reader = _Reader()
    reader.read(data)
    found = {source: reader.in_order(source) for source in reader.found}
    for source, sides in _SIDES.items():
        texts, side = found.pop(source, []), next(iter(found.pop(f"{source}Ref", ())), "")
        degrees = _coordinate(texts[0], sides, side) if texts else None
        if degrees is not None:
            found[source] = [str(degrees)]
    return found


class _Stop(Exception):
    """Stop parsing."""


@dataclass
class _Reader:
    """Collects wanted properties of rdf:Description: its attributes, and elements with a text or a list of texts."""

    found: dict[str, list[str]] = field(default_factory=dict)  # by source, see `retrieval.metadata.fields`
    languages: dict[str, list[str]] = field(default_factory=dict)  # of each of these values
    _path: list[str] = field(default_factory=list)
    _property: str | None = None  # the wanted one that is being read
    _depth: int = 0  # at which it is
    _language: str = ""
    _text: list[str] = field(default_factory=list)
    _items: bool = False  # whether it has rdf:li
    _region: dict[str, str] = field(default_factory=dict)  # of a photo, that is being read

    def read(self, data: bytes) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        # In addition to expat's errors: unknown or invalid encodings.
        with contextlib.suppress(_Stop, expat.ExpatError, LookupError, ValueError):
            parser.Parse(data.rstrip(b"\0"), True)

    def in_order(self, source: str) -> list[str]:
        """Values of a property, those of the default language first."""
        both = zip(self.found[source], self.languages[source], strict=True)
        return [value for value, _ in sorted(both, key=lambda one: one[1] != "x-default")]

    def _refuse(self, *_: object) -> None:
        self.found.clear()
        raise _Stop

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._path) >= DEEPEST:
            raise _Stop
        # rdf:RDF is the root, or in x:xmpmeta: deeper ones belong to something else.
        inside = self._path[-2:] if len(self._path) <= 3 else []
        if name == _DESCRIPTION and inside[-1:] == [_ROOT] and len(self._path) <= 2:
            for key, value in attributes.items():
                if key in _WANTED:
                    self._add(_WANTED[key], value, "")
        elif name in _WANTED and inside == [_ROOT, _DESCRIPTION]:
            self._property, self._depth, self._items = _WANTED[name], len(self._path), False
            self._begin(attributes)
        elif self._property == _REGIONS:
            if name == _ITEM:
                self._region = {}
            self._region |= {key: value for key, value in attributes.items() if key in (_NAME, _TYPE)}
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
        if self._property == _REGIONS:
            self._end_in_region(name)
        elif name == _ITEM and len(self._path) == self._depth + 2:
            self._add(self._property, "".join(self._text), self._language)
        elif len(self._path) == self._depth:
            if not self._items:
                self._add(self._property, "".join(self._text), self._language)
            self._property = None

    def _end_in_region(self, name: str) -> None:
        if name in (_NAME, _TYPE):
            self._region[name] = "".join(self._text).strip()
        elif name == _ITEM and self._region.get(_TYPE, "") in _PEOPLE:
            self._add(_REGIONS, self._region.get(_NAME, ""), "")
            self._region = {}
        if len(self._path) == self._depth:
            self._property = None

    def _add(self, name: str, value: str, language: str) -> None:
        values = self.found.setdefault(name, [])
        value = value.strip()[:_LONGEST]
        if value and len(values) < _MOST_VALUES:
            values.append(value)
            self.languages.setdefault(name, []).append(language)


def _coordinate(text: str, sides: str, side: str) -> float | None:
    """Read degrees as programs write them: 48,51.5N, 48.8583N or -48.8583; the side may be in another property."""
    match = _COORDINATE.fullmatch(text[:64])
    if match is None:
        return None
    sign, letter = match[1], match[5] or side.strip().upper()[:1]
    minutes, seconds = float(match[3] or 0), float(match[4] or 0)
    if minutes >= 60 or seconds >= 60 or (letter and letter not in sides) or (sign and letter == sides[0]):
        return None
    if not letter and match[3]:  # minutes without a side are of no known side
        return None
    degrees = float(match[2]) + minutes / 60 + seconds / 3600
    return -degrees if sign == "-" or letter == sides[1] else degrees


def coordinate_text(degrees: float, sides: str) -> str:
    """Write degrees and minutes as XMP does, to about a centimetre: 48,51.504N.

    >>> coordinate_text(-33.8566667, "NS")
    '33,51.400002S'
    """
    whole, millionths = divmod(round(abs(degrees) * 60_000_000), 60_000_000)
    return f"{whole},{millionths / 1_000_000:.6f}{sides[degrees < 0]}"
