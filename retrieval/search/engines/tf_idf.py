"""Engine: cosine of tf-idf vectors, or a learnt similarity of them; verified by features of equal words."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.search.engines.matching_engine import MatchingEngine
from retrieval.search.views import View


class TfIdf(MatchingEngine):
    """Ranks by visual words (Sivic & Zisserman, ICCV 2003); see `InvertedIndex` for the scores."""

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score every photo: see `Engine.score_many`."""
        return self.index.score_many([(view.terms, view.weights) for view in views])
