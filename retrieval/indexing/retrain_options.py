"""Options of retraining a vocabulary."""

from dataclasses import dataclass
from typing import Annotated

from index.options.declaration import Option, option_of
from index.search_backends import search_backend
from retrieval.collection.options import CollectionOptions, signature_name


def _signature(name: str) -> str:
    return signature_name(name) if name else ""


def _search(name: str) -> str:
    if name:
        search_backend(name)
    return name


@dataclass(frozen=True)
class RetrainOptions:
    """Options of retraining a vocabulary."""

    words: Annotated[int, option_of(CollectionOptions, "words", panel="")] = 0
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0
    drop_missing: Annotated[bool, Option("Remove photos that can no longer be read.", flags=("--drop-missing",))] = (
        False
    )
    signature: Annotated[  # "": as the collection has it
        str,
        option_of(
            CollectionOptions,
            "signature",
            help="New signature of each feature, as in cairn index (default: that of the collection).",
            panel="",
            parse=_signature,
        ),
    ] = ""
    sample: Annotated[  # 0: all
        int | None,
        option_of(
            CollectionOptions,
            "vocabulary_photos",
            help="Number of photos from whose features it is computed (default: as when the collection was created).",
            panel="",
        ),
    ] = None
    iterations: Annotated[
        int | None,
        option_of(
            CollectionOptions,
            "kmeans_passes",
            help="Number of k-means passes that compute it (default: as when the collection was created).",
            panel="",
        ),
    ] = None
    descriptor: Annotated[  # "": as the collection has it
        str,
        option_of(
            CollectionOptions,
            "descriptor",
            help="Describe all photos again with another descriptor: a name, or a file that cairn learn wrote "
            "(default: that of the collection).",
            panel="",
        ),
    ] = ""
    search: Annotated[  # "": see its help
        str,
        option_of(
            CollectionOptions,
            "search",
            help="Nearest-neighbour search of the vocabulary: ivf, faiss, flann or pyflann (default: as the collection "
            "was made, but ivf in place of faiss, which earlier versions took).",
            panel="",
            parse=_search,
        ),
    ] = ""
