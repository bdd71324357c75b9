"""How a query is answered."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from index.errors import CairnError
from index.hamming.aggregation import AggregationOptions
from index.hamming.voting import VotingOptions
from index.inverted import ScoringOptions
from index.text import one_of
from retrieval.matching.verification import VerificationOptions
from retrieval.search.engines.registry import BEST, DEFAULT, ENGINES, EXPANSIONS, find_engine
from retrieval.search.expansion import ExpansionOptions


@dataclass(frozen=True)
class SearchOptions:
    """How a query is answered."""

    engine: str = DEFAULT  # one of `ENGINES`, or `BEST`: see `settle`
    expand: str = "none"  # one of `EXPANSIONS`: search again with what the verified photos add
    soft: int = 1  # nearest words that a query's feature is shared between in scoring; 1: the nearest alone
    scoring: ScoringOptions = field(default_factory=ScoringOptions)  # how words are weighted
    similarity: Path | None = None  # file of a learnt similarity that words are scored by; None: tf-idf as it is
    augmented: bool = True  # score photos with what they borrow of others, in a collection where they do
    turns: int = 8  # turns at which the query is tried: the best are verified upright, and at others where that helps
    every_turn: bool = False  # try them all in any case
    turned: float = 0.5  # weight of a score at another turn than upright, in the ranking
    turned_candidate: float = 0.75  # the same where photos are chosen for verification, which decides then
    second_view: float = 0.75  # upright and a turn are both verified where their weighted scores are so near
    sure_turn: int = 30  # inliers from which on the turn of the surest photo is tried with all that are verified
    # Other turns help unless a photo has this part of the query's features as inliers, or so many; a copy does not
    # count, whose inliers are that part of its features or the query's. And they help where one of the sure photos, of
    # those with this part of the inliers of the best, is rolled by more radians.
    sure_share: float = 0.1
    sure_inliers: int = 300
    copy: float = 0.5
    sure_hint: float = 0.1
    sure_roll: float = np.pi / 12
    few_features: int = 300  # a query of fewer is tried at all turns, which costs little
    voting: VotingOptions = field(default_factory=VotingOptions)  # how signatures match, and what a match counts for
    aggregation: AggregationOptions = field(default_factory=AggregationOptions)  # how aggregates of them are compared
    verification: VerificationOptions = field(default_factory=VerificationOptions)  # thresholds
    expansion: ExpansionOptions = field(default_factory=ExpansionOptions)  # which photos expand a query

    @property
    def signed(self) -> int:
        """Nearest words by which a feature of the query gets signatures; 0 where the engine needs none."""
        return self.voting.nearest if find_engine(self.engine).signed else 0

    def __post_init__(self) -> None:
        expands = self.engine == BEST or find_engine(self.engine).expands
        if self.expand not in EXPANSIONS:
            raise CairnError(f"There is no expansion {self.expand!r}; choose one of {', '.join(EXPANSIONS)}.")
        if self.expand != "none" and not expands:
            able = one_of([one.name for one in ENGINES.values() if one.expands])
            raise CairnError(f"Expansion works on visual words: choose the engine {able} with it.")
        if self.soft < 1:
            raise CairnError(f"A feature has one word at least, not {self.soft}.")
        if self.turns < 1:
            raise CairnError(f"A query is tried at one turn at least, not at {self.turns}.")
