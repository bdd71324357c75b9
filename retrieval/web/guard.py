"""Middleware around every answer: security headers, checks of the host name and of a request's end, and errors."""

import logging
import traceback
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from index.text import printable_name

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

log = logging.getLogger("cairn.web")


class Guard:
    """Middleware that refuses requests for other host names, and those that other sites forge.

    Otherwise a web site whose name resolves to this machine could read the collection through its owner's browser (DNS
    rebinding). With None, any name is accepted. Pages of `origins` may show pictures of this server.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None, origins: Collection[str] = ()) -> None:
        self._app, self._hosts, self._origins = app, hosts, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, headers = False, Headers(scope=scope)

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                answered = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answered.setdefault(name, value)
                if self._origins and _origin(headers) in self._origins:
                    answered["Cross-Origin-Resource-Policy"] = "cross-origin"
            await send(message)

        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy may see the end of the request at another place than this server (RFC 9112, 6.1).
            sentence = "A request has the header Transfer-Encoding or Content-Length, and not both."
            await JSONResponse({"detail": sentence}, 400, {"Connection": "close"})(scope, receive, guarded)
            return
        if self._hosts is not None and host_name(headers.get("host", "")) not in self._hosts:
            sentence = "This server does not go by this name: open it at localhost, or name it with --allowed-host."
            await JSONResponse({"detail": sentence}, 400)(scope, receive, guarded)
            return
        try:
            await self._app(scope, receive, guarded)
        except Exception:
            log_trace(traceback.format_exc())
            if started:
                raise
            sentence = "Something went wrong in the server: its log says more."
            await JSONResponse({"detail": sentence}, 500)(scope, receive, guarded)


def _origin(headers: Headers) -> str:
    """Origin of the requesting page; for pictures, browsers only give the address of the page."""
    try:
        page = urlsplit(headers.get("origin") or headers.get("referer", ""))
    except ValueError:
        return ""
    return f"{page.scheme}://{page.netloc}"


def host_name(host: str) -> str:
    """The name of a Host header, without its port: "[::1]:8000" gives "::1"."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def log_trace(trace: str) -> None:
    """Log a traceback line by line, with text that may come from a visitor escaped."""
    for line in trace.splitlines():
        log.error("%s", printable_name(line))
