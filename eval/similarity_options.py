"""Options of a study of learnt similarities."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from index.errors import CairnError
from index.options.declaration import Option, option_of
from index.options.panels import MEASURED, MODEL, RUNNING
from index.parallel import WORKERS
from retrieval.collection.options import CollectionOptions


@dataclass(frozen=True)
class SimilaritySplitOptions:
    """Options of splits."""

    splits: Annotated[int, Option("Random splits; the mean is printed.", MEASURED, least=1)] = 10
    by: Annotated[
        str,
        Option(
            "What a split divides: photos, of which --share is learnt from and all are searched, as in the paper; "
            "or objects, so that none of a query's photos is learnt from.",
            MEASURED,
            metavar="photos|objects",
        ),
    ] = "photos"
    share: Annotated[
        float, Option("Share of the photos that is learnt from; those asked with never are.", MEASURED)
    ] = 0.8
    parts: Annotated[
        int,
        Option(
            "Parts that objects are divided into; each is measured by what is learnt from the others.",
            MEASURED,
            least=2,
        ),
    ] = 5
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0  # of the first split; plus one for each next split

    def __post_init__(self) -> None:
        if self.by not in ("photos", "objects"):
            raise CairnError(f"Splits are by photos or by objects, not by {self.by!r}.")
        if self.splits < 1 or self.parts < 2 or not 0 < self.share < 1:
            raise CairnError("It takes a split, two parts, and a share that is more than 0 and less than 1.")


@dataclass(frozen=True)
class SimilarityStudy:
    """Options of training data, measurements and work folder. See `eval.similarity.evaluate_similarity`."""

    split: SimilaritySplitOptions = field(default_factory=SimilaritySplitOptions)
    searched: Annotated[
        Sequence[Path],
        Option(
            "Another collection with the same vocabulary, whose photos are these and more, to be searched by what "
            "is learnt; may be repeated.",
            MEASURED,
        ),
    ] = ()
    way: Annotated[
        Sequence[str],
        Option(
            "How to search: alone (words), verified, expanded (verified, and expanded by the average), or unseen "
            "(alone, photos that were learnt from taking no rank); may be repeated (default: all).",
            MEASURED,
            metavar="NAME",
        ),
    ] = ()
    neighbours: Annotated[
        Sequence[int],
        Option(
            "Nearest words that a word may mean the same as; may be repeated (default: 2).", MODEL, least=0, most=20
        ),
    ] = ()
    work: Annotated[
        Path,
        Option("Folder of what is learnt and measured: the same command goes on where a run was stopped.", RUNNING),
    ] = Path("cairn-similarity")
    workers: Annotated[int, WORKERS] = 0
