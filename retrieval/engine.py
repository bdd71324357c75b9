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
from retrieval.verification import NOTHING, Frames, Verification, VerificationOptions, match_words, verify

ENGINES = ("tf-idf", "tf-idf-sp", "raw")
EXPANSIONS = ("none", "average")


@dataclass(frozen=True)
class SearchOptions:
    """How a query is answered."""

    engine: str = "tf-idf-sp"  # tf-idf; tf-idf-sp: the best verified; raw: nearest neighbours of descriptors, verified
    expand: str = "none"  # none, or average: search again with what the verified photos add
    turns: int = 8  # turns at which the query is tried
    turned: float = 0.75  # weight of a score at another turn than upright
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
        start = time.perf_counter()
        table = self._table(query)
        hits = self._rank(table)
        searched = time.perf_counter()
        engine = self.options.engine
        if engine == "raw":
            hits = self._verify_best(hits, len(hits), lambda hit: self._verify_raw(query, hit))
        elif engine == "tf-idf-sp" or self.options.expand != "none":
            verified = self._verify_best(
                hits, self.options.verification.depth, lambda hit: self._verify_words(query, hit)
            )
            hits = self._expand(query, table, verified) if self.options.expand != "none" else verified
        done = time.perf_counter()
        return Answer(hits, {"search": searched - start, "verify": done - searched})

    def _table(self, query: Query) -> np.ndarray:
        """Scores (V, N) of all images for each view of the query; those of turned views count for less."""
        table = np.stack([self.index.score(view.words).scores for view in query.views])
        table[1:] *= self.options.turned
        return table

    def _rank(self, table: np.ndarray) -> list[Hit]:
        """Rank images by their best score over the views."""
        views = table.argmax(axis=0)
        best = table[views, np.arange(table.shape[1])]
        view_of = dict(zip(self.index.image_numbers.tolist(), views.tolist(), strict=True))
        ranked = rank(Scores(self.index.image_numbers, best))
        return [
            Hit(number, score, view_of[number])
            for number, score in zip(ranked.image_numbers.tolist(), ranked.scores.tolist(), strict=True)
        ]

    @staticmethod
    def _verify_best(hits: list[Hit], depth: int, check: Callable[[Hit], Verification]) -> list[Hit]:
        """Verify the best hits; the verified come first, by inliers, then all others in the order they had."""
        checked = [replace(hit, verification=check(hit)) for hit in hits[:depth]]
        # Sorting is stable: equal inliers keep the order of the scores.
        return sorted(checked, key=lambda hit: -hit.verification.inliers) + hits[depth:]

    def _verify_words(self, query: Query, hit: Hit) -> Verification:
        view = query.views[hit.view]
        return self._verify_matches(view.words, view.frames, hit.number)

    def _verify_matches(self, words: np.ndarray, frames: Frames, number: int) -> Verification:
        options = self.options.verification
        image = self.index.features(number)
        pairs = match_words(words, image.words, options.max_matches)
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
        weight = 1.0 if view == 0 else self.options.turned
        table = table.copy()
        table[view] = self.index.score(expanded.words, expanded.weights).scores * weight
        again = self._rank(table)
        if self.options.engine == "tf-idf":
            return again
        return self._verify_best(
            again, self.options.verification.depth, lambda hit: self._verify_expanded(query, expanded, view, hit)
        )

    def _verify_expanded(self, query: Query, expanded: ExpandedQuery, view: int, hit: Hit) -> Verification:
        """Verify with the query's own features; where they do not suffice, with all of the expanded query's."""
        own = self._verify_words(query, hit)
        if own.inliers or hit.view != view:
            return own
        return self._verify_matches(expanded.words, expanded.frames, hit.number)


def _region(query: Query) -> np.ndarray:
    """Box of a query in units of its longer side, or all of the photo."""
    box = query.box or (-0.5, -0.5, query.width - 0.5, query.height - 0.5)
    return (np.array(box) + 0.5) / query.side
