"""The ranking of a search: arrays over all photos, with objects made only for photos that are accessed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from index.inverted import Scores, rank
from retrieval.matching.verification import NOTHING, Verification
from retrieval.search.probability import FOUND, Calibration, multiples, probability_alone, weigh_result

Names = Callable[[list[int]], Mapping[int, str]]
"""Gives the names of photos by their numbers."""


@dataclass(frozen=True)
class Hit:
    """One photo of the answer."""

    number: int  # of the image
    score: float  # tf-idf cosine, or learnt similarity
    view: int  # view of the query that found it
    verification: Verification = NOTHING
    probability: float = 0.0  # of a true match, in steps of 0.0001: see `weigh_result`

    @property
    def found(self) -> bool:
        """Whether the photo is verified by geometry, and its probability reaches the threshold of found photos."""
        return self.verification.inliers > 0 and self.probability >= FOUND


@dataclass(frozen=True)
class Tried:
    """The verification of a photo, and the view of the query that it was verified with."""

    view: int
    verification: Verification


class Ranking(Sequence[Hit]):
    """All searched photos, the best first; sorted only as far as accessed.

    Found photos come first, by inliers; then the others by probability, score and name. Names break ties, as numbers
    depend on the order of adding. Photos of score 0 are ordered by number. `numbers` (N,), ascending; `scores` (N,);
    `views` (N,): view of the query that each score is of.
    """

    def __init__(
        self,
        numbers: NDArray[np.uint32],
        scores: NDArray[np.float32],
        views: NDArray[np.integer],
        found: Mapping[int, Tried],
        names: Names,
        ground: float,
        calibration: Calibration,
    ) -> None:
        self.numbers = numbers
        self.scores = scores
        self.views = views
        self.found = {number: one for number, one in found.items() if one.verification.strength > NOTHING.strength}
        self._names = names
        self.ground = ground
        self._calibration = calibration
        self._hits: dict[int, Hit] = {}  # those accessed, by place

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> list[Hit]: ...
    def __getitem__(self, place: int | slice) -> Hit | list[Hit]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            chosen = range(start, stop, step)
            places = self.places(max(chosen) + 1 if chosen else 0)
            return [self.hit(int(places[one])) for one in chosen]
        return self[: place + 1][place] if place >= 0 else self[:][place]

    def hit(self, place: int) -> Hit:
        """The hit of the photo at a place of the arrays."""
        if place not in self._hits:
            number = int(self.numbers[place])
            tried = self.found.get(number) or Tried(int(self.views[place]), NOTHING)
            self._hits[place] = self.weighed(Hit(number, float(self.scores[place]), tried.view, tried.verification))
        return self._hits[place]

    def weighed(self, hit: Hit) -> Hit:
        """Return a hit with the probability from its verification and score."""
        likely = weigh_result(hit.verification, hit.score, self.ground, self._calibration)
        return replace(hit, probability=round(likely, 4))  # rounded as displayed, as `Hit.found` compares it

    @cached_property
    def ordered(self) -> NDArray[np.uint32]:
        """Numbers (N,) of all photos, the best first."""
        return self.numbers[self.places()]

    @cached_property
    def strengths(self) -> NDArray[np.float64]:
        """Sort keys of photos (N, 4): whether found, inliers if found, probability, `multiples`."""
        strengths = np.zeros((len(self), 4))
        strengths[:, 2] = probability_alone(self.scores, self.ground, self._calibration)
        strengths[:, 3] = multiples(self.scores, self.ground)
        for place in np.searchsorted(self.numbers, list(self.found)).tolist():
            strengths[place, :3] = self._strength(place)
        return strengths

    def _strength(self, place: int) -> tuple[float, float, float]:
        """Whether the photo at a place is found, its inliers if so, and its probability."""
        hit = self.hit(place)
        likely = weigh_result(hit.verification, hit.score, self.ground, self._calibration)
        return hit.found, hit.verification.inliers if hit.found else 0, likely

    def places(self, top: int | None = None) -> NDArray[np.int64]:
        """Places in the arrays of the best photos, at most `top`, the best first."""
        front = np.searchsorted(self.numbers, sorted(self.found)).astype(np.int64)
        front = front[by_score(self.numbers[front], self.scores[front], self._names)]
        strengths = np.array([self._strength(place) for place in front.tolist()]).reshape(-1, 3)
        # Sorting is stable: photos of equal strength keep the order of their scores.
        order = np.lexsort(-strengths.T[::-1])
        front, strengths = front[order], strengths[order]
        rest = by_score(self.numbers, self.scores, self._names, None if top is None else top + len(front))
        behind = np.ones(len(self), bool)
        behind[front] = False
        rest = rest[behind[rest]]
        likely = probability_alone(self.scores[rest], self.ground, self._calibration)
        # Both are sorted: found photos come before all others.
        before = np.where(strengths[:, 0] > 0, 0, np.searchsorted(-likely, -strengths[:, 2], side="left"))
        return np.insert(rest, before, front)[:top]


def by_score(
    numbers: NDArray[np.uint32], scores: NDArray[np.float32], names: Names, top: int | None = None
) -> NDArray[np.int64]:
    """Places of photos in the order of their scores (N,): see `Ranking`. `names`: returns names of photos, to break
    ties. `top`: number of places wanted; fewer if there are fewer photos.
    """
    wanted = len(numbers) if top is None else min(top, len(numbers))
    places = _reaching(scores, wanted)  # so that a tie at the last place too is broken by name
    ranked = rank(Scores(places.astype(np.uint32), scores[places]))
    places, values = ranked.image_numbers.astype(np.int64), ranked.scores
    tied = np.zeros(len(places), bool)
    tied[1:] = values[1:] == values[:-1]
    tied[:-1] |= tied[1:]
    which = np.flatnonzero(tied)
    if len(which):
        called = names(numbers[places[which]].tolist())
        keys = {one: (-values[one], called.get(int(numbers[places[one]]), ""), places[one]) for one in which.tolist()}
        places[which] = places[sorted(keys, key=keys.__getitem__)]
    if len(places) < wanted:
        places = np.concatenate([places, np.flatnonzero(scores <= 0)[: wanted - len(places)]])
    return places[:wanted]


def _reaching(scores: NDArray[np.float32], top: int) -> NDArray[np.int64]:
    """Places, ascending, of the scores above 0 that are at least the `top`-th largest."""
    places = np.flatnonzero(scores > 0)
    if top < len(places):
        last = np.partition(scores[places], len(places) - top)[len(places) - top] if top else np.inf
        places = places[scores[places] >= last]
    return places


def leading(scores: NDArray[np.float32], top: int) -> NDArray[np.int64]:
    """Places, ascending, of the scores that may be among the first of `by_score`, whatever the names are."""
    places = _reaching(scores, top)
    if len(places) < top:
        places = np.sort(np.concatenate([places, np.flatnonzero(scores <= 0)[: top - len(places)]]))
    return places


def combine(answers: Sequence[Ranking], match_all: bool, top: int) -> list[tuple[int, Hit]]:
    """Merge the answers to several photos into one ranking. An image counts by its worst answer with `match_all`, else
    by its best; `top`: number of images wanted. Returns the number of the answer that counts and its hit, ordered by
    `Ranking.strengths`, then by place in the first answer. A single answer keeps its order.
    """
    first = answers[0]
    if len(answers) == 1:
        return [(0, hit) for hit in first[:top]]
    counts = np.zeros(len(first), np.intp)
    best = first.strengths.copy()
    for which, answer in enumerate(answers[1:], start=1):
        other = answer.strengths
        better = _exceeds(best, other) if match_all else _exceeds(other, best)
        best[better], counts[better] = other[better], which
    place = np.empty(len(first), np.intp)
    place[first.places()] = np.arange(len(first))
    order = np.lexsort((place, *(-best.T[::-1])))[:top]
    return [(int(counts[one]), answers[counts[one]].hit(int(one))) for one in order]


def _exceeds(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each row is larger than that of another array, in lexicographic order."""
    rows = np.arange(len(one))
    first = (one != other).argmax(axis=1)
    return np.asarray(one[rows, first] > other[rows, first])
