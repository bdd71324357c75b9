"""Engines by signatures: their verification, and the one that ranks by votes of features that nearly agree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from index.hamming.kinds import DEFAULT, parse_signature
from index.hamming.voting import SignedFeatures, SignedMatches, match, vote
from index.segments.segment import ImageFeatures
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.search.engines.matching_engine import MatchingEngine, Tentative
from retrieval.search.options import SearchOptions
from retrieval.search.query import View

_KEPT = 8  # views whose matches are kept: at 100,000 photos those of one take some megabytes


class SignedEngine(MatchingEngine):
    """An engine that verifies photos by features of equal words whose signatures differ in few bits."""

    name: ClassVar[str]
    """Of --engine, without verification."""

    def __init__(self, collection: Collection, options: SearchOptions) -> None:
        super().__init__(collection, options)
        kind = collection.signature
        assert kind is not None  # else it would have been refused
        self._bits = kind.bits
        evidence = replace(options.verification.evidence, sure=options.sure_signed)
        self.verification = replace(options.verification, evidence=evidence)
        self._matches: WeakKeyDictionary[View, SignedMatches] = WeakKeyDictionary()

    @classmethod
    def prepared(cls, options: CollectionOptions) -> CollectionOptions:
        """Give features signatures."""
        return options if parse_signature(options.signature) else replace(options, signature=DEFAULT)

    @classmethod
    def refusal(cls, collection: Collection) -> str | None:
        """Refuse a collection whose features have no signatures: see `Engine.refusal`."""
        if collection.signature is not None:
            return None
        return (
            f"The engine {cls.name} needs signatures of features, and {collection.folder} has none: index with "
            "--signature, or give it some by cairn retrain --signature."
        )

    def rest(self) -> None:
        """Let go of matches: see `Engine.rest`."""
        self._matches.clear()

    def tentative(self, view: View, numbers: Sequence[int], images: Sequence[ImageFeatures], most: int) -> Tentative:
        """Match features of equal words and like signatures: see `MatchingEngine.tentative`."""
        places = np.searchsorted(self.index.image_numbers, numbers)
        matches = self._matched_with(view, places)
        starts, ends = (np.searchsorted(matches.photos, places, side=side) for side in ("left", "right"))
        rows = [np.arange(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        left_out = ends - starts > most
        for which in np.flatnonzero(left_out).tolist():
            nearest = np.argsort(matches.distances[rows[which]], kind="stable")[:most]
            rows[which] = np.sort(rows[which][nearest])
        lengths = np.array([len(some) for some in rows], np.int64)
        found = matches.at(np.concatenate([np.zeros(0, np.int64), *rows]))
        photo = np.repeat(np.arange(len(rows)), lengths)
        # Of a word that a photo has several times the features follow each other.
        firsts = [
            np.searchsorted(image.words, words)
            for image, words in zip(images, np.split(found.words, np.cumsum(lengths))[: len(images)], strict=True)
        ]
        feature = np.concatenate([np.zeros(0, np.int64), *firsts]) + found.ranks
        _, kind, count = np.unique(
            photo * np.int64(self.index.words) + found.words, return_inverse=True, return_counts=True
        )
        pairs = np.stack([found.query, feature], axis=1).astype(np.int32)
        return Tentative(pairs, np.concatenate([[0], np.cumsum(lengths)]), count[kind], left_out)

    @property
    def _most(self) -> int:
        """Largest number of bits that differ between what matches."""
        return round(max(self.options.voting.radius, self.options.voting.reach) * self._bits)

    def _matched_with(self, view: View, places: NDArray[np.integer]) -> SignedMatches:
        """The matches of a view with some photos, given by their places; those of all are found for scoring alone."""
        if view in self._matches:
            return self._matches[view].of_photos(places, len(self.index.image_numbers))
        return match(self.index, signed_of(view), self._most, among=places).ordered()

    def _matched(self, view: View) -> SignedMatches:
        """All matches of a view, found once."""
        found = self._matches.get(view)
        if found is None:
            while len(self._matches) >= _KEPT:
                self._matches.pop(next(iter(self._matches)), None)
            found = self._matches[view] = match(self.index, signed_of(view), self._most)
        return found


def signed_of(view: View) -> SignedFeatures:
    """Signatures of a view; ValueError where it was made without them."""
    if view.signed is None:
        raise ValueError("the view has no signatures")
    return view.signed


class Signatures(SignedEngine):
    """Ranks by words and signatures (Jégou, Douze, Schmid, ECCV 2008 and CVPR 2009); see `vote` for the scores."""

    name = "signatures"

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score every photo: see `Engine.score_many`."""
        scores = [vote(self.index, self._matched(view), self._bits, self.options.voting) for view in views]
        return np.stack(scores) if scores else np.zeros((0, len(self.index.image_numbers)), np.float32)
