"""The command serve."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.commands.option_groups import grouped, shown_option
from retrieval.commands.options import CatalogueAddress, SearchCluster, ShardNumber
from retrieval.photos.options import ImageOptions
from retrieval.search.options import SearchOptions
from retrieval.web.access.options import NetworkOptions
from retrieval.web.running import OPENING, FileOptions, Host, RunOptions, Workers, listen, run, show

if TYPE_CHECKING:
    from retrieval.web.pool.workers import WorkerPool
    from retrieval.web.service import Service


@dataclass(frozen=True)
class ListenOptions:
    """Address and workers of the server, as options of the command line."""

    host: Host = "127.0.0.1"
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free port.", min=0, max=65535)] = 8000
    workers: Workers = 2


@dataclass(frozen=True)
class ServedOptions:
    """How the collection is served, as options of the command line."""

    similarity: Annotated[Path | None, shown_option(SearchOptions, "similarity", panel="")] = None
    catalogue: CatalogueAddress = None
    cache: Annotated[
        Path | None, typer.Option(help="Folder for thumbnails (default: cache/ in the collection); may be deleted.")
    ] = None
    max_pixels: Annotated[
        int | None,
        shown_option(
            ImageOptions,
            "max_pixels",
            panel="",
            help="Largest photo that is shown or searched for, in pixels (default: the limit of cairn index for photos "
            "of the collection, 100,000,000 for others).",
        ),
    ] = None


@grouped
def serve(
    *,
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    listening: ListenOptions,
    served: ServedOptions,
    cluster: SearchCluster = None,
    shards: ShardNumber = 0,
    files: FileOptions,
    network: NetworkOptions,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the web browser.")] = False,
) -> None:
    """Serve a collection as a web application: browse it, draw a box, see what matches and why."""
    from retrieval.library.cluster import joined

    running = RunOptions.of_command(listening.host, listening.port, listening.workers, files, network)
    more = vars(served).copy()
    with joined(cluster, shards) as work:  # the processes that search connect to it themselves
        if work is not None:
            more |= {"cluster": work.scheduler, "shards": work.number}
        serve_collection(collection, running, show if open_browser else lambda _: None, **more)


def serve_collection(
    collection: Path, running: RunOptions, begun: Callable[[str], object], *, fallback: bool = False, **more: Any
) -> None:
    """Serve one collection until the server is stopped; `more` are fields of `ServeOptions`.

    `begun` is called with its address. With `fallback`, it listens on another port if the requested one is in use.
    """
    from retrieval.web.app import create_app

    app = create_app(collection, replace(running.serve_options(), **more))
    with listen(running.host, running.port, fallback=fallback) as listening:
        service: Service = app.state.service
        service.start()
        try:
            # Errors of the collection are reported before the address is printed.
            open_collection(service.searching, collection)
            run(app, listening, running, begun)
        finally:
            service.stop()


def open_collection(pool: "WorkerPool", folder: Path, seconds: float = OPENING) -> None:
    """Wait until the collection is open; raises CairnError if that takes too long, or if the process dies."""
    from index.errors import CairnError
    from retrieval.web.pool.workers import Died, TookTooLong

    try:
        pool.wait_until_open(seconds)
        pool.submit("ready", {}, seconds).result()
    except TookTooLong:
        raise CairnError(
            f"{folder} could not be opened within {seconds:g} seconds: see what else keeps this machine or the drive "
            "busy, then start it again."
        ) from None
    except Died:
        raise CairnError(
            f"The process that opens {folder} died, most likely because there was not enough memory: try fewer "
            "--workers, or run cairn check."
        ) from None
