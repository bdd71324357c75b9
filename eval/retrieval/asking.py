"""Asking the queries of a benchmark, on several processes, each answered as by one."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.errors import CairnError
from index.parallel import run
from index.text import shown
from retrieval.collection.collection import Collection
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from retrieval.search.answers import ask_with_file, search_photo
from retrieval.search.options import SearchOptions
from retrieval.search.query import Box
from retrieval.search.searcher import Searcher


@dataclass(frozen=True)
class Job:
    """One search.

    Attributes
    ----------
    key : str
        What it is told by from the other searches of its run.
    path : Path
        The query's photo.
    box : tuple of float, optional
        What is searched for in it; None: all of it.
    without : ndarray, shape (N,), uint32
        Numbers of the photos that are as if they were not there.
    """

    key: str
    path: Path
    box: Box | None
    without: NDArray[np.uint32]


@dataclass(frozen=True)
class Answered:
    """The answer to one search: numbers of all photos that could be found, (N,) uint32, the best first."""

    key: str
    ranking: NDArray[np.uint32]
    seconds: float


def ask_all(
    collection: Collection, options: SearchOptions, jobs: Sequence[Job], workers: int = 1
) -> Iterator[Answered]:
    """Search for queries; give the answers as they come, in any order where there are several processes.

    Parameters
    ----------
    collection : Collection
        Open, with a vocabulary.
    options : SearchOptions
        How queries are answered.
    jobs : sequence of Job
        The searches.
    workers : int
        Processes, each of which opens the collection; answers do not depend on it.

    Raises
    ------
    CairnError
        A photo cannot be read, or the collection lacks what the engine needs.
    """
    if workers == 1 or len(jobs) < 2:
        searcher = Searcher(collection, options)
        for job in jobs:
            yield _ask(searcher, job)
        return
    state = collection.content.key
    yield from run(
        (partial(_ask_elsewhere, collection.folder, state, options, job) for job in jobs),
        min(workers, len(jobs)),
        ordered=False,
        batch=1,
    )


_searchers: dict[str, Searcher] = {}  # of a worker process: the last one, by what it searches


def _ask_elsewhere(folder: Path, state: str | None, options: SearchOptions, job: Job) -> Answered:
    """Search in a worker process, which opens a collection once for all searches in it."""
    key = repr((str(folder), state, options))
    if key not in _searchers:
        for old in _searchers.values():
            old.collection.catalogue.close()
        _searchers.clear()
        _searchers[key] = Searcher(Collection.open(folder), options)
    return _ask(_searchers[key], job)


def _ask(searcher: Searcher, job: Job) -> Answered:
    start = time.perf_counter()
    among = None
    if len(job.without):
        among = np.setdiff1d(searcher.index.image_numbers, job.without)
    found = search_photo(searcher, ask_with_file(searcher.collection, job.path.stem, job.path, job.box), among)
    ranking = np.asarray(found.answer.hits.ordered, np.uint32)
    return Answered(job.key, ranking, time.perf_counter() - start)


def cut_out(photo: Path, box: Box, to: Path) -> None:
    """Write what a box cuts out of a photo, grey, as PNG: a query of Revisited.

    Parameters
    ----------
    photo : Path
        The query's photo.
    box : tuple of float
        x0, y0, x1, y1 in pixels, rounded to whole ones: columns x0 to x1 - 1, rows y0 to y1 - 1.
    to : Path
        The file; its folder must exist.

    Raises
    ------
    CairnError
        The photo cannot be read, or the box lies outside it.
    """
    try:
        grey = read_photo(photo, ImageOptions(max_side=0)).grey
    except CairnError as error:
        raise CairnError(f"The query {shown(photo.name)} cannot be used: {error}.") from error
    x0, y0, x1, y1 = (max(0, round(one)) for one in box)
    part = grey[y0:y1, x0:x1]
    if not part.size:
        raise CairnError(f"The box of the query {shown(photo.name)} lies outside the photo.")
    Image.fromarray(np.rint(part).clip(0, 255).astype(np.uint8)).save(to, "PNG")
