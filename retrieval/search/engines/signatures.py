"""Engines by signatures: their base class, and the engine that ranks by votes of features that nearly agree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from index.hamming.kinds import DEFAULT, parse_signature
from index.hamming.voting import SignedFeatures, Votes, count_votes, match, share_votes, without_common
from index.messages import Message
from retrieval.collection.options import CollectionOptions
from retrieval.search.engines.contract import Searchable
from retrieval.search.engines.matching_engine import MatchingEngine
from retrieval.search.options import SearchOptions
from retrieval.search.scoreboard import Begun
from retrieval.search.views import View

_LEAST = 1e-9  # votes of a view whose words are in every photo


class SignedEngine(MatchingEngine):
    """An engine that scores photos by signatures, and verifies them by features of equal words like any other.

    A third of the true matches differ in more bits than chance allows. So signatures choose the photos to verify, but
    words the features to match.
    """

    name: ClassVar[str]
    """Of --engine, without verification."""

    def __init__(self, collection: Searchable, options: SearchOptions) -> None:
        super().__init__(collection, options)
        kind = collection.signature
        assert kind is not None  # `refusal` has checked it
        self._bits = kind.bits

    @classmethod
    def prepared(cls, options: CollectionOptions) -> CollectionOptions:
        """Give features signatures."""
        return options if parse_signature(options.signature) else replace(options, signature=DEFAULT)

    @classmethod
    def refusal(cls, collection: Searchable) -> Message | None:
        """Refuse a collection whose features have no signatures: see `Engine.refusal`."""
        if collection.signature is not None:
            return None
        return Message(
            "The engine {engine} needs signatures of features, and {folder} has none: index with {--signature}, or "
            "give it some by {cairn retrain --signature}.",
            engine=cls.name,
            folder=collection.folder,
        )


def signed_of(view: View) -> SignedFeatures:
    """Signatures of a view; raises ValueError if it was made without them."""
    if view.signed is None:
        raise ValueError("the view has no signatures")
    return view.signed


class Signatures(SignedEngine):
    """Ranks by words and signatures (Jégou, Douze, Schmid, ECCV 2008 and CVPR 2009): see `voting.count_votes`.

    True matches that differ in more bits than chance allows cast no vote, so words alone count a little as well.
    """

    name = "signatures"
    adds_totals = True

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score every photo: see `Engine.score_many`."""
        counted = (self._count(view) for view in views)
        scores = [share_votes(self.index, one, one.totals) for one in counted]
        return self._joined(views, scores)

    def begin(self, views: Sequence[View]) -> Begun:
        """Count votes: the total of a feature over all photos decides how its votes are shared."""
        counted = [self._count(view) for view in views]

        def finish(totals: Sequence[NDArray[np.float64]]) -> NDArray[np.float32]:
            return self._joined(views, [share_votes(self.index, *one) for one in zip(counted, totals, strict=True)])

        return Begun([one.totals for one in counted], finish)

    def _count(self, view: View) -> Votes:
        options = self.options.voting
        features = without_common(self.index, signed_of(view), options.beside)
        matches = match(self.index, features, round(options.radius * self._bits))
        return count_votes(self.index, matches, self._bits, options, len(features.words))

    def _joined(self, views: Sequence[View], votes: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Scores (views, N): votes of photos relative to each view's own votes, plus the weighted cosine of words."""
        if not votes:
            return np.zeros((0, len(self.index.image_numbers)), np.float32)
        own = np.array([self._own_votes(view) for view in views], np.float32)[:, None]
        cosines = self.index.score_many([(view.terms, view.weights) for view in views])
        return np.asarray(np.stack(votes) / own + np.float32(self.options.voting.words) * cosines, np.float32)

    def _own_votes(self, view: View) -> float:
        """Votes of a photo with exactly the features of a view that shares no feature with other photos."""
        squares = np.square(self.index.idf.take(view.words))
        return max(float(squares.sum() / np.sqrt(max(len(squares), 1))), _LEAST)
