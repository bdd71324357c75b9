"""Engine: nearest neighbours of unquantised descriptors, verified (Simonyan14, section 10.2); slow, and a yardstick."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from retrieval.collection.options import CollectionOptions
from retrieval.features.encoding import decode_geometry
from retrieval.matching.nearest import match_descriptors
from retrieval.matching.verification import Verification, verify
from retrieval.search.engines.contract import Engine, Searchable
from retrieval.search.views import View


class Raw(Engine):
    """Verifies every photo by its descriptors; words put those in order that do not pass."""

    needs_descriptors = True

    @classmethod
    def prepared(cls, options: CollectionOptions) -> CollectionOptions:
        """Keep descriptors."""
        return replace(options, keep_descriptors=True)

    @classmethod
    def refusal(cls, collection: Searchable) -> str | None:
        """Refuse a collection that keeps no descriptors: see `Engine.refusal`."""
        if collection.options.keep_descriptors:
            return None
        return f"The engine raw needs descriptors, and {collection.folder} keeps none: index with --keep-descriptors."

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score every photo by its words: see `Engine.score_many`."""
        return self.index.score_many([(view.terms, view.weights) for view in views])

    def verify(self, view: View, number: int) -> Verification:
        """Verify a photo by descriptors that are each other's nearest: see `Engine.verify`."""
        image = self.index.images.features(number)
        pairs = match_descriptors(view.descriptors, image.columns["descriptor"])
        frames = decode_geometry(image.columns, pairs[:, 1])
        return verify(view.frames.at(pairs[:, 0]), frames, pairs, self.options.verification)
