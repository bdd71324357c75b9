"""Searches with a query that was read from a photo."""

import numpy as np

from retrieval.search.query import Query
from retrieval.search.searcher import Answer, Searcher


def answer_to(query: Query, searcher: Searcher, among: np.ndarray | None = None) -> Answer:
    """Search for a query as the command line does."""
    return searcher.search(query.views, among, region=query.region)
