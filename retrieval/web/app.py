"""The web application of one collection."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from retrieval.web import problems
from retrieval.web.access.network import surround
from retrieval.web.curation_models import NewSearch
from retrieval.web.documenting import complete
from retrieval.web.models import Problem
from retrieval.web.routes.every import ROUTERS
from retrieval.web.routes.pages import Static
from retrieval.web.routes.tables import HowToImport
from retrieval.web.search_models import MatchRequest, SearchRequest
from retrieval.web.service import ServeOptions, Service
from retrieval.web.uploads import add_models

__all__ = ["ServeOptions", "create_app"]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request is wrong."},
    401: {"model": Problem, "description": "The server has a password: sign in, or send a token."},
    403: {"model": Problem, "description": "This may not be done here, or not by who asks."},
    404: {"model": Problem, "description": "There is no such thing."},
    409: {"model": Problem, "description": "That cannot be done with it as it is."},
    410: {"model": Problem, "description": "The photo's file is no longer there."},
    408: {"model": Problem, "description": "The request took too long to arrive."},
    413: {"model": Problem, "description": "The upload, or what is asked for, is too large."},
    415: {"model": Problem, "description": "The upload is no photo that can be read."},
    422: {"model": Problem, "description": "A field is wrong."},
    429: {"model": Problem, "description": "That was too often; Retry-After says when to try again."},
    503: {"model": Problem, "description": "The server is busy; Retry-After says when to try again."},
    504: {"model": Problem, "description": "The request took too long."},
    507: {"model": Problem, "description": "The server's disk is full."},
}
"""Responses to requests that fail."""


def create_app(folder: Path, options: ServeOptions | None = None) -> FastAPI:
    """Make the web application of a collection; its `state.service` is the `Service`.

    The workers start and end with the application.
    """
    options = options or ServeOptions()
    service = Service(folder, options)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            await run_in_threadpool(service.stop)

    app = make_app(
        service,
        ROUTERS,
        (SearchRequest, MatchRequest, NewSearch, HowToImport),
        title="Cairn",
        summary="Find the photos that show the same object or landmark, geometrically verified.",
        lifespan=lifespan,
        root_path_in_servers=False,
    )
    if options.access is not None:
        surround(app, options.access, lambda: [service], service.folder.name)
    return app


def make_app(
    service: object, routers: Iterable[APIRouter], models: Sequence[type[BaseModel]] = (), **more: Any
) -> FastAPI:
    """Make an application whose `state.service` is a service; `models` are those of fields of forms."""
    # No docs_url: that page loads its scripts from elsewhere, which the content security policy forbids.
    app = FastAPI(
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,  # words, which clients made from this have as names
        redirect_slashes=False,  # a redirect would name whatever host the request did
        responses=PROBLEMS,
        **more,
    )
    app.state.service = service
    problems.install(app)
    for router in routers:
        app.include_router(router)
    app.mount("/static", Static(), name="static")
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = describe()  # which is kept
            add_models(document, models)
            complete(document)
        return describe()

    app.openapi = openapi  # type: ignore[method-assign]
    return app
