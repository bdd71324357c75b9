"""Manifests and collections of the IIIF Presentation API 2 and 3, and changes of them (Change Discovery API).

Input comes from another host: invalid values are left out, and numbers are bounded.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from retrieval.iiif.addresses import is_address
from retrieval.iiif.pictures import NotIiifError, as_list, image_version, side_of
from retrieval.metadata.text import clean

MOST_PAGES = 20_000
"""Pages of one manifest."""

_MOST_PAIRS, _MOST_VALUES, _MOST_NODES = 100, 100, 200_000
_LONGEST_LABEL, _LONGEST_TEXT, _LONGEST_PAIRS = 64, 5_000, 20_000  # characters, as texts are stored for each page
_DEEPEST = 8  # nesting depth of texts and services
_TAG = re.compile(r"<[^<>]{0,2000}>")


@dataclass(frozen=True)
class ManifestPage:
    """A canvas with its picture."""

    canvas: str  # its identifier
    label: str
    service: str  # address of the Image API for its picture; "" without one
    image: str  # address of the picture as a file; "" without one
    version: int  # of the Image API, if the manifest says so; 0: unknown
    sections: tuple[str, ...] = ()  # labels of the ranges that it is in
    width: int = 0  # of the canvas; 0: not known
    height: int = 0
    is_protected: bool = False  # whether people sign in to see it


@dataclass(frozen=True)
class IiifManifest:
    """A book, a painting, a folder of letters."""

    label: str
    pairs: Mapping[str, tuple[str, ...]]  # metadata, by label
    attribution: str
    rights: str
    homepage: str
    pages: tuple[ManifestPage, ...]
    left_out: int = 0  # canvases without a picture, or beyond the limit


@dataclass(frozen=True)
class Listing:
    """A collection: addresses of manifests and of collections, in order."""

    members: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Change:
    """An activity of a stream of changes."""

    kind: str  # Create, Update, Delete, Move, Add, Remove or Refresh
    address: str  # of the manifest or collection; "" for anything else
    moved_to: str  # Move: where the manifest is now
    stream: str  # Add, Remove: the stream that it is added to, or removed from
    time: datetime | None


@dataclass(frozen=True)
class ChangePage:
    """A stream of changes, or a page of one (IIIF Change Discovery API 1.0)."""

    stream: str  # its identifier
    changes: tuple[Change, ...]  # the oldest first
    earlier: str  # address of the previous page, for a stream of its last page; "" without one


def read_document(content: bytes) -> IiifManifest | Listing | ChangePage:
    """Read a manifest, a collection of manifests, or a stream of their changes; NotIiifError for anything else."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise NotIiifError("it is no JSON") from None
    kind = _kind(document)
    if kind == "Manifest":
        return _manifest(document)
    if kind in ("Collection", "CollectionPage") or (kind == "Layer" and "members" in document):
        return Listing(tuple(_members(document)))
    if kind in ("OrderedCollection", "OrderedCollectionPage"):
        stream = (
            _id(document) if kind == "OrderedCollection" else _id(next(iter(as_list(document.get("partOf"))), None))
        )
        changes = (_change(one) for one in as_list(document.get("orderedItems")) if isinstance(one, dict))
        earlier = _link(document.get("last" if kind == "OrderedCollection" else "prev"))
        return ChangePage(stream, tuple(changes), earlier)
    raise NotIiifError("it is not a manifest or collection of IIIF Presentation 2 or 3, nor a stream of changes")


def _change(activity: Mapping[str, Any]) -> Change:
    thing, target, kind = activity.get("object"), activity.get("target"), _kind(activity)
    address = _link(thing) if _kind(thing) in ("Manifest", "Collection") else ""
    stream = _id(activity.get("origin") if kind == "Remove" else target)
    time = None
    with suppress(ValueError, TypeError, OverflowError):
        time = datetime.fromisoformat(activity.get("endTime"))  # type: ignore[arg-type]
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return Change(kind, address, _link(target), stream, time)


def _link(resource: Any) -> str:
    """The address or identifier of a resource; "" without one."""
    address = resource if isinstance(resource, str) else _id(resource)
    return address if is_address(address) else ""


