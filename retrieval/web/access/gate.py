"""Who is let in, and what their requests may be: stands before every route."""

import contextlib
import ipaddress
from collections.abc import Sequence
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from retrieval.web.access.limits import CLIENT, LIMITER, Limiter, client_key
from retrieval.web.access.passwords import Accounts
from retrieval.web.access.rights import ROLE, USER
from retrieval.web.access.roles import Role
from retrieval.web.access.sessions import Sessions
from retrieval.web.problems import problem

SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
"""Methods that change nothing."""
LOGIN, LOGOUT, METRICS = "/login", "/logout", "/metrics"
SIGNING = (LOGIN, LOGOUT)  # their forms have a protection of their own
OPEN = (*SIGNING, "/api/ready")  # for all who may ask at all
STATIC = "/static/"
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


class Gate:
    """Goes around the application.

    Parameters
    ----------
    app : ASGI application
        What answers.
    accounts : Accounts, or None
        Who may come in; None: this machine alone, and it may do all.
    sessions : Sessions, or None
        Who is signed in; needed with `accounts`.
    searches : Limiter, or None
        How often those may search who are known by `accounts`.
    origins : sequence of str
        Origins of other sites whose pages may ask.
    """

    def __init__(
        self,
        app: ASGIApp,
        accounts: Accounts | None,
        sessions: Sessions | None,
        searches: Limiter | None = None,
        origins: Sequence[str] = (),
    ) -> None:
        self._app, self._accounts, self._sessions = app, accounts, sessions
        self._searches, self._origins = searches, frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "http" and (refusal := self._judge(scope)) is not None:
            await refusal(scope, receive, send)
        elif scope["type"] != "websocket":  # there are none
            await self._app(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    def _judge(self, scope: Scope) -> Response | None:
        """Say in the scope who asks; give the refusal where they may not."""
        request = Request(scope)
        headers = request.headers
        address = request.client.host if request.client else ""
        path = str(scope["path"]).removeprefix(
            scope.get("root_path", "")
        )  # an address made of the Host may be anything
        scope[USER], scope[ROLE] = None, Role.READ
        scope[CLIENT] = client_key(address)
        known = False
        if self._accounts is None:
            if not is_this_machine(address) or not _is_asked_directly(headers):
                return problem(request, 403, NO_PASSWORD)
            scope[ROLE] = Role.WRITE
            known = True
        elif (token := _token(headers)) is not None:
            entry = self._accounts.program(token)
            if entry is None:
                return problem(request, 401, "This token is not known here.", _ASKING)
            scope[USER], scope[ROLE] = entry.name, entry.role
            known = True
        elif self._sessions is not None:
            entry = self._sessions.check(cookie_of(headers, self._sessions.cookie))
            if entry is not None:
                scope[USER], scope[ROLE] = entry.name, entry.role
                known = True
        if self._accounts is not None:
            scope[LIMITER] = self._searches
            scope[CLIENT] = client_key(address, scope[USER])
            if path == METRICS:
                local = is_this_machine(address) and _is_asked_directly(headers)
                known = _token(headers) is not None or local
            if not known and path not in OPEN and not path.startswith(STATIC):
                return _ask_to_sign_in(request, path)
        if request.method not in SAFE and path not in SIGNING and not self._is_own(request):
            return problem(request, 403, "A request that changes something needs the header X-Cairn.")
        return None

    def _is_own(self, request: Request) -> bool:
        """Whether no other site can have made a browser send this request."""
        headers = request.headers
        if "x-cairn" in headers or _token(headers) is not None:
            return True
        if "sec-fetch-site" in headers:
            return headers["sec-fetch-site"] == "same-origin"
        origin = headers.get("origin", "")
        return origin in self._origins or origin == f"{request.url.scheme}://{headers.get('host', '')}"


NO_PASSWORD = (
    "This server has no password, so it answers its own machine alone: start it with --password-file to let others in."
)
_ASKING = {"WWW-Authenticate": 'Bearer realm="Cairn"'}


def is_this_machine(address: str) -> bool:
    """Whether an address is one of this machine for itself."""
    with contextlib.suppress(ValueError):
        found = ipaddress.ip_address(address)
        return (getattr(found, "ipv4_mapped", None) or found).is_loopback
    return False


def _is_asked_directly(headers: Headers) -> bool:
    """Whether no proxy says that it stands between: behind one on this machine, everybody seems to be this machine."""
    return not any(name in headers for name in _FORWARDED)


def cookie_of(headers: Headers, name: str) -> str:
    """The value of a cookie; "" where there is none."""
    for header in headers.getlist("cookie"):
        for part in header.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value
    return ""


def _token(headers: Headers) -> str | None:
    """The token that a program sends."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _ask_to_sign_in(request: Request, path: str) -> Response:
    page = request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")
    if path.startswith("/api") or not page:
        return problem(request, 401, "Sign in first, or send a token.", _ASKING)
    root = request.scope.get("root_path", "")
    query = request.scope.get("query_string", b"").decode("latin-1")
    asked = quote(root + path) + (f"?{query}" if query else "")
    return RedirectResponse(f"{root}{LOGIN}?next={quote(asked, safe='/')}", 303, headers={"Cache-Control": "no-store"})
