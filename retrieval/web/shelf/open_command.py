"""The command open."""

import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from index.errors import CairnError
from retrieval.commands.console import say
from retrieval.commands.option_groups import grouped
from retrieval.photos.listing import CACHE, COLLECTION_FILE, stays_below
from retrieval.web.access.options import NetworkOptions
from retrieval.web.running import FileOptions, Host, RunOptions, Workers, listen, run, show, with_token

PORT = 8000
"""Preferred port if none was given, so that the address can be bookmarked."""


Begun = Callable[[str, str], object]
"""Called with the address of a started server, and how it identifies itself there."""


@grouped
def open_collections(
    *,
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder with the collections, or a single collection (default: the folder Cairn in your home folder).",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help=f"Port to listen on; 0: any free port (default: {PORT}, or another if that is in use).",
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

    All collections are kept in one folder; the usual one is created if it does not exist. If a server for that folder
    is already running, its page is opened. Photos are indexed where they are, and are not changed.
    """
    home, page = find_home(folder)
    running = RunOptions.of_command(host, PORT if port is None else port, workers, files, network)
    if running.access.password_file is None and running.access.own_user:
        running = replace(running, access=replace(running.access, token=secrets.token_urlsafe(24)))
    token = running.access.token
    fallback = port is None
    if page is not None:
        _serve_once(home, page, token, partial(_serve_shelf, home, running, fallback=fallback), browser=browser)
    elif os.access(home, os.W_OK) and stays_below(place := home.resolve() / CACHE, [home]):
        serve = partial(_serve_alone, home, running, fallback=fallback)
        _serve_once(place, "", token, serve, browser=browser)
    else:  # the collection itself cannot be written to inform a second server
        open_it = (lambda address, _: show_own(address, token)) if browser else lambda *_: None
        _serve_alone(home, running, open_it, fallback=fallback)


def show_own(address: str, token: str) -> None:
    """Open an address in the web browser, with the token if the kernel does not report users of connections. All users
    can see the arguments of a program, so the token is in a file that redirects the browser.
    """
    from retrieval.web.access.peers import kernel_tells
    from retrieval.web.shelf.instance import leading_file

    show(address if not token or kernel_tells() else leading_file(with_token(address, token)).as_uri())


def find_home(folder: Path | None) -> tuple[Path, str | None]:
    """Return the home and its page to open, or a collection outside of any home and None."""
    from retrieval.web.shelf.mounted import collection_address
    from retrieval.web.shelf.shelf import HOME, TITLES

    usual = Path.home() / HOME
    if folder is None:
        return usual, ""
    if not folder.is_dir():
        raise CairnError(f"There is no folder {str(folder)!r}: check the name, or create it first.")
    if not (folder / COLLECTION_FILE).is_file():
        return folder, ""
    folder = folder.absolute()
    home = folder.parent
    if home.resolve() == usual.resolve() or (home / TITLES).is_file():
        return home, collection_address(folder.name).removeprefix("/")
    return folder, None


def _serve_shelf(home: Path, running: RunOptions, begun: Begun, *, fallback: bool) -> None:
    """Serve a home until the server is stopped."""
    from retrieval.web.shelf.app import create_shelf_app

    app = create_shelf_app(home, running.serve_options())
    with listen(running.host, running.port, fallback=fallback) as listening:
        run(app, listening, running, lambda address: begun(address, app.state.service.id))


def _serve_alone(collection: Path, running: RunOptions, begun: Begun, *, fallback: bool) -> None:
    """Serve a collection outside of any home until the server is stopped."""
    from retrieval.web.serve_command import serve_collection

    server = secrets.token_hex(16)
    serve_collection(collection, running, lambda address: begun(address, server), fallback=fallback, server=server)


def _serve_once(place: Path, page: str, token: str, serve: Callable[[Begun], None], *, browser: bool) -> None:
    """Serve, or open the server that already does; a file in the folder `place` has its address."""
    from retrieval.collection.locking import CollectionLocked
    from retrieval.web.shelf.instance import announce, await_server, keep_token, kept_token, only_server, running_server

    def lead(address: str) -> None:
        known = kept_token(place)
        say(f"Your collections are open already, at {with_token(address, known)}")
        if browser:
            show_own(address + page, known)

    def begun(address: str, server: str) -> None:
        keep_token(place, token)  # the identity that others check at the address
        announce(place, address, server)
        if browser:
            show_own(address + page, token)

    found = running_server(place)
    if found is not None:
        lead(found)
        return
    try:
        with only_server(place):
            serve(begun)
            return
    except CollectionLocked:
        pass
    lead(await_server(place))
