"""What the server's worker processes do: search a collection, explain a match, decode photos."""

import contextlib
import os
import tempfile
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import hash_file
from index.cluster.connection import Cluster, ClusterError
from index.errors import CairnError
from index.inverted import ScoringOptions
from retrieval.catalogue.filters import filter_of
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.augmentation import augmentation_key
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.collection.summary import describe_collection
from retrieval.features.encoding import decode_geometry
from retrieval.foreign.contract import FeaturesNeeded
from retrieval.photos.decoding import PhotoTooLarge, read_colour_sized
from retrieval.photos.options import ImageOptions
from retrieval.photos.thumbnails import encode_jpeg, thumbnail
from retrieval.regions.geometry import ellipses_of_shapes
from retrieval.search.answers import (
    IF_MOVED,
    Asked,
    Found,
    ask_with_file,
    ask_with_photo,
    best_results,
    make_query,
    passing_numbers,
    report_answer,
)
from retrieval.search.engines.registry import BEST, find_engine
from retrieval.search.homography import homography
from retrieval.search.options import SearchOptions
from retrieval.search.outlines import found_region
from retrieval.search.photos import NotHere
from retrieval.search.query import Box, Query
from retrieval.search.searcher import Searcher
from retrieval.shards.cluster import ClusterHolders
from retrieval.shards.engine import sharded_searcher
from retrieval.shards.epoch import Epoch, open_epoch
from retrieval.shards.shards import Shards
from retrieval.web.discretion import discreet_facts, without_paths
from retrieval.web.workers import Answer, Refused

MAX_PIXELS = 100_000_000
"""Pixels of an uploaded photo."""

QUALITY = 88  # of the JPEG files that are sent
RECONNECTING = 10.0
"""Seconds that a search waits for a scheduler that has gone."""


@dataclass(frozen=True)
class Place:
    """Which collection is served."""

    folder: Path
    catalogue: str | None = None  # its address, where it is not in the folder
    similarity: Path | None = None  # file of a learnt similarity
    cluster: str | None = None  # address of the scheduler whose workers hold the collection; None: it is searched here
    shards: int = 1  # that the collection is cut into for them


def photo_row(collection: Collection, number: int) -> ImageRow:
    """Look an image up by its number; `Refused` where there is none."""
    try:
        return collection.catalogue.images([number])[0]
    except KeyError:
        raise Refused(f"There is no photo {number} in this collection.", "missing") from None


