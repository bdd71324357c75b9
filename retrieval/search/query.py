"""A query: the features of a photo, or of a box drawn in one, seen upright and at several turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.hamming.sources import SignatureSource
from index.hamming.voting import SignedFeatures
from index.segments.segment import ImageFeatures
from index.vocabulary import Vocabulary
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.features.encoding import decode_geometry, frames_of
from retrieval.features.extraction import Extractor, Features, to_original
from retrieval.features.halves import to_single
from retrieval.photos.decoding import Photo, mirror_image
from retrieval.photos.options import ImageOptions
from retrieval.photos.remarks import NONE, Remarks
from retrieval.regions.detection import Regions
from retrieval.regions.geometry import Frames
from retrieval.search.photos import FeatureReader
from retrieval.search.views import DescribedView, LazyViews, View, indexed_view, part_of

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels of the upright original."""


class PhotoUnusable(CairnError):
    """A photo that cannot be searched for: its file is damaged, is no photo or is missing.

    Attributes
    ----------
    path : Path or None
        Its file.
    """

    path: Path | None = None


TURNED_REGIONS = 1_500
"""Regions described at other turns than upright; measured, see docs/explanations/decisions.md."""


@dataclass(frozen=True)
class Query:
    """A photo or a box in one, ready to be searched for."""

    path: Path
    width: int  # pixels of the upright original
    height: int
    box: Box | None
    views: Sequence[View]  # the first is upright
    source: "QuerySource | None" = None  # where views at other turns come from
    remarks: Remarks = NONE  # of how its file was read
    mirrored: bool = False  # whether the views are of its mirror image
    global_row: NDArray[np.float32] | None = None  # (D,): its global descriptor, where the search needs it

    @property
    def side(self) -> int:
        """Longer side of the photo, pixels."""
        return max(self.width, self.height)

    @property
    def region(self) -> NDArray[np.float64]:
        """`view_box` as (4,), in units of the longer side."""
        return (np.array(self.view_box) + 0.5) / self.side

    @property
    def view_box(self) -> Box:
        """Its box, or all of the photo, in the picture that the views are of."""
        box = self.box or (-0.5, -0.5, self.width - 0.5, self.height - 0.5)
        return mirror_box(box, self.width) if self.mirrored else box

    @property
    def mirroring(self) -> NDArray[np.float64]:
        """Map (3, 3) from pixels of the upright original to those of the picture that the views are of."""
        return np.array([[-1, 0, self.width - 1], [0, 1, 0], [0, 0, 1]]) if self.mirrored else np.eye(3)

    def ellipses(self, view: int, features: NDArray[np.integer]) -> NDArray[np.float32]:
        """Regions (N, 5) of some features of a view, pixels of the upright original."""
        regions = self.views[view].frames.at(features).ellipses(self.side)
        if self.mirrored:
            regions[:, 0] = self.width - 1 - regions[:, 0]
            regions[:, 3] *= -1
        return regions

    def moved(self, path: Path) -> "Query":
        """The same query of a file of the same content."""
        if self.source is not None:
            self.source.path = path
        return replace(self, path=path)

    def is_full_at(self, view: int) -> bool:
        """Whether all features are in a view, as upright."""
        return not isinstance(self.views, LazyViews) or self.views.is_full(view)

    def tried_at(self, turns: int) -> "Query":
        """The same query at another number of turns; computed views are reused."""
        if self.source is None or not isinstance(self.views, LazyViews):
            return self
        return replace(self, views=self.views.at(turns_of(self.source.extractor, turns)))

    def rest(self) -> None:
        """Release the photo that views at other turns would be described from: it is much larger than the views."""
        if self.source is not None:
            self.source.rest()


