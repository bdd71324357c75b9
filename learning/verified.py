"""Labels from nothing: photos of a collection are positives of each other where geometry verifies that they match."""

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from index.errors import CairnError
from learning.labels import Relevance
from learning.stages import Progress
from retrieval.collection import Collection
from retrieval.encoding import decode_geometry
from retrieval.engine import Engine, SearchOptions
from retrieval.query import Query, View

STEP = "verify"
"""What the progress of `verified_relevance` calls its one step."""

_OPTIONS = SearchOptions(engine="tf-idf-sp", turns=1)


def verified_relevance(
    collection: Collection, *, min_inliers: int = 20, workers: int = 1, progress: Progress | None = None
) -> Relevance:
    """Ask a collection with each of its photos, and take those that are verified for the ones to be found.

    Parameters
    ----------
    collection : Collection
        Open, with a vocabulary. It is asked with the features that it keeps: no photo is read again.
    min_inliers : int
        Fewest inliers of two photos that show the same; one of them has to find the other with so many.
    workers : int
        Processes; the result does not depend on it.
    progress : callable, optional
        Told how many photos have been asked with.

    Returns
    -------
    Relevance
        See `relate`; an object has the name of its first photo.

    Raises
    ------
    CairnError
        No two photos are verified by so many inliers.
    """
    if min_inliers < 1:
        raise CairnError(f"Two photos are verified by one inlier at least, not by {min_inliers}.")
    numbers = collection.index.image_numbers.astype(np.int64)
    inliers: dict[tuple[int, int], int] = {}
    for done, (number, found) in enumerate(_ask_all(collection, numbers.tolist(), workers), start=1):
        for other, count in found.items():
            pair = min(number, other), max(number, other)
            inliers[pair] = max(count, inliers.get(pair, 0))
        if progress is not None:
            progress(STEP, done, len(numbers))
    relevance, first = relate(numbers, inliers, min_inliers)
    if not first:
        raise CairnError(
            f"No two photos of {collection.folder} are verified by {min_inliers} inliers: ask for fewer, add photos "
            "that show the same things, or learn from labels."
        )
    return replace(relevance, names=tuple(collection.catalogue.names(first)))


def relate(
    numbers: np.ndarray, inliers: Mapping[tuple[int, int], int], min_inliers: int
) -> tuple[Relevance, list[int]]:
    """Make queries of the photos that are verified with others.

    Parameters
    ----------
    numbers : ndarray, shape (N,), int
        Image numbers of the database.
    inliers : mapping of (int, int) to int
        Of pairs of its photos; pairs that have none need not be there.
    min_inliers : int
        See `verified_relevance`.

    Returns
    -------
    relevance : Relevance
        Objects are the connected components of at least two photos, and each photo of one is a query. It is to find the
        photos that it is verified with. It ignores itself, the others of its component, which may well show the same
        from too far away, and photos that fewer inliers speak for.
    first : list of int
        The smallest image number of each object, which are ordered by it.
    """
    verified: defaultdict[int, set[int]] = defaultdict(set)
    doubtful: defaultdict[int, set[int]] = defaultdict(set)
    for (one, other), count in inliers.items():
        side = verified if count >= min_inliers else doubtful
        side[one].add(other)
        side[other].add(one)
    objects = _components(verified)
    # Queries and what belongs to them, object by object.
    queries = [photo for members in objects for photo in sorted(members)]
    shown = np.repeat(np.arange(len(objects), dtype=np.int32), [len(members) for members in objects])
    around = [
        (objects[number] | doubtful[photo]) - verified[photo]
        for photo, number in zip(queries, shown.tolist(), strict=True)
    ]
    relevance = Relevance(
        queries=np.array(queries, np.int64),
        database=np.unique(np.asarray(numbers, np.int64)),
        positives=tuple(np.array(sorted(verified[photo]), np.int64) for photo in queries),
        ignored=tuple(np.array(sorted(photos), np.int64) for photos in around),
        objects=shown,
        names=tuple(str(min(members)) for members in objects),
    )
    return relevance, [min(members) for members in objects]


def _components(neighbours: Mapping[int, set[int]]) -> list[set[int]]:
    """Connected components of a graph that is given by each node's neighbours, by their smallest nodes."""
    components: list[set[int]] = []
    seen: set[int] = set()
    for start in sorted(neighbours):
        if start in seen:
            continue
        component, frontier = {start}, [start]
        while frontier:
            new = neighbours[frontier.pop()] - component
            component |= new
            frontier.extend(new)
        seen |= component
        components.append(component)
    return components


def _ask_all(collection: Collection, numbers: list[int], workers: int) -> Iterator[tuple[int, dict[int, int]]]:
    """Ask with each photo; give its number, and the inliers of the other photos that are verified with it, in order."""
    from joblib import Parallel, delayed

    if workers == 1 or len(numbers) < 4:
        engine = Engine(collection, _OPTIONS)
        yield from ((number, _ask(engine, number)) for number in numbers)
        return
    # Each process opens the collection once in this run; in the next one it may have changed.
    place = (collection.folder, collection.catalogue.address.render_as_string(hide_password=False), uuid.uuid4().hex)
    found = Parallel(n_jobs=workers, return_as="generator", batch_size=4)(
        delayed(_ask_alone)(*place, number) for number in numbers
    )
    yield from zip(numbers, found, strict=True)


def _ask_alone(folder: Path, catalogue: str, run: str, number: int) -> dict[int, int]:
    return _ask(_open_engine(folder, catalogue, run), number)


@lru_cache(maxsize=1)
def _open_engine(folder: Path, catalogue: str, run: str) -> Engine:
    """Open a collection in a process of its own; the catalogue is closed when the index is there."""
    with Collection.open(folder, catalogue=catalogue) as collection:
        return Engine(collection, _OPTIONS)


def _ask(engine: Engine, number: int) -> dict[int, int]:
    """Ask with a photo's features as they are indexed."""
    image = engine.index.features(number)
    frames = decode_geometry(image.columns, np.arange(len(image.words)))
    words = np.asarray(image.words).astype(np.int32)
    nothing = np.zeros((len(words), 0), np.float16)
    view = View(0.0, frames, nothing, words=words, terms=words, weights=None)
    # Neither the photo nor its size has a say in a search without expansion.
    query = Query(Path(), 1, 1, None, np.zeros((len(words), 5), np.float32), [view])
    hits = engine.search(query).hits
    return {hit.number: hit.verification.inliers for hit in hits if hit.verification.inliers and hit.number != number}
