"""Options of a retrieval benchmark, besides those of collections and searches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from eval.retrieval.published import PUBLISHED
from index.options.declaration import Option
from index.options.panels import FEATURES, MEASURED, OUTPUT, RUNNING, VOCABULARY
from index.parallel import WORKERS
from index.text import one_of


@dataclass(frozen=True)
class BenchmarkSetup:
    """Options of a benchmark run besides those of collections and searches."""

    distractors: Annotated[
        Sequence[Path],
        Option(
            "Folder of photos that are searched too, and are never right; may be repeated. No vocabulary is made "
            "from them.",
            MEASURED,
        ),
    ] = ()
    share: Annotated[
        float,
        Option(
            "For a smoke test: ask this part of the queries (2 at least), among all photos that these name and this "
            "part of the others.",
            MEASURED,
            metavar="PART",
        ),
    ] = 1.0
    single_ranking: Annotated[
        bool,
        Option(
            "Of Revisited: score one search by all protocols. Without it, the junk of each takes no place among the "
            "photos that are verified, and expands no query.",
            MEASURED,
            flags=("--single-ranking",),
        ),
    ] = False
    vocabulary: Annotated[
        Path | None,
        Option("Use the vocabulary of this collection instead of computing one from the photos.", VOCABULARY),
    ] = None
    vocabulary_images: Annotated[
        Sequence[Path],
        Option(
            "Make the vocabulary from the photos of this folder; may be repeated. It is made once, and kept.",
            VOCABULARY,
        ),
    ] = ()
    features: Annotated[
        Path | None,
        Option(
            "Keypoints and descriptors of all photos that another program made, as cairn index takes them.",
            FEATURES,
            metavar="PATH",
        ),
    ] = None
    collection: Annotated[
        Path | None,
        Option("Keep the collection here, rather than in the work folder.", RUNNING),
    ] = None
    work: Annotated[
        Path | None,
        Option(
            "Folder where runs are kept: one that was stopped goes on, and one with other options of searching uses "
            "the same collection.",
            RUNNING,
        ),
    ] = None
    discard: Annotated[
        bool, Option("Remove what is kept of this run once it is done.", RUNNING, flags=("--discard",))
    ] = False
    name: str = "retrieval"  # prefix of the run's folder, before its key
    cameras: tuple[str, str] | None = None  # prefixes of query photos and database photos: see `one_right_answer`


@dataclass(frozen=True)
class BenchmarkRequest:
    """Options of a benchmark that its command has turned into others before the run."""

    as_published: Annotated[
        str | None,
        Option(
            f"Set all that a paper says of its experiments: {one_of(PUBLISHED)}; see the page on measuring.",
            MEASURED,
            metavar="NAME",
        ),
    ] = None
    workers: Annotated[int, WORKERS] = 0


@dataclass(frozen=True)
class BenchmarkFiles:
    """Files to write: .csv, .csv and .html."""

    save: Annotated[
        Path | None,
        Option(
            "Write the ranking of each query here (.csv); cairn evaluate ranking reads it, and scores it the same.",
            OUTPUT,
        ),
    ] = None
    pr: Annotated[
        Path | None,
        Option(
            "Write precision at 101 recalls here, the mean and of each query (.csv); cairn plot pr draws it.", OUTPUT
        ),
    ] = None
    report: Annotated[
        Path | None,
        Option("Write a page here (.html) with each query's box and ranking as thumbnails, the worst first.", OUTPUT),
    ] = None
