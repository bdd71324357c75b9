"""The search engine: tf-idf ranking, spatial verification, query expansion."""

import time
from dataclasses import dataclass, field

import numpy as np

from index.errors import CairnError
from index.inverted import Scores, rank
from retrieval.collection import Collection
from retrieval.encoding import decode_geometry
from retrieval.query import Query, View
from retrieval.verification import NOTHING, Verification, VerificationOptions, match_words, verify

ENGINES = ("tf-idf", "tf-idf-sp", "raw")
EXPANSIONS = ("none", "average")


@dataclass(frozen=True)
class SearchOptions:
    """How a query is answered."""

    engine: str = "tf-idf-sp"  # tf-idf; tf-idf-sp: the best verified; raw: nearest neighbours of descriptors, verified
    expand: str = "none"  # none, or average: search again with what the verified photos add
    turns: int = 16  # turns at which the query is tried
    turned: float = 0.9  # weight of a score at another turn than upright
    verification: VerificationOptions = field(default_factory=VerificationOptions)  # thresholds

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
    verification: Verification
    view: int  # view of the query that found it


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
    """

    def __init__(self, collection: Collection, options: SearchOptions) -> None:
        self.collection = collection
        self.options = options
        self.index = collection.index

    def search(self, query: Query) -> Answer:
        """Rank all photos of the collection for a query."""
        start = time.perf_counter()
        scores, views = self._score(query)
        ranked = rank(scores)
        searched = time.perf_counter()
        positions = np.searchsorted(scores.image_numbers, ranked.image_numbers)
        hits = [
            Hit(int(number), float(score), NOTHING, int(view))
            for number, score, view in zip(ranked.image_numbers, ranked.scores, views[positions], strict=True)
        ]
        if self.options.engine == "tf-idf-sp":
            hits = self._verify(query, hits)
        done = time.perf_counter()
        return Answer(hits, {"search": searched - start, "verify": done - searched})

    def _score(self, query: Query) -> tuple[Scores, np.ndarray]:
        """Give each image its best score over the query's views, and the number of that view."""
        all_scores = [self.index.score(view.words) for view in query.views]
        table = np.stack([scores.scores for scores in all_scores])
        table[1:] *= self.options.turned
        views = table.argmax(axis=0)
        return Scores(all_scores[0].image_numbers, table[views, np.arange(table.shape[1])]), views

    def _verify(self, query: Query, hits: list[Hit]) -> list[Hit]:
        """Verify the best hits; the verified come first, by inliers."""
        depth = self.options.verification.depth
        checked = [
            Hit(hit.number, hit.score, self._verify_one(query.views[hit.view], hit.number), hit.view)
            for hit in hits[:depth]
        ]
        verified = [hit for hit in checked if hit.verification.inliers]
        # Sorting is stable: equal inliers keep the order of the scores.
        verified.sort(key=lambda hit: -hit.verification.inliers)
        return verified + [hit for hit in checked if not hit.verification.inliers] + hits[depth:]

    def _verify_one(self, view: View, number: int) -> Verification:
        options = self.options.verification
        image = self.index.features(number)
        pairs = match_words(view.words, image.words, options.max_matches)
        if len(pairs) < options.min_inliers:
            return NOTHING
        return verify(view.frames.at(pairs[:, 0]), decode_geometry(image.columns, pairs[:, 1]), pairs, options)
