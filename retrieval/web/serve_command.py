"""The command serve."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.commands.console import say
from retrieval.commands.options import CatalogueAddress, SearchCluster, ShardNumber, Similarity

if TYPE_CHECKING:
    import socket

    from retrieval.web.service import Service
    from retrieval.web.workers import Pool

OPENING = 600.0
"""Seconds after which a collection that has not been opened is given up: a large one may be on a slow drive."""


def serve(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen at; anything but this machine's own is open to all."),
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(help="Port to listen at; 0: any that is free.", min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="Processes that search, and as many that decode photos.", min=1)] = 2,
    similarity: Similarity = None,
    catalogue: CatalogueAddress = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for thumbnails (default: cache/ in the collection); may be deleted.")
    ] = None,
    cluster: SearchCluster = None,
    shards: ShardNumber = 0,
    originals: Annotated[
        bool | None,
        typer.Option(
            "--originals/--no-originals",
            help="Let the files of photos be taken away, with what cameras wrote into them (default: where only this "
            "machine can reach the server).",
            show_default=False,
        ),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the web browser.")] = False,
) -> None:
    """Serve a collection as a web application: browse it, draw a box, see what matches and why."""
    from dataclasses import replace

    from retrieval.web.app import ServeOptions, create_app
    from retrieval.web.guard import LOOPBACK

    names = LOOPBACK | {host.lower()} if is_loopback(host) else None
    options = ServeOptions(cache=cache, catalogue=catalogue, similarity=similarity, hosts=names)
    options = replace(
        options,
        search=replace(options.search, workers=workers),
        pictures=replace(options.pictures, workers=workers),
        exports=replace(options.exports, files=is_loopback(host) if originals is None else originals),
    )
    with _shared_by(cluster, shards) as shared:
        app = create_app(collection, replace(options, **shared))
        with listen(host, port) as listening:
            service: Service = app.state.service
            service.start()
            try:
                # What is wrong with the collection is said before the address is.
                open_collection(service.searching, collection)
                _run(app, listening, host, open_browser)
            finally:
                service.stop()


@contextlib.contextmanager
def _shared_by(address: str | None, shards: int) -> Iterator[dict[str, Any]]:
    """Connect to the cluster whose workers hold the collection; give the options that say so, none without an address.

    Those who search connect to it themselves. One of this machine ends with the block.
    """
    from index.errors import CairnError

    if address is None:
        if shards:
            raise CairnError("--shards says how a collection is shared among workers: name some with --cluster.")
        yield {}
        return
    from index.cluster.connection import Cluster
    from retrieval.shards.cluster import usual_shards

    with Cluster.connect(address) as cluster:
        yield {"cluster": cluster.client.scheduler_info()["address"], "shards": shards or usual_shards(cluster)}


def open_collection(pool: "Pool", folder: Path, seconds: float = OPENING) -> None:
    """Wait until the collection is open; CairnError where that takes too long, or the process dies."""
    from index.errors import CairnError
    from retrieval.web.workers import Died, TookTooLong

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
            f"The process that opens {folder} died, most likely for want of memory: try fewer --workers, or run "
            "cairn check."
        ) from None


def _run(app: object, listening: "socket.socket", host: str, open_browser: bool) -> None:
    import signal
    import sys
    import webbrowser

    import uvicorn

    port = listening.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
    if not is_loopback(host):
        print(
            f"cairn: everyone who can reach {host} can see these photos: there is no password.",
            file=sys.stderr,
        )
    say(f"Serving at {address} (end with Ctrl-C)")
    sys.stdout.flush()
    if open_browser:
        webbrowser.open(address)
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    # The server ends in good order, and passes the signal on. SIGTERM is seen to be what ended the process.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether only this machine itself reaches an address."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def listen(host: str, port: int) -> "socket.socket":
    """Listen at an address; CairnError where that cannot be."""
    import errno
    import socket

    from index.errors import CairnError

    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise CairnError(f"There is no address {host!r} here ({error}): give another with --host.") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise CairnError(f"Port {port} is taken: choose another with --port, or 0 for any.") from None
        raise CairnError(f"{host} port {port} cannot be used ({error.strerror}): give another.") from None
    return listening
