"""Links: photos of a collection that geometry verifies with each other, found by asking it with each of its photos."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from index.errors import CairnError
from index.parallel import run
from index.progress import Progress
from retrieval.collection.collection import Collection
from retrieval.features.encoding import decode_geometry
from retrieval.groups.link_log import Link, open_log
from retrieval.search.engine import Engine, SearchOptions
from retrieval.search.query import Query, View

STEP = "verify"
"""What the progress of `link_photos` calls its one step."""

_OPTIONS = SearchOptions(engine="tf-idf-sp", turns=1)
_BATCH = 4  # photos that a process asks with at a time


def link_photos(
    collection: Collection,
    *,
    min_inliers: int = 1,
    kept: Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> dict[tuple[int, int], Link]:
    """Ask a collection with each of its photos, by the features that it keeps: no photo is read again.

    Parameters
    ----------
    collection : Collection
        Open, with a vocabulary.
    min_inliers : int
        Fewest inliers of a link; one of the two photos has to find the other with so many.
    kept : Path, optional
        File to which each photo's links are appended as they are found. Photos that it knows are not asked with again,
        so that a run that was interrupted goes on, and one after photos were added asks with those alone: what the
        others find among the new ones is then known from the new ones. It is begun anew where it was written for
        another vocabulary or for more inliers.
    workers : int
        Processes; the result does not depend on it.
    progress : callable, optional
        Told how many photos have been asked with.

    Returns
    -------
    dict of (int, int) to Link
        By the two image numbers, ascending: of the two directions the one with more inliers.

    Raises
    ------
    CairnError
        Fewer than one inlier is asked for, or another process is writing `kept`.
    """
    if min_inliers < 1:
        raise CairnError(f"Two photos are verified by one inlier at least, not by {min_inliers}.")
    tell = progress or (lambda step, done, of: None)
    numbers = collection.index.image_numbers.tolist()
    there = set(numbers)
    links: dict[tuple[int, int], Link] = {}

    def add(found: Iterable[Link]) -> None:
        for link in found:
            if link.inliers >= min_inliers and there.issuperset(link.pair):
                # Of equal ones that of the smaller number, so that the order in which they come makes no difference.
                links[link.pair] = max(link, links.get(link.pair, link), key=lambda one: (one.inliers, -one.asked))

    with open_log(kept, collection.vocabulary.fingerprint, min_inliers) as log:
        asked = set()
        for number, found in log.read():
            asked.add(number)
            add(found)
        wanted = [number for number in numbers if number not in asked]
        first = len(numbers) - len(wanted) + 1
        for done, (number, found) in enumerate(ask_photos(collection, wanted, workers=workers), start=first):
            log.write(number, [link for link in found if link.inliers >= min_inliers])
            add(found)
            tell(STEP, done, len(numbers))
    return links


def ask_photos(collection: Collection, numbers: list[int], *, workers: int = 1) -> Iterator[tuple[int, list[Link]]]:
    """Ask with each of some photos; give its number and its links to all others, in the order of the numbers."""
    if workers == 1 or len(numbers) <= _BATCH:
        engine = Engine(collection, _OPTIONS)
        yield from ((number, _ask(engine, number)) for number in numbers)
        return
    # Each process opens the collection once in this run; in the next one it may have changed.
    place = (collection.folder, collection.catalogue.address.render_as_string(hide_password=False), uuid.uuid4().hex)
    tasks = (partial(_ask_alone, *place, number) for number in numbers)
    yield from zip(numbers, run(tasks, workers, batch=_BATCH), strict=True)


def components(neighbours: Mapping[int, set[int]]) -> list[set[int]]:
    """Connected components of a graph that is given by each node's neighbours, by their smallest nodes."""
    found: list[set[int]] = []
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
        found.append(component)
    return found


def _ask_alone(folder: Path, catalogue: str, once: str, number: int) -> list[Link]:
    try:
        return _ask(_open_engine(folder, catalogue, once), number)
    except KeyError:  # it was removed after this run began
        return []


@lru_cache(maxsize=1)
def _open_engine(folder: Path, catalogue: str, once: str) -> Engine:
    """Open a collection in a process of its own; the catalogue is closed when the index is there."""
    with Collection.open(folder, catalogue=catalogue) as collection:
        return Engine(collection, _OPTIONS)


def query_of(engine: Engine, number: int) -> Query:
    """Ask with a photo of the collection by its features as they are indexed, upright: no file is read."""
    image = engine.index.features(number)
    frames = decode_geometry(image.columns, np.arange(len(image.words)))
    words = np.asarray(image.words).astype(np.int32)
    nothing = np.zeros((len(words), 0), np.float16)
    view = View(0.0, frames, nothing, words=words, terms=words, weights=None)
    # Neither the photo nor its size has a say in a search without expansion.
    return Query(Path(), 1, 1, None, np.zeros((len(words), 5), np.float32), [view])


def _ask(engine: Engine, number: int) -> list[Link]:
    """Ask with a photo's features as they are indexed."""
    return [
        Link(number, hit.number, hit.verification.inliers, tuple(hit.verification.transform.ravel().tolist()))
        for hit in engine.search(query_of(engine, number)).hits
        if hit.verification.transform is not None and hit.number != number
    ]
