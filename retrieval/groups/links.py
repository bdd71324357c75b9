"""Links: photos of a collection that geometry verifies with each other, found by asking it with each of its photos."""

import json
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from index.errors import CairnError
from index.inverted import Scores, rank
from index.parallel import one_thread, run
from index.progress import Progress, silent
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.curation.rejections import rejected_pairs
from retrieval.catalogue.link_store import KIND_KEY, begin_links, keep_links, links_in
from retrieval.collection.collection import Collection
from retrieval.collection.locking import lock_links
from retrieval.matching.verification import Verification
from retrieval.search.engines.contract import Engine, load_engine, settle
from retrieval.search.options import SearchOptions
from retrieval.search.views import indexed_view
from retrieval.shards.joins import AT_ONCE, Joins
from retrieval.shards.shards import Shards

STEP = "verify"
"""What the progress of `link_photos` calls its one step."""

_OPTIONS = SearchOptions(engine="tf-idf-sp", turns=1, augmented=False)  # photos do not show their borrowed features
_BATCH = 4  # query photos for a process at a time
# Photos verified at a time, the most similar first: if none of them shows the same, the search stops.
_LOOK = 25
_FORMAT = 2  # of links; 1: of an earlier verification, some of them wrong
_PAUSE = 1.0  # seconds between writes of results: a killed process loses no more work than that
_LINK = np.dtype([("found", "<i8"), ("inliers", "<i4"), ("transform", "<f8", 6)])


T = TypeVar("T")


class Link(NamedTuple):
    """Two photos that are verified with each other."""

    query: int  # image number
    found: int  # image number
    inliers: int
    transform: tuple[float, ...]  # six: affine map (2, 3) from the query photo to the found one, by rows, in units of
    # their longer sides with the corner of the top-left pixel at (0, 0)

    @property
    def pair(self) -> tuple[int, int]:
        """The two image numbers, ascending."""
        return min(self.query, self.found), max(self.query, self.found)


Asker = Callable[[list[int]], Iterator[tuple[int, list[Link]]]]
"""Asks a collection with photos of some numbers; gives each with its links to all others, in their order."""


def link_photos(
    collection: Collection,
    *,
    min_inliers: int = 1,
    keep: bool = False,
    workers: int = 1,
    asker: Asker | None = None,
    progress: Progress = silent,
) -> dict[tuple[int, int], Link]:
    """Query a collection with each of its photos, by their stored features. Links are by the two image numbers,
    ascending, in the direction with more inliers, at least `min_inliers`. Pairs marked as no match are stored, but not
    returned.

    `keep`: store each photo's links in the catalogue as they are found. Photos with stored links are not used as
    queries again, so that an interrupted run resumes, and a run after adding photos only queries with the new ones,
    whose links also cover those of the others to them. Links of another vocabulary, or of a higher threshold, are
    deleted.
    """
    if min_inliers < 1:
        raise CairnError(f"Two photos are verified by one inlier at least, not by {min_inliers}.")
    numbers = collection.index.image_numbers.tolist()
    there = set(numbers)
    rejected = collection.catalogue.read(rejected_pairs)
    links: dict[tuple[int, int], Link] = {}

    def add(found: Iterable[Link]) -> None:
        for link in found:
            if link.inliers >= min_inliers and there.issuperset(link.pair) and link.pair not in rejected:
                # Ties: the smaller number, so that the result does not depend on the order.
                links[link.pair] = max(link, links.get(link.pair, link), key=lambda one: (one.inliers, -one.query))

    with _kept(collection, min_inliers) if keep else nullcontext() as kept:
        queried = set()
        for number, found in kept.read() if kept is not None else ():
            queried.add(number)
            add(found)
        wanted = [number for number in numbers if number not in queried]
        first = len(numbers) - len(wanted) + 1
        answers = asker(wanted) if asker is not None else ask_photos(collection, wanted, workers=workers)
        for done, (number, found) in enumerate(answers, start=first):
            if kept is not None:
                kept.add(number, [link for link in found if link.inliers >= min_inliers])
            add(found)
            progress(STEP, done, len(numbers))
    return links


