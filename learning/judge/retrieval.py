"""Index photos with a descriptor, and measure searches with it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from index.errors import CairnError
from index.progress import Progress, silent
from learning.judge.scenes import BoxQuery
from learning.measures.precision import average_precision
from retrieval.catalogue.photos import all_indexed, counts_of_photos
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.collection.layout import STAGING
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.staging import Staging
from retrieval.indexing.adding import index_photos
from retrieval.metadata.pages import file_of
from retrieval.search.answers import QueryImage, make_query
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher

ENGINES = ("tf-idf", "tf-idf-sp")
"""Engines for the comparison: a ranking by words, and the same with the best photos verified."""

STEP = "judge-queries"
"""Title of the only step in the progress of `search_boxes`."""


def index_with(
    descriptor: str,
    photos: Sequence[ImageRow],
    options: CollectionOptions,
    work: Path,
    *,
    staged: Path | None = None,
    workers: int = 1,
    progress: Progress = silent,
) -> Path:
    """Index photos with a descriptor and its own vocabulary, unless already done; return the collection.

    Features extracted earlier to the folder `staged` are used if they are of this descriptor.
    """
    resolved = find_descriptor(descriptor)
    described = {
        "photos": [(row.path, row.size, row.mtime_ns) for row in photos],
        "descriptor": resolved.fingerprint,
        "options": replace(options, descriptor=resolved.name),
    }
    folder = work / f"{fingerprint({}, described)[:16]}.cairn"
    work.mkdir(parents=True, exist_ok=True)
    with Collection.create(folder, replace(options, descriptor=descriptor)) as collection:
        if staged is not None and not collection.has_vocabulary:
            target = Staging(folder / STAGING, collection.extractor, collection.options.image)
            target.take(staged / target.folder.name)
        files = dict.fromkeys(file_of(row.path) for row in photos)  # all pages of each are indexed
        index_photos(collection, [*files], workers=workers, progress=progress)
        if not collection.catalogue.read(counts_of_photos)["indexed"]:
            raise CairnError("None of the photos can be indexed, so that no search can be judged by them.")
    return folder


def search_boxes(
    folder: Path,
    queries: Sequence[BoxQuery],
    paths: Mapping[int, str],
    *,
    engines: Sequence[str] = ENGINES,
    turns: int = 1,
    shown: list[frozenset[int]] | None = None,
    progress: Progress = silent,
) -> NDArray[np.float64]:
    """Average precisions (Q, E) of searches of a collection for boxes at some turns; a missing photo is not found.

    `shown` receives, for each query, the positives found by the last of the engines.
    """
    precisions = np.zeros((len(queries), len(engines)))
    with Collection.open(folder) as collection:
        rows = {row.path: row for row in collection.catalogue.read(all_indexed)}
        own = {number: rows[path].number if path in rows else -number - 1 for number, path in paths.items()}
        # New collections have no borrowed features.
        searchers = [Searcher(collection, SearchOptions(engine=one, turns=turns, augmented=False)) for one in engines]
        for place, query in enumerate(queries):
            row = rows.get(paths[query.photo])
            sure: set[int] = set()
            if row is not None:
                described = make_query(searchers[0], QueryImage(row.name or "", Path(row.path), query.box, row))
                positives = {own[number] for number in query.positives}
                ignored = {own[number] for number in query.ignored}
                for which, searcher in enumerate(searchers):
                    own_views = described.tried_at(turns).views
                    hits = searcher.search(own_views, region=described.region).hits
                    precisions[place, which] = average_precision(hits.ordered.tolist(), positives, ignored)
                if shown is not None:
                    sure = {hit.number for hit in hits[: len(hits.found)] if hit.found}
                described.rest()
            if shown is not None:
                shown.append(frozenset(number for number in query.positives if own[number] in sure))
            progress(STEP, place + 1, len(queries))
    return precisions
