"""Everything between a connection and the routes of the application."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from retrieval.web.access import signing, viewers
from retrieval.web.access.audit import Audit, AuditFile
from retrieval.web.access.gate import PEER, Gate
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import Accounts
from retrieval.web.access.patience import Patience
from retrieval.web.access.sessions import Sessions, sessions_file
from retrieval.web.access.watch import RequestFigures, Watch
from retrieval.web.guard import Guard

if TYPE_CHECKING:
    from retrieval.web.service import Service


def surround(
    app: FastAPI, options: AccessOptions, services: "Callable[[], Iterable[Service]]", collection: str | None = None
) -> None:
    """Wrap the whole application in access control, and add its routes; mounted applications need no access control.

    `services` returns the collections that are served now; `collection` is the name of the folder of the only one.
    """
    accounts = sessions = desk = None
    if options.password_file is not None:
        accounts = Accounts(options.password_file)
        sessions = Sessions(accounts, sessions_file(options.password_file), options.session_seconds)
        desk = signing.Desk(accounts, sessions, options)
    figures = RequestFigures(services)
    app.include_router(signing.routes(desk, figures, services))
    app.include_router(viewers.routes(sessions if options.open_manifests else None))
    # The last one is the outermost.
    app.add_middleware(Patience, options=options)
    app.add_middleware(Gate, options=options, accounts=accounts, sessions=sessions, collection=collection)
    if options.audit_log is not None:
        app.add_middleware(Audit, file=AuditFile(options.audit_log))
    if options.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=options.cors,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-Cairn"],
            expose_headers=["Retry-After", "X-Photo-Width", "X-Photo-Height"],
        )
    app.add_middleware(Guard, hosts=options.hosts, origins=options.cors)
    app.add_middleware(Watch, figures=figures, log=options.access_log)
    if options.root_path:
        app.add_middleware(Below, root=options.root_path)
    if options.forwarded_from:
        from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(options.forwarded_from))
        app.add_middleware(Remembering)


class Remembering:
    """Middleware that stores the address of a connection before it is replaced by what a proxy reports."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            scope = {**scope, PEER: (scope.get("client") or ("",))[0]}
        await self._app(scope, receive, send)


class Below:
    """Serves an application below a path such as ``/photos``, whether or not a proxy removes that path."""

    def __init__(self, app: ASGIApp, root: str) -> None:
        self._app, self._root = app, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            path = scope["path"]
            whole = path if path == self._root or path.startswith(f"{self._root}/") else self._root + path
            scope = {**scope, "root_path": self._root, "path": whole if whole != self._root else f"{self._root}/"}
        await self._app(scope, receive, send)
