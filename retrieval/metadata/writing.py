"""Write entered metadata of a photo into its XMP sidecar for other programs; the photo itself never changes.

Existing sidecars keep their other contents: other properties, other languages, tags, subjects and comments.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.dom import minidom
from xml.parsers import expat

from index.arrays import save_bytes
from index.errors import CairnError
from index.files.reading import read_regular
from retrieval.metadata.combining import ALBUMS
from retrieval.metadata.fields import FIELDS, Metadata
from retrieval.metadata.sidecars import sidecars_of
from retrieval.metadata.xmp import DEEPEST, LARGEST, RDF, SPACES, coordinate_text

TAG = "tag"
"""Key of the field of tags."""

_DEFAULT = "x-default"
_XMLNS, _XML = "http://www.w3.org/2000/xmlns/", "http://www.w3.org/XML/1998/namespace"
_LISTS = {  # how properties with several values, or one in several languages, are written
    "dc:title": "Alt",
    "dc:description": "Alt",
    "dc:subject": "Bag",
    "lr:hierarchicalSubject": "Bag",
    "digiKam:TagsList": "Seq",
}
_EMPTY = f"""<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="{RDF}">
  <rdf:Description rdf:about=""/>
 </rdf:RDF>
</x:xmpmeta><?xpacket end="w"?>"""


class NoSidecar(CairnError):
    """The path of the sidecar has a file that cannot be written as one."""


def sidecar_for(photo: Path) -> Path:
    """Path of a photo's sidecar: the existing one (photo.xmp only if of no other file), else photo.jpg.xmp."""
    own, shared = sidecars_of(photo)[:2], sidecars_of(photo)[2:]
    others = (one for one in photo.parent.glob(f"{_literally(photo.stem)}.*") if one.suffix.lower() != ".xmp")
    there = [one for one in own if one.is_symlink() or one.exists()]
    if not there and not any(one.name != photo.name for one in others):
        there = [one for one in shared if one.is_symlink() or one.exists()]
    return there[0] if there else own[0]


def write_sidecar(photo: Path, known: Metadata, decided: Sequence[str], albums: Sequence[str]) -> bool:
    """Write entered metadata of a photo into its sidecar atomically; return whether that changed anything.

    `known` is its effective metadata, `decided` has the keys of the entered fields, which are written. Raises NoSidecar
    if the existing file is no XMP, or a link, and OSError if it cannot be written.
    """
    file = sidecar_for(photo)
    if file.is_symlink():
        raise NoSidecar("its sidecar is a link: put a file in its place")
    there = file.exists()
    if there and file.stat().st_size > LARGEST:
        raise NoSidecar("its sidecar is too large to be one")
    before = read_regular(file) if there else _EMPTY.encode()
    after = merged(before, known, decided, albums)
    if after is None:
        return False
    save_bytes(file, after)
    return True


def merged(packet: bytes, known: Metadata, decided: Sequence[str], albums: Sequence[str]) -> bytes | None:
    """Merge entered metadata of a photo into an XMP packet; return None if it has all of it already."""
    document = _parsed(packet)
    sheet = _Sheet(document)
    for key in decided:
        row = FIELDS.get(key)
        value = None if row is None else getattr(known, row.name)
        if row is None or value is None or (key == "title" and _is_caption(known)):
            continue
        for source in row.written:
            name = source.removeprefix("xmp:")
            texts = [_written(row.key, value)] if not isinstance(value, tuple) else _joined(sheet.values(name), value)
            sheet.write(name, texts)
    for name, mark in (("lr:hierarchicalSubject", "|"), ("digiKam:TagsList", "/")):
        there = sheet.values(name)
        has_albums = any(one.split(mark)[0] == ALBUMS for one in there)
        # Programs that find one of these properties read no others: write all tags to it, or none.
        has_tags = bool(albums) or TAG in decided
        if has_albums or (albums and name.startswith("lr:")) or (there and has_tags):
            sheet.write(name, _subjects(there, mark, known.tags if has_tags else (), albums))
    return document.toxml(encoding="utf-8") if sheet.changed else None


def _is_caption(known: Metadata) -> bool:
    """Whether the title is the caption of a photo without a title."""
    return known.caption is not None and known.title is not None and known.caption.startswith(known.title)


def _written(key: str, value: Any) -> str:
    if key in ("latitude", "longitude"):
        return coordinate_text(value, "NS" if key == "latitude" else "EW")
    return "True" if value is True else "False" if value is False else str(value)


