"""Engine: cosine of tf-idf vectors, or a learnt similarity of them; verified by features of equal words."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from retrieval.collection.collection import Collection
from retrieval.features.encoding import decode_geometry
from retrieval.matching.verification import NOTHING, Verification, identify, recount, verify
from retrieval.regions.geometry import Frames
from retrieval.search.engines.contract import Engine
from retrieval.search.options import SearchOptions
from retrieval.search.query import View


class TfIdf(Engine):
    """Ranks by visual words (Sivic & Zisserman, ICCV 2003); see `InvertedIndex` for the scores."""

    def __init__(self, collection: Collection, options: SearchOptions) -> None:
        super().__init__(collection, options)
        self._mean_idf: WeakKeyDictionary[View, float] = WeakKeyDictionary()

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score every photo: see `Engine.score_many`."""
        return self.index.score_many([(view.terms, view.weights) for view in views])

    def verify(self, view: View, number: int) -> Verification:
        """Verify a photo by its features that have words of the query: see `Engine.verify`."""
        options = self.options.verification
        image = self.index.features(number)
        if view.lookup.equal(image.words):
            every = decode_geometry(image.columns, np.arange(len(image.words)))
            same = identify(view.lookup, view.frames, image.words, every)
            if same.inliers:
                return same

        def frames(pairs: NDArray[np.int32]) -> tuple[Frames, Frames]:
            return view.frames.at(pairs[:, 0]), decode_geometry(image.columns, pairs[:, 1])

        pairs = view.lookup.match(image.words, options.max_matches)
        if len(pairs) < options.min_inliers:
            return NOTHING
        found = verify(*frames(pairs), pairs, options, rarity=self.rarity(view, image.words))
        if found.inliers and len(pairs) == options.max_matches:  # some were left out, then
            pairs = view.lookup.match(image.words, options.max_counted)
            found = recount(found, *frames(pairs), pairs, options)
        return found

    def rarity(self, view: View, words: NDArray[np.integer]) -> float:
        """Rarity of a query's words or of a photo's, given by its `words`, whichever are the commoner: see `weigh`."""
        own = self._mean_idf.get(view)
        if own is None:
            own = self._mean_idf[view] = self._mean(view.words)
        return min(own, self._mean(words)) - self.index.common_idf

    def _mean(self, words: NDArray[np.integer]) -> float:
        """Mean idf of some words."""
        return float(self.index.idf[words].mean()) if len(words) else 0.0