def ask_photos(collection: Collection, numbers: list[int], *, workers: int = 1) -> Iterator[tuple[int, list[Link]]]:
    """Query with each of some photos; yield its number and its links to all others, in the order of the numbers."""
    yield from zip(numbers, for_each_photo(collection, _ask, numbers, workers), strict=True)


def for_each_photo(
    collection: Collection, ask: Callable[[Engine, int], list[T]], numbers: list[int], workers: int
) -> Iterator[list[T]]:
    """Call a function with the engine of links for each of some photos, in several processes; yield what it returns,
    nothing for photos that have been removed meanwhile.
    """
    if workers == 1 or len(numbers) <= _BATCH:
        engine = linking_engine(collection)
        return (ask(engine, number) for number in numbers)
    # Each process opens the collection once in this run; in the next one it may have changed.
    place = (collection.folder, collection.catalogue.address.render_as_string(hide_password=False), uuid.uuid4().hex)
    return run((partial(_ask_alone, ask, *place, number) for number in numbers), workers, batch=_BATCH)


def ask_shards(collection: Collection, numbers: Sequence[int], shards: Shards) -> Iterator[tuple[int, list[Link]]]:
    """Query shards of a collection with each of some photos, with the results of `ask_photos`."""
    joins = Joins(collection, _OPTIONS, shards)
    depth = _OPTIONS.verification.depth
    features = shards.epoch.index.images
    for start in range(0, len(numbers), AT_ONCE):
        some = list(numbers[start : start + AT_ONCE])
        with joins.ask([indexed_view(image) for image in features.features_of(some)]) as search:
            others = [
                best_others(number, Scores(best.numbers, best.table[0]), depth)
                for number, best in zip(some, search.best(depth + 1), strict=True)
            ]
            links: list[list[Link]] = [[] for _ in some]
            for first in range(0, depth, _LOOK):
                wanted = [rest[first : first + _LOOK] for rest in others]
                for one, seen in enumerate(search.verify(wanted)):
                    found = _linked(some[one], wanted[one], seen)
                    links[one] += found
                    if not found:
                        others[one] = []
                if not any(others):
                    break
        yield from zip(some, links, strict=True)


class _LinkFile:
    """Links stored in a catalogue; additions are written every second."""

    def __init__(self, catalogue: Catalogue, kind: str) -> None:
        self._catalogue = catalogue
        self._kind = kind
        self._new: dict[int, bytes] = {}
        self._written = time.monotonic()

    def read(self) -> Iterator[tuple[int, list[Link]]]:
        """Yield each photo that was used as a query, and its links."""
        for number, contents in self._catalogue.read(links_in).items():
            found = decode_links(number, contents)
            if found is not None:
                yield number, found

    def add(self, number: int, found: Iterable[Link]) -> None:
        self._new[number] = encode_links(found)
        if time.monotonic() - self._written >= _PAUSE:
            self.write()

    def write(self) -> None:
        if self._new:
            self._catalogue.write(keep_links, self._kind, self._new)
        self._new = {}
        self._written = time.monotonic()


@contextmanager
def _kept(collection: Collection, min_inliers: int) -> Iterator[_LinkFile]:
    """The stored links of a collection, for only one process at a time."""
    with lock_links(collection.folder):
        vocabulary = collection.vocabulary.fingerprint
        kind = collection.catalogue.setting(KIND_KEY) or ""
        if not _has_all(kind, vocabulary, min_inliers):
            kind = json.dumps({"format": _FORMAT, "vocabulary": vocabulary, "inliers": min_inliers})
            collection.catalogue.write(begin_links, kind)
        kept = _LinkFile(collection.catalogue, kind)
        try:
            yield kept
        finally:
            kept.write()


def _has_all(kind: str, vocabulary: str, min_inliers: int) -> bool:
    """Whether links of a kind are of a vocabulary, and include all links of `min_inliers`."""
    try:
        stored = json.loads(kind)
        fits = (stored["format"], stored["vocabulary"]) == (_FORMAT, vocabulary)
        return fits and type(stored["inliers"]) is int and stored["inliers"] <= min_inliers
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def encode_links(found: Iterable[Link]) -> bytes:
    """The links of a photo as bytes: of each the other photo's number (int64), inliers (int32) and map (6 float64)."""
    return np.array([(link.found, link.inliers, link.transform) for link in found], _LINK).tobytes()


