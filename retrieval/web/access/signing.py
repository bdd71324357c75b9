"""Signing in and out by a page without scripts, and the routes of readiness and metrics."""

import asyncio
import secrets
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi import Path as InPath
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from index.attributes import some_of
from index.messages import said
from retrieval.photos.apart import is_confined
from retrieval.web.access.devices import device_of
from retrieval.web.access.gate import ACCOUNT, LOGIN, LOGOUT, METRICS, SESSIONS, address_of, cookie_of
from retrieval.web.access.limits import Limiter, client_key, too_often
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import Accounts, PasswordEntry
from retrieval.web.access.rights import WRITE, caller_of, user_of
from retrieval.web.access.sessions import FORM_SECONDS, Sessions, session_id
from retrieval.web.problems import ProblemError
from retrieval.web.reasons import in_language
from retrieval.web.rendering import language_of, show_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from retrieval.web.access.watch import RequestFigures
    from retrieval.web.service import Service

FORM_BYTES = 16_000
FORM_TIME = 15.0  # seconds in which it must have arrived
VERIFYING = 2  # passwords at a time: each takes 64 MiB and a core
WAITING = 64  # that wait for that


class OpenSession(BaseModel):
    """A session: one user on one device."""

    id: str = Field(description="What it is ended by.")
    browser: str = Field(description="Such as Firefox; empty where it is not known.")
    system: str = Field(description="Such as Android; empty where it is not known.")
    address: str = Field(description="From where it was used last.")
    begun: str = Field(description="ISO 8601, UTC.")
    used: str = Field(description="ISO 8601, UTC; as of ten minutes ago at the latest.")
    current: bool = Field(description="Whether this request is of it.")


class OpenSessions(BaseModel):
    """The sessions of a user, the last used first."""

    user: str = Field(description="Whose they are.")
    sessions: list[OpenSession]


class EndedSessions(BaseModel):
    """Sessions that were ended."""

    ended: int = Field(description="How many there were.")