def _manifest(document: Mapping[str, Any]) -> IiifManifest:
    sections = _sections(document)
    pages: list[ManifestPage] = []
    left_out = 0
    seen: set[str] = set()
    for canvas in _canvases(document):
        page = _page(canvas, sections)
        if page is None or len(pages) >= MOST_PAGES:
            left_out += 1
        elif page.canvas not in seen:
            seen.add(page.canvas)
            pages.append(page)
    statement = document.get("requiredStatement")
    attribution = _texts(statement.get("value")) if isinstance(statement, dict) else _texts(document.get("attribution"))
    rights = [*_texts(document.get("rights")), *_texts(document.get("license"))]
    links = (_id(one) for one in (*as_list(document.get("homepage")), *as_list(document.get("related"))))
    return IiifManifest(
        _joined(_texts(document.get("label"))),
        _pairs(document.get("metadata")),
        _joined(attribution),
        _joined(rights),
        next((one for one in links if is_address(one)), ""),
        tuple(pages),
        left_out,
    )


def _canvases(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    sequences = [one for one in as_list(document.get("sequences"))[:1] if isinstance(one, dict)]
    several = [canvas for one in sequences for canvas in as_list(one.get("canvases"))]
    for one in several or as_list(document.get("items")):
        if isinstance(one, dict) and _kind(one) in ("Canvas", ""):
            yield one


def _page(canvas: Mapping[str, Any], sections: Mapping[str, tuple[str, ...]]) -> ManifestPage | None:
    """Return a canvas with its first picture; None if it has none."""
    identifier = _id(canvas)
    if not identifier:
        return None
    bodies: list[Any] = [one.get("resource") for one in as_list(canvas.get("images")) if isinstance(one, dict)]
    for page in as_list(canvas.get("items")):
        for note in as_list(page.get("items")) if isinstance(page, dict) else []:
            if isinstance(note, dict) and "painting" in as_list(note.get("motivation")):
                bodies += as_list(note.get("body"))
    for body in bodies:
        for _ in range(_DEEPEST):  # a choice: the first is shown
            if not isinstance(body, dict) or _kind(body) not in ("Choice", "SpecificResource"):
                break
            choices = as_list(body.get("default")) or as_list(body.get("items")) or as_list(body.get("item"))
            body = next(iter(choices or as_list(body.get("source") or body.get("full"))), None)
        if not isinstance(body, dict) or _kind(body) not in ("Image", ""):
            continue
        service, version = _service(body)
        image = _id(body) if is_address(_id(body)) else ""
        if service or image:
            label = _joined(_texts(canvas.get("label")))
            sides = side_of(canvas.get("width")), side_of(canvas.get("height"))
            within = sections.get(identifier, ())
            return ManifestPage(identifier, label, service, image, version, within, *sides, _is_protected(body))
    return None


def _service(body: Mapping[str, Any]) -> tuple[str, int]:
    """Address of the Image API for a picture, and its version."""
    for one in as_list(body.get("service"))[:_MOST_VALUES]:
        if isinstance(one, str):
            one = {"id": one, "profile": "image"}
        if isinstance(one, dict):
            types = " ".join(str(one.get(key))[:500] for key in ("type", "@type", "@context", "profile"))
            if "image" in types.lower() and is_address(_id(one)):
                return _id(one).rstrip("/"), image_version(one)
    return "", 0


def _is_protected(resource: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether a picture, or its Image API, names a service for access control."""
    services = [one for one in as_list(resource.get("service"))[:_MOST_VALUES] if isinstance(one, dict)]
    return depth < 2 and any(_kind(one) == "AuthProbeService2" or _is_protected(one, depth + 1) for one in services)


def _sections(document: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Labels of the ranges that each canvas is in, by its identifier."""
    labels_of: dict[str, dict[str, None]] = {}
    left: list[tuple[Any, str, bool]] = [(one, "", True) for one in as_list(document.get("structures"))]
    for _ in range(_MOST_NODES):
        if not left:
            break
        one, label, is_top = left.pop()
        address = (one if isinstance(one, str) else _id(one)).partition("#")[0]
        if isinstance(one, dict) and _kind(one) == "SpecificResource":
            source = one.get("source")
            address = (source if isinstance(source, str) else _id(source)).partition("#")[0]
        if isinstance(one, dict) and _kind(one) == "Range":
            own = _joined(_texts(one.get("label")))
            left += [(part, own, False) for key in ("items", "canvases", "members") for part in as_list(one.get(key))]
        elif label and address and not is_top and len(labels_of.setdefault(address, {})) < _MOST_VALUES:
            labels_of[address].setdefault(label)
    return {canvas: tuple(sorted(labels)) for canvas, labels in labels_of.items()}


def _members(document: Mapping[str, Any]) -> Iterator[str]:
    seen: set[str] = set()
    for key in ("manifests", "items", "members", "collections"):
        for one in as_list(document.get(key)):
            address = _link(one)
            is_meant = isinstance(one, str) or _kind(one) in ("Manifest", "Collection", "")
            if is_meant and address and address not in seen:
                seen.add(address)
                yield address
    links = dict.fromkeys(_link(document.get(key)) for key in ("first", "next"))
    yield from (address for address in links if address and address not in seen)


def _pairs(value: Any) -> dict[str, tuple[str, ...]]:
    pairs: dict[str, tuple[str, ...]] = {}
    left = _LONGEST_PAIRS
    for one in as_list(value)[: 10 * _MOST_PAIRS]:
        if not isinstance(one, dict):
            continue
        label = clean(_joined(_texts(one.get("label"))), _LONGEST_LABEL)
        values = _texts(one.get("value"))
        left -= sum(map(len, values))
        if label and values and left >= 0 and (label in pairs or len(pairs) < _MOST_PAIRS):
            pairs[label] = tuple(dict.fromkeys((*pairs.get(label, ()), *values)))[:_MOST_VALUES]
    return pairs


def _texts(found: Any, depth: int = 0) -> list[str]:
    """Texts of a value in one language: English, else those without a language, else the first."""
    if depth > _DEEPEST:
        return []
    if isinstance(found, str | int | float) and not isinstance(found, bool):
        text = clean(html.unescape(_TAG.sub(" ", str(found)[: 4 * _LONGEST_TEXT])), _LONGEST_TEXT)
        return [text] if text else []
    if isinstance(found, dict):
        if "@value" in found:
            return _texts(found["@value"], depth + 1)
        if "@id" in found or "id" in found:
            return _texts(found.get("label") or _id(found), depth + 1)
        return _texts(_language(found), depth + 1)
    if isinstance(found, list):
        by_language: dict[str, list[Any]] = {}
        for one in found[:_MOST_VALUES]:
            tongue = one.get("@language") if isinstance(one, dict) else None
            by_language.setdefault(tongue if isinstance(tongue, str) else "none", []).append(one)
        if len(by_language) > 1:
            found = _language(by_language)
        return [text for one in as_list(found)[:_MOST_VALUES] for text in _texts(one, depth + 1)]
    return []


def _language(by_language: Mapping[str, Any]) -> Any:
    keys = [key for key in by_language if isinstance(key, str)]
    best = (key for wanted in ("en", "none", "@none") for key in keys if key == wanted or key.startswith(f"{wanted}-"))
    chosen = next(best, next(iter(keys), None))
    return None if chosen is None else by_language[chosen]


def _joined(texts: list[str]) -> str:
    return clean("; ".join(dict.fromkeys(texts)), _LONGEST_TEXT)


def _kind(resource: Any) -> str:
    """The type of a resource, without its prefix; a choice of Open Annotation is a Choice, a picture an Image."""
    if not isinstance(resource, dict):
        return ""
    kind = next(
        (one for one in (*as_list(resource.get("type")), *as_list(resource.get("@type"))) if isinstance(one, str)), ""
    )
    return kind.rpartition(":")[2]


def _id(resource: Any) -> str:
    """The identifier of a resource as written; "" without a valid one."""
    if not isinstance(resource, dict):
        return ""
    identifier = resource.get("id") or resource.get("@id")
    if not isinstance(identifier, str) or len(identifier) > 4096:
        return ""
    return identifier if clean(identifier, 4096) == identifier else ""
