"""Search: the ranking by an engine, verification of the best, turned queries, query expansion."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.inverted import Scores, rank
from index.parallel import one_thread
from retrieval.collection.collection import Collection
from retrieval.matching.verification import NOTHING, Verification
from retrieval.search.engines.contract import load_engine
from retrieval.search.engines.registry import Verified, find_engine
from retrieval.search.expansion import average_words, back_project
from retrieval.search.options import SearchOptions
from retrieval.search.query import View


@dataclass(frozen=True)
class Hit:
    """One photo of the answer."""

    number: int  # of the image
    score: float  # tf-idf cosine, or learnt similarity
    view: int  # view of the query that found it
    verification: Verification = NOTHING


@dataclass(frozen=True)
class Answer:
    """All photos of the collection, or those that were asked for, the best first."""

    hits: list[Hit]
    seconds: dict[str, float]


class Searcher:
    """Answers queries from one collection, with the engine that the options name.

    Parameters
    ----------
    collection : Collection
        Open, with a vocabulary.
    options : SearchOptions
        How queries are answered.

    Attributes
    ----------
    collection, options
        As given.
    engine : Engine
        Scores photos, and verifies one.
    index : InvertedIndex
        The photos of the collection, as the engine scores them.

    Raises
    ------
    CairnError
        The collection lacks what the engine needs, or the similarity cannot be used.
    """

    def __init__(self, collection: Collection, options: SearchOptions) -> None:
        self.collection = collection
        self.options = options
        self.engine = load_engine(options.engine)(collection, options)
        self.index = self.engine.index
        self._verified = find_engine(options.engine).verified

    def describe_similarity(self) -> dict[str, Any] | None:
        """What `--json` reports of the learnt similarity; None without one."""
        if self.index.similarity is None:
            return None
        return {"file": str(self.options.similarity), **self.index.similarity.describe()}

    def search(
        self,
        views: Sequence[View],
        among: NDArray[np.integer] | None = None,
        *,
        region: NDArray[np.float64] | None = None,
    ) -> Answer:
        """Rank the photos of the collection for a query.

        Parameters
        ----------
        views : sequence of View
            The features that are searched for, at one turn or several; the first is upright.
        among : ndarray, shape (n,), integer, optional
            Numbers of the images that may be found: only these are ranked, verified and used to expand the query;
            their scores are those that they have among all. Numbers that the collection does not have are ignored.
        region : ndarray, shape (4,), optional
            x0, y0, x1, y1 of what is searched for, in units of the longer side of the query's photo (see
            `Query.region`). Expansion takes from other photos what lies in it, and needs it; nothing else does.

        Raises
        ------
        ValueError
            The query is to be expanded, and the region is not given.
        """
        if self.options.expand != "none" and region is None:
            raise ValueError("expansion needs the region of the query")
        with one_thread():
            return self._search(views, among, region)

    def _search(
        self, views: Sequence[View], among: NDArray[np.integer] | None, region: NDArray[np.float64] | None
    ) -> Answer:
        start = time.perf_counter()
        numbers = self.index.image_numbers
        kept = slice(None) if among is None else np.flatnonzero(np.isin(numbers, among))
        numbers = numbers[kept]
        table = np.stack([self.engine.score(view)[kept] for view in views])
        hits = self._rank(table, numbers)
        searched = time.perf_counter()
        decides = self._verified is not Verified.NONE
        if decides or self.options.expand != "none":
            found = self._verify(views, table, numbers, hits, {})
            if region is not None and self.options.expand == "average":
                table = self._expand(views, region, table, kept, _verified_first(hits, found))
                hits = self._rank(table, numbers)
                if decides:
                    found = self._verify(views, table, numbers, hits, found)
            if decides:
                hits = _verified_first(hits, found)
        done = time.perf_counter()
        return Answer(hits, {"search": searched - start, "verify": done - searched})

    def verified_at(self, views: Sequence[View], hit: Hit) -> Hit:
        """Verify a photo with the view of the query that a hit names; give the hit with what came of it."""
        return replace(hit, verification=self.engine.verify(views[hit.view], hit.number))

    def _rank(self, table: NDArray[np.float32], numbers: NDArray[np.uint32]) -> list[Hit]:
        """Rank images (N,) by their best score over the views, given as rows of a table (V, N).

        The best of several scores of an unrelated photo is higher than a single one: scores of turned views are
        multiplied by a weight, so that the many upright photos do not pay for the few that are turned.
        """
        weighted = _weigh(table, self.options.turned)
        views = weighted.argmax(axis=0)
        view_of = dict(zip(numbers.tolist(), views.tolist(), strict=True))
        ranked = self._ranked(Scores(numbers, weighted[views, np.arange(len(numbers))]))
        return [
            Hit(number, score, view_of[number])
            for number, score in zip(ranked.image_numbers.tolist(), ranked.scores.tolist(), strict=True)
        ]

    def _ranked(self, scores: Scores, top: int | None = None) -> Scores:
        """Order by descending score, and photos of equal scores by name: numbers tell in which order they were added.

        Photos that have nothing in common with the query, of score 0, stay in the order of their numbers.
        """
        ranked = rank(scores)
        values = ranked.scores
        tied = np.zeros(len(values), bool)
        tied[1:] = (values[1:] == values[:-1]) & (values[1:] > 0)
        if top is not None and top < len(values):
            tied[top:] &= values[top:] == values[max(top - 1, 0)]  # those beyond that may come to be within
        tied[:-1] |= tied[1:]
        places = np.flatnonzero(tied)
        if len(places):
            names = self.collection.catalogue.names_of(ranked.image_numbers[places].tolist())
            keys = [
                (-values[i], names.get(int(ranked.image_numbers[i]), ""), int(ranked.image_numbers[i])) for i in places
            ]
            order = np.arange(len(values))
            order[places] = places[sorted(range(len(places)), key=keys.__getitem__)]
            ranked = Scores(ranked.image_numbers[order], values)
        return Scores(ranked.image_numbers[:top], ranked.scores[:top])

    def _verify(
        self,
        views: Sequence[View],
        table: NDArray[np.float32],
        numbers: NDArray[np.uint32],
        hits: Sequence[Hit],
        known: dict[int, Hit],
    ) -> dict[int, Hit]:
        """Verify all photos that are ranked, or the best; give what came of it by their numbers."""
        if self._verified is Verified.ALL:
            return {hit.number: self.verified_at(views, hit) for hit in hits}
        return self._verify_best(views, table, numbers, known)

    def _verify_best(
        self, views: Sequence[View], table: NDArray[np.float32], numbers: NDArray[np.uint32], known: dict[int, Hit]
    ) -> dict[int, Hit]:
        """Verify the photos of the best scores; give those that pass, or nearly, and those known to, by their numbers.

        Each is tried with the view of its best score; upright and a turn are both tried where they are nearly as good,
        and the view that one photo is found with beyond doubt is tried with all.
        """
        weighted = _weigh(table, self.options.turned_candidate)
        order = np.argsort(-weighted, axis=0, kind="stable")
        columns = np.arange(len(numbers))
        best, second = weighted[order[0], columns], weighted[order[min(1, len(order) - 1)], columns]
        depth = self.options.verification.depth
        chosen = np.searchsorted(numbers, self._ranked(Scores(numbers, best), depth).image_numbers)
        found = dict(known)
        tried: dict[int, list[int]] = {}

        def try_view(number: int, view: int) -> None:
            tried.setdefault(number, []).append(view)
            verification = self.engine.verify(views[view], number)
            known_strength = found[number].verification.strength if number in found else NOTHING.strength
            if verification.strength > known_strength:
                found[number] = Hit(number, 0.0, view, verification)

        for column in chosen.tolist():
            number = int(numbers[column])
            if number in known and known[number].verification.inliers:
                continue
            # Neighbouring turns find the same: only upright beside a turn is worth a second look.
            near = len(order) > 1 and second[column] >= self.options.second_view * best[column]
            near = near and 0 in order[:2, column]
            for view in order[: 2 if near else 1, column].tolist():
                try_view(number, view)
        # Photos are upright as a rule: the turn that one is found at beyond doubt is the query's own.
        surest = max(found.values(), key=lambda hit: hit.verification.inliers, default=None)
        if surest is not None and surest.verification.inliers >= self.options.sure_turn:
            for number in [number for number, views in tried.items() if surest.view not in views]:
                try_view(number, surest.view)
        return found

    def _expand(
        self,
        views: Sequence[View],
        region: NDArray[np.float64],
        table: NDArray[np.float32],
        kept: NDArray[np.int64] | slice,
        hits: Sequence[Hit],
    ) -> NDArray[np.float32]:
        """Score again with the average of the query and its best verified photos; give the new table (V, N).

        The table's columns are those images of the index that are `kept`.
        """
        options = self.options.expansion
        sure = [hit for hit in hits if hit.verification.inliers >= options.min_inliers]
        if not sure:
            return table
        # Photos that were found at one turn are averaged; the best hit says at which.
        which = sure[0].view
        sure = [hit for hit in sure if hit.view == which][: options.photos]
        added = [back_project(self.index.features(hit.number), hit.verification, region) for hit in sure]
        words, weights = average_words(views[which].words, added)
        table = table.copy()
        table[which] = self.engine.score(replace(views[which], terms=words, weights=weights))[kept]
        return table


def _weigh(table: NDArray[np.float32], turned: float) -> NDArray[np.float32]:
    """Multiply the scores of all views but the upright one, the first row, by a weight."""
    weighted = table.copy()
    weighted[1:] *= turned
    return weighted


def _verified_first(hits: list[Hit], found: dict[int, Hit]) -> list[Hit]:
    """Move verified hits to the front, by inliers, and what may be right behind them; none is dropped."""
    merged = [
        replace(hit, view=found[hit.number].view, verification=found[hit.number].verification)
        if hit.number in found
        else hit
        for hit in hits
    ]
    # Sorting is stable, reversed or not: equal ones keep the order of the scores.
    return sorted(merged, key=lambda hit: hit.verification.strength, reverse=True)