class Desk:
    """The page to sign in."""

    def __init__(self, accounts: Accounts, sessions: Sessions, options: AccessOptions) -> None:
        self.sessions = sessions
        self._accounts, self._seconds = accounts, options.session_seconds
        self._of_address = Limiter(options.logins, 300)
        self._of_name = Limiter(options.logins_of_name, 300)
        self._verifying = asyncio.Semaphore(VERIFYING)
        self._waiting = 0

    async def verify(self, address: str, name: str, password: str) -> PasswordEntry | None:
        """Return the user of a name and password; failed attempts are counted.

        Raises ProblemError after too many attempts (429), or if too many others try at this moment (503).
        """
        limits = [(self._of_address, client_key(address)), (self._of_name, name[:100])]
        for place, (limiter, key) in enumerate(limits):
            if wait := limiter.take(key):
                for before, of in limits[:place]:
                    before.give_back(of)
                raise too_often(said("There were too many wrong passwords: try again in {seconds} seconds."), wait)
        if self._waiting >= WAITING:
            raise ProblemError(503, "The server is busy: try again in a moment.")
        self._waiting += 1
        try:
            async with self._verifying:
                entry = await run_in_threadpool(self._accounts.verify, name, password)
        finally:
            self._waiting -= 1
        if entry is not None:
            for limiter, key in limits:
                limiter.give_back(key)
        return entry

    def known(self, name: str) -> str | None:
        """The entry of a user name, or None."""
        return None if self._accounts.person(name) is None else name

    def page(self, request: Request, target: str, problem: ProblemError | None = None, name: str = "") -> Response:
        """The page to sign in or, for a user who is signed in, to sign out, with an error if there was one."""
        cookie = self.sessions.form_cookie
        nonce = cookie_of(request.headers, cookie)
        if not (len(nonce) == 32 and nonce.isalnum()):
            nonce = secrets.token_hex(16)
        hidden = f'<input type="hidden" name="form" value="{escape(self.sessions.form(nonce))}">'
        user = user_of(request)
        answer = show_page(
            request,
            "logout" if user else "login",
            problem.status if problem else 200,
            hidden=f'{hidden}<input type="hidden" name="next" value="{escape(target)}">',
            said=escape(in_language(problem.message, language_of(request))) if problem else "",
            called=escape(name),
            user=escape(user or ""),
        )
        answer.headers["Cache-Control"] = "no-store"
        _set(answer, request, cookie, nonce, FORM_SECONDS)
        return answer

    async def form(self, request: Request) -> dict[str, str] | None:
        """The fields of a form; None if another site may have sent it."""
        body = b""
        try:
            async with asyncio.timeout(FORM_TIME):
                async for part in request.stream():
                    body += part
                    if len(body) > FORM_BYTES:
                        raise HTTPException(413)
        except TimeoutError:
            raise HTTPException(408) from None
        try:
            fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=8, errors="strict")
        except ValueError:
            return None
        values_by_name = {name: values[0] for name, values in fields.items()}
        nonce = cookie_of(request.headers, self.sessions.form_cookie)
        return values_by_name if self.sessions.is_form(nonce, values_by_name.get("form", "")) else None

    def sign_in(self, answer: Response, request: Request, entry: PasswordEntry) -> None:
        """Begin a new session and end the previous one."""
        self.sessions.end(self._cookie(request))
        device = device_of(request.headers.get("user-agent", "")[:1000])
        value = self.sessions.begin(entry, device, address_of(request))
        _set(answer, request, self.sessions.cookie, value, self._seconds)

    def sign_out(self, answer: Response, request: Request) -> None:
        """End the session."""
        self.sessions.end(self._cookie(request))
        _set(answer, request, self.sessions.cookie, "", 0)

    def listed(self, request: Request) -> list[OpenSession]:
        """List the sessions of the user."""
        here = session_id(self._cookie(request))
        return [
            OpenSession(
                id=number,
                **some_of(one, "browser", "system", "address"),
                begun=_iso(one.begun),
                used=_iso(one.used),
                current=number == here,
            )
            for number, one in self.sessions.listed(_signed_in(request))
        ]

    def _cookie(self, request: Request) -> str:
        return cookie_of(request.headers, self.sessions.cookie)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _signed_in(request: Request) -> str:
    """The name of a user who signed in with a password; raises ProblemError for others, such as tokens."""
    caller = caller_of(request.scope)
    if caller.name is None or not caller.signed_in:
        raise ProblemError(403, "Only people who signed in here with a password have sessions.")
    return caller.name


def _note(request: Request, event: str, user: str | None) -> None:
    """Write an event to the audit log that does not change a collection."""
    request.scope.get(WRITE, {}).update(event=event, user=user, route=request.scope["route"].path)


def _old() -> ProblemError:
    return ProblemError(403, "This page has been open for too long: try again.")


def _set(answer: Response, request: Request, name: str, value: str, seconds: int) -> None:
    secure = request.url.scheme == "https"
    path = request.scope.get("root_path", "") or "/"
    answer.set_cookie(name, value, max_age=seconds, path=path, secure=secure, httponly=True, samesite="lax")


def own_path(target: str, root: str) -> str:
    r"""Return an address to go to after signing in: one of this server, and the first page for any other.

    >>> own_path("/photos/search?q=1", "/photos"), own_path("//evil.example/", ""), own_path("/\\evil.example", "")
    ('/photos/search?q=1', '/', '/')
    """
    home = f"{root}/"
    try:
        parts = urlsplit(target)
    except ValueError:
        return home
    odd = "\\" in target or not target.isprintable() or target.startswith("//") or len(target) > 2000
    below = parts.path.startswith(home) and ".." not in parts.path and not parts.path.startswith("//")
    return target if below and not (parts.scheme or parts.netloc or odd) and parts.path != root + LOGIN else home


def routes(desk: Desk | None, figures: "RequestFigures", services: "Callable[[], Iterable[Service]]") -> APIRouter:
    """Make the routes; without a desk, nobody needs to sign in."""
    router = APIRouter()
    _add_state(router, figures, services)
    _add_signing(router, desk)
    _add_sessions(router, desk)
    return router