class QuerySource:
    """The photo of a query, read, and its regions detected, when needed."""

    def __init__(
        self, extractor: Extractor, image: ImageOptions, path: Path, box: Box | None, *, mirrored: bool = False
    ) -> None:
        self.mirrored = mirrored
        self.extractor = extractor
        self.path = path
        self._image = image
        self.box = box
        self._read: tuple[Photo, Box | None, Regions] | None = None
        self._known: Callable[[], NDArray[np.float32]] | None = None  # returns known regions, in place of detection
        self._rows: dict[float, NDArray[np.float16]] = {}  # descriptors computed ahead, by turn: see `_key`

    def read(self) -> tuple[Photo, Box | None, Regions]:
        """Return the photo, the box clipped to it, and the regions in the box."""
        if self._read is None:
            try:
                photo = self.extractor.read(self.path, self._image)
            except CairnError as error:
                unusable = PhotoUnusable(
                    "The query {name} cannot be used: {reason}.", name=repr(self.path.name), reason=error.message
                )
                unusable.path = self.path
                raise unusable from error
            clipped = clip_box(self.box, photo.width, photo.height) if self.box is not None else None
            if self.mirrored:
                photo = mirror_image(photo)
                clipped = clipped and mirror_box(clipped, photo.width)
            known = self._known
            regions = self.extractor.detect(photo, clipped) if known is None else self.extractor.known(photo, known())
            self._read = photo, clipped, regions
        return self._read

    def know(self, ellipses: Callable[[], NDArray[np.float32]]) -> None:
        """Use the regions (N, 5) that a function returns, in pixels of the upright original, in place of detection."""
        self._known = ellipses

    def rest(self) -> None:
        """Release the photo and its descriptors; the photo is read again when needed."""
        self._read = None
        self._rows.clear()

    def describe(self, turn: float, full: bool = False) -> DescribedView:
        """Describe the photo at a turn; if not upright, with `TURNED_REGIONS` regions at most unless `full`."""
        photo, _, regions = self.read()
        if turn and not full:
            regions = regions.where(np.arange(len(regions)) < TURNED_REGIONS)
        rows = self._rows.pop(_key(turn), None)
        if rows is None or len(rows) < len(regions):
            features, opposite = self.extractor.describe_both(photo, regions, turn)
            if opposite is not None:
                self._rows[_key(turn + np.pi)] = opposite
        else:
            rows = rows[: len(regions)]
            features = Features(to_original(regions.ellipses, photo), np.zeros(len(regions), np.float32), rows)
        size = photo.width, photo.height
        frames, elongation = frames_of(features, max(size), turn), self._image.elongation(*size)
        return DescribedView(turn, frames, features.descriptors, elongation=elongation, size=size)


def _spread_regions(frames: Frames, side: int) -> NDArray[np.float32]:
    """Regions (N, 5) in the order of `_spread`, in pixels of a photo with this longer side."""
    return frames.at(_spread(len(frames.centres))).ellipses(side)


def _spread(number: int) -> NDArray[np.int64]:
    """Permutation (N,) every prefix of which is spread evenly over the whole."""
    return np.argsort(np.arange(number) * ((np.sqrt(5) - 1) / 2) % 1, kind="stable")


def _key(turn: float) -> float:
    """A turn in radians as a rounded part of a full turn, so that equal turns have equal keys."""
    return round(turn / (2 * np.pi), 6) % 1


def turns_of(extractor: Extractor, turns: int) -> NDArray[np.float64]:
    """The turns, radians, at which a query is tried.

    Only upright if patches are rotated, or if another program makes the features.
    """
    turned = extractor.options.upright and not extractor.is_foreign
    return 2 * np.pi * np.arange(turns if turned else 1) / turns


