"""Options of learning a similarity: our choices, and those of the paper (Yan13)."""

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from index.errors import CairnError
from index.options.declaration import Option, check, whole
from index.options.panels import DATA, MODEL, TUNING
from index.text import shown

_POWERS = {"cosine": 1, "similarity": 2}


def _power(margin_on: str) -> int:
    if margin_on not in _POWERS:
        raise CairnError("{--margin-on} is cosine or similarity, not {margin_on}.", margin_on=repr(margin_on))
    return _POWERS[margin_on]


def _count(text: str) -> int | None:
    """Parse a number of at least 1, or "all", which is None."""
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text[:18]) < 1 << 53):
        raise CairnError(f"Triplets are counted by a number, at least 1, or all; not {shown(text)}.")
    return int(text)


def _counted(meaning: str, name: str = "") -> Option:
    return Option(meaning, DATA, least=1, name=name, metavar="N|all", parse=_count)


@dataclass(frozen=True)
class ObjectiveOptions:
    """Options of the objective (equation 4)."""

    margin: Annotated[  # γ
        float,
        Option(
            "Margin by which photos of an object are to come before others (default: 0.1; as published, where no "
            "number is stated: 0.01).",
            MODEL,
        ),
    ] = 0.1
    power: Annotated[  # 2: Ŝ of equation 3; 1: its root
        int,
        Option(
            "What the margin parts: cosines (default), or the paper's normalised similarity, their square (default "
            "with --as-published).",
            MODEL,
            name="margin_on",
            metavar="cosine|similarity",
            parse=_power,
            typed=str,
        ),
    ] = 1
    smooth: Annotated[
        float,
        Option(
            "Width of the parabola that is the hinge's corner, in margins; 0: a corner (default: 0.5; published: 0).",
            MODEL,
            least=0,
        ),
    ] = 0.5
    ridge_diagonal: Annotated[  # of R(u, u), relative to an initial loss of 1
        float,
        Option(
            "Pull of words' weights to tf-idf (default: 1e-5; as published: 0).", MODEL, least=0, name="ridge_words"
        ),
    ] = 1e-5
    ridge_pairs: Annotated[  # of R(u, v)
        float,
        Option("Pull of pairs' weights to 0 (default: 1e-3; as published: 0).", MODEL, least=0),
    ] = 1e-3

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1 or self.power not in (1, 2):
            raise CairnError("A margin lies between 0 and 1, and parts cosines (power 1) or their squares, Ŝ (2).")
        if not all(0 <= one < math.inf for one in (self.smooth, self.ridge_diagonal, self.ridge_pairs)):
            raise CairnError("The smoothed corner and the pulls to tf-idf are 0 or more.")


@dataclass(frozen=True)
class TripletOptions:
    """Options of collecting triplets; None: all of them."""

    total: Annotated[  # with many queries each has fewer
        int | None,
        _counted(
            "Triplets of all queries, at most, half of them hard (default: 10000000; as published: 40000000).",
            name="triplets",
        ),
    ] = 10_000_000
    hard: Annotated[
        int | None,
        _counted(
            "Hard triplets of a query, at most: those that tf-idf gets wrong (default: 20000; as published: all, up to "
            "an equal share of half of --triplets)."
        ),
    ] = 20_000
    lower: Annotated[
        int | None,
        _counted(
            "Photos of the object below a wrong one that make hard triplets with it, at most (default: 50; as "
            "published: all)."
        ),
    ] = 50
    random: Annotated[int, Option("Random triplets of a query (default: 400).", DATA, least=0)] = 400
    seed: int = 0  # of random draws

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class SimilarityOptions:
    """Options of learning."""

    varies: ClassVar[bool] = True  # see `as_published`
    neighbours: int = 2  # k: number of nearest words that may have the same meaning; 0: only weights of words
    iterations: Annotated[int, Option("Iterations, at most (default: 100).", TUNING, least=1)] = 100
    objective: ObjectiveOptions = field(default_factory=ObjectiveOptions)
    relative: Annotated[  # whether to descend in R, or in M = diag(idf) R diag(idf)
        bool,
        Option(
            "Descend in weights relative to tf-idf (default), or in the similarity matrix itself, which begins as "
            "tf-idf (default with --as-published).",
            TUNING,
            flags=("--relative/--absolute",),
        ),
    ] = True
    full_every: Annotated[  # N of section IV.C
        int, Option("Iterations between two looks at all triplets (default: 10).", TUNING, least=1)
    ] = 10
    patience: Annotated[
        int,
        Option(
            "Iterations that bring nothing on photos held out, after which it ends (default: 20; as published: 100).",
            TUNING,
            least=1,
        ),
    ] = 20
    memory: Annotated[int, Option("Steps that L-BFGS-B remembers (default: 10).", TUNING, least=1)] = 10
    triplets: TripletOptions = field(default_factory=TripletOptions)
    hold_out: Annotated[  # 0: none, the last iteration is taken
        int,
        Option("Photos of each object, at most, that decide which iteration is taken (default: 4).", TUNING, least=0),
    ] = 4
    thirds: Annotated[
        bool,
        Option(
            "Hold out a third of an object's photos at most (default); or --hold-out of all objects that have more, "
            "and none of the others (default with --as-published).",
            TUNING,
            flags=("--thirds/--no-thirds",),
        ),
    ] = True
    refit: Annotated[
        bool,
        Option(
            "Learn again from the held-out photos too, for as many iterations (default); or take what did best on them "
            "(default with --as-published).",
            TUNING,
            flags=("--refit/--no-refit",),
        ),
    ] = True
    seed: int = 0  # seed of held-out photos and triplets

    def __post_init__(self) -> None:
        check(self)
        whole("neighbours", self.neighbours, 0)

    @staticmethod
    def as_published(seed: int = 0) -> "SimilarityOptions":
        """The choices of Yan13, sections III to V, and ours if the paper states none.

        The paper uses a plain hinge on Ŝ of equation 3 without a ridge, descends in M, starting at a diagonal of
        tf-idf, takes all true positives below each false one, holds out four photos of every object that has more, and
        takes the best iteration on them, without a refit. It does not state the margin γ, the numbers of random
        triplets and iterations, N, or the solver and its steps. The limit of hard triplets of a query, its equal share
        of 20 million, is ours: the paper has 19.1 million triplets in all, including random ones.
        """
        return SimilarityOptions(
            neighbours=2,
            patience=100,
            relative=False,
            hold_out=4,
            thirds=False,
            refit=False,
            seed=seed,
            triplets=replace(TripletOptions(), lower=None, hard=None, total=40_000_000),
            objective=ObjectiveOptions(margin=0.01, power=2, smooth=0, ridge_diagonal=0, ridge_pairs=0),
        )
