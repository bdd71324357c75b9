"""Pairs of photos that may show the same, for structure from motion, and their matches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.inverted import Scores
from index.parallel import one_thread
from index.progress import Progress, silent
from retrieval.catalogue.curation.hidden import hidden_photos
from retrieval.catalogue.curation.rejections import rejected_pairs
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.features.kept import KeptFeatures, kept_features
from retrieval.foreign.contract import POINTS, Entry
from retrieval.foreign.converting import as_stored
from retrieval.foreign.exporting import ExportedPair, ExportedPhoto
from retrieval.groups.links import Asker, best_others, for_each_photo, link_photos
from retrieval.matching.nearest import match_descriptors
from retrieval.matching.two_views import RATIO, match_signed, two_views
from retrieval.photos.decoding import read_orientation
from retrieval.search.engines.contract import Engine
from retrieval.search.views import indexed_view

CHOOSE, MATCH = "verify", "match"
"""Steps of the progress: choosing pairs, which verifying takes the time of, and matching them."""

_KEPT = 256  # photos whose features are cached


@dataclass(frozen=True)
class PairOptions:
    """Which pairs of photos are chosen."""

    top: int = 20  # others that each photo is paired with, at most
    verified: bool = False  # only with those verified by geometry, the most inliers first; else the best scores
    inliers: int = 15  # fewest verified matches of a pair, with `verified`

    def __post_init__(self) -> None:
        if self.top < 1 or self.inliers < 1:
            raise CairnError("A photo is paired with one other at least, by one verified match at least.")


def choose_pairs(
    collection: Collection,
    options: PairOptions,
    *,
    workers: int = 1,
    asker: Asker | None = None,
    progress: Progress = silent,
) -> list[tuple[int, int]]:
    """Choose pairs of photos, ascending, the smaller number first: each with the most similar others, by its indexed
    features. Hidden photos and pairs marked as no match are left out.
    """
    with collection.catalogue.reading() as session:
        hidden, rejected = hidden_photos(session), rejected_pairs(session)
    best: dict[int, list[tuple[float, int]]] = {}
    if options.verified:
        links = link_photos(collection, min_inliers=options.inliers, workers=workers, asker=asker, progress=progress)
        for (one, other), link in links.items():
            best.setdefault(one, []).append((-link.inliers, other))
            best.setdefault(other, []).append((-link.inliers, one))
    else:
        numbers = collection.index.image_numbers.tolist()
        scored = for_each_photo(collection, partial(_most_similar, options.top + len(hidden)), numbers, workers)
        for done, (number, others) in enumerate(zip(numbers, scored, strict=True), 1):
            best[number] = others
            progress(CHOOSE, done, len(numbers))
    pairs: set[tuple[int, int]] = set()
    for number, ranked in best.items():
        left = [
            other
            for _, other in sorted(ranked)
            if not {number, other} & hidden and (min(number, other), max(number, other)) not in rejected
        ]
        pairs.update((min(number, other), max(number, other)) for other in left[: options.top])
    return sorted(pairs)


def _most_similar(most: int, engine: Engine, number: int) -> list[tuple[float, int]]:
    """The negative scores and numbers of the other photos of the best scores, none of 0."""
    numbers = engine.index.image_numbers
    with one_thread():
        scores = engine.score(indexed_view(engine.index.images.features(number)))
    others = best_others(number, Scores(numbers, scores), most)
    some = scores[np.searchsorted(numbers, others)].tolist()
    return [(-score, other) for score, other in zip(some, others, strict=True) if score > 0]


class PairMatcher:
    """Matches pairs of photos of a collection by their stored features: by descriptors if it stores them; or else by
    words, and by signatures if there are any.
    """

    def __init__(self, collection: Collection, pairs: Sequence[tuple[int, int]]) -> None:
        self._collection = collection
        self._pairs = pairs
        numbers = sorted({number for pair in pairs for number in pair})
        self.rows: dict[int, ImageRow] = {row.number: row for row in collection.catalogue.read(rows_of, numbers)}
        self._photo = lru_cache(_KEPT)(self._read)  # pairs of a photo follow each other

    def names(self) -> list[tuple[str, str]]:
        """The names of the pairs."""
        return [(self.rows[one].name or "", self.rows[other].name or "") for one, other in self._pairs]

    def photos(self) -> Iterator[ExportedPhoto]:
        """The photos of the pairs, by number."""
        return (self._photo(number)[0] for number in self.rows)

    def matched(self, progress: Progress = silent) -> Iterator[ExportedPair]:
        """Match the pairs, in their order, and fit the geometry of each."""
        for done, pair in enumerate(self._pairs, 1):
            (one, one_kept), (other, other_kept) = map(self._photo, pair)
            if one_kept.descriptors is not None and other_kept.descriptors is not None:
                with one_thread():
                    matches = match_descriptors(one_kept.descriptors, other_kept.descriptors, RATIO)
            else:
                matches = match_signed((one_kept.words, other_kept.words), self._signatures(pair, one_kept, other_kept))
            side = float(max(one.width, one.height, other.width, other.height))
            views = two_views(matches, one.keypoints, other.keypoints, side)
            if views is None:
                yield ExportedPair(one.name, other.name, matches, np.zeros((0, 2), np.int32))
            else:
                yield ExportedPair(one.name, other.name, matches, views.inliers, views.fundamental, views.homography)
            progress(MATCH, done, len(self._pairs))

    def _signatures(
        self, pair: tuple[int, int], one: KeptFeatures, other: KeptFeatures
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
        if self._collection.signature is None:
            return None
        first, second = self._collection.index.images.signatures_of(pair)
        return first[one.order], second[other.order]

    def _read(self, number: int) -> tuple[ExportedPhoto, KeptFeatures]:
        row = self.rows[number]
        features = kept_features(self._collection.index.images.features(number), max(row.width or 1, row.height or 1))
        return exported_photo(row, features, _orientation(row)), features


def exported_photo(row: ImageRow, kept: KeptFeatures, orientation: int) -> ExportedPhoto:
    """Return a photo of the collection in its stored orientation, with its features."""
    width, height = row.width or 1, row.height or 1
    entry = as_stored(
        Entry(
            POINTS,
            kept.centres.astype(np.float64),
            kept.linear.astype(np.float64) if kept.linear is not None else None,
            np.zeros((len(kept.centres), 0)),
        ),
        width,
        height,
        orientation,
    )
    if orientation >= 5:
        width, height = height, width
    linear = entry.linear.astype(np.float32) if entry.linear is not None else None
    return ExportedPhoto(row.name or "", width, height, entry.centres.astype(np.float32), linear, kept.descriptors)


def _orientation(row: ImageRow) -> int:
    """Orientation of a photo by its EXIF; upright if its file cannot be read now."""
    try:
        return read_orientation(Path(row.path))
    except CairnError:
        return 1
