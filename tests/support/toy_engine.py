"""Example of a third-party engine: a class, and lines in the registry. It ranks the newest photos first."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from retrieval.search.engines.registry import ENGINES, EngineEntry, VerifiedPhotos
from retrieval.search.engines.tf_idf import TfIdf
from retrieval.search.views import View
from retrieval.web.jobs import SearchJobs, ServedCollection

_PLACE = "tests.support.toy_engine:Newest"
ENTRIES = {
    entry.name: entry
    for entry in (
        EngineEntry("newest", _PLACE, "Newest", note="the newest first", expands=False, explained_by="newest-sp"),
        EngineEntry("newest-sp", _PLACE, "Newest, verified", verified=VerifiedPhotos.BEST, expands=False),
    )
}


class Newest(TfIdf):
    """Scores photos by their numbers."""

    def score_many(self, views: Sequence[View]) -> np.ndarray:
        """Score every photo."""
        return np.tile(self.index.image_numbers.astype(np.float32) + 1, (len(views), 1))


def make_jobs(folder: str) -> SearchJobs:
    """Jobs of a worker process of the server, with the engine registered."""
    ENGINES.update(ENTRIES)
    return SearchJobs(ServedCollection(Path(folder)))