def _add_state(router: APIRouter, figures: "RequestFigures", services: "Callable[[], Iterable[Service]]") -> None:
    @router.get("/api/ready", tags=["server"], responses={503: {"description": "Not yet."}})
    def ready(request: Request, response: Response) -> dict[str, bool]:
        """Say whether the server is ready to search; for monitoring, without signing in.

        `confined` says whether photos are decoded by processes that can do nothing else.
        """
        is_ready = all([service.is_ready() for service in services()])
        response.status_code = 200 if is_ready else 503
        response.headers["Cache-Control"] = "no-store"
        return {"ready": is_ready, "confined": is_confined()}

    @router.get(METRICS, tags=["server"], response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    def metrics(request: Request) -> Response:
        """Return metrics in Prometheus' text format, to a token or to this machine."""
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(figures.text(), headers={"Content-Type": kind, "Cache-Control": "no-store"})


def _add_signing(router: APIRouter, desk: Desk | None) -> None:
    def home(request: Request) -> str:
        return f"{request.scope.get('root_path', '')}/"

    @router.get(LOGIN, include_in_schema=False)
    def login_page(request: Request) -> Response:
        if desk is None:
            return RedirectResponse(home(request), 303)
        target = own_path(request.query_params.get("next", ""), home(request)[:-1])
        return desk.page(request, target)

    @router.post(LOGIN, include_in_schema=False)
    async def login(request: Request) -> Response:
        if desk is None:
            return RedirectResponse(home(request), 303)
        fields = await desk.form(request)
        if fields is None:
            return desk.page(request, home(request), _old())
        target = own_path(fields.get("next", ""), home(request)[:-1])
        name = fields.get("name", "")
        _note(request, "sign-in refused", desk.known(name))  # what is no name may be a password
        try:
            entry = await desk.verify(address_of(request), name, fields.get("password", ""))
        except ProblemError as error:
            answer = desk.page(request, target, error, name)
            answer.headers["Retry-After"] = str(error.retry or 2)
            return answer
        if entry is None:
            return desk.page(request, target, ProblemError(401, "The name or the password is wrong."), name)
        answer = RedirectResponse(target, 303, {"Cache-Control": "no-store"})
        desk.sign_in(answer, request, entry)
        _note(request, "sign-in", entry.name)
        return answer

    @router.post(LOGOUT, include_in_schema=False)
    async def logout(request: Request) -> Response:
        if desk is None:
            return RedirectResponse(home(request), 303)
        if "x-cairn" not in request.headers and await desk.form(request) is None:
            return desk.page(request, home(request), _old())
        headers = {"Cache-Control": "no-store"}
        by_form = "x-cairn" not in request.headers
        answer = RedirectResponse(home(request)[:-1] + LOGIN, 303, headers) if by_form else Response(None, 204, headers)
        _note(request, "sign-out", user_of(request))
        desk.sign_out(answer, request)
        return answer

    @router.get(ACCOUNT, include_in_schema=False)
    def account_page(request: Request) -> Response:
        if desk is None:
            return RedirectResponse(home(request), 303)
        return show_page(request, "account")


def _add_sessions(router: APIRouter, desk: Desk | None) -> None:
    @router.get(SESSIONS, tags=["server"])
    def open_sessions(request: Request) -> OpenSessions:
        """List the devices on which the user is signed in; only for users who signed in with a password."""
        name = _signed_in(request)
        return OpenSessions(user=name, sessions=desk.listed(request) if desk else [])

    @router.delete(SESSIONS, tags=["server"])
    def end_sessions(request: Request) -> EndedSessions:
        """Sign the user out everywhere, including here."""
        name = _signed_in(request)
        _note(request, "sign-out", name)
        return EndedSessions(ended=desk.sessions.end_listed(name) if desk else 0)

    @router.delete(f"{SESSIONS}/{{number}}", tags=["server"])
    def end_session(
        request: Request, number: Annotated[str, InPath(max_length=64, description="As /api/sessions lists it.")]
    ) -> EndedSessions:
        """Sign the user out on one device."""
        name = _signed_in(request)
        _note(request, "sign-out", name)
        if desk is None or not desk.sessions.end_listed(name, number):
            raise ProblemError(404, "There is no such session: it may have been ended.")
        return EndedSessions(ended=1)
