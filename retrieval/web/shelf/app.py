"""The web application of a shelf: a list of collections, and the application of each at an address of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from retrieval.web import problems
from retrieval.web.access.network import surround
from retrieval.web.app import PROBLEMS
from retrieval.web.documenting import complete
from retrieval.web.routes.pages import Static
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

    app = FastAPI(
        title="Cairn, several collections",
        summary="Lists collections, and makes new ones; each has an API of its own below /c/NAME.",
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
        lifespan=lifespan,
        responses=PROBLEMS,
    )
    app.state.service = service
    problems.install(app)
    app.include_router(routes.router)
    app.include_router(routes.pages)
    app.mount("/static", Static(), name="static")
    app.mount(MOUNTED, Mounted(service))
    if options.access is not None:
        surround(app, options.access, service.open_services)
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            complete(plain())  # which is kept
        return plain()

    app.openapi = openapi  # type: ignore[method-assign]
    return app