def _joined(there: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Existing tags and others, distinct ignoring case."""
    known = {tag.casefold() for tag in there}
    return [*there, *(tag for tag in tags if tag.casefold() not in known)]


def _subjects(there: Sequence[str], mark: str, tags: Sequence[str], albums: Sequence[str]) -> list[str]:
    """Hierarchical subjects: existing ones, tags that are no level of them, and the current albums."""
    subjects = [one for one in there if one.split(mark)[0] != ALBUMS]
    levels = {level.casefold() for one in subjects for level in one.split(mark)}
    new = [tag for tag in tags if tag.casefold() not in levels]
    return [*subjects, *new, *(f"{ALBUMS}{mark}{name.replace(mark, ' ')}" for name in albums)]


def _literally(name: str) -> str:
    return "".join(f"[{one}]" if one in "*?[" else one for one in name)


def _parsed(packet: bytes) -> Any:
    """Parse a packet; raises NoSidecar if it is invalid, too deep, or has a document type (entities may expand)."""
    depth = 0

    def start(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise NoSidecar("its sidecar is nested too deeply")

    def end(*_: object) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise NoSidecar("its sidecar has a document type, which XMP never has")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, refuse
    try:
        parser.Parse(packet.rstrip(b"\0"), True)
        return minidom.parseString(packet.rstrip(b"\0"))
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise NoSidecar("its sidecar is not XML") from error


class _Sheet:
    """The properties of a packet: rdf:Description elements below rdf:RDF; raises NoSidecar without any."""

    def __init__(self, document: Any) -> None:
        root = document.documentElement
        roots = [one for one in (root, *_elements(root)) if _is(one, RDF, "RDF")]
        self._document = document
        self._sheets = [one for one in _elements(roots[0]) if _is(one, RDF, "Description")] if roots else []
        if not self._sheets:
            raise NoSidecar("its sidecar is not XMP")
        self._prefix = roots[0].prefix
        self.changed = False

    def values(self, name: str) -> list[str]:
        """Values of a property such as dc:title; if in several languages, the default."""
        space, local = _name(name)
        texts = [sheet.getAttributeNS(space, local) for sheet in self._sheets if sheet.hasAttributeNS(space, local)]
        for element in self._properties(space, local):
            items = _items(element)
            if _LISTS.get(name) == "Alt":
                items = [one for one in items if one.getAttributeNS(_XML, "lang") in ("", _DEFAULT)][:1]
            texts += [_text(one) for one in items] if _items(element) else [_text(element)]
        return [one for one in texts if one]

    def write(self, name: str, texts: Sequence[str]) -> None:
        """Replace the values of a property, except texts in other languages."""
        if self.values(name) == list(texts):
            return
        self.changed = True
        space, local = _name(name)
        others = [one for element in self._properties(space, local) for one in _items(element)]
        others = [one for one in others if one.getAttributeNS(_XML, "lang") not in ("", _DEFAULT)]
        for sheet in self._sheets:
            if sheet.hasAttributeNS(space, local):
                sheet.removeAttributeNS(space, local)
        for element in self._properties(space, local):
            element.parentNode.removeChild(element)
        if not texts and not others:
            return
        made = self._document.createElementNS(space, name)
        made.setAttributeNS(_XMLNS, f"xmlns:{name.partition(':')[0]}", space)
        self._sheets[0].appendChild(made)
        kind = _LISTS.get(name)
        if kind is None:
            made.appendChild(self._document.createTextNode(texts[0]))
            return
        listed = made.appendChild(self._rdf(kind))
        for text in texts:
            item = listed.appendChild(self._rdf("li"))
            item.appendChild(self._document.createTextNode(text))
            if kind == "Alt":
                item.setAttributeNS(_XML, "xml:lang", _DEFAULT)
        for one in others:
            listed.appendChild(one)

    def _rdf(self, local: str) -> Any:
        return self._document.createElementNS(RDF, f"{self._prefix}:{local}" if self._prefix else local)

    def _properties(self, space: str, local: str) -> list[Any]:
        return [one for sheet in self._sheets for one in _elements(sheet) if _is(one, space, local)]


def _name(name: str) -> tuple[str, str]:
    prefix, _, local = name.partition(":")
    return SPACES[prefix], local


def _is(element: Any, space: str, local: str) -> bool:
    return bool((element.namespaceURI, element.localName) == (space, local))


def _elements(node: Any) -> list[Any]:
    return [one for one in node.childNodes if one.nodeType == one.ELEMENT_NODE]


def _items(element: Any) -> list[Any]:
    return [item for listed in _elements(element) for item in _elements(listed) if _is(item, RDF, "li")]


def _text(node: Any) -> str:
    texts = (one.data for one in node.childNodes if one.nodeType in (one.TEXT_NODE, one.CDATA_SECTION_NODE))
    return "".join(texts).strip()
