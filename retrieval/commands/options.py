"""Options that several commands have."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from index.options.panels import CLUSTER, OUTPUT, RUNNING, SEARCH
from index.parallel import WORKERS
from index.parallel import cores as cores
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import print_json
from retrieval.commands.option_groups import shown, shown_option

if TYPE_CHECKING:
    from retrieval.library.cluster import ClusterWork
    from retrieval.library.collection import Collection

Folder = Annotated[Path, typer.Argument(help="Folder of the collection.")]
Workers = Annotated[int, shown(WORKERS, int)]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        rich_help_panel=CLUSTER,
        metavar="ADDRESS",
        help="Let the workers of a Dask cluster do the work: address of its scheduler, such as tcp://host:8786, or "
        "local:4 for 4 workers on this machine. The result does not depend on it.",
    ),
]
SearchCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        rich_help_panel=CLUSTER,
        metavar="ADDRESS",
        help="Search on the workers of a Dask cluster, which hold the photos in shards: address of its scheduler, such "
        "as tcp://host:8786, or local:4 for 4 workers on this machine. The results are the same as on one machine.",
    ),
]
ShardNumber = Annotated[
    int,
    typer.Option(
        "--shards",
        rich_help_panel=CLUSTER,
        help="With --cluster, number of shards, each with about as many features; 0: two per worker; at most one per "
        "segment.",
        min=0,
    ),
]
StoragePlace = Annotated[
    str | None,
    typer.Option(
        "--storage",
        rich_help_panel=CLUSTER,
        metavar="PLACE",
        help="Where the files of the collection are uploaded for the workers, such as s3://bucket/folder; later runs "
        "remember it. Without it, the workers must see the collection's folder at the same path.",
    ),
]
CatalogueAddress = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=RUNNING,
        metavar="ADDRESS",
        help="Database of the catalogue, as an SQLAlchemy address (default: an SQLite file in the collection).",
    ),
]
Seed = Annotated[int, shown_option(CollectionOptions, "seed")]


Quiet = typer.Option(False, "--quiet", "-q", rich_help_panel=OUTPUT, help="Show no progress.")
QueryBox = Annotated[
    tuple[float, float, float, float] | None,
    typer.Option(
        rich_help_panel=SEARCH,
        metavar="X0 Y0 X1 Y1",
        help="Use only this box of the photo, in pixels of the upright photo.",
    ),
]
MatchAll = Annotated[
    bool,
    typer.Option(
        "--all/--any",
        rich_help_panel=SEARCH,
        help="With several photos: results must match all of them, or any one of them.",
    ),
]
Json = typer.Option(False, "--json", rich_help_panel=OUTPUT, help="Print one JSON object on standard output.")


class _RunOptions:
    """What commands do with these options."""

    catalogue: str | None
    json: bool

    def open(self, collection: Path, cluster: "ClusterWork | None" = None) -> "Collection":
        """Open a collection, optionally with the cluster that does the work."""
        from retrieval.library.opening import open_named

        return open_named(collection, catalogue=self.catalogue, cluster=cluster)

    def print_json(self, collection: Path, **facts: Any) -> bool:
        """Print facts of a collection as JSON, if that is wanted; return whether."""
        if self.json:
            print_json({"collection": str(collection), **facts})
        return self.json


@dataclass(frozen=True)
class ReadOptions(_RunOptions):
    """Where the catalogue is, and how the answer is printed."""

    catalogue: CatalogueAddress = None
    json: bool = Json


@dataclass(frozen=True)
class WorkOptions(_RunOptions):
    """Where the catalogue is, and how work and its report are shown."""

    catalogue: CatalogueAddress = None
    quiet: bool = Quiet
    json: bool = Json

    @property
    def progress(self) -> bool:
        """Whether progress is shown."""
        return not (self.quiet or self.json)
