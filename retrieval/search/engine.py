"""The search engine: tf-idf ranking, spatial verification, query expansion."""

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from index.errors import CairnError
from index.inverted import Scores, rank
from index.parallel import one_thread
from retrieval.collection.collection import Collection
from retrieval.features.encoding import decode_geometry
from retrieval.matching.nearest import match_descriptors
from retrieval.matching.verification import NOTHING, Verification, VerificationOptions, identify, recount, verify
from retrieval.regions.geometry import Frames
from retrieval.search.expansion import ExpansionOptions, average_words, back_project
from retrieval.search.query import Query, View

ENGINES = ("tf-idf", "tf-idf-sp", "raw")
EXPANSIONS = ("none", "average")
_PHOTOS = 200  # that the mean idf of a collection is measured on, evenly spread


@dataclass(frozen=True)
class SearchOptions:
    """How a query is answered."""

    engine: str = "tf-idf-sp"  # tf-idf; tf-idf-sp: the best verified; raw: nearest neighbours of descriptors, verified
    expand: str = "none"  # none, or average: search again with what the verified photos add
    soft: int = 1  # nearest words that a query's feature is shared between in scoring; 1: the nearest alone
    similarity: Path | None = None  # file of a learnt similarity that words are scored by; None: tf-idf as it is
    turns: int = 8  # turns at which the query is tried
    turned: float = 0.5  # weight of a score at another turn than upright, in the ranking
    turned_candidate: float = 0.75  # the same where photos are chosen for verification, which decides then
    second_view: float = 0.75  # upright and a turn are both verified where their weighted scores are so near
    sure_turn: int = 30  # inliers from which on the turn of the surest photo is tried with all that are verified
    verification: VerificationOptions = field(default_factory=VerificationOptions)  # thresholds
    expansion: ExpansionOptions = field(default_factory=ExpansionOptions)  # which photos expand a query

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise CairnError(f"There is no engine {self.engine!r}; choose one of {', '.join(ENGINES)}.")
        if self.expand not in EXPANSIONS:
            raise CairnError(f"There is no expansion {self.expand!r}; choose one of {', '.join(EXPANSIONS)}.")
        if self.engine == "raw" and self.expand != "none":
            raise CairnError("Expansion works on visual words: choose the engine tf-idf or tf-idf-sp with it.")
        if self.soft < 1:
            raise CairnError(f"A feature has one word at least, not {self.soft}.")
        if self.turns < 1:
            raise CairnError(f"A query is tried at one turn at least, not at {self.turns}.")


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


