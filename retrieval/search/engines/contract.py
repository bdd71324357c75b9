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
from index.messages import Message
from retrieval.collection.options import CollectionOptions
from retrieval.matching.geometries import suited
from retrieval.matching.verification import Verification
from retrieval.search.engines.registry import BEST, ENGINES, PREFERRED, UNVERIFIED, VerifiedPhotos, find_engine
from retrieval.search.options import ALONE, SearchOptions
from retrieval.search.scoreboard import Begun, LocalScoreboard, Scoreboard
from retrieval.search.views import View


class Searchable(Protocol):
    """The interface of a collection, or of a part of one, that an engine uses."""

    @property
    def folder(self) -> Path:
        """Its name in messages."""

    @property
    def options(self) -> CollectionOptions:
        """Options that it was made with."""

    @property
    def signature(self) -> SignatureKind | None:
        """The kind of signature that features have; None without signatures."""

    def scored_index(
        self, scoring: ScoringOptions | None = None, similarity: Path | None = None, *, augmented: bool = False
    ) -> InvertedIndex:
        """Postings, scored in some way: see `Collection.scored_index`."""


class Engine(ABC):
    """One way to rank the photos of a collection, and to verify one of them, for one view of a query.

    `Searcher` does the rest for all engines: turns, choice of photos to verify, order of the ranking, and expansion. An
    engine may cache what it reads; a new engine is made if the collection changes.

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
        """Return options of a collection that the engine can search: the given ones, extended as needed."""
        return options

    @classmethod
    def refusal(cls, collection: Searchable) -> str | Message | None:
        """Return a sentence that says what the collection lacks for the engine and what to do; None if nothing."""
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
            In the order of `index.image_numbers`: 0 for a photo that has nothing in common with the view, larger for a
            more similar one. The score of a photo depends on no other view and no other search.
        """

    def score(self, view: View) -> NDArray[np.float32]:
        """Score every photo of the index for one view, (N,) float32: see `score_many`."""
        scores: NDArray[np.float32] = self.score_many([view])[0]
        return scores

    def begin(self, views: Sequence[View]) -> Begun:
        """Begin to score the photos of a part of a collection, where a score depends on those of other parts.

        Given the sums of `Begun.totals` over all parts, `Begun.finish` returns what `score_many` returns for all
        photos. An engine that scores each photo separately need not override this.
        """
        return Begun([], lambda _: self.score_many(views))

    def scoreboard(self, views: int, among: NDArray[np.integer] | None = None) -> Scoreboard:
        """Return the scoreboard of a search with several views, among all photos or the given numbers."""
        return LocalScoreboard(self, views, among)

    @abstractmethod
    def verify(self, view: View, number: int) -> Verification:
        """Verify one photo of the index by geometry; `NOTHING` if no map is found.

        Parameters
        ----------
        view : View
            Features of the query at one turn.
        number : int
            Number of the photo.
        """

    def verify_many(self, view: View, numbers: Sequence[int]) -> list[Verification]:
        """Verify some photos of the index, in the given order: each result is that of `verify`.

        Override it if several photos can be verified together in less time.

        Parameters
        ----------
        view : View
            Features of the query at one turn.
        numbers : sequence of int
            Numbers of the photos.
        """
        return [self.verify(view, number) for number in numbers]


def settle(options: SearchOptions, collection: Searchable) -> SearchOptions:
    """Choose the engine if the options leave it open, and adapt verification to the collection's keypoints.

    Options that only words support (a learnt similarity, soft assignment, another term frequency) select tf-idf.
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
