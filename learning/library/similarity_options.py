"""Options of learning a similarity, from the user's choices."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from index.errors import CairnError
from index.options.declaration import Option, option_of
from index.options.panels import DATA, MEASURED, MODEL, OUTPUT, TUNING
from index.parallel import WORKERS
from index.text import shown
from retrieval.collection.options import CollectionOptions

if TYPE_CHECKING:
    from learning.similarity.options import SimilarityOptions

_WAYS = {"cosine": 1, "similarity": 2}
_SAME = ("iterations", "relative", "full_every", "patience", "memory", "hold_out", "thirds", "refit")
_OBJECTIVE = {"margin": "margin", "smooth": "smooth", "ridge_words": "ridge_diagonal", "ridge_pairs": "ridge_pairs"}
_TRIPLETS = {"total": "triplets", "hard": "hard", "lower": "lower", "random": "random"}

ALL = -1
"""Value that stands for "all" in place of a number."""


def _count(text: str) -> int:
    """Parse a number of at least 1, or "all"."""
    if text == "all":
        return ALL
    if not (text.isascii() and text.isdigit() and 0 < int(text[:18]) < 1 << 53):
        raise CairnError(f"Triplets are counted by a number, at least 1, or all; not {shown(text)}.")
    return int(text)


@dataclass(frozen=True)
class SimilarityData:
    """Training and test data of a similarity, besides its labels."""

    verified: Annotated[
        bool,
        Option(
            "Take no labels: photos that geometry verifies with each other show the same object.",
            DATA,
            flags=("--verified",),
        ),
    ] = False
    inliers: Annotated[int, Option("Fewest inliers of two photos, with --verified.", DATA, least=4)] = 20
    neighbours: Annotated[
        int,
        Option(
            "Nearest words that a word may mean the same as; 0: learn the words' weights alone.",
            MODEL,
            least=0,
            most=20,
        ),
    ] = 2
    share: Annotated[
        float,
        Option(
            "Share of the photos that is learnt from, of each object as of the others; the seed says which. The "
            "paper's is 0.8. Not with --verified.",
            DATA,
            most=1,
        ),
    ] = 1.0
    test_gt: Annotated[
        Sequence[Path],
        Option(
            "Ground truth in the layout of Oxford5K that is searched for after each iteration, and decides "
            "nothing; may be repeated. The photos that it asks with are never learnt from.",
            MEASURED,
        ),
    ] = ()
    test_queries: Annotated[
        Sequence[Path],
        Option(
            "Folder of photos that --test-gt asks with and the collection does not have; may be repeated.", MEASURED
        ),
    ] = ()
    curve: Annotated[
        Path | None, Option("Table (.csv) of the objective and the mAPs after each iteration to write.", OUTPUT)
    ] = None
    skip_missing: Annotated[
        bool,
        Option(
            "Pass over labels of photos that are not in the collection, and over queries of --test-gt that ask "
            "with such photos.",
            DATA,
            flags=("--skip-missing",),
        ),
    ] = False
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0
    workers: Annotated[int, WORKERS] = 0


@dataclass(frozen=True)
class SimilarityChoices:
    """Options of learning a similarity; None means our default, or the paper's."""

    iterations: Annotated[int | None, Option("Iterations, at most (default: 100).", TUNING, least=1)] = None
    margin: Annotated[
        float | None,
        Option(
            "Margin by which photos of an object are to come before others (default: 0.1; as published, where no "
            "number is stated: 0.01).",
            MODEL,
        ),
    ] = None
    margin_on: Annotated[
        str | None,
        Option(
            "What the margin parts: cosines (default), or the paper's normalised similarity, their square (default "
            "with --as-published).",
            MODEL,
            metavar="cosine|similarity",
        ),
    ] = None
    smooth: Annotated[
        float | None,
        Option(
            "Width of the parabola that is the hinge's corner, in margins; 0: a corner (default: 0.5; published: 0).",
            MODEL,
            least=0,
        ),
    ] = None
    ridge_words: Annotated[
        float | None, Option("Pull of words' weights to tf-idf (default: 1e-5; as published: 0).", MODEL, least=0)
    ] = None
    ridge_pairs: Annotated[
        float | None, Option("Pull of pairs' weights to 0 (default: 1e-3; as published: 0).", MODEL, least=0)
    ] = None
    relative: Annotated[
        bool | None,
        Option(
            "Descend in weights relative to tf-idf (default), or in the similarity matrix itself, which begins as "
            "tf-idf (default with --as-published).",
            TUNING,
            flags=("--relative/--absolute",),
        ),
    ] = None
    full_every: Annotated[
        int | None, Option("Iterations between two looks at all triplets (default: 10).", TUNING, least=1)
    ] = None
    patience: Annotated[
        int | None,
        Option(
            "Iterations that bring nothing on photos held out, after which it ends (default: 20; as published: 100).",
            TUNING,
            least=1,
        ),
    ] = None
    memory: Annotated[int | None, Option("Steps that L-BFGS-B remembers (default: 10).", TUNING, least=1)] = None
    triplets: Annotated[
        int | None,
        Option(
            "Triplets of all queries, at most, half of them hard (default: 10000000; as published: 40000000).",
            DATA,
            metavar="N|all",
            parse=_count,
            least=1,
        ),
    ] = None
    hard: Annotated[
        int | None,
        Option(
            "Hard triplets of a query, at most: those that tf-idf gets wrong (default: 20000; as published: all, up to "
            "an equal share of half of --triplets).",
            DATA,
            metavar="N|all",
            parse=_count,
            least=1,
        ),
    ] = None
    lower: Annotated[
        int | None,
        Option(
            "Photos of the object below a wrong one that make hard triplets with it, at most (default: 50; as "
            "published: all).",
            DATA,
            metavar="N|all",
            parse=_count,
            least=1,
        ),
    ] = None
    random: Annotated[int | None, Option("Random triplets of a query (default: 400).", DATA, least=0)] = None
    hold_out: Annotated[
        int | None,
        Option("Photos of each object, at most, that decide which iteration is taken (default: 4).", TUNING, least=0),
    ] = None
    thirds: Annotated[
        bool | None,
        Option(
            "Hold out a third of an object's photos at most (default); or --hold-out of all objects that have more, "
            "and none of the others (default with --as-published).",
            TUNING,
            flags=("--thirds/--no-thirds",),
        ),
    ] = None
    refit: Annotated[
        bool | None,
        Option(
            "Learn again from the held-out photos too, for as many iterations (default); or take what did best on them "
            "(default with --as-published).",
            TUNING,
            flags=("--refit/--no-refit",),
        ),
    ] = None
    as_published: Annotated[
        bool,
        Option(
            "Learn as the paper does where that says how: no option has to be given for that, and one that is given "
            "wins.",
            TUNING,
            flags=("--as-published",),
        ),
    ] = False


def similarity_options(choices: SimilarityChoices, *, neighbours: int, seed: int) -> "SimilarityOptions":
    """Return the options of learning, with our defaults, or the paper's."""
    from learning.similarity.options import SimilarityOptions

    base = SimilarityOptions.as_published() if choices.as_published else SimilarityOptions()
    values = {name: value for name, value in vars(choices).items() if value is not None}
    triplets: dict[str, Any] = {name: values[option] for name, option in _TRIPLETS.items() if option in values}
    triplets = {name: None if value == ALL else value for name, value in triplets.items()}
    objective = {name: values[option] for option, name in _OBJECTIVE.items() if option in values}
    if choices.margin_on is not None:
        objective["power"] = _power(choices.margin_on)
    return replace(
        base,
        neighbours=neighbours,
        seed=seed,
        triplets=replace(base.triplets, **triplets),
        objective=replace(base.objective, **objective),
        **{name: values[name] for name in _SAME if name in values},
    )


def _power(margin_on: str) -> int:
    if margin_on not in _WAYS:
        raise CairnError("{--margin-on} is cosine or similarity, not {margin_on}.", margin_on=repr(margin_on))
    return _WAYS[margin_on]
