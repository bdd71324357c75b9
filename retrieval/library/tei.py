"""Matches and occurrences as TEI (https://tei-c.org), for editors: a zone for each region, which others point to."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from retrieval.library.annotations import Place
from retrieval.library.motifs import Occurrence, occurrences_of
from retrieval.library.photos import cache_of, photos_there

if TYPE_CHECKING:
    from retrieval.catalogue.curation.saved import StoredSearch
    from retrieval.collection.collection import Collection
    from retrieval.library.photos import Photo

_TEI = "http://www.tei-c.org/ns/1.0"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DATE = re.compile(r"\d{4}(-\d\d){0,2}")


class TeiFile:
    """A TEI document with a facsimile of surfaces and zones, and with what stands off it."""

    def __init__(self, title: str) -> None:
        self._root = Element("TEI", {"xmlns": _TEI})
        described = SubElement(SubElement(self._root, "teiHeader"), "fileDesc")
        _add(SubElement(described, "titleStmt"), "title", title)
        _add(SubElement(described, "publicationStmt"), "p", "Written by Cairn.")
        _add(SubElement(described, "sourceDesc"), "p", "Photos of the collection.")
        self._facsimile = SubElement(self._root, "facsimile")
        self.stand_off = SubElement(self._root, "standOff")
        self._surfaces: dict[str, Any] = {}
        self._zones: dict[tuple[str, str], str] = {}

    def zone(self, place: Mapping[str, Any]) -> str:
        """Return a pointer to the zone of a region, as annotations have it; to all of the surface where it has none."""
        source, selector = place["source"], place.get("selector")
        if source not in self._surfaces:
            self._surfaces[source] = SubElement(self._facsimile, "surface", {"xml:id": f"s{len(self._surfaces) + 1}"})
            SubElement(self._surfaces[source], "graphic", {"url": _plain(source)})
        surface = self._surfaces[source]
        if selector is None:
            return f"#{surface.get('xml:id')}"
        value = selector["value"].removeprefix("xywh=")
        if (source, value) not in self._zones:
            name = self._zones[source, value] = f"z{len(self._zones) + 1}"
            if value.startswith("percent:"):
                surface.attrib.update({"ulx": "0", "uly": "0", "lrx": "100", "lry": "100"})
            x, y, width, height = map(float, value.removeprefix("percent:").split(","))
            ends = {"ulx": x, "uly": y, "lrx": x + width, "lry": y + height}
            SubElement(surface, "zone", {"xml:id": name, **{key: f"{end:.10g}" for key, end in ends.items()}})
        return f"#{self._zones[source, value]}"

    def text(self) -> str:
        """Return the document; what holds nothing is left out."""
        for part in (self._facsimile, self.stand_off):
            if not len(part):
                self._root.remove(part)
        if self._root[-1].tag == "teiHeader":
            _add(SubElement(SubElement(self._root, "text"), "body"), "p", "Nothing was found.")
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(self._root, encoding="unicode") + "\n"


def matches_text(page: Mapping[str, Any], title: str = "Matches") -> str:
    """Write annotations of matches as links between zones, with the probability of each as its certainty."""
    file = TeiFile(title)
    links = [(file.zone(one["target"]), file.zone(one["body"][0]), one["probability"]) for one in page["items"]]
    if links:
        group = SubElement(file.stand_off, "linkGrp", {"type": "match"})
        for one, other, probability in links:
            SubElement(group, "link", {"target": f"{one} {other}", "cert": f"{probability:.4f}"})
    return file.text()


def occurrences_text(
    occurrences: Iterable[Occurrence],
    photos: Mapping[int, "Photo"],
    title: str,
) -> str:
    """Write occurrences of a motif as a list of books and pages, which point to zones by its ``facs``."""
    file = TeiFile(title)
    listed = None
    for one in occurrences:
        place = Place.of(photos[one.number])
        x, y = zip(*one.region, strict=True) if one.region else ((), ())
        region = place.box(min(x), min(y), max(x), max(y)) if x else {"source": place.source}
        attributes = {"facs": file.zone(region)}
        if one.probability is not None:
            attributes["cert"] = f"{one.probability:.4f}"
        listed = SubElement(file.stand_off, "listBibl") if listed is None else listed
        entry = SubElement(listed, "bibl", attributes)
        _add(entry, "title", one.book)
        _add(entry, "biblScope", one.page, unit="page")
        if one.date:
            _add(entry, "date", one.date, **({"when": one.date} if _DATE.fullmatch(one.date) else {}))
        if one.place:
            _add(entry, "pubPlace", one.place)
        if one.category:
            _add(entry, "note", one.category, type="category")
    return file.text()


def occurrences_tei(collection: "Collection", search: "StoredSearch", category: str | None = None) -> str:
    """Write what a saved search has found as TEI, all of it or that of a category."""
    photos_found = occurrences_of(collection, search, category)
    photos = photos_there(collection.catalogue, [one.number for one in photos_found], cache_of(collection.folder))
    return occurrences_text(photos_found, {one.number: one for one in photos}, search.name)


def _add(parent: Element, tag: str, text: str, **attributes: str) -> None:
    SubElement(parent, tag, attributes).text = _plain(text)


def _plain(text: str) -> str:
    """What XML can hold of a text."""
    return _NO_XML.sub("\ufffd", text)