def extract_query(
    collection: Collection,
    source: QuerySource,
    turns: int = 1,
    *,
    soft: int = 1,
    signed: int = 0,
    keep_descriptors: bool = True,
) -> Query:
    """Extract the features of a query from its photo. `soft`: nearest words that a feature is shared between in scoring
    (soft assignment; Philbin et al., CVPR 2008). `signed`: nearest words by which a feature gets signatures (0: none);
    those of turned views get theirs by one word.

    `turns`: number of equally spaced turns at which the query may be tried; 1 is upright only. A collection with
    rotated patches is searched upright only. Other turns are described on demand, by the strongest `TURNED_REGIONS`:
    weaker regions cost time, and precision by chance matches.
    """
    signatures = collection.signatures if signed else None
    describe = partial(
        _views_at,
        collection.vocabulary,
        source,
        signatures,
        soft=soft,
        signed=signed,
        keep_descriptors=keep_descriptors,
    )
    photo, box, _ = source.read()
    views = LazyViews(describe([0.0])[0], turns_of(source.extractor, turns), describe)
    box = mirror_box(box, photo.width) if box and source.mirrored else box
    return Query(source.path, photo.width, photo.height, box, views, source, photo.remarks, source.mirrored)


def recall_query(
    collection: Collection,
    row: ImageRow,
    source: QuerySource,
    turns: int = 1,
    *,
    signed: int = 0,
    photos: FeatureReader | None = None,
) -> Query:
    """Make a query from the indexed features of a photo of the collection, without descriptors. Its file is read only
    for turns other than upright, which are described at the indexed regions. Raises KeyError if the photo was removed
    since the collection was opened.
    """
    width, height = row.width or 1, row.height or 1
    clipped = clip_box(source.box, width, height) if source.box is not None else None
    photos = photos or collection.index.images
    view = indexed_view(photos.features(row.number), photos.signatures(row.number) if signed else None)
    view = replace(view, size=(width, height))
    if clipped is not None:
        centres = view.frames.centres.astype(np.float64) * max(width, height) - 0.5
        view = part_of(view, np.flatnonzero(inside_box(centres, clipped)))
    # Frames of upright patches determine the regions. Their strengths are not stored: some from all words are used.
    if collection.options.features.upright:
        source.know(partial(_spread_regions, view.frames, max(width, height)))
    signatures = collection.signatures if signed else None
    if view.signed is not None and signatures is not None:
        view = replace(view, signed=_recall(collection.vocabulary, signatures, view.signed, signed))
    describe = partial(_views_at, collection.vocabulary, source, signatures, signed=signed, keep_descriptors=False)

    def full() -> View:
        (fresh,) = describe([0.0], full=True)
        if fresh.signed is None or len(fresh.words) != len(view.words):
            return view
        return replace(view, signed=fresh.signed.at(np.argsort(_spread(len(view.words)))))

    views = LazyViews(view, turns_of(source.extractor, turns), describe, full)
    return Query(source.path, width, height, clipped, views, source)


def recall_described(
    collection: Collection, row: ImageRow, source: QuerySource, image: ImageFeatures, *, soft: int = 1, signed: int = 0
) -> Query:
    """Make a query from the stored descriptors of a photo of the collection, without reading its file. `image`: the
    features of the photo, with the column ``descriptor``.
    """
    width, height = row.width or 1, row.height or 1
    clipped = clip_box(source.box, width, height) if source.box is not None else None
    frames = decode_geometry(image.columns, np.arange(len(image.words)))
    rows = np.arange(len(image.words))
    if clipped is not None:
        rows = np.flatnonzero(inside_box(frames.centres.astype(np.float64) * max(width, height) - 0.5, clipped))
    descriptors = np.asarray(image.columns["descriptor"])[rows]
    described = DescribedView(0.0, frames.at(rows), descriptors, elongation=image.elongation, size=(width, height))
    signatures = collection.signatures if signed else None
    view = quantise_views([described], collection.vocabulary, soft, signatures, signed)[0]
    return Query(source.path, width, height, clipped, [view], source)


