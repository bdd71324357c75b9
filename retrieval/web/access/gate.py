"""Authentication and authorisation of requests, before every route."""

import contextlib
import ipaddress
import re
from dataclasses import replace
from pathlib import PurePath
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from retrieval.curation.sharing import KnownLinks
from retrieval.web.access.limits import CLIENT, LIMITER, Limiter, client_key
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.own_user import own_user
from retrieval.web.access.passwords import Accounts, PasswordEntry
from retrieval.web.access.rights import CALLER, STILL, Caller
from retrieval.web.access.roles import Role
from retrieval.web.access.sessions import Sessions
from retrieval.web.problems import ProblemError, problem

SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
"""Methods that change nothing."""
OWN = "X-Cairn"
"""Header of requests that no other site has a browser send."""
LOGIN, LOGOUT, METRICS = "/login", "/logout", "/metrics"
ACCOUNT, SESSIONS = "/account", "/api/sessions"
"""Page that lists where one is signed in, and its API."""
PEER = "cairn.peer"
"""Key in a request's scope: the address that its connection really came from, whatever a proxy says."""
SIGNING = (LOGIN, LOGOUT)  # their forms have a protection of their own
OPEN = (*SIGNING, "/api/ready")  # for all clients that are allowed to ask
STATIC = "/static/"
SHARED = "/shared/"
"""Prefix of the address of a shared album; the token of the link follows."""
LINK = "cairn.link"
"""Key in a request's scope: the album link that it came by."""
VIEWERS = "cairn.viewers"
"""Key in a request's scope: origins of the viewers that people may sign in from."""
VIEWER_TOKEN = "/iiif/token"
_VIEWED = re.compile(
    r"(?:/c/[^/]+)?/api/iiif/(?:collection\.json|manifest\.json|groups/\d+/manifest\.json|"
    r"\d+(?:/(?:info\.json|manifest\.json|probe))?)"
)
_IIIF = re.compile(r"(?:/c/[^/]+)?/api/iiif/.*")
_SHARED = re.compile(rf"(?:/c/[^/]+)?{SHARED}([^/]+)(?:/.*)?", re.DOTALL)
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


