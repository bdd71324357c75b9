"""Options of adding photos to a collection."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from index.options.declaration import Option
from index.options.panels import RUNNING, VOCABULARY


@dataclass(frozen=True)
class AddOptions:
    """Options of adding photos. `exclude`, `include`, `films` and `frame_every` hold for later runs, too."""

    vocabulary: Annotated[
        Path | None,
        Option(
            "Use the vocabulary of another collection (or its folder) instead of computing one.", VOCABULARY, local=True
        ),
    ] = None
    again: Annotated[
        bool,
        Option("Also add photos that were removed for good; a command without photos adds all.", flags=("--again",)),
    ] = False
    exclude: Annotated[
        tuple[str, ...],
        Option(
            "Skip files and folders with this name (* and ? are wildcards), or with this path below a folder, in this "
            "and later runs; may be repeated. Folders of devices and programs, such as @eaDir, are skipped anyway.",
            metavar="PATTERN",
        ),
    ] = ()
    include: Annotated[
        tuple[str, ...],
        Option(
            "Index files and folders with this name or path although they would be skipped, in this and later runs; "
            "may be repeated.",
            metavar="PATTERN",
        ),
    ] = ()
    films: Annotated[
        bool | None,
        Option(
            "Index films too, in this and later runs: one frame of each shot, and more where the picture changes "
            "(default: as in earlier runs; at first, no films).",
            flags=("--films/--no-films",),
        ),
    ] = None
    frame_every: Annotated[
        float | None,
        Option(
            "Index a frame of each film every so many seconds instead, in this and later runs; 0: by shots.",
            metavar="SECONDS",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        Option(
            "Start no further photo after so many seconds, counted from the moment when the new photos are known; the "
            "next run continues where this one stopped.",
            RUNNING,
        ),
    ] = None
    max_pages: Annotated[
        int | None,
        Option(
            "Index only N pages or frames of a file that has several (TIFF, PDF, film). A later run with a larger N, "
            "or without this option, adds the others.",
            metavar="N",
            least=1,
        ),
    ] = None
    early: Annotated[
        bool,
        Option(
            "If 500 photos or more are added to a new collection, make the first 200 searchable while the others are "
            "read. It takes some seconds longer, and the result is the same. Without effect with a cluster, and with "
            "features of another program.",
            flags=("--early",),
        ),
    ] = False
