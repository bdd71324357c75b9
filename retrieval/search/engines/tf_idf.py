"""Engine: cosine of tf-idf vectors, or a learnt similarity of them; verified by features of equal words."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from index.segments.segment import ImageFeatures
from retrieval.search.engines.matching_engine import MatchingEngine, Tentative
from retrieval.search.query import View


class TfIdf(MatchingEngine):
    """Ranks by visual words (Sivic & Zisserman, ICCV 2003); see `InvertedIndex` for the scores."""

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score every photo: see `Engine.score_many`."""
        return self.index.score_many([(view.terms, view.weights) for view in views])

    def tentative(self, view: View, numbers: Sequence[int], images: Sequence[ImageFeatures], most: int) -> Tentative:
        """Match features of equal words: see `MatchingEngine.tentative`."""
        offsets = np.concatenate([[0], np.cumsum([len(image.words) for image in images])]).astype(np.int64)
        words = np.concatenate([image.words for image in images]) if images else np.zeros(0, np.int32)
        pairs, starts, ambiguity, totals = view.lookup.match_many(words, offsets, most)
        pairs[:, 1] -= np.repeat(offsets[:-1], np.diff(starts)).astype(np.int32)
        return Tentative(pairs, starts, ambiguity, totals > np.diff(starts))
