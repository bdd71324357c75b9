"""The collections of a shelf, each at an address of its own."""

from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from retrieval.web.access.rights import caller_of
from retrieval.web.problems import ProblemError
from retrieval.web.rendering import SHELF
from retrieval.web.shelf.service import ShelfService

MOUNTED = "/c"
"""Prefix of the names of collections in addresses."""
LISTENING = "/api/jobs/events"
"""Address of a collection's events, which a page reads as long as it is open; it does not keep the collection open."""


class Mounted:
    """Routes requests below `MOUNTED` to the application of their collection."""

    def __init__(self, service: ShelfService) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # nothing here speaks by a web socket
            await send({"type": "websocket.close", "code": 1000})
            return
        root = scope.get("root_path", "")
        name, slash, rest = scope["path"].removeprefix(root).removeprefix("/").partition("/")
        opened = self._service.opened
        if opened.app(name) is None or caller_of(scope).collections:
            await run_in_threadpool(self._service.find, scope, name)
        if not slash:
            if scope["method"] not in ("GET", "HEAD"):
                raise ProblemError(405, "This address does not accept that kind of request.")
            await _moved(f"{root}/{name}/", scope)(scope, receive, send)
            return
        listens = f"/{rest}" == LISTENING
        async with opened.visit(name, counts=not listens) as app:
            shelf = root.removesuffix(MOUNTED)
            inner = {**scope, "root_path": f"{root}/{name}", SHELF: f"{quote(shelf)}/", "path_params": {}}
            await app(inner, receive, send)


def collection_address(name: str) -> str:
    """Return the address of a collection, below that of the server."""
    return f"{MOUNTED}/{quote(name, safe='')}/"


def _moved(path: str, scope: Scope) -> Response:
    """Redirect a browser to a path; the host of the request is not repeated."""
    query = scope.get("query_string", b"").decode("latin-1")
    response = Response(status_code=307)
    MutableHeaders(raw=response.raw_headers)["Location"] = quote(path) + (f"?{query}" if query else "")
    return response
