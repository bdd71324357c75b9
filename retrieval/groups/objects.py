"""Objects: parts of a photo that other photos show, from the stored links of `cairn group`, without a search."""

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import cv2
import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.catalogue.browsing import rows_there
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.curation.hidden import hidden_among
from retrieval.catalogue.curation.rejections import rejected_for
from retrieval.catalogue.link_store import links_after, links_in
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.collection.layout import GROUPS
from retrieval.groups.groups import GroupOptions
from retrieval.groups.links import Link, decode_links, found_numbers
from retrieval.search.outlines import LARGEST, THINNEST, area, clip_polygon, narrowest_width, project_outline

_PHOTOS = 60  # linked photos to use: those with most inliers
_AT_ONCE = 500  # photos whose links are read at a time
_PAUSE = 0.005  # seconds between these


@dataclass(frozen=True)
class ObjectOptions:
    """Options of finding objects in a photo."""

    inliers: int = GroupOptions.inliers  # fewest of a link
    alike: float = 0.5  # least intersection over union of two regions of one object
    whole: float = 0.9  # part of the photo from which on a region is all of it
    most: int = 8  # objects of a photo: those in most photos


@dataclass(frozen=True)
class SeenObject:
    """A part of a photo that others show."""

    region: list[list[float]]  # three to eight corners [x, y], pixels of the upright photo, clockwise
    photos: tuple[int, ...]  # numbers of photos that show it, those with most inliers first
    inliers: int  # the most
    share: float  # part of the photo that the region covers, 0 to 1
    whole: bool  # it is all of the photo, or nearly


class PhotoObjects:
    """Objects of photos of one collection; thread-safe. After each run of `cairn group` all links are read, in the
    background if there are many, to know the photos that link to a photo; they are cached in 16 bytes for each link.
    Until then answers use only a photo's own links, and those of the photos in them.
    """

    def __init__(self, collection: Collection, options: ObjectOptions | None = None) -> None:
        self._collection = collection
        self._options = options or ObjectOptions()
        self._pointing: _Pointing | None = None
        self._reading: object = None  # the state whose links are being read
        self._lock = threading.Lock()

    @property
    def is_grouped(self) -> bool:
        """Whether grouping was ever completed."""
        return self._state() is not None

    def of(self, row: ImageRow) -> list[SeenObject]:
        """Find the objects of a photo, without hidden and rejected photos: see `seen_objects`. Empty if not grouped."""
        state = self._state()
        if state is None:
            return []
        catalogue = self._collection.catalogue
        pointing = self._pointing_to(row.number, state)
        if pointing is None:
            own = catalogue.read(links_in, [row.number]).get(row.number, b"")
            _, found, inliers = found_numbers([(row.number, own)], self._options.inliers)
            pointing = found[np.argsort(-inliers, kind="stable")][:_PHOTOS].tolist()
        stored = catalogue.read(links_in, [row.number, *pointing])
        best: dict[int, Link] = {}
        for number, contents in stored.items():
            # Of another photo's hundreds of links, decode only the one to this photo.
            is_own = number == row.number
            for link in decode_links(number, contents, None if is_own else row.number) or ():
                other = link.found if is_own else number
                if other != row.number and link.inliers >= self._options.inliers:
                    best[other] = max(link, best.get(other, link), key=lambda one: (one.inliers, one.query))
        for left_out in (catalogue.read(rejected_for, row.number), catalogue.read(hidden_among, list(best))):
            for number in left_out:
                best.pop(number, None)
        links = sorted(best.items(), key=lambda one: (-one[1].inliers, one[0]))[:_PHOTOS]
        # Some may have been removed since they were linked.
        there = {one.number: one for one in catalogue.read(rows_there, [number for number, _ in links])}
        return seen_objects(row, [link for _, link in links], there, self._options)

    def _state(self) -> object:
        """A value that changes whenever `cairn group` ends; None if it never did."""
        try:
            status = (self._collection.folder / GROUPS).stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _pointing_to(self, number: int, state: object) -> list[int] | None:
        """Photos that found this one as queries; None if not known yet."""
        with self._lock:
            known = self._pointing
            is_new = (known is None or known.state != state) and self._reading != state
            if is_new:
                self._reading = state
        if is_new:
            first = self._collection.catalogue.read(links_after, -1, _AT_ONCE)
            if len(first) < _AT_ONCE:
                known = self._pointing = _Pointing.of(state, [first], self._options.inliers)
                self._reading = None
            else:
                threading.Thread(target=self._read, args=(state,), name="links", daemon=True).start()
        return None if known is None else known.to(number)

    def _read(self, state: object) -> None:
        try:
            # The next answer retries a failed read; the collection may be closed meanwhile.
            with contextlib.suppress(CairnError):
                self._pointing = _Pointing.of(state, _pages(self._collection.catalogue), self._options.inliers)
        finally:
            self._reading = None