def decode_links(number: int, contents: bytes, only: int | None = None) -> list[Link] | None:
    """Decode links of a photo, or only those to one other photo; None if they are malformed."""
    if len(contents) % _LINK.itemsize:
        return None
    found = np.frombuffer(contents, _LINK)
    if only is not None:
        found = found[found["found"] == only]
    if not ((found["found"] >= 0) & (found["inliers"] >= 0)).all() or not np.isfinite(found["transform"]).all():
        return None
    return [Link(number, other, inliers, tuple(transform.tolist())) for other, inliers, transform in found.tolist()]


def found_numbers(
    photos: Iterable[tuple[int, bytes]], fewest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Decode which photos some photos found with enough inliers, without maps: `queries`, `found` and `inliers` (L,),
    in stored order.
    """
    whole = [(number, contents[: len(contents) // _LINK.itemsize * _LINK.itemsize]) for number, contents in photos]
    links = np.frombuffer(b"".join(contents for _, contents in whole), _LINK)
    lengths = [len(contents) // _LINK.itemsize for _, contents in whole]
    queries = np.repeat(np.array([number for number, _ in whole], np.int64), lengths)
    enough = links["inliers"] >= fewest
    return queries[enough], links["found"][enough].astype(np.int64), links["inliers"][enough].astype(np.int32)


def components(pairs: Iterable[tuple[int, int]], numbers: Iterable[int] = ()) -> list[set[int]]:
    """Connected components of a graph of numbers, and of further nodes without edges, by their smallest numbers."""
    ends = np.array(list(pairs), np.int64).reshape(-1, 2)
    nodes, places = np.unique(np.concatenate([ends.ravel(), np.array(list(numbers), np.int64)]), return_inverse=True)
    one, other = places[: ends.size].reshape(-1, 2).T
    graph = coo_array((np.ones(len(ends)), (one, other)), (len(nodes), len(nodes)))
    sets: defaultdict[int, set[int]] = defaultdict(set)
    for node, label in zip(nodes.tolist(), connected_components(graph, directed=False)[1].tolist(), strict=True):
        sets[label].add(node)
    return list(sets.values())  # the nodes ascend: each component is begun by its smallest


def _ask_alone(ask: Callable[[Engine, int], list[T]], folder: Path, catalogue: str, once: str, number: int) -> list[T]:
    try:
        return ask(_open_engine(folder, catalogue, once), number)
    except KeyError:  # it was removed after this run began
        return []


@lru_cache(maxsize=1)
def _open_engine(folder: Path, catalogue: str, once: str) -> Engine:
    """Open a collection in a separate process; the catalogue is closed once the index is loaded."""
    with Collection.open(folder, catalogue=catalogue) as collection:
        return linking_engine(collection)


def linking_engine(collection: Collection) -> Engine:
    """Return the engine that links are found by."""
    return load_engine(_OPTIONS.engine)(collection, settle(_OPTIONS, collection))


def _ask(engine: Engine, number: int) -> list[Link]:
    view = indexed_view(engine.index.images.features(number))
    depth = engine.options.verification.depth
    links: list[Link] = []
    with one_thread():
        others = best_others(number, Scores(engine.index.image_numbers, engine.score(view)), depth)
        for start in range(0, len(others), _LOOK):
            some = others[start : start + _LOOK]
            found = _linked(number, some, engine.verify_many(view, some))
            if not found:
                break
            links += found
    return links


def best_others(number: int, scores: Scores, depth: int) -> list[int]:
    """Return numbers of the other photos of the best scores, the best first."""
    best = rank(scores, depth + 1).image_numbers
    others: list[int] = best[best != number][:depth].tolist()
    return others


def _linked(number: int, others: Sequence[int], seen: Sequence[Verification]) -> list[Link]:
    """Return the links of a photo to those others that show the same."""
    return [
        Link(number, other, one.inliers, tuple(one.transform.ravel().tolist()))
        for other, one in zip(others, seen, strict=True)
        if one.transform is not None
    ]
