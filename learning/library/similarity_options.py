"""Options of learning a similarity, from the user's choices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from index.options.declaration import Option, chosen, option_of
from index.options.panels import DATA, MEASURED, MODEL, OUTPUT, TUNING
from index.parallel import WORKERS
from learning.similarity.options import SimilarityOptions
from retrieval.collection.options import CollectionOptions


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
    ] = SimilarityOptions.neighbours
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
class SimilarityPaper:
    """Whether to learn as the paper does."""

    as_published: Annotated[
        bool,
        Option(
            "Learn as the paper does where that says how: no option has to be given for that, and one that is given "
            "wins.",
            TUNING,
            flags=("--as-published",),
        ),
    ] = False


def similarity_options(
    values: Mapping[str, Any], *, seed: int, neighbours: int = SimilarityOptions.neighbours
) -> SimilarityOptions:
    """Return the options of learning by the values of options, with our defaults, or the paper's."""
    published = chosen(SimilarityPaper, values).as_published
    usual = SimilarityOptions.as_published() if published else SimilarityOptions()
    return chosen(SimilarityOptions, values, replace(usual, neighbours=neighbours, seed=seed))