@dataclass(frozen=True)
class _Pointing:
    """Which photos found which, as queries."""

    state: object  # of the groups
    found: NDArray[np.int64]  # (L,), ascending
    queries: NDArray[np.int64]  # (L,), for each photo found, those with most inliers first

    @classmethod
    def of(cls, state: object, pages: Iterable[Sequence[tuple[int, bytes]]], fewest: int) -> "_Pointing":
        """Read the links of enough inliers."""
        parts = [found_numbers(page, fewest) for page in ((), *pages)]
        by, to, inliers = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((by, -inliers, to))
        return cls(state, to[order], by[order])

    def to(self, number: int) -> list[int]:
        """The photos that found a photo, at most as many as are used."""
        first, last = np.searchsorted(self.found, [number, number + 1])
        pointing: list[int] = self.queries[first : min(last, first + _PHOTOS)].tolist()
        return pointing


def _pages(catalogue: Catalogue) -> Iterator[list[tuple[int, bytes]]]:
    """All links, with pauses in which requests are answered."""
    page = catalogue.read(links_after, -1, _AT_ONCE)
    while page:
        yield page
        time.sleep(_PAUSE)
        page = catalogue.read(links_after, page[-1][0], _AT_ONCE)


def seen_objects(
    row: ImageRow, links: Iterable[Link], rows: Mapping[int, ImageRow], options: ObjectOptions | None = None
) -> list[SeenObject]:
    """Find the parts of a photo that linked photos show, those in most photos first: the frames of the linked photos,
    mapped and clipped. Regions that overlap enough are one object, with the region of most inliers. `rows`: the linked
    photos, by number; links to others are ignored.
    """
    options = options or ObjectOptions()
    width, height = row.width, row.height
    if not width or not height:
        return []
    regions: list[tuple[NDArray[np.float32], list[int], int]] = []
    for link in links:
        other = rows.get(link.found if link.query == row.number else link.query)
        region = _region(link, row, other) if other is not None else None
        if region is None or other is None:
            continue
        for known, photos, _ in regions:
            if _alike(known, region) >= options.alike:
                photos.append(other.number)
                break
        else:
            regions.append((region, [other.number], link.inliers))
    regions.sort(key=lambda one: (-len(one[1]), -one[2], one[1][0]))
    shown = []
    for region, photos, inliers in regions[: options.most]:
        share = min(1.0, area(region.astype(np.float64)) / (width * height))
        corners = [[round(x, 2), round(y, 2)] for x, y in region.tolist()]
        shown.append(SeenObject(corners, tuple(photos), inliers, round(share, 4), share >= options.whole))
    return shown


def _region(link: Link, row: ImageRow, other: ImageRow) -> NDArray[np.float32] | None:
    """Outline of another photo in a photo: corners (3 to 8, 2) within it; None if the link does not define one."""
    if not (row.width and row.height and other.width and other.height):
        return None
    # Maps of links are in units of the longer sides, with the corner of the top-left pixel at (0, 0).
    matrix = np.vstack([np.array(link.transform, np.float64).reshape(2, 3), [0.0, 0.0, 1.0]])
    if link.query == row.number:
        determinant = float(matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0])
        if not isfinite(determinant) or abs(determinant) < 1e-9:
            return None
        matrix = np.linalg.inv(matrix)
    theirs, own = max(other.width, other.height), max(row.width, row.height)
    x, y = other.width / theirs, other.height / theirs
    outline = project_outline(np.array([[0, 0], [x, 0], [x, y], [0, y]], np.float64), matrix)
    if outline is None:
        return None
    outline = outline * own - 0.5
    if area(outline) > LARGEST * row.width * row.height:
        return None
    clipped = clip_polygon(outline, row.width, row.height)
    # Smaller regions are too small for a search.
    if narrowest_width(clipped) < 5 * THINNEST * own:
        return None
    return clipped.astype(np.float32)


def _alike(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Part of two convex regions, of both together, that they share."""
    both, _ = cv2.intersectConvexConvex(one, other)
    together = area(one.astype(np.float64)) + area(other.astype(np.float64)) - both
    return float(both / together) if together > 0 else 0.0
