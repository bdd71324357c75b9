"""Parallel searches for the queries of a benchmark, with the same answers as in one process."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.arrays import hash_file
from index.errors import CairnError
from index.parallel import run
from index.text import shown
from retrieval.collection.collection import Collection
from retrieval.foreign.extractor import ForeignExtractor
from retrieval.foreign.opening import open_features
from retrieval.indexing.described import use_features
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from retrieval.search.answers import ask_with_file, search_photo
from retrieval.search.options import SearchOptions
from retrieval.search.query import Box
from retrieval.search.searcher import Searcher

Described = tuple[Path, tuple[Path, ...]]
"""Folder of another program's features, and the folders of photos whose names they have."""


@dataclass(frozen=True)
class SearchTask:
    """One search."""

    key: str  # unique label within its run
    path: Path  # the query's photo
    box: Box | None  # the part to search for; None: all of it
    without: NDArray[np.uint32]  # (N,) uint32: numbers of the photos to exclude


@dataclass(frozen=True)
class Answered:
    """The answer to one search: numbers of all photos of the database, (N,) uint32, best first."""

    key: str
    ranking: NDArray[np.uint32]
    seconds: float


def ask_all(
    collection: Collection, options: SearchOptions, jobs: Sequence[SearchTask], workers: int = 1
) -> Iterator[Answered]:
    """Search for queries; yield the answers, in any order with several processes."""
    if workers == 1 or len(jobs) < 2:
        searcher = Searcher(collection, options)
        for job in jobs:
            yield _ask(searcher, job)
        return
    state = repr((collection.content.key, options.similarity and hash_file(options.similarity)))
    features = _features_of(collection)
    yield from run(
        (partial(_ask_elsewhere, collection.folder, state, features, options, job) for job in jobs),
        min(workers, len(jobs)),
        ordered=False,
        batch=1,
    )


def _features_of(collection: Collection) -> Described | None:
    """Another program's features of a collection's photos, and the folders of these; None for Cairn's own."""
    extractor = collection.extractor
    if not isinstance(extractor, ForeignExtractor) or extractor.source is None:
        return None
    return extractor.source.path, tuple(extractor.roots)


_searchers: dict[str, Searcher] = {}  # of a worker process: the last opened one, by key


def _ask_elsewhere(
    folder: Path, state: str, features: Described | None, options: SearchOptions, job: SearchTask
) -> Answered:
    """Search in a worker process, which opens a collection once."""
    key = repr((str(folder), state, features, options))
    if key not in _searchers:
        for old in _searchers.values():
            old.collection.catalogue.close()
        _searchers.clear()
        collection = Collection.open(folder)
        if features is not None:
            use_features(collection, open_features(features[0]), features[1])
        _searchers[key] = Searcher(collection, options)
    return _ask(_searchers[key], job)


def _ask(searcher: Searcher, job: SearchTask) -> Answered:
    start = time.perf_counter()
    among = None
    if len(job.without):
        among = np.setdiff1d(searcher.index.image_numbers, job.without)
    answer = search_photo(searcher, ask_with_file(searcher.collection, job.path.stem, job.path, job.box), among)
    ranking = np.asarray(answer.answer.hits.ordered, np.uint32)
    return Answered(job.key, ranking, time.perf_counter() - start)


def cut_out(photo: Path, box: Box, to: Path) -> None:
    """Write columns x0 to x1 - 1 and rows y0 to y1 - 1 (rounded) of a photo, grey, as PNG: a query of Revisited."""
    try:
        grey = read_photo(photo, ImageOptions(max_side=0)).grey
    except CairnError as error:
        raise CairnError(f"The query {shown(photo.name)} cannot be used: {error}.") from error
    x0, y0, x1, y1 = (max(0, round(one)) for one in box)
    part = grey[y0:y1, x0:x1]
    if not part.size:
        raise CairnError(f"The box of the query {shown(photo.name)} lies outside the photo.")
    Image.fromarray(np.rint(part).clip(0, 255).astype(np.uint8)).save(to, "PNG")