class Engine:
    """Answers queries from one collection.

    Parameters
    ----------
    collection : Collection
        Open, with a vocabulary.
    options : SearchOptions
        How queries are answered.

    Raises
    ------
    CairnError
        The engine "raw" is asked for, and the collection keeps no descriptors; the similarity cannot be used.
    """

    def __init__(self, collection: Collection, options: SearchOptions) -> None:
        self.collection = collection
        self.options = options
        if options.engine == "raw" and not collection.options.keep_descriptors:
            raise CairnError(
                f"The engine raw needs descriptors, and {collection.folder} keeps none: index with --keep-descriptors."
            )
        self.index = collection.scored_index(similarity=options.similarity)

    def describe_similarity(self) -> dict[str, Any] | None:
        """What `--json` reports of the learnt similarity; None without one."""
        if self.index.similarity is None:
            return None
        return {"file": str(self.options.similarity), **self.index.similarity.describe()}

    def search(self, query: Query, among: np.ndarray | None = None) -> Answer:
        """Rank the photos of the collection for a query.

        Parameters
        ----------
        query : Query
            What is searched for.
        among : ndarray, shape (n,), integer, optional
            Numbers of the images that may be found: only these are ranked, verified and used to expand the query;
            their scores are those that they have among all. Numbers that the collection does not have are ignored.
        """
        with one_thread():
            return self._search(query, among)

    def _search(self, query: Query, among: np.ndarray | None) -> Answer:
        start = time.perf_counter()
        numbers = self.index.image_numbers
        kept = slice(None) if among is None else np.flatnonzero(np.isin(numbers, among))
        numbers = numbers[kept]
        table = np.stack([self.index.score(view.terms, view.weights).scores[kept] for view in query.views])
        hits = self._rank(table, numbers)
        searched = time.perf_counter()
        if self.options.engine == "raw":
            found = {hit.number: replace(hit, verification=self._verify_raw(query, hit)) for hit in hits}
            hits = _verified_first(hits, found)
        elif self.options.engine == "tf-idf-sp" or self.options.expand != "none":
            found = self._verify(query, table, numbers, {})
            if self.options.expand == "average":
                table = self._expand(query, table, kept, _verified_first(hits, found))
                hits = self._rank(table, numbers)
                if self.options.engine == "tf-idf-sp":
                    found = self._verify(query, table, numbers, found)
            if self.options.engine == "tf-idf-sp":
                hits = _verified_first(hits, found)
        done = time.perf_counter()
        return Answer(hits, {"search": searched - start, "verify": done - searched})

    def verified_at(self, query: Query, hit: Hit) -> Hit:
        """Verify a photo with the view of the query that a hit names; give the hit with what came of it."""
        verified = self._verify_raw(query, hit) if self.options.engine == "raw" else None
        return replace(hit, verification=verified or self._verify_view(query.views[hit.view], hit.number))

    def _rank(self, table: np.ndarray, numbers: np.ndarray) -> list[Hit]:
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

    def _verify(self, query: Query, table: np.ndarray, numbers: np.ndarray, known: dict[int, Hit]) -> dict[int, Hit]:
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
            verification = self._verify_view(query.views[view], number)
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

    def _verify_view(self, view: View, number: int) -> Verification:
        options = self.options.verification
        image = self.index.features(number)
        if view.lookup.equal(image.words):
            every = decode_geometry(image.columns, np.arange(len(image.words)))
            same = identify(view.lookup, view.frames, image.words, every)
            if same.inliers:
                return same

        def frames(pairs: np.ndarray) -> tuple[Frames, Frames]:
            return view.frames.at(pairs[:, 0]), decode_geometry(image.columns, pairs[:, 1])

        pairs = view.lookup.match(image.words, options.max_matches)
        if len(pairs) < options.min_inliers:
            return NOTHING
        found = verify(*frames(pairs), pairs, options, rarity=self.rarity(view.words, image.words))
        if found.inliers and len(pairs) == options.max_matches:  # some were left out, then
            pairs = view.lookup.match(image.words, options.max_counted)
            found = recount(found, *frames(pairs), pairs, options)
        return found

    def rarity(self, *photos: np.ndarray) -> float:
        """Rarity of that of some photos, given by their words, whose words are the commonest: see `weigh`."""
        return min(float(self.index.idf[words].mean()) if len(words) else 0.0 for words in photos) - self._common

    @cached_property
    def _common(self) -> float:
        """Mean idf of the features of the collection, measured on some of its photos."""
        numbers = self.index.image_numbers
        some = numbers[np.arange(min(len(numbers), _PHOTOS)) * len(numbers) // max(min(len(numbers), _PHOTOS), 1)]
        words = [np.asarray(self.index.features(number).words) for number in some.tolist()]
        counts = sum(map(len, words))
        return sum(float(self.index.idf[one].sum()) for one in words) / max(counts, 1)

    def _verify_raw(self, query: Query, hit: Hit) -> Verification:
        view = query.views[hit.view]
        image = self.index.features(hit.number)
        pairs = match_descriptors(view.descriptors, image.columns["descriptor"])
        frames = decode_geometry(image.columns, pairs[:, 1])
        return verify(view.frames.at(pairs[:, 0]), frames, pairs, self.options.verification)

    def _expand(self, query: Query, table: np.ndarray, kept: np.ndarray | slice, hits: list[Hit]) -> np.ndarray:
        """Score again with the average of the query and its best verified photos; give the new table (V, N).

        The table's columns are those images of the index that are `kept`.
        """
        options = self.options.expansion
        sure = [hit for hit in hits if hit.verification.inliers >= options.min_inliers]
        if not sure:
            return table
        # Photos that were found at one turn are averaged; the best hit says at which.
        view = sure[0].view
        sure = [hit for hit in sure if hit.view == view][: options.photos]
        region = _region(query)
        added = [back_project(self.index.features(hit.number), hit.verification, region) for hit in sure]
        words, weights = average_words(query.views[view].words, added)
        table = table.copy()
        table[view] = self.index.score(words, weights).scores[kept]
        return table


def _weigh(table: np.ndarray, turned: float) -> np.ndarray:
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


def _region(query: Query) -> np.ndarray:
    """Box of a query in units of its longer side, or all of the photo."""
    box = query.box or (-0.5, -0.5, query.width - 0.5, query.height - 0.5)
    return (np.array(box) + 0.5) / query.side
