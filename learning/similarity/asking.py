"""Test queries of a ground truth as words (Fig. 6 of Yan13)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.text import shown
from learning.labels.ground_truth import read_ground_truth
from learning.similarity.measured import MeasuredQueries
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.metadata.pages import stem_of
from retrieval.photos.listing import list_photos
from retrieval.search.answers import ask_with_file, make_query
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher


def ask_ground_truths(
    collection: Collection, folders: Sequence[Path], photos: Sequence[Path] = (), *, skip_missing: bool = False
) -> MeasuredQueries:
    """Describe the upright queries with positives of ground truths in the layout of Oxford5K."""
    queries = [query for folder in folders for query in read_ground_truth(folder) if query.positives]
    if not queries:
        raise CairnError(f"No query of {', '.join(map(str, folders))} has a positive.")
    numbers: dict[str, list[int]] = {}
    paths: dict[str, Path] = {}
    for row in collection.catalogue.read(all_indexed):
        numbers.setdefault(stem_of(row.path), []).append(row.number)
        paths.setdefault(stem_of(row.path), Path(row.path))
    for _, path in list_photos(photos) if photos else ():
        paths.setdefault(path.stem, path)
    searcher = Searcher(collection, SearchOptions(engine="tf-idf", turns=1))
    words, query_numbers, kept_queries = [], set[int](), []
    for query in queries:
        for stem in (query.stem, *query.positives, *query.junk):
            if len(numbers.get(stem, ())) > 1:
                raise CairnError(
                    f"{shown(stem)} stands for {len(numbers[stem])} photos of the collection, so the ground truth "
                    "cannot tell them apart: keep one of them."
                )
        if query.stem not in paths and skip_missing:
            continue
        if query.stem not in paths:
            raise CairnError(
                "The photo {stem} of the query {query} is not in the collection: index it, or name its folder with "
                "{--test-queries}.",
                stem=shown(query.stem),
                query=shown(query.name),
            )
        described = make_query(searcher, ask_with_file(collection, query.stem, paths[query.stem], query.box))
        words.append(np.asarray(described.views[0].words))
        query_numbers.update(numbers.get(query.stem, ()))
        kept_queries.append(query)
    if not kept_queries:
        raise CairnError(f"No photo that {', '.join(map(str, folders))} asks with is in the collection.")
    one = {stem: found[0] for stem, found in numbers.items()}
    return MeasuredQueries(
        tuple(query.name for query in kept_queries),
        tuple(words),
        np.sort(collection.index.image_numbers.astype(np.int64)),
        tuple(_numbers(one, query.positives, missing=True) for query in kept_queries),
        tuple(_numbers(one, query.junk, missing=False) for query in kept_queries),
        np.array(sorted(query_numbers), np.int64),
    )


def _numbers(known: dict[str, int], stems: frozenset[str], *, missing: bool) -> NDArray[np.int64]:
    """Image numbers of photos; photos not in the collection get distinct negative numbers, or are left out."""
    numbers = [known[stem] for stem in stems if stem in known]
    lost = range(-1, len(numbers) - len(stems) - 1, -1) if missing else ()
    return np.array(sorted([*numbers, *lost]), np.int64)
