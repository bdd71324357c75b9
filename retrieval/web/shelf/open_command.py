"""The command open."""

from pathlib import Path
from typing import Annotated

import typer

from index.errors import CairnError
from retrieval.commands.console import say
from retrieval.commands.option_groups import grouped
from retrieval.photos.listing import COLLECTION_FILE
from retrieval.web.access.options import NetworkOptions
from retrieval.web.running import FileOptions, Host, RunOptions, Workers, listen, run, show

PORT = 8000
"""Where a server listens that no port was named for, if it is free: so its address can be kept."""


@grouped
def open_collections(
    *,
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder that collections are in, or one collection (default: Cairn in your home folder).",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help=f"Port to listen at; 0: any that is free (default: {PORT}, or another where that is taken).",
            min=0,
            max=65535,
            show_default=False,
        ),
    ] = None,
    host: Host = "127.0.0.1",
    workers: Workers = 1,
    files: FileOptions,
    network: NetworkOptions,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the web browser.")] = True,
) -> None:
    """Open your collections in the web browser: make new ones, add photos, search.

    Collections are folders in one folder, which is made where it is missing. Where a server of it runs already, that
    one is opened. Photos are indexed where they are, and stay as they are.
    """
    home, page = find_home(folder)
    running = RunOptions.of_command(host, PORT if port is None else port, workers, files, network)
    if page is None:
        from retrieval.web.serve_command import serve_collection

        serve_collection(home, running, show if browser else lambda _: None, fallback=port is None)
        return
    _open_shelf(home, page, running, browser=browser, fallback=port is None)


def find_home(folder: Path | None) -> tuple[Path, str | None]:
    """Give the home that is meant and which page of it, or a collection that lies in no home, and None.

    Raises
    ------
    CairnError
        The folder that was named is not there, or is a file.
    """
    from retrieval.web.shelf.mounted import collection_address
    from retrieval.web.shelf.shelf import HOME, TITLES

    usual = Path.home() / HOME
    if folder is None:
        return usual, ""
    if not folder.is_dir():
        raise CairnError(f"There is no folder {str(folder)!r}: check the name, or make it first.")
    if not (folder / COLLECTION_FILE).is_file():
        return folder, ""
    folder = folder.absolute()
    home = folder.parent
    if home.resolve() == usual.resolve() or (home / TITLES).is_file():
        return home, collection_address(folder.name).removeprefix("/")
    return folder, None


def _open_shelf(home: Path, page: str, running: RunOptions, *, browser: bool, fallback: bool) -> None:
    """Serve a home, or lead to the server that does so already."""
    from retrieval.collection.locking import CollectionLocked
    from retrieval.web.shelf.app import create_shelf_app
    from retrieval.web.shelf.instance import announce, await_server, only_server, running_server

    def lead(address: str) -> None:
        say(f"Your collections are open already, at {address}")
        if browser:
            show(address + page)

    found = running_server(home)
    if found is not None:
        lead(found)
        return
    try:
        with only_server(home):
            app = create_shelf_app(home, running.serve_options())
            with listen(running.host, running.port, fallback=fallback) as listening:

                def begun(address: str) -> None:
                    announce(home, address, app.state.service.id)
                    if browser:
                        show(address + page)

                run(app, listening, running, begun)
            return
    except CollectionLocked:
        pass
    lead(await_server(home))
