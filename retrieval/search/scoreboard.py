"""The scores of photos in one search, whether the photos are local or on other machines."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.inverted import InvertedIndex
from retrieval.matching.verification import NOTHING, Verification
from retrieval.search.probability import background, multiples
from retrieval.search.ranking import Tried, leading
from retrieval.search.views import View

Weights = NDArray[np.float32]
"""What the scores of each view of a query are multiplied by, (V,), at least 0."""


@dataclass(frozen=True)
class Candidates:
    """Some photos, and their scores with all views."""

    numbers: NDArray[np.uint32]  # (n,) uint32: ascending
    table: NDArray[np.float32]  # (V, n) float32


@dataclass(frozen=True)
class Begun:
    """Scores that wait for sums over the other parts of the collection."""

    # to be summed over all parts of a collection, exactly: an array for each view; empty if scores are independent
    totals: list[NDArray[np.float64]]
    # takes the sums, and returns the scores (V, N) of the local photos
    finish: Callable[[Sequence[NDArray[np.float64]]], NDArray[np.float32]]


class Scorer(Protocol):
    """The interface of an engine that a scoreboard uses."""

    index: InvertedIndex

    def begin(self, views: Sequence[View], /) -> Begun:
        """Begin to score the photos for some views."""

    def score_many(self, views: Sequence[View], /) -> NDArray[np.float32]:
        """Score all photos for some views."""

    def verify_many(self, view: View, numbers: Sequence[int], /) -> list[Verification]:
        """Verify some photos."""


class Scoreboard(ABC):
    """The photos that one search may find, and their scores with the views that were scored.

    A photo counts by its best score over the views, each weighted.
    """

    @property
    def missing(self) -> tuple[int, ...]:
        """Shards of the collection whose photos cannot be found now."""
        return ()

    @abstractmethod
    def look(self, which: Sequence[int], views: Sequence[View]) -> None:
        """Score with views, and store the scores under the view numbers `which`."""

    @abstractmethod
    def best(self, weights: Weights, top: int | None, also: Iterable[int] = ()) -> Candidates:
        """Photos of the best scores, with weights (V,) of the views: at least `top` and all that tie with the last; if
        too few have scores above 0, others by ascending number. None: as many as available; all if local. `also`:
        numbers of photos to include in any case.
        """

    @abstractmethod
    def ground(self, weights: Weights) -> float:
        """Return `background` of all photos, including those that may not be found."""

    @abstractmethod
    def lowest(self, which: int, most: int) -> list[int]:
        """Numbers, ascending, of the photos of the lowest scores with one view, among all photos; ties are broken by
        number.
        """

    @abstractmethod
    def verify(self, wanted: Sequence[tuple[View, Sequence[int]]]) -> list[list[Verification]]:
        """Verify some photos with each of some views: see `Engine.verify_many`."""

    @abstractmethod
    def verify_all(self, weights: Weights) -> dict[int, Tried]:
        """Verify every photo with the view of its best score; return those with a result."""

    @abstractmethod
    def aligned(self, others: Sequence["Scoreboard"], weights: Sequence[Weights], rule: "Rule") -> list[Candidates]:
        """Return the scores of the same photos on this scoreboard and on others, by the weights of each: see `Rule`."""


@dataclass(frozen=True)
class Rule:
    """Which photos are compared on several scoreboards."""

    # whether a photo counts by its worst score, else by its best, each as a multiple of the ground of its scoreboard
    match_all: bool
    grounds: tuple[float, ...]  # of the scoreboards: see `Scoreboard.ground`
    top: int  # at least this many, the best; see `Scoreboard.best`
    also: tuple[int, ...] = ()  # numbers of photos to include in any case


class LocalScoreboard(Scoreboard):
    """The scoreboard of a local index; `among`: photos that may be found."""

    def __init__(self, engine: Scorer, views: int, among: NDArray[np.integer] | None = None) -> None:
        self._engine = engine
        self._every = engine.index.image_numbers
        self._kept = slice(None) if among is None else np.flatnonzero(np.isin(self._every, among))
        self.numbers = self._every[self._kept]
        self._scores = np.zeros((views, len(self._every)), np.float32)  # of all photos, by scored views
        self._table = self._scores[:, self._kept]  # of photos that may be found
        self._views: dict[int, View] = {}
        self._weighted: dict[bytes, NDArray[np.float32]] = {}  # the best of all, by weights
        self._grounds: dict[bytes, float] = {}  # by weights
        self._begun: tuple[list[int], Begun] | None = None

    def look(self, which: Sequence[int], views: Sequence[View]) -> None:
        """Score with views: see `Scoreboard.look`."""
        self._set(which, views, self._engine.score_many(views))

    def begin(self, which: Sequence[int], views: Sequence[View]) -> list[NDArray[np.float64]]:
        """Begin to score; return the totals to sum over all parts of the collection for `finish`."""
        begun = self._engine.begin(views)
        self._begun = list(which), begun
        self._keep(which, views)
        return begun.totals

    def finish(self, totals: Sequence[NDArray[np.float64]]) -> None:
        """Finish scoring with the sums of the totals of `begin`."""
        assert self._begun is not None
        (which, begun), self._begun = self._begun, None
        self._set(which, [self._views[one] for one in which], begun.finish(totals))

    def _keep(self, which: Sequence[int], views: Sequence[View]) -> None:
        for place, view in zip(which, views, strict=True):
            self._views[place] = view

    def _set(self, which: Sequence[int], views: Sequence[View], scores: NDArray[np.float32]) -> None:
        self._keep(which, views)
        self._scores[list(which)] = scores
        self._table = self._scores[:, self._kept]
        self._weighted.clear()
        self._grounds.clear()

    def weighted(self, weights: Weights) -> NDArray[np.float32]:
        """The best weighted score (N,) of every photo, including those that may not be found."""
        key = weights.tobytes()
        if key not in self._weighted:
            looked_at = sorted(self._views)
            least = 0.0 if len(looked_at) < len(self._scores) else -np.inf  # scores of views not yet scored are 0
            self._weighted[key] = weigh(self._scores[looked_at], weights[looked_at]).max(axis=0, initial=least)
        return self._weighted[key]

    def places_of(self, numbers: Iterable[int]) -> NDArray[np.int64]:
        """Places in `numbers`, ascending, of those of some photos that may be found."""
        return np.flatnonzero(np.isin(self.numbers, np.fromiter(numbers, np.int64)))

    def at(self, places: NDArray[np.int64]) -> Candidates:
        """The photos at some places of `numbers`."""
        return Candidates(self.numbers[places], self._table[:, places])

    def best(self, weights: Weights, top: int | None, also: Iterable[int] = ()) -> Candidates:
        """Return the photos of the best scores: see `Scoreboard.best`."""
        if top is None:
            return Candidates(self.numbers, self._table)
        return self.at(np.union1d(leading(self.weighted(weights)[self._kept], top), self.places_of(also)))

    def ground(self, weights: Weights) -> float:
        """Return the background: see `Scoreboard.ground`."""
        key = weights.tobytes()
        if key not in self._grounds:
            self._grounds[key] = background(self.weighted(weights))
        return self._grounds[key]

    def lowest(self, which: int, most: int) -> list[int]:
        """Numbers of the lowest scores: see `Scoreboard.lowest`."""
        numbers: list[int] = self.lowest_scores(which, most).numbers.tolist()
        return numbers

    def lowest_scores(self, which: int, most: int) -> Candidates:
        """Return the photos of the lowest scores with one view; the table has that one row."""
        places = _lowest(self._scores[which], most)
        return Candidates(self._every[places], self._scores[[which]][:, places])

    def verify(self, wanted: Sequence[tuple[View, Sequence[int]]]) -> list[list[Verification]]:
        """Verify some photos: see `Scoreboard.verify`."""
        return [self._engine.verify_many(view, numbers) for view, numbers in wanted]

    def verify_all(self, weights: Weights) -> dict[int, Tried]:
        """Verify every photo: see `Scoreboard.verify_all`."""
        views = weigh(self._table, weights).argmax(axis=0)
        results: dict[int, Tried] = {}
        for view in np.unique(views).tolist():
            numbers = self.numbers[views == view].tolist()
            verified = zip(numbers, self._engine.verify_many(self._views[view], numbers), strict=True)
            results |= {number: Tried(view, one) for number, one in verified if one.strength > NOTHING.strength}
        return results

    def aligned(self, others: Sequence[Scoreboard], weights: Sequence[Weights], rule: Rule) -> list[Candidates]:
        """Return the same photos on several scoreboards: see `Scoreboard.aligned`."""
        boards = [self, *(board for board in others if isinstance(board, LocalScoreboard))]
        weighted = [board.weighted(one)[board._kept] for board, one in zip(boards, weights, strict=True)]
        together = np.stack([multiples(one, ground) for one, ground in zip(weighted, rule.grounds, strict=True)])
        counts = together.min(axis=0) if rule.match_all else together.max(axis=0)
        places = np.union1d(leading(counts, rule.top), self.places_of(rule.also))
        return [board.at(places) for board in boards]


def turned_weights(views: int, turned: float, own: int = 0) -> Weights:
    """Weigh the scores of all views but the upright one, the first, and the one at the query's own turn."""
    weights = np.full(views, turned, np.float32)
    weights[:1] = weights[own : own + 1] = 1
    return weights


def weight_of_one(views: int, which: int) -> Weights:
    """Weigh the scores of one view alone."""
    weights = np.zeros(views, np.float32)
    weights[which] = 1
    return weights


def weigh(table: NDArray[np.float32], weights: Weights) -> NDArray[np.float32]:
    """Multiply the scores (V, N) of each view by its weight."""
    if (weights == 1).all():
        return table
    weighted: NDArray[np.float32] = table * weights[:, None]
    return weighted


def _lowest(scores: NDArray[np.float32], number: int) -> NDArray[np.int64]:
    """Places, ascending, of at most `number` lowest scores; of equal ones the first."""
    number = min(number, len(scores))
    if not number:
        return np.zeros(0, np.int64)
    last = np.partition(scores, number - 1)[number - 1]
    lower, equal = np.flatnonzero(scores < last), np.flatnonzero(scores == last)
    return np.sort(np.concatenate([lower, equal[: number - len(lower)]]))
