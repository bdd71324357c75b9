"""Engine: nearest neighbours of unquantised descriptors, verified (Simonyan14, section 10.2); slow, and a yardstick."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from index.messages import Message
from retrieval.collection.options import CollectionOptions
from retrieval.features.encoding import decode_geometry
from retrieval.matching.nearest import PreparedQuery, match_descriptors, prepare_query
from retrieval.matching.verification import NOTHING, Verification, verify
from retrieval.search.engines.contract import Engine, Searchable
from retrieval.search.views import View


class Raw(Engine):
    """Verifies every photo by its descriptors; photos that fail are ranked by words."""

    needs_descriptors = True

    @classmethod
    def prepared(cls, options: CollectionOptions) -> CollectionOptions:
        """Keep descriptors."""
        return replace(options, keep_descriptors=True)

    @classmethod
    def refusal(cls, collection: Searchable) -> Message | None:
        """Refuse a collection that keeps no descriptors: see `Engine.refusal`."""
        if collection.options.keep_descriptors:
            return None
        return Message(
            "The engine raw needs descriptors, and {folder} keeps none: index with {--keep-descriptors}.",
            folder=collection.folder,
        )

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score every photo by its words: see `Engine.score_many`."""
        return self.index.score_many([(view.terms, view.weights) for view in views])

    def verify(self, view: View, number: int) -> Verification:
        """Verify a photo by descriptors that are each other's nearest: see `Engine.verify`."""
        return self.verify_many(view, [number])[0]

    def verify_many(self, view: View, numbers: Sequence[int]) -> list[Verification]:
        """Verify some photos, the query being prepared once: see `Engine.verify_many`."""
        query = prepare_query(view.descriptors)
        return [self._verify(view, query, number) for number in numbers]

    def _verify(self, view: View, query: PreparedQuery, number: int) -> Verification:
        image = self.index.images.features(number)
        pairs = match_descriptors(query, image.columns["descriptor"])
        if len(pairs) < self.options.verification.min_inliers:
            return NOTHING
        query_frames = view.frames.at(pairs[:, 0]).enlarged(view.elongation)
        frames = decode_geometry(image.columns, pairs[:, 1]).enlarged(image.elongation)
        found = verify(query_frames, frames, pairs, self.options.verification, extent=view.extent)
        return found.in_sides(view.elongation, image.elongation)
