"""Common parts of papers that search buildings: collections of Oxford5K and Paris6K, and mAP on them."""

from collections.abc import Sequence

from eval.reproduce.measures import Value
from eval.reproduce.steps import Argument, Data, Here, Made, Scale, Step

TITLES = {
    "oxford5k": "Oxford5K",
    "paris6k": "Paris6K",
    "oxford105k": "Oxford105K",
    "paris106k": "Paris106K",
    "roxford5k": "ROxford",
    "rparis6k": "RParis",
    "roxford1m": "ROxford + 1M",
    "rparis1m": "RParis + 1M",
}
_SETS = {
    "roxford1m": ("roxford5k", "revisitop1m"),
    "rparis1m": ("rparis6k", "revisitop1m"),
    "oxford105k": ("oxford5k", "flickr100k"),
    "paris106k": ("paris6k", "flickr100k"),
}
"""The parts of composite sets."""

COLLECTION = "collection"
WORK = "work"

_INDEXING = {"oxford5k": 2.5, "paris6k": 3.0, "oxford105k": 20.0, "paris106k": 20.0, "roxford5k": 2.5, "rparis6k": 3.0}
_INDEXING |= {"roxford1m": 250.0, "rparis1m": 250.0}
_SEARCHING = 0.1  # hours: 55 queries


def searched(
    dataset: str,
    scale: Scale,
    settings: Sequence[Argument],
    engine: Sequence[Argument],
    *,
    title: str,
    words: int = 500_000,
    first: Step | None = None,
    vocabulary: Argument | None = None,
) -> Step:
    """Search a set. `first`: a search of the same set with the same settings, for reusing its collection. `vocabulary`:
    a collection for reusing its vocabulary, instead of one trained on the searched photos.
    """
    collection: Argument = Here(COLLECTION) if first is None else Made(first, COLLECTION)
    share = () if scale.whole else ("--share", f"{scale.share:g}")
    arguments: tuple[Argument, ...] = ("--words", scale.count(words, 200))
    if vocabulary is not None:
        arguments = ("--vocabulary", vocabulary)
    name, *others = _SETS.get(dataset, (dataset,))
    return Step(
        f"{TITLES[dataset]}, {title}",
        (
            *("evaluate", dataset, "--root", Data(name, "root"), *settings, *engine),
            *(*arguments, *share, "--collection", collection, "--work", Here(WORK)),
        ),
        scale.hours(_SEARCHING + (_INDEXING[dataset] if first is None else 0.0)),
        needs=tuple(others),
    )


def mean_precision(step: Step) -> Value:
    """Mean average precision printed by a search."""
    return Value(step, ("mAP",))
