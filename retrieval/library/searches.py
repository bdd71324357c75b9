"""Searches of one collection that stays open, with caches shared between searches."""

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.schema import ImageRow
from retrieval.catalogue.segment_rows import segments_and_tombstones
from retrieval.collection.augmentation import augmentation_key
from retrieval.collection.collection import Collection
from retrieval.collection.global_rows import stamp
from retrieval.library.answers import Answer, make_answer
from retrieval.library.matches import Match, make_match
from retrieval.library.text_alone import refuse_text_alone
from retrieval.search.answers import AnsweredQuery, LeftOut, QueryImage, make_query, mirrored_of
from retrieval.search.engines.registry import BEST, find_engine
from retrieval.search.options import NO_GLOBAL, SearchOptions
from retrieval.search.photos import NotHere
from retrieval.search.query import Query
from retrieval.search.searcher import Searcher
from retrieval.search.views import PlacedViews

if TYPE_CHECKING:
    from retrieval.library.cluster import ClusterWork

_SEARCHERS, _QUERIES = 16, 8  # sizes of caches


class Searches:
    """Searches one collection, and matches its photos, with cached searchers and queries.

    It sees the collection as of the last `renew`. It is not thread-safe. The workers of a cluster, if there is one,
    search.
    """

    def __init__(self, collection: Collection, cluster: "ClusterWork | None" = None) -> None:
        self.collection = collection
        self._cluster = cluster
        self._left_out = LeftOut(collection.catalogue)
        self._searchers: dict[SearchOptions, Searcher] = {}
        self._queries: OrderedDict[tuple[Any, ...], Query] = OrderedDict()
        self._revision: int | None = None  # of the catalogue, when the open parts were up to date
        self._state: object = None

    def is_outdated(self) -> bool:
        """Whether the collection has changed since it was last renewed, or never was."""
        revision = self.collection.catalogue.revision()
        if revision == self._revision:
            return False
        if self._state != _state(self.collection):
            return True
        self._revision = revision  # decisions are read with every search
        return False

    def renew(self) -> None:
        """Open changed parts of the collection; raises CairnError if this fails."""
        collection = self.collection
        before = collection.vocabulary.fingerprint if self._queries else None
        self._searchers = {}
        collection.forget()
        self._revision = collection.catalogue.revision()
        self._state = _state(collection)
        if before is not None and before != collection.vocabulary.fingerprint:
            self._queries.clear()
        if self._cluster is not None:
            self._cluster.renew(collection)

    def prepare(self, options: SearchOptions) -> None:
        """Load what most searches use, so that processes forked later share it."""
        self.collection.index  # noqa: B018 (it is read now)
        if self._cluster is None:
            if options.similarity is not None:
                self.collection.scored_index(similarity=options.similarity)
            self.searcher(options)

    def place(self) -> None:
        """Let the workers of a cluster, if there is one, load their shards."""
        if self._cluster is not None:
            self._cluster.shards.place()

    def searcher(self, options: SearchOptions) -> Searcher:
        """Return the cached searcher of these options."""
        if options not in self._searchers:
            if len(self._searchers) >= _SEARCHERS:
                self._searchers.clear()
            make = Searcher if self._cluster is None else self._cluster.searcher
            self._searchers[options] = make(self.collection, options)
        return self._searchers[options]

    def search(
        self,
        query_images: Sequence[QueryImage],
        options: SearchOptions,
        *,
        wanted: PhotoFilter | None = None,
        top: int = 20,
        match_all: bool = False,
        within: NDArray[np.integer] | None = None,
    ) -> Answer:
        """Search for one photo or several, among all photos or those that pass a filter, and are `within` some numbers.

        With `match_all`, results must match all queries. Photos marked as no match of one of them are left out. Raises
        CairnError if a photo cannot be read, or the collection lacks data that the engine needs; CollectionChanged or
        KeyError if the collection has changed: renew, and search again.
        """
        if options.mirrored and match_all:
            raise CairnError("{--mirrored} looks for photos that match any of several, and not all.")
        searcher = self.searcher(replace(options, mirrored=False))
        passing = self.collection.catalogue.read(numbers_of, wanted=wanted) if wanted else None
        hidden, rejected = self._left_out.of(query_images)
        among: NDArray[np.integer] | None = passing
        if within is not None:
            among = np.asarray(within) if among is None else np.intersect1d(among, within)
        for left_out in (rejected, () if wanted else hidden):  # filters know of hidden photos themselves
            if len(left_out):
                found_in = searcher.index.image_numbers if among is None else among
                among = found_in[~np.isin(found_in, left_out)]
        results = []
        for one in [*query_images, *(mirrored_of(query_images) if options.mirrored else ())]:
            query, seconds = self._query(searcher, one)
            try:
                answer = searcher.search(query.views, among, region=query.region, top=top, global_row=query.global_row)
                results.append(AnsweredQuery(query, answer, seconds))
            finally:
                query.rest()
        return make_answer(
            searcher,
            query_images,
            results,
            top=top,
            match_all=match_all,
            wanted=wanted,
            passing=passing,
            rejected=rejected,
        )

    def match(
        self,
        query_image: QueryImage,
        row: ImageRow,
        options: SearchOptions,
        turn: float | None = None,
        full: bool = True,
    ) -> Match:
        """Match a photo with one of the collection, with the geometry that some engines do without.

        All turns are tried, and the query is not expanded. `turn` (radians) is that at which a search found the query,
        as in a search this also depends on other photos, and `full` whether the search looked up all features at that
        turn. Raises like `search`.
        """
        named = options.engine
        geometric = named if named == BEST else find_engine(named).explained_by or named
        changes: dict[str, Any] = {"expand": "none", "every_turn": True, "mirrored": False}
        searcher = self.searcher(replace(options, engine=geometric, global_descriptors=NO_GLOBAL, **changes))
        if options.mirrored:
            (query_image,) = mirrored_of([query_image])
        query, _ = self._query(searcher, query_image)
        try:
            ranking = searcher.search(query.views, np.array([row.number])).hits
            if not len(ranking):
                raise NotHere("No worker holds the photo {number} now: ask again in a moment.", number=row.number)
            hit = ranking[0]
            if turn is not None:
                turns = np.array([view.turn for view in query.views])
                view = int(np.abs((turns - turn + np.pi) % (2 * np.pi) - np.pi).argmin())
                query = query.tried_at(options.turns)
                if full and isinstance(query.views, PlacedViews):
                    query.views.complete(view)
                hit = searcher.verified_at(query.views, ranking, replace(hit, view=view))
        finally:
            query.rest()
        return make_match(searcher, query_image, query, row, hit)

    def _query(self, searcher: Searcher, query_image: QueryImage) -> tuple[Query, float]:
        """Make a query, or return the cached one of the same file, as matches follow searches; with the seconds."""
        start = time.perf_counter()
        options, image = searcher.options, self.collection.options.image
        if query_image.max_pixels is not None:
            image = replace(image, max_pixels=query_image.max_pixels)
        key = (
            query_image.content,
            query_image.box,
            options.soft,
            options.signed,
            # Another kind of signature may come with the same words.
            str(self.collection.signature) if options.signed else "",
            searcher.engine.needs_descriptors,
            query_image.max_pixels,
            query_image.is_away,
            query_image.mirrored,
            options.global_descriptors != NO_GLOBAL and stamp(self.collection.folder),
            id(self.collection.extractor),  # it reads the features of another program; the query keeps it alive
        )
        query = self._queries.pop(key, None)
        if query is None:
            query = make_query(searcher, query_image, image)
            refuse_text_alone(query, query_image)
        if query_image.content is not None:
            self._queries[key] = query
        while len(self._queries) > _QUERIES:
            self._queries.popitem(last=False)
        return query.moved(query_image.path).tried_at(options.turns), time.perf_counter() - start


def _state(collection: Collection) -> object:
    """A value that differs if the collection has changed."""
    rows, removed = collection.catalogue.read(segments_and_tombstones)
    key = augmentation_key(collection.folder, collection.basis) if rows else None
    return [(row.id, row.folder, row.created) for row in rows], removed, key, stamp(collection.folder)
