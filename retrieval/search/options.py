"""How a query is answered: options alone, which commands, requests and `import cairn` have as their own."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from index.errors import CairnError
from index.options.declaration import Option, check, options_of
from index.options.panels import SEARCH, TURNED
from index.text import one_of
from retrieval.search.engines.registry import (
    BEST,
    DEFAULT,
    ENGINES,
    EXPANSIONS,
    UNVERIFIED,
    describe_engines,
    find_engine,
)

# What computes is imported when it is needed: --help needs none of it.
if TYPE_CHECKING:
    from index.hamming.aggregation import AggregationOptions
    from index.hamming.voting import VotingOptions
    from index.word_weights import ScoringOptions
    from retrieval.matching.verification import VerificationOptions
    from retrieval.search.expansion import ExpansionOptions


NO_GLOBAL, SHORTLIST, FUSED, ALONE = "none", "shortlist", "fused", "alone"


def _voting() -> "VotingOptions":
    from index.hamming.voting import VotingOptions

    return VotingOptions()


def _aggregation() -> "AggregationOptions":
    from index.hamming.aggregation import AggregationOptions

    return AggregationOptions()


def _verification() -> "VerificationOptions":
    from retrieval.matching.verification import VerificationOptions

    return VerificationOptions()


def _expansion() -> "ExpansionOptions":
    from retrieval.search.expansion import ExpansionOptions

    return ExpansionOptions()


@dataclass(frozen=True)
class SearchOptions:
    """How a query is answered."""

    engine: Annotated[
        str,
        Option(f"Engine: {describe_engines()}.", SEARCH, metavar="NAME", names=(BEST, *ENGINES), extends="engine"),
    ] = DEFAULT
    expand: Annotated[
        str,
        Option(
            f"Query expansion, a second search with what the verified photos add: {one_of(EXPANSIONS)}.",
            SEARCH,
            metavar="NAME",
            names=tuple(EXPANSIONS),
        ),
    ] = "none"
    turns: Annotated[
        int,
        Option(
            "Number of rotations at which a query is tried, so that turned photos are found; 1: upright only. Engines "
            "that verify by geometry try the others only where they can still change the results.",
            TURNED,
            least=1,
            most=36,
        ),
    ] = 8
    every_turn: Annotated[
        bool,
        Option("Try all rotations, whatever the upright query has found; slower.", TURNED, flags=("--every-turn",)),
    ] = False
    mirrored: Annotated[
        bool,
        Option(
            "Also look for mirror images, such as negatives that were scanned from the wrong side; takes twice as "
            "long.",
            TURNED,
            flags=("--mirrored",),
        ),
    ] = False
    augmented: Annotated[
        bool,
        Option(
            "Score photos with the features that they borrow from linked photos too, in a collection where cairn group "
            "--augment was run.",
            SEARCH,
        ),
    ] = True
    soft: Annotated[
        int,
        Option(
            "Number of nearest visual words among which each feature of the query is shared; 1: only the nearest.",
            SEARCH,
            least=1,
            most=64,
        ),
    ] = 1
    tf: Annotated[
        str,
        Option(
            "How much a visual word counts that occurs n times in a photo: linear (n), or sqrt (√n, which discounts "
            "repetition).",
            SEARCH,
            metavar="NAME",
            names=("linear", "sqrt"),
        ),
    ] = "linear"
    similarity: Annotated[
        Path | None,
        Option(
            "Score by a learnt similarity of visual words: a file that cairn learn similarity wrote for this "
            "vocabulary.",
            SEARCH,
            local=True,
        ),
    ] = None
    verifier: Annotated[
        str,
        Option(
            "How the photos that an engine ranks best are verified: own (by the engine itself), words (only by "
            "features of two photos that have equal visual words), or the name of a verifier from an installed "
            "package.",
            SEARCH,
            metavar="NAME",
            names=("own", "words"),
            extends="verifier",
        ),
    ] = "own"
    global_descriptors: Annotated[
        str,
        Option(
            "How the global descriptors are used that cairn global adds to a collection: none (not at all), shortlist "
            "(only the photos that are nearest by them are searched), fused (similarity of them raises scores), or "
            "alone (they rank the photos, and nothing is verified).",
            SEARCH,
            metavar="NAME",
            names=(NO_GLOBAL, SHORTLIST, FUSED, ALONE),
        ),
    ] = NO_GLOBAL
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
    sure_roll: float = math.pi / 12
    few_features: int = 300  # a query of fewer is tried at all turns, which costs little
    voting: "VotingOptions" = field(default_factory=_voting)  # how signatures match, and what a match counts for
    aggregation: "AggregationOptions" = field(default_factory=_aggregation)  # how aggregates of them are compared
    verification: "VerificationOptions" = field(default_factory=_verification)  # thresholds
    expansion: "ExpansionOptions" = field(default_factory=_expansion)  # which photos expand a query

    @property
    def signed(self) -> int:
        """Nearest words by which a feature of the query gets signatures; 0 where the engine needs none."""
        return self.voting.nearest if find_engine(self.engine).signed else 0

    @property
    def scoring(self) -> "ScoringOptions":
        """How words are weighted."""
        from index.word_weights import ScoringOptions

        return ScoringOptions(self.tf)

    def __post_init__(self) -> None:
        check(self)
        if self.verifier not in options_of(SearchOptions)["verifier"].option.names:
            from retrieval.matching.verifiers import find_verifier

            find_verifier(self.verifier)
        if self.global_descriptors not in (NO_GLOBAL, SHORTLIST, FUSED, ALONE):
            raise CairnError(
                "{--global-descriptors} is {known}, and not {name}.",
                known=", ".join([NO_GLOBAL, SHORTLIST, FUSED, ALONE]),
                name=repr(self.global_descriptors),
            )
        verifies = self.engine not in (BEST, UNVERIFIED) or (self.expand, self.verifier) != ("none", "own")
        if self.global_descriptors == ALONE and verifies:
            raise CairnError(
                "Global descriptors that rank alone verify nothing: leave out {--engine}, {--expand} and {--verifier}."
            )
        expands = self.engine == BEST or find_engine(self.engine).expands
        if self.expand not in EXPANSIONS:
            raise CairnError(
                "There is no expansion {name}; choose one of {known}.",
                name=repr(self.expand),
                known=", ".join(EXPANSIONS),
            )
        if self.expand != "none" and not expands:
            able = ", ".join(one.name for one in ENGINES.values() if one.expands)
            raise CairnError("Expansion works on visual words: choose one of the engines {able} with it.", able=able)


LOCAL = tuple(name for name, one in options_of(SearchOptions).items() if one.option.local)
"""Options that name files, which saved searches do not have."""
