"""Engine: the aggregated selective match kernel of binary signatures, ASMK*; verified by matches of signatures."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from index.hamming.aggregation import aggregate_query, score_aggregated
from retrieval.search.engines.signatures import SignedEngine, signed_of
from retrieval.search.views import View


class Asmk(SignedEngine):
    """Ranks by words and their aggregated signatures (Tolias, Avrithis, Jégou, ICCV 2013 and IJCV 2016)."""

    name = "asmk"
    scores_borrowed = False  # aggregates of own and borrowed features would have to be stored

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score every photo: see `Engine.score_many`."""
        options = self.options.aggregation
        queries = [aggregate_query(signed_of(view), options.nearest) for view in views]
        return score_aggregated(self.index, queries, self._bits, options)