class SearchJobs:
    """Searches one collection, which stays open between jobs; what has changed of it is opened anew.

    Parameters
    ----------
    place : Place
        Where it is.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._collection: Collection | None = None
        self._revision: int | None = None  # of the catalogue, at which what is open was up to date
        self._state: object = None
        self._searchers: dict[SearchOptions, Searcher] = {}
        self._queries: OrderedDict[tuple[Any, ...], Query] = OrderedDict()
        self._epoch: Epoch | None = None  # where there is a cluster
        self._shards: Shards | None = None  # once this process is connected to it: a fork has a connection of its own
        self._cluster: Cluster | None = None
        if place.cluster is not None:
            import distributed  # noqa: F401 (here once, and not in every fork)
        with contextlib.suppress(CairnError):  # the first job tells
            self.renew()

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        """Do one of the jobs `ready`, `collection`, `search`, `match`, `picture`."""
        if self._collection is None:
            self.renew()
        try:
            return self._do(self._opened(), job, request)
        except (KeyError, CollectionChanged):  # a photo was removed since the collection was looked at
            self.renew()
            return self._do(self._opened(), job, request)
        except (ClusterError, NotHere) as error:
            raise Refused(str(error), "cluster") from None

    def is_outdated(self) -> bool:
        """Whether the collection has changed since it was opened, or is not open."""
        if self._collection is None:
            return True
        revision = self._collection.catalogue.revision()
        if revision == self._revision:
            return False
        if self._state != _state(self._collection):
            return True
        self._revision = revision  # what has changed is read with every job
        return False

    def renew(self) -> None:
        """Open the collection, or what of it has changed; CairnError where it cannot be opened."""
        collection, self._collection = self._collection, None
        if collection is None:
            collection = Collection.open(self._place.folder, catalogue=self._place.catalogue)
        try:
            before = collection.vocabulary.fingerprint if self._queries else None
            collection.forget()
            self._revision = collection.catalogue.revision()
            self._state = _state(collection)
            collection.index  # noqa: B018 (it is read now, not while somebody waits)
            if self._place.similarity is not None and self._place.cluster is None:
                collection.scored_index(similarity=self._place.similarity)
            if before != collection.vocabulary.fingerprint:
                self._queries.clear()
            # What most searches use is made now, so that workers share that too.
            self._searchers, self._shards = {}, None
            if self._place.cluster is not None:
                self._epoch = open_epoch(collection, self._place.shards)
            else:
                usual = SearchOptions(similarity=self._place.similarity)
                self._searchers[usual] = Searcher(collection, usual)
        except BaseException:
            collection.catalogue.close()
            raise
        self._collection = collection

    def let_go(self) -> None:
        """Close the connections to the catalogue."""
        if self._collection is not None:
            self._collection.catalogue.close()

    def _opened(self) -> Collection:
        assert self._collection is not None
        return self._collection

    def _do(self, collection: Collection, job: str, request: dict[str, Any]) -> Answer:
        match job:
            case "ready":
                if self._place.cluster is not None:
                    self._held().place()
                return {}, b""
            case "collection":
                facts = describe_collection(collection)
                photos = collection.catalogue.photo_of_each_root() if facts["failed"] else []
                return discreet_facts(facts, photos), b""
            case "search":
                return self._search(collection, request), b""
            case "match":
                return self._match(collection, request), b""
            case "picture":
                return {}, self._picture(collection, request)
            case _:
                raise ValueError(f"there is no job {job!r}")

    def _searcher(self, collection: Collection, request: dict[str, Any], **instead: Any) -> Searcher:
        similarity = self._place.similarity
        if request["similarity"] and similarity is None:
            raise Refused("This server has no learnt similarity: start it with --similarity FILE.")
        if request["similarity"] is False:
            similarity = None
        wanted: dict[str, Any] = {key: request[key] for key in ("engine", "expand", "turns", "augmented")} | instead
        options = SearchOptions(**wanted, scoring=ScoringOptions(request["tf"]), similarity=similarity)
        if options not in self._searchers:
            if len(self._searchers) >= 16:
                self._searchers.clear()
            if self._place.cluster is None:
                self._searchers[options] = Searcher(collection, options)
            else:
                self._searchers[options] = sharded_searcher(collection, options, self._held())
        return self._searchers[options]

    def _held(self) -> Shards:
        """The shards of the collection, as this process reaches them."""
        assert self._place.cluster is not None and self._epoch is not None
        if self._cluster is None:
            self._cluster = Cluster.connect(self._place.cluster, patience=RECONNECTING)
        if self._shards is None:
            self._shards = Shards(self._epoch, ClusterHolders(self._cluster))
        return self._shards

    def _search(self, collection: Collection, request: dict[str, Any]) -> dict[str, Any]:
        searcher = self._searcher(collection, request, every_turn=request["every_turn"])
        wanted = filter_of(request)
        among = passing_numbers(collection, wanted)
        asked, found = [], []
        for wish in request["queries"]:
            one, query, seconds = self._ask(searcher, wish)
            asked.append(one)
            try:
                found.append(
                    Found(query, searcher.search(query.views, among, region=query.region, top=request["top"]), seconds)
                )
            finally:
                query.rest()
        results = best_results(searcher, found, top=request["top"], match_all=request["match"] == "all")
        return report_answer(searcher, asked, found, results, wanted, among)

    def _ask(self, searcher: Searcher, wish: dict[str, Any]) -> tuple[Asked, Query, float]:
        """Read one photo of a query: of the collection, by its number, or an upload, by its path."""
        start = time.perf_counter()
        box: Box | None = tuple(wish["box"]) if wish["box"] is not None else None
        if wish["photo"] is not None:
            row = photo_row(searcher.collection, wish["photo"])
            try:
                asked = ask_with_photo(row, row.name or "", box)
            except CairnError as error:
                raise Refused(without_paths(str(error), [(row.path, "")]), "gone") from None
            query = self._read(searcher, asked, None)
        else:
            asked = ask_with_file(searcher.collection, wish["name"], Path(wish["path"]), box)
            try:
                query = self._read(searcher, asked, MAX_PIXELS)
            except CairnError as error:
                if isinstance(error.__cause__, CairnError):  # it is the photo that cannot be read
                    raise _unusable(asked.name, error.__cause__) from None
                raise
        return asked, query, time.perf_counter() - start

    def _read(self, searcher: Searcher, asked: Asked, max_pixels: int | None) -> Query:
        """Make a query, or recall that of the same file: a match is looked at after a search."""
        options, image = searcher.options, searcher.collection.options.image
        if max_pixels is not None:
            image = replace(image, max_pixels=max_pixels)
        content = asked.content or hash_file(asked.path)
        # Another kind of signature may come with the same words.
        signature = str(searcher.collection.signature) if options.signed else ""
        key = (
            content,
            asked.box,
            options.soft,
            options.signed,
            signature,
            searcher.engine.needs_descriptors,
            max_pixels,
        )
        query = self._queries.pop(key, None)
        if query is None:
            query = make_query(searcher, asked, image)
        self._queries[key] = query
        while len(self._queries) > 8:
            self._queries.popitem(last=False)
        return query.moved(asked.path).tried_at(options.turns)

    def _look(self, collection: Collection, request: dict[str, Any]) -> tuple[Searcher, Asked, Query, ImageRow, Any]:
        """Match a query with one photo, with the geometry that some engines do without."""
        named = request["engine"]
        geometric = named if named == BEST else find_engine(named).explained_by or named
        searcher = self._searcher(collection, request, engine=geometric, expand="none", every_turn=True)
        row = photo_row(collection, request["photo"])
        asked, query, _ = self._ask(searcher, request["queries"][0])
        try:
            ranking = searcher.search(query.views, np.array([row.number])).hits
            if not len(ranking):
                raise NotHere(f"No worker holds the photo {row.number} now: ask again in a moment.")
            hit = ranking[0]
            if request["turn"] is not None:
                # In a search other photos have a say in the turn that one is found at.
                turns = np.array([view.turn for view in query.views])
                view = int(np.abs((turns - request["turn"] + np.pi) % (2 * np.pi) - np.pi).argmin())
                hit = searcher.verified_at(query.views, ranking, replace(hit, view=view))
        finally:
            query.rest()
        return searcher, asked, query, row, hit

    def _match(self, collection: Collection, request: dict[str, Any]) -> dict[str, Any]:
        searcher, asked, query, row, hit = self._look(collection, request)
        image = searcher.index.images.features(hit.number)
        matches = hit.verification.matches
        frames = decode_geometry(image.columns, matches[:, 1])
        side = float(max(row.width or 1, row.height or 1))
        there = ellipses_of_shapes(
            frames.centres.astype(np.float64) * side - 0.5, frames.linear.astype(np.float64) * side
        )
        here = query.ellipses(hit.view, matches[:, 0])
        matrix = homography(hit, query, row, image)
        return {
            "query": {
                "name": asked.name,
                "width": query.width,
                "height": query.height,
                "box": [round(value, 3) for value in query.box] if query.box is not None else None,
            },
            "number": row.number,
            "score": round(hit.score, 6),
            "inliers": hit.verification.inliers,
            "probability": hit.probability,
            "found": hit.found,
            "homography": matrix.tolist() if matrix is not None else None,
            "region": found_region(query, matrix, row.width, row.height),
            "turn": round(query.views[hit.view].turn, 6),
            "matches": [
                {"query": one[:2], "photo": other[:2], "query_ellipse": one[2:], "photo_ellipse": other[2:]}
                for one, other in zip(_short(here), _short(there), strict=True)
            ],
        }

    def _picture(self, collection: Collection, request: dict[str, Any]) -> bytes:
        from retrieval.search.picture import PictureOptions, draw_matches

        searcher, _, query, row, hit = self._look(collection, request)
        with tempfile.TemporaryDirectory(dir=request["scratch"]) as scratch:
            path = Path(scratch) / "match.jpg"
            draw_matches(
                path, searcher.index, [(query, hit, row)], query, PictureOptions(tile=800, columns=1, lines=200)
            )
            return path.read_bytes()


class PictureJobs:
    """Decodes photos and encodes them as JPEG, so that nothing of a file but its pixels is ever sent."""

    def is_outdated(self) -> bool:
        """Nothing is open between jobs."""
        return False

    def renew(self) -> None:
        """Nothing is open between jobs."""

    def let_go(self) -> None:
        """Nothing is open between jobs."""

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        """Do one of the jobs `thumbnail`, `image` (photos of the collection) and `preview` (an upload)."""
        path, size = Path(request["path"]), int(request["size"])
        try:
            if job == "thumbnail":
                return {}, thumbnail(path, request["sha256"], size, Path(request["cache"]))
            limit = MAX_PIXELS if job == "preview" else ImageOptions.max_pixels
            pixels, width, height = read_colour_sized(path, ImageOptions(max_side=size, max_pixels=limit))
        except CairnError as error:
            if job == "preview":
                raise _unusable(request["name"], error) from None
            gone = f"its file is no longer there: {IF_MOVED}"
            reason = str(error) if os.path.isfile(path) else gone  # noqa: PTH113
            raise Refused(f"The photo {request['name']!r} cannot be shown: {reason.rstrip('.')}.", "gone") from None
        return {"width": width, "height": height}, encode_jpeg(pixels, QUALITY)


def _unusable(name: str, reason: CairnError) -> Refused:
    if isinstance(reason, FeaturesNeeded):
        return Refused(
            f"The upload {name!r} cannot be searched for: another program described the photos of this collection, and "
            "only that can describe a new one. Search with a photo of the collection, or a box in one.",
            "photo",
        )
    kind = "pixels" if isinstance(reason, PhotoTooLarge) else "photo"
    return Refused(f"The upload {name!r} cannot be used: {reason}.", kind)


def _state(collection: Collection) -> object:
    """What is different where the collection has changed."""
    rows = collection.catalogue.segments()
    key = augmentation_key(collection.folder, collection.basis) if rows else None
    return [(row.id, row.folder, row.created) for row in rows], collection.catalogue.removed(), key


def _short(ellipses: NDArray[np.float32]) -> list[list[float]]:
    """Ellipse rows (N, 5) as numbers of seven figures, which is what a float32 holds."""
    return [[float(f"{value:.7g}") for value in row] for row in ellipses.tolist()]
