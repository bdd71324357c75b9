"""Queries from photos, and searches with them."""

from pathlib import Path

import numpy as np

from retrieval.collection.collection import Collection
from retrieval.library.answers import Answer
from retrieval.library.searches import Searches
from retrieval.search.answers import find_photo
from retrieval.search.options import SearchOptions
from retrieval.search.query import Box, Query, QuerySource, extract_query
from retrieval.search.searcher import RankedAnswer as Ranked
from retrieval.search.searcher import Searcher


def read_query(
    collection: Collection, path: Path, box: Box | None = None, turns: int = 1, *, soft: int = 1, signed: int = 0
) -> Query:
    """Extract the features of a photo, or of a box in it: see `extract_query`."""
    source = QuerySource(collection.extractor, collection.options.image, path, box)
    return extract_query(collection, source, turns, soft=soft, signed=signed)


def answer_to(query: Query, searcher: Searcher, among: np.ndarray | None = None) -> Ranked:
    """Search for a query like the command line."""
    return searcher.search(query.views, among, region=query.region)


def ask_for(folder: Path, photo: str, box: Box | None = None, *, options: SearchOptions, top: int = 20) -> Answer:
    """Search a collection once, like a command."""
    with Collection.open(folder) as collection:
        return Searches(collection).search([find_photo(collection, photo, box)], options, top=top)
