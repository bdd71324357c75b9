"""Matches as W3C Web Annotations, which viewers of libraries show.

Each verified pair of photos of a group is an annotation (https://www.w3.org/TR/annotation-model/): its target and first
body are the regions of the matches in both. The second body is text, as viewers such as Mirador show only comments. A
photo from IIIF is identified by its canvas, in the canvas's pixels; another by its name, as an address relative to the
file.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from index.progress import Progress
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.curation.rejections import rejected_pairs
from retrieval.catalogue.link_store import links_in
from retrieval.groups.links import decode_links
from retrieval.metadata.columns import CANVAS, SIZE
from retrieval.search.probability import LIKELY

if TYPE_CHECKING:
    from retrieval.library.answers import Answer, Result
    from retrieval.library.groups import Group, Groups
    from retrieval.library.matches import Match
    from retrieval.library.photos import Photo

_CONTEXT = (
    "http://www.w3.org/ns/anno.jsonld",
    {
        "cairn": "urn:x-cairn:",
        "probability": "cairn:probability",
        "inliers": "cairn:inliers",
        "group": "cairn:group",
        "map": {"@id": "cairn:map", "@type": "@json"},
    },
)
_MEDIA = "http://www.w3.org/TR/media-frags/"
_SIZE = re.compile(r"([1-9][0-9]{0,6})x([1-9][0-9]{0,6})")


GroupPair = tuple["Group", "Photo", "Photo"]


def pairs_of_groups(catalogue: Catalogue, groups: "Groups") -> list[GroupPair]:
    """Return the photos of groups that geometry links, two at a time, by the numbers of groups and photos."""
    return [(group, *pair) for group in groups for pair in _pairs(catalogue, group, groups.inliers)]


def annotation_page(
    pairs: Sequence[GroupPair],
    compare: Callable[["Photo", "Photo"], "Match"],
    tell: Progress,
    address_of: Callable[["Photo"], str] | None = None,
) -> dict[str, Any]:
    """Make an ``AnnotationPage``, as JSON-LD, of the matches within groups, from pairs of `pairs_of_groups`.

    `address_of` returns the address of a photo of the same size in pixels. Without it, or if it returns "", a photo
    from IIIF is identified by its canvas, and another by its name. Each item also has: group, inliers, probability, and
    map, the homography (3 rows of 3) from points of the target to points of the first body, in the units of their
    selectors.
    """
    items = []
    for done, (group, one, other) in enumerate(pairs, 1):
        match = compare(one, other)
        if match.inliers:
            target, body = Place.of(one, address_of), Place.of(other, address_of)
            regions = target.around(match.query_ellipses), body.around(match.photo_ellipses)
            items.append({**_annotation(target, body, regions, match, other), "group": group.number})
        tell("annotate", done, len(pairs))
    return _page(items)


def answer_page(
    answer: "Answer",
    photo_of: Callable[[str], "Photo | None"],
    address_of: Callable[["Photo"], str] | None = None,
) -> dict[str, Any]:
    """Make annotations of results, from the query or its box to its region in a photo: see `annotation_page`."""
    items, photo_of = [], cache(photo_of)
    for result in answer:
        query = answer.queries[result.query_index]
        photo = photo_of(result.name)
        if photo is None or photo.name == query.name or result.region is None:
            continue
        if not result.found and result.probability < LIKELY:
            continue
        known = photo_of(query.name)
        target = Place(query.name, query.width, query.height, {}) if known is None else Place.of(known, address_of)
        left, top, right, bottom = query.box or (-0.5, -0.5, query.width - 0.5, query.height - 0.5)
        body = Place.of(photo, address_of)
        x, y = np.array(result.region).T
        regions = target.box(left, top, right, bottom), body.box(x.min(), y.min(), x.max(), y.max())
        items.append(_annotation(target, body, regions, result, photo))
    return _page(items)


def _page(items: list[dict[str, Any]]) -> dict[str, Any]:
    # Equal matches have equal names, so that files can be compared.
    name = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(items, sort_keys=True))
    return {"@context": list(_CONTEXT), "id": f"urn:uuid:{name}", "type": "AnnotationPage", "items": items}


def _pairs(catalogue: Catalogue, group: "Group", inliers: int) -> Iterator[tuple["Photo", "Photo"]]:
    """Photos of a group that are linked, in the order of their numbers."""
    photos = {one.number: one for one in group.photos}
    rejected = catalogue.read(rejected_pairs)
    linked = set()
    for number, contents in catalogue.read(links_in, list(photos)).items():
        for link in decode_links(number, contents) or ():
            if link.inliers >= inliers and link.found in photos and link.found != number:
                linked.add(link.pair)
    yield from ((photos[one], photos[other]) for one, other in sorted(linked) if (one, other) not in rejected)


def _annotation(
    target: "Place",
    body: "Place",
    regions: tuple[dict[str, Any], dict[str, Any]],
    match: "Match | Result",
    photo: "Photo",
) -> dict[str, Any]:
    homography = None if match.homography is None else body.scale @ match.homography @ np.linalg.inv(target.scale)
    name = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(regions, sort_keys=True))
    text = f"{photo.title or photo.name}: {match.probability:.1%}"
    return {
        "id": f"urn:uuid:{name}",
        "type": "Annotation",
        "motivation": ["linking", "commenting"],
        "target": regions[0],
        "body": [regions[1], {"type": "TextualBody", "value": text, "format": "text/plain"}],
        "inliers": match.inliers,
        "probability": round(match.probability, 4),
        "map": None if homography is None or not homography[2, 2] else _rounded(homography / homography[2, 2]),
    }


class Place:
    """Target of places in a photo, and their units."""

    def __init__(self, name: str, width: int | None, height: int | None, known: Mapping[str, Sequence[str]]) -> None:
        self.width, self.height = width or 1, height or 1
        canvas = next(iter(known.get(CANVAS, ())), "")
        size = _SIZE.fullmatch(next(iter(known.get(SIZE, ())), ""))
        self.source = canvas or quote(name)
        self.unit = "percent:" if canvas and size is None else ""
        wide, high = (int(size[1]), int(size[2])) if canvas and size else (self.width, self.height)
        x, y = (100 / self.width, 100 / self.height) if self.unit else (wide / self.width, high / self.height)
        # From pixels with the centre of the first at (0, 0) to units with its corner there.
        self.scale: NDArray[np.float64] = np.array([[x, 0, x / 2], [0, y, y / 2], [0, 0, 1]])

    @classmethod
    def of(cls, photo: "Photo", address_of: Callable[["Photo"], str] | None = None) -> "Place":
        """Return how places in a photo of the collection are described."""
        address = "" if address_of is None else address_of(photo)
        place = cls(photo.name, photo.width, photo.height, {} if address else photo.others)
        place.source = address or place.source
        return place

    def around(self, ellipses: NDArray[np.floating]) -> dict[str, Any]:
        """Return the box around ellipses (N, 5), as a specific resource."""
        x, y, a, b, c = ellipses.astype(np.float64).T
        determinant = np.maximum(a * c - b * b, 1e-12)
        wide, high = np.sqrt(c / determinant), np.sqrt(a / determinant)
        return self.box((x - wide).min(), (y - high).min(), (x + wide).max(), (y + high).max())

    def box(self, left: float, top: float, right: float, bottom: float) -> dict[str, Any]:
        """Return a box as a specific resource."""
        left, right = np.clip([left, right], -0.5, self.width - 0.5)
        top, bottom = np.clip([top, bottom], -0.5, self.height - 0.5)
        (x0, y0, _), (x1, y1, _) = (self.scale @ [left, top, 1]).tolist(), (self.scale @ [right, bottom, 1]).tolist()
        box = [x0, y0, x1 - x0, y1 - y0] if self.unit else _whole(x0, y0, x1, y1)
        value = f"xywh={self.unit}{','.join(f'{one:.3f}'.rstrip('0').rstrip('.') for one in box)}"
        selector = {"type": "FragmentSelector", "conformsTo": _MEDIA, "value": value}
        return {"type": "SpecificResource", "source": self.source, "selector": selector}


def _whole(x0: float, y0: float, x1: float, y1: float) -> Sequence[float]:
    """Return the box of whole pixels around a box, as left, top, width and height."""
    left, top = int(x0), int(y0)
    return left, top, max(1, int(-(-x1 // 1)) - left), max(1, int(-(-y1 // 1)) - top)


def _rounded(matrix: NDArray[np.float64]) -> list[list[float]]:
    return [[float(f"{value:.9g}") for value in row] for row in matrix.tolist()]
