"""The web application of a shelf: a list of collections, and the application of each at an address of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from retrieval.web.access.network import surround
from retrieval.web.app import make_app
from retrieval.web.service import ServeOptions
from retrieval.web.shelf import routes
from retrieval.web.shelf.mounted import MOUNTED, Mounted
from retrieval.web.shelf.service import ShelfService


def create_shelf_app(home: Path, options: ServeOptions | None = None) -> FastAPI:
    """Make the web application of all collections in a folder, which need not exist; `state.service` is the
    `ShelfService`.
    """
    options = options or ServeOptions()
    service = ShelfService(home, options)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = make_app(
        service,
        (routes.router, routes.pages),
        title="Cairn, several collections",
        summary="Lists collections, and makes new ones; each has an API of its own below /c/NAME.",
        lifespan=lifespan,
    )
    app.mount(MOUNTED, Mounted(service))
    if options.access is not None:
        surround(app, options.access, service.open_services)
    return app
