"""Options of fetching pages of libraries."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from index.options.declaration import Option
from index.options.panels import IIIF


@dataclass(frozen=True)
class FetchOptions:
    """Options of fetching pages of IIIF manifests."""

    iiif_folder: Annotated[
        Path | None,
        Option(
            "Folder into which pages are fetched, and which is then indexed (default: one inside the collection).",
            IIIF,
            metavar="FOLDER",
            local=True,
        ),
    ] = None
    allow_hosts: Annotated[
        tuple[str, ...],
        Option(
            "Fetch from this host although its address is not on the public Internet; may be repeated.",
            IIIF,
            metavar="HOST",
            flags=("--allow-host",),
        ),
    ] = ()
    ignore_robots: Annotated[
        tuple[str, ...],
        Option(
            "Also fetch from this host what its robots.txt forbids to programs: only with the library's permission; "
            "may be repeated.",
            IIIF,
            metavar="HOST",
        ),
    ] = ()
    check_pictures: Annotated[
        bool,
        Option(
            "Fetch pictures that are already here again, in case the library has replaced one at the same address.",
            IIIF,
            flags=("--check-pictures",),
        ),
    ] = False
