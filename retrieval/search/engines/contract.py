"""The contract of the engines."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index import extensions
from index.errors import CairnError
from index.hamming.kinds import SignatureKind
from index.inverted import InvertedIndex, ScoringOptions
from retrieval.collection.options import CollectionOptions
from retrieval.matching.geometries import suited
from retrieval.matching.verification import Verification
from retrieval.search.engines.registry import BEST, ENGINES, PREFERRED, UNVERIFIED, VerifiedPhotos, find_engine
from retrieval.search.options import ALONE, SearchOptions
from retrieval.search.scoreboard import Begun, LocalScoreboard, Scoreboard
from retrieval.search.views import View


class Searchable(Protocol):
    """What an engine needs of a collection, or of the part of one that it scores."""

    @property
    def folder(self) -> Path:
        """What messages call it."""

    @property
    def options(self) -> CollectionOptions:
        """How it was made."""

    @property
    def signature(self) -> SignatureKind | None:
        """The kind of signature that features have; None if they have none."""

    def scored_index(
        self, scoring: ScoringOptions | None = None, similarity: Path | None = None, *, augmented: bool = False
    ) -> InvertedIndex:
        """Postings, scored in some way: see `Collection.scored_index`."""


class Engine(ABC):
    """One way to rank the photos of a collection, and to verify one of them, for one view of a query.

    Turns, the choice of the photos that are verified, the order of the ranking and expansion are the same for all: see
    `Searcher`. An engine may keep what it reads; a collection that changes is searched by a new one.

    Parameters
    ----------
    collection : Searchable
        Open, with a vocabulary; or a part of a collection.
    options : SearchOptions
        How queries are answered.

    Attributes
    ----------
    index : InvertedIndex
        The photos, their words and the geometry of their features.
    options : SearchOptions
        As given.

    Raises
    ------
    CairnError
        The collection lacks what the engine needs, or the similarity cannot be used.
    """

    index: InvertedIndex
    scores_borrowed = True
    """Whether photos are scored with what they borrow, where they do."""
    adds_totals = False
    """Whether scores depend on sums over all photos: see `begin`."""
    needs_descriptors = False
    """Whether views must have descriptors: those of a photo of the collection by its indexed features have none."""
    label = ""
    """What the search page calls an extension; of Cairn's own engines, `EngineEntry` has this and what follows."""
    verified = VerifiedPhotos.NONE
    """Which photos are verified by geometry."""
    expands = True
    """Whether a query can be expanded by words: see `score_many`."""
    signed = False
    """Whether it looks features up by signatures."""
    explained_by = ""
    """Name of the engine that shows the geometry of its matches; its own where that is left out."""

    def __init__(self, collection: Searchable, options: SearchOptions) -> None:
        refusal = self.refusal(collection)
        if refusal is not None:
            raise CairnError(refusal)
        self.options = options
        augmented = options.augmented and self.scores_borrowed
        self.index = collection.scored_index(options.scoring, options.similarity, augmented=augmented)

    @classmethod
    def prepared(cls, options: CollectionOptions) -> CollectionOptions:
        """Return options of a collection that the engine can search: those given, and what it needs beyond."""
        return options

    @classmethod
    def refusal(cls, collection: Searchable) -> str | None:
        """Say what a collection lacks that the engine needs, and what to do, in a sentence; None if it has it."""
        return None

    @abstractmethod
    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score every photo of the index for some views.

        Parameters
        ----------
        views : sequence of View
            Features of the query, each at one turn. If the engine can be expanded, it scores `terms` by `weights`,
            and not `words`, which are the query's own; one that is `signed` scores what is in `signed`.

        Returns
        -------
        ndarray, shape (views, N), float32
            Of the photos in the order of `index.image_numbers`: 0 for what has nothing in common with the view, more
            for what is more like it. The score of a photo depends on no other view and no other search.
        """

    def score(self, view: View) -> NDArray[np.float32]:
        """Score every photo of the index for one view, (N,) float32: see `score_many`."""
        scores: NDArray[np.float32] = self.score_many([view])[0]
        return scores

    def begin(self, views: Sequence[View]) -> Begun:
        """Begin to score the photos of a part of a collection, where a score depends on those of other parts.

        With what `Begun.totals` of all parts add up to, `Begun.finish` gives what `score_many` gives of all photos. An
        engine that scores each photo by itself, given what `index` knows of the whole collection, leaves it as it is.
        """
        return Begun([], lambda _: self.score_many(views))

    def scoreboard(self, views: int, among: NDArray[np.integer] | None = None) -> Scoreboard:
        """Return a scoreboard of a search with several views, among all photos or those of some numbers."""
        return LocalScoreboard(self, views, among)

    @abstractmethod
    def verify(self, view: View, number: int) -> Verification:
        """Verify one photo of the index by geometry; `NOTHING` where no map is found.

        Parameters
        ----------
        view : View
            Features of the query at one turn.
        number : int
            Number of the photo.
        """

    def verify_many(self, view: View, numbers: Sequence[int]) -> list[Verification]:
        """Verify some photos of the index, in the order given: each as `verify` does, whatever the others are.

        An engine that verifies many at once in less time does so here.

        Parameters
        ----------
        view : View
            Features of the query at one turn.
        numbers : sequence of int
            Numbers of the photos.
        """
        return [self.verify(view, number) for number in numbers]


def settle(options: SearchOptions, collection: Searchable) -> SearchOptions:
    """Name the engine if the options leave it open, and adapt verification to the collection's keypoints.

    What only words can do (a learnt similarity, soft assignment, another term frequency) is done by words.
    """
    verification = suited(options.verification, collection.options.features.regions.detector)
    options = replace(options, verification=verification)
    if options.global_descriptors == ALONE:
        options = replace(options, engine=UNVERIFIED, turns=1)
    if options.engine != BEST:
        return options
    by_words = options.similarity is not None or options.soft > 1 or options.scoring != ScoringOptions()
    able = [name for name in PREFERRED if load_engine(name).refusal(collection) is None]
    return replace(options, engine=PREFERRED[-1] if by_words or not able else able[0])


def prepare(name: str, options: CollectionOptions) -> CollectionOptions:
    """Return options of a collection that an engine can search, one of `ENGINES` or `BEST`: see `Engine.prepared`."""
    return options if name == BEST else load_engine(name).prepared(options)


def load_engine(name: str) -> type[Engine]:
    """Import an engine by its name; raises CairnError if the name is unknown."""
    extension = extensions.find("engine", name) if name not in ENGINES else None
    engine: type[Engine] = extension.load() if extension is not None else resolve_name(find_engine(name).place)
    return engine