class Gate:
    """Middleware for access control.

    Without `accounts`, only this machine has access, to everything. With them, `sessions` is needed. `collection` is
    the name of the folder of the only collection; with None there are several, each with its own address.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: AccessOptions,
        accounts: Accounts | None = None,
        sessions: Sessions | None = None,
        collection: str | None = None,
    ) -> None:
        self._app, self._options, self._accounts, self._sessions = app, options, accounts, sessions
        self._collection, self._origins = collection, frozenset(options.cors)
        self._searches = Limiter(options.searches, 60) if options.searches else None
        self._links = KnownLinks()
        self._own = own_user(options.token) if options.own_user and accounts is None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "websocket":  # there are no passwords
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "http":
            request = Request(scope)
            try:
                refusal = self._judge(request)
            except ProblemError as error:
                refusal = problem(request, error.status, error.message, _ASKING if error.status == 401 else None)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _judge(self, request: Request) -> Response | None:
        """Put the user in the scope; return an answer instead of the application's, or raise ProblemError."""
        scope = request.scope
        # An address made of the Host may be anything.
        path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
        scope[CALLER], scope[CLIENT] = Caller(None, Role.READ), client_key(address_of(request))
        shared = _SHARED.fullmatch(path)
        if shared is not None and self._accounts is not None:
            self._enter_by_link(request, shared[1])
            return None
        answer = (self._judge_machine if self._accounts is None else self._judge_caller)(request, path)
        if answer is None and shared is not None:
            self._enter_by_link(request, shared[1])
        if answer is None and request.method not in SAFE and path not in SIGNING and not self._is_own(request):
            raise ProblemError(403, "A request that is not GET or HEAD needs the header X-Cairn, or a token.")
        return answer

    def _judge_machine(self, request: Request, path: str) -> Response | None:
        """Without a password file: answer only this machine, or only its user, with all rights."""
        if not is_this_machine(address_of(request)) or not _is_sent_directly(request.headers):
            raise ProblemError(403, NO_PASSWORD)
        if self._own is not None:
            if (answer := self._own.enter(request)) is not None:
                return answer
            is_open = _is_open(path) or _SHARED.fullmatch(path)
            if not is_open and not self._own.admits(request, _token(request.headers)):
                raise ProblemError(401, self._own.refusal())
        request.scope[CALLER] = Caller(None, Role.WRITE)
        return None

    def _enter_by_link(self, request: Request, token: str) -> None:
        """Let in a visitor with a link to an album: only to that album's pages, in one collection."""
        link = self._links.find(token)
        if link is None:
            raise ProblemError(404, "This link is no longer valid: ask the person who sent it for a new one.")
        if link.is_over:
            raise ProblemError(410, "This link was valid until {expires}: ask for a new one.", expires=link.expires)
        request.scope[LINK] = link
        request.scope[CALLER] = Caller(None, Role.READ, (PurePath(link.collection).name,))

    def _judge_caller(self, request: Request, path: str) -> Response | None:
        """With a password file: grant the rights in it."""
        scope, headers = request.scope, request.headers
        scope[LIMITER] = self._searches
        viewed = self._options.open_manifests and request.method in SAFE and _VIEWED.fullmatch(path) is not None
        try:
            entry = self._identify(request)
        except ProblemError:
            if not viewed:
                raise
            entry = None  # the answer says so
        known = entry is not None
        if entry is not None:
            by_cookie = _token(headers) is None and self._name_by_proxy(request) is None
            scope[CALLER] = Caller(entry.name, entry.role, entry.collections, signed_in=by_cookie)
            scope[CLIENT] = client_key(address_of(request), entry.name)
        if path == METRICS:
            local = is_this_machine(address_of(request)) and _is_sent_directly(headers)
            known = _token(headers) is not None or local
            if entry is not None and entry.collections:
                raise ProblemError(403, "The figures cover all collections, but this token is only for some.")
        if self._options.open_manifests:
            scope[VIEWERS] = self._origins
        if _is_open(path) or (self._options.open_manifests and path == VIEWER_TOKEN):
            return None
        foreign = self._collection is not None and entry is not None and not entry.may_see(self._collection)
        if viewed:
            if foreign:
                scope[CALLER] = Caller(None, Role.READ)
            return None
        if not known:
            return _ask_to_sign_in(request, path)
        if foreign and not path.startswith((ACCOUNT, SESSIONS)):
            raise ProblemError(403, "You do not have access to this collection: ask whoever runs this server for it.")
        scope[STILL] = lambda: self._is_still(request, entry)
        return None

    def _identify(self, request: Request) -> PasswordEntry | None:
        """The user, by the password file; None for a request without credentials.

        Raises ProblemError for wrong credentials.
        """
        assert self._accounts is not None and self._sessions is not None
        if (token := _token(request.headers)) is not None:
            entry = self._accounts.program(token)
            path = str(request.scope["path"]).removeprefix(request.scope.get("root_path", ""))
            if entry is None and request.method in SAFE and _IIIF.fullmatch(path):
                viewer = self._sessions.of_viewer(token)
                if viewer is not None:
                    return replace(viewer, role=Role.READ)
            if entry is None:
                raise ProblemError(401, "This token is not known here.")
            if entry.is_over:
                raise ProblemError(
                    401, "This token was valid until {expires}: ask for a new one.", expires=entry.expires
                )
            self._sessions.use_token(entry)
            return entry
        if (name := self._name_by_proxy(request)) is not None:
            entry = self._accounts.person(name)
            if entry is None:
                raise ProblemError(
                    403, "You are signed in, but not known here: ask whoever runs this server to add you."
                )
            return entry
        return self._sessions.check(cookie_of(request.headers, self._sessions.cookie), address_of(request))

    def _is_still(self, request: Request, entry: PasswordEntry | None) -> bool:
        """Whether a client would still be let in, with the same rights."""
        try:
            return self._identify(request) == entry
        except ProblemError:
            return False

    def _name_by_proxy(self, request: Request) -> str | None:
        """The user name that a proxy reports; None if there is none."""
        header = self._options.user_header
        if not header or not self._options.is_proxy(request.scope.get(PEER, "")):
            return None
        named = request.headers.getlist(header)
        if len(named) > 1:  # one of them may be the visitor's own
            raise ProblemError(400, "The proxy names several people: it must put its own name in place of a visitor's.")
        return named[0] if named and named[0] else None

    def _is_own(self, request: Request) -> bool:
        """Whether this request cannot come from another site through a browser."""
        headers = request.headers
        if OWN.lower() in headers or _token(headers) is not None:
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
    """Whether an address is a loopback address."""
    with contextlib.suppress(ValueError):
        ip = ipaddress.ip_address(address)
        return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback
    return False


def address_of(request: Request) -> str:
    """Address of a request, as reported by a trusted proxy."""
    return request.client.host if request.client else ""


def _is_open(path: str) -> bool:
    """Whether an address needs no sign-in."""
    return path in OPEN or path.startswith(STATIC)


def _is_sent_directly(headers: Headers) -> bool:
    """Whether no proxy header is present: behind a proxy on this machine, every client seems to be this machine."""
    return not any(name in headers for name in _FORWARDED)


def cookie_of(headers: Headers, name: str) -> str:
    """The value of a cookie; "" if it is missing."""
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
    target = quote(root + path) + (f"?{query}" if query else "")
    return RedirectResponse(f"{root}{LOGIN}?next={quote(target, safe='/')}", 303, headers={"Cache-Control": "no-store"})
