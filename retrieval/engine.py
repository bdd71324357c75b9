"""The search engine: tf-idf ranking, spatial verification, query expansion."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from index.errors import CairnError
from index.inverted import Scores, rank
from retrieval.collection import Collection
from retrieval.encoding import decode_geometry
from retrieval.expansion import ExpandedQuery, ExpansionOptions, average_query, back_project
from retrieval.matching import match_descriptors
from retrieval.query import Query
from retrieval.threads import one_thread
from retrieval.verification import NOTHING, Frames, QueryWords, Verification, VerificationOptions, verify

ENGINES = ("tf-idf", "tf-idf-sp", "raw")
EXPANSIONS = ("none", "average")


@dataclass(frozen=True)
class SearchOptions:
    """How a query is answered."""

    engine: str = "tf-idf-sp"  # tf-idf; tf-idf-sp: the best verified; raw: nearest neighbours of descriptors, verified
    expand: str = "none"  # none, or average: search again with what the verified photos add
    turns: int = 8  # turns at which the query is tried
    turned: float = 0.5  # weight of a score at another turn than upright, in the ranking
    turned_candidate: float = 0.75  # the same where photos are chosen for verification, which decides then
    verification: VerificationOptions = field(default_factory=VerificationOptions)  # thresholds
    expansion: ExpansionOptions = field(default_factory=ExpansionOptions)  # which photos expand a query

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise CairnError(f"There is no engine {self.engine!r}; choose one of {', '.join(ENGINES)}.")
        if self.expand not in EXPANSIONS:
            raise CairnError(f"There is no expansion {self.expand!r}; choose one of {', '.join(EXPANSIONS)}.")
        if self.turns < 1:
            raise CairnError(f"A query is tried at one turn at least, not at {self.turns}.")


@dataclass(frozen=True)
class Hit:
    """One photo of the answer."""

    number: int  # of the image
    score: float  # tf-idf cosine
    view: int  # view of the query that found it
    verification: Verification = NOTHING


@dataclass(frozen=True)
class Answer:
    """All photos of the collection, the best first."""

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
        The engine "raw" is asked for, and the collection keeps no descriptors.
    """

    def __init__(self, collection: Collection, options: SearchOptions) -> None:
        self.collection = collection
        self.options = options
        self.index = collection.index
        if options.engine == "raw" and not collection.options.keep_descriptors:
            raise CairnError(
                f"The engine raw needs descriptors, and {collection.folder} keeps none: index with --keep-descriptors."
            )

    def search(self, query: Query) -> Answer:
        """Rank all photos of the collection for a query."""
        with one_thread():
            return self._search(query)

    def _search(self, query: Query) -> Answer:
        start = time.perf_counter()
        table = np.stack([self.index.score(view.words).scores for view in query.views])
        hits = self._rank(table, self.options.turned)
        searched = time.perf_counter()
        engine = self.options.engine
        if engine == "raw":
            hits = self._verify_best(hits, hits, lambda hit: self._verify_raw(query, hit))
        elif engine == "tf-idf-sp" or self.options.expand != "none":
            verified = self._verify_best(self._candidates(table), hits, lambda hit: self._verify_words(query, hit))
            hits = self._expand(query, table, verified) if self.options.expand != "none" else verified
        done = time.perf_counter()
        return Answer(hits, {"search": searched - start, "verify": done - searched})

    def _candidates(self, table: np.ndarray) -> list[Hit]:
        """Choose the photos to be verified, each with the view that suits it best."""
        return self._rank(table, self.options.turned_candidate, self.options.verification.depth)

    def _rank(self, table: np.ndarray, turned: float, top: int | None = None) -> list[Hit]:
        """Rank images by their best score over the views, given as rows of a table (V, N).

        Among eight scores of an unrelated photo the best is higher than a single one is: scores of turned views are
        multiplied by a weight, so that the many upright photos do not pay for the few that are turned.
        """
        weighted = table.copy()
        weighted[1:] *= turned
        views = weighted.argmax(axis=0)
        best = weighted[views, np.arange(table.shape[1])]
        view_of = dict(zip(self.index.image_numbers.tolist(), views.tolist(), strict=True))
        ranked = rank(Scores(self.index.image_numbers, best), top)
        return [
            Hit(number, score, view_of[number])
            for number, score in zip(ranked.image_numbers.tolist(), ranked.scores.tolist(), strict=True)
        ]

    @staticmethod
    def _verify_best(candidates: list[Hit], hits: list[Hit], check: Callable[[Hit], Verification]) -> list[Hit]:
        """Verify candidates; the verified come first, by inliers, then all other hits in the order they had."""
        found = {hit.number: replace(hit, verification=check(hit)) for hit in candidates}
        merged = [found[hit.number] if found.get(hit.number, hit).verification.inliers else hit for hit in hits]
        # Sorting is stable: equal inliers keep the order of the scores.
        return sorted(merged, key=lambda hit: -hit.verification.inliers)

    def _verify_words(self, query: Query, hit: Hit) -> Verification:
        view = query.views[hit.view]
        return self._verify_matches(view.lookup, view.frames, hit.number)

    def _verify_matches(self, words: QueryWords, frames: Frames, number: int) -> Verification:
        options = self.options.verification
        image = self.index.features(number)
        pairs = words.match(image.words, options.max_matches)
        if len(pairs) < options.min_inliers:
            return NOTHING
        return verify(frames.at(pairs[:, 0]), decode_geometry(image.columns, pairs[:, 1]), pairs, options)

    def _verify_raw(self, query: Query, hit: Hit) -> Verification:
        view = query.views[hit.view]
        image = self.index.features(hit.number)
        pairs = match_descriptors(view.descriptors, image.columns["descriptor"])
        frames = decode_geometry(image.columns, pairs[:, 1])
        return verify(view.frames.at(pairs[:, 0]), frames, pairs, self.options.verification)

    def _expand(self, query: Query, table: np.ndarray, hits: list[Hit]) -> list[Hit]:
        """Search again with the average of the query and its best verified photos, and verify again."""
        options = self.options.expansion
        sure = [hit for hit in hits if hit.verification.inliers >= options.min_inliers]
        if not sure:
            return hits
        # Photos that were found at one turn are averaged; the best hit says at which.
        view = sure[0].view
        sure = [hit for hit in sure if hit.view == view][: options.photos]
        region = _region(query)
        added = [back_project(self.index.features(hit.number), hit.verification, region) for hit in sure]
        expanded = average_query(query.views[view].words, query.views[view].frames, added)
        table = table.copy()
        table[view] = self.index.score(expanded.words, expanded.weights).scores
        again = self._rank(table, self.options.turned)
        if self.options.engine == "tf-idf":
            return again
        return self._verify_best(
            self._candidates(table), again, lambda hit: self._verify_expanded(query, expanded, view, hit)
        )

    def _verify_expanded(self, query: Query, expanded: ExpandedQuery, view: int, hit: Hit) -> Verification:
        """Verify with the query's own features; where they do not suffice, with all of the expanded query's."""
        own = self._verify_words(query, hit)
        if own.inliers or hit.view != view:
            return own
        return self._verify_matches(expanded.lookup, expanded.frames, hit.number)


def _region(query: Query) -> np.ndarray:
    """Box of a query in units of its longer side, or all of the photo."""
    box = query.box or (-0.5, -0.5, query.width - 0.5, query.height - 0.5)
    return (np.array(box) + 0.5) / query.side