def quantise_views(
    views: Sequence[DescribedView],
    vocabulary: Vocabulary,
    soft: int = 1,
    source: SignatureSource | None = None,
    signed: int = 0,
    full: bool = False,
) -> list[View]:
    """Assign words to the features of some views, by a quick search for turned views unless `full`: see
    `extract_query`.
    """
    quantised: dict[int, View] = {}
    for quick in (False, True):
        places = [place for place, view in enumerate(views) if (view.turn != 0 and not full) == quick]
        if not places:
            continue
        # All together: the search then reads each part of the vocabulary once.
        rows = to_single(np.concatenate([views[place].descriptors for place in places]))
        several = vocabulary.search.search(rows, 1 if quick else max(signed, 1), quick=quick)[0]
        shared = vocabulary.assign_soft(rows, soft) if soft > 1 else None
        codes = source.encode(rows, several) if source is not None and signed else None
        first = 0
        for place in places:
            view = views[place]
            own = slice(first, first + len(view.descriptors))
            words, first = several[own, 0], own.stop
            terms, weights = (
                (words, None) if shared is None else (shared[0][own].reshape(-1), shared[1][own].reshape(-1))
            )
            signatures = SignedFeatures(several[own], codes[own]) if codes is not None else None
            quantised[place] = View(
                *(view.turn, view.frames, view.descriptors, words, terms, weights, signatures),
                elongation=view.elongation,
                size=view.size,
            )
    return [quantised[place] for place in range(len(views))]


def _views_at(
    vocabulary: Vocabulary,
    source: QuerySource,
    signatures: SignatureSource | None,
    turns: Sequence[float],
    *,
    soft: int = 1,
    signed: int = 0,
    keep_descriptors: bool = True,
    full: bool = False,
) -> list[View]:
    """Describe a query at some turns, with words and signatures for each feature."""
    described = [source.describe(turn, full) for turn in turns]
    views = quantise_views(described, vocabulary, soft, signatures, signed, full)
    if keep_descriptors:
        return views
    return [replace(view, descriptors=np.zeros((len(view.words), 0), np.float16)) for view in views]


def _recall(vocabulary: Vocabulary, source: SignatureSource, features: SignedFeatures, signed: int) -> SignedFeatures:
    """Assign several words to features that are indexed by one, without descriptors: see `extract_query`."""
    words, signatures = features.words[:, 0], features.signatures[:, 0]
    beside = vocabulary.words_beside(words)[:, : signed - 1]
    if not beside.size:
        return features
    spread = float(np.sqrt(vocabulary.quantisation_error / vocabulary.dim))
    others = source.recall(signatures, words, beside, spread)
    return SignedFeatures(np.column_stack([words, beside]), np.concatenate([signatures[:, None], others], axis=1))


def inside_box(points: NDArray[np.floating], box: Box) -> NDArray[np.bool_]:
    """Return which points (N, 2) lie in a box, its border included."""
    x0, y0, x1, y1 = box
    return (points[:, 0] >= x0) & (points[:, 0] <= x1) & (points[:, 1] >= y0) & (points[:, 1] <= y1)


def shrunk_box(box: Box, part: float) -> Box:
    """Shrink a box to a part of its width and height about its centre."""
    x0, y0, x1, y1 = box
    across, down = (1 - part) / 2 * (x1 - x0), (1 - part) / 2 * (y1 - y0)
    return x0 + across, y0 + down, x1 - across, y1 - down


def mirror_box(box: Box, width: int) -> Box:
    """Mirror a box in a photo of this width, pixels."""
    return width - 1 - box[2], box[1], width - 1 - box[0], box[3]


def clip_box(box: Box, width: int, height: int) -> Box:
    """Order a box's corners and clip it to the photo."""
    if not np.isfinite(box).all():
        raise CairnError("The corners of the box must be numbers.")
    x0, x1 = sorted((box[0], box[2]))
    y0, y1 = sorted((box[1], box[3]))
    left, top, right, bottom = max(x0, 0.0), max(y0, 0.0), min(x1, width - 1.0), min(y1, height - 1.0)
    if left > right or top > bottom:
        raise CairnError(
            "The box {box} lies outside the photo, which is {width} by {height} pixels.",
            box=f"{x0:g} {y0:g} {x1:g} {y1:g}",
            width=width,
            height=height,
        )
    return left, top, right, bottom
