"""Options that several commands have."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from index.errors import CairnError
from index.hamming.kinds import NAMES
from index.parallel import cores as cores
from index.search_backends import BACKENDS
from index.text import one_of, shown
from retrieval.commands.panels import CLUSTER, OUTPUT, REGIONS, RUNNING, SEARCH, VOCABULARY
from retrieval.regions.detectors.registry import DETECTORS
from retrieval.search.engines.registry import BEST, ENGINES, EXPANSIONS, describe_engines


def among(*names: str) -> Callable[[str], list[str]]:
    """Give what completes the value of an option in the shell: those of some names that begin as what is typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


Workers = Annotated[
    int,
    typer.Option(rich_help_panel=RUNNING, help="Processes; 0: one a core. The result does not depend on it.", min=0),
]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out photos that can no longer be read.")]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        rich_help_panel=CLUSTER,
        metavar="ADDRESS",
        help="Let the workers of a Dask cluster do the work: that of a scheduler, such as tcp://host:8786, or local:4 "
        "for 4 workers on this machine. The result does not depend on it.",
    ),
]
SearchCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        rich_help_panel=CLUSTER,
        metavar="ADDRESS",
        help="Search on the workers of a Dask cluster, which hold the photos in shards: that of a scheduler, such as "
        "tcp://host:8786, or local:4 for 4 workers on this machine. Answers are those of one machine.",
    ),
]
ShardNumber = Annotated[
    int,
    typer.Option(
        "--shards",
        rich_help_panel=CLUSTER,
        help="With --cluster, shards of about as many features; 0: two a worker; at most one a segment.",
        min=0,
    ),
]
StoragePlace = Annotated[
    str | None,
    typer.Option(
        "--storage",
        rich_help_panel=CLUSTER,
        metavar="PLACE",
        help="Where files of the collection are sent for the workers, such as s3://bucket/folder; it is remembered. "
        "Without it, they must see the collection's folder at the same path.",
    ),
]
Detector = Annotated[
    str,
    typer.Option(
        rich_help_panel=REGIONS, metavar="NAME", help=f"{one_of(DETECTORS)}.", autocompletion=among(*DETECTORS)
    ),
]
MeasurementScale = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=REGIONS, help="Measurement region over detected region (default: 12.5 for dog-affine, √3 else)."
    ),
]
Upright = Annotated[
    bool,
    typer.Option(
        "--upright/--rotated",
        rich_help_panel=REGIONS,
        help="Keep 'down' down, or turn patches to their dominant orientation.",
    ),
]
MaxSide = Annotated[
    int,
    typer.Option(
        rich_help_panel=REGIONS,
        metavar="PIXELS",
        help="Longer side at which photos are read, pixels; 0: as they are. The shorter side of a panorama, beyond "
        "2:1, keeps half as many, and its longer one has up to 8 times as many.",
        min=0,
    ),
]
MaxFeatures = Annotated[
    int,
    typer.Option(
        rich_help_panel=REGIONS,
        metavar="N",
        help="Features of a photo at most, strong ones spread over it, to save space and time; 0: all.",
        min=0,
    ),
]
CatalogueAddress = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=RUNNING,
        metavar="ADDRESS",
        help="SQLAlchemy address of the catalogue (default: SQLite in the collection).",
    ),
]
Words = Annotated[
    int, typer.Option(rich_help_panel=VOCABULARY, help="Visual words; 0: one for 30 features, at most 500,000.", min=0)
]
VocabularyPhotos = Annotated[
    str,
    typer.Option(
        rich_help_panel=VOCABULARY,
        metavar="N|all",
        help="Photos whose features make the vocabulary, drawn at random.",
    ),
]
VocabularyFolder = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=VOCABULARY,
        metavar="FOLDER",
        help="Draw these from this folder alone: it is to be among what is indexed, and the others, such as "
        "distractors, have no part in the vocabulary.",
    ),
]
KMeansPasses = Annotated[
    int, typer.Option(rich_help_panel=VOCABULARY, help="Passes of k-means that make the vocabulary.", min=1, max=1000)
]
Descriptor = Annotated[
    str,
    typer.Option(
        rich_help_panel=REGIONS,
        metavar="NAME|FILE",
        help="Descriptor: cairn, pr-proj or rootsift-proj (learnt, they come with Cairn), rootsift, sift, surf, ssd "
        "(plain grey values), or a file (.npz) that cairn learn wrote.",
        autocompletion=among("cairn", "pr-proj", "rootsift-proj", "rootsift", "sift", "surf", "ssd"),
    ),
]
# As large as every search back-end takes.
Seed = Annotated[int, typer.Option(rich_help_panel=RUNNING, help="Seed of everything random.", min=0, max=2**31 - 1)]
Search = Annotated[
    str,
    typer.Option(
        rich_help_panel=VOCABULARY,
        metavar="NAME",
        help="Nearest-neighbour search of the vocabulary: ivf, faiss, flann or pyflann.",
        autocompletion=among(*BACKENDS),
    ),
]
Signature = Annotated[
    str,
    typer.Option(
        rich_help_panel=VOCABULARY,
        metavar="NAME",
        help="Signature of a feature, for the engine signatures: hamming (Hamming embedding) or frame (signs of a "
        "tight frame) with 32, 64 or 128 bits, as in hamming-64; or none.",
        autocompletion=among(*NAMES),
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        rich_help_panel=SEARCH,
        metavar="NAME",
        help=f"{describe_engines()}.",
        autocompletion=among(BEST, *ENGINES),
    ),
]
Expand = Annotated[
    str,
    typer.Option(
        rich_help_panel=SEARCH,
        metavar="NAME",
        help=f"Query expansion: {one_of(list(EXPANSIONS))}.",
        autocompletion=among(*EXPANSIONS),
    ),
]
Turns = Annotated[
    int,
    typer.Option(
        rich_help_panel=SEARCH,
        help="Turns at which a query is tried, so that turned photos are found; 1: upright only. With geometry, those "
        "that are not upright are tried where they can still change the answer.",
        min=1,
    ),
]
EveryTurn = Annotated[
    bool,
    typer.Option("--every-turn", rich_help_panel=SEARCH, help="Try all turns, whatever upright has found: slower."),
]
Augmented = Annotated[
    bool,
    typer.Option(
        rich_help_panel=SEARCH,
        help="Score photos with what they borrow of linked ones, in a collection where cairn group --augment was run.",
    ),
]
Soft = Annotated[
    int,
    typer.Option(
        rich_help_panel=SEARCH,
        help="Nearest words that a feature of the query is shared between; 1: the nearest alone.",
        min=1,
    ),
]
TermFrequency = Annotated[
    str,
    typer.Option(
        "--tf",
        rich_help_panel=SEARCH,
        metavar="NAME",
        help="How much a word counts that a photo has n times: linear (n), or sqrt (√n, which discounts repetition).",
        autocompletion=among("linear", "sqrt"),
    ),
]
Similarity = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=SEARCH,
        help="Score by a learnt similarity of words: a file that cairn learn similarity wrote for this vocabulary.",
    ),
]


Quiet = typer.Option(False, "--quiet", "-q", rich_help_panel=OUTPUT, help="Show no progress.")
Json = typer.Option(False, "--json", rich_help_panel=OUTPUT, help="Print one JSON object on standard output.")


def vocabulary_sample(photos: str, folder: Path | None) -> tuple[int, str | None]:
    """What `CollectionOptions` calls sample and sample_from; CairnError where there is no such folder."""
    import os

    if folder is not None and not folder.is_dir():
        raise CairnError(f"There is no folder {shown(str(folder))} to make the vocabulary from; check the name.")
    sample = number_or_all("--vocabulary-photos", photos) or 0
    return sample, os.path.abspath(folder) if folder is not None else None  # noqa: PTH100 (links stay)


def number_or_all(option: str, text: str, *, least: int = 1) -> int | None:
    """Read a number, or "all", for which it gives None; CairnError where it is neither."""
    if text == "all":
        return None
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not least <= number < 1 << 53:
        raise CairnError(f"{option} is a number, at least {least}, or all; not {shown(text)}.")
    return number
