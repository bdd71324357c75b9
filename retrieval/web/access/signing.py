"""Signing in and out: a page that works without scripts, and the routes of readiness and figures."""

import asyncio
import secrets
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from retrieval.photos.apart import is_confined
from retrieval.web.access.gate import LOGIN, LOGOUT, METRICS, cookie_of
from retrieval.web.access.limits import Limiter, client_key, waited
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import Accounts, Entry
from retrieval.web.access.rights import USER
from retrieval.web.access.sessions import FORM_SECONDS, Sessions
from retrieval.web.languages import told
from retrieval.web.problems import ProblemError
from retrieval.web.rendering import language_of, show_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from retrieval.web.access.watch import Figures
    from retrieval.web.service import Service

FORM_BYTES = 16_000
FORM_TIME = 15.0  # seconds in which it must have arrived
VERIFYING = 2  # passwords at a time: each takes 64 MiB and a core
WAITING = 64  # that wait for that


class Desk:
    """Where people sign in.

    Parameters
    ----------
    accounts : Accounts
    sessions : Sessions
    options : AccessOptions
        How often one may try.
    """

    def __init__(self, accounts: Accounts, sessions: Sessions, options: AccessOptions) -> None:
        self.sessions = sessions
        self._accounts, self._seconds = accounts, options.session_seconds
        self._of_address = Limiter(options.logins, 300)
        self._of_name = Limiter(options.logins_of_name, 300)
        self._verifying = asyncio.Semaphore(VERIFYING)
        self._waiting = 0

    async def verify(self, address: str, name: str, password: str) -> Entry | None:
        """Give whose name and password these are; tries that fail are counted.

        Raises
        ------
        ProblemError
            There were too many (429), or too many others try at this moment (503).
        """
        tried = [(self._of_address, client_key(address)), (self._of_name, name[:100])]
        for place, (limiter, key) in enumerate(tried):
            if wait := limiter.take(key):
                for before, of in tried[:place]:
                    before.give_back(of)
                seconds = waited(wait)
                raise ProblemError(
                    429, f"There were too many wrong passwords: try again in {seconds} seconds.", retry=seconds
                )
        if self._waiting >= WAITING:
            raise ProblemError(503, "The server is busy: try again in a moment.")
        self._waiting += 1
        try:
            async with self._verifying:
                entry = await run_in_threadpool(self._accounts.verify, name, password)
        finally:
            self._waiting -= 1
        if entry is not None:
            for limiter, key in tried:
                limiter.give_back(key)
        return entry

    def page(self, request: Request, target: str, problem: ProblemError | None = None, name: str = "") -> Response:
        """The page to sign in, or to sign out for one who is signed in; with what was wrong, where something was."""
        cookie = self.sessions.form_cookie
        nonce = cookie_of(request.headers, cookie)
        if not (len(nonce) == 32 and nonce.isalnum()):
            nonce = secrets.token_hex(16)
        hidden = f'<input type="hidden" name="form" value="{escape(self.sessions.form(nonce))}">'
        user = request.scope.get(USER)
        answer = show_page(
            request,
            "logout" if user else "login",
            problem.status if problem else 200,
            hidden=f'{hidden}<input type="hidden" name="next" value="{escape(target)}">',
            said=escape(told(problem.sentence, language_of(request))) if problem else "",
            called=escape(name),
            user=escape(user or ""),
        )
        answer.headers["Cache-Control"] = "no-store"
        _set(answer, request, cookie, nonce, FORM_SECONDS)
        return answer

    async def form(self, request: Request) -> dict[str, str] | None:
        """The fields of a form of ours; None where another site may have sent it."""
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
        found = {name: values[0] for name, values in fields.items()}
        nonce = cookie_of(request.headers, self.sessions.form_cookie)
        return found if self.sessions.is_form(nonce, found.get("form", "")) else None

    def sign_in(self, answer: Response, request: Request, entry: Entry) -> None:
        """Begin a new session; one that was there is ended."""
        self.sessions.end(cookie_of(request.headers, self.sessions.cookie))
        _set(answer, request, self.sessions.cookie, self.sessions.begin(entry), self._seconds)

    def sign_out(self, answer: Response, request: Request) -> None:
        """End the session."""
        self.sessions.end(cookie_of(request.headers, self.sessions.cookie))
        _set(answer, request, self.sessions.cookie, "", 0)


def _old() -> ProblemError:
    return ProblemError(403, "This page has been open for too long: try again.")


def _set(answer: Response, request: Request, name: str, value: str, seconds: int) -> None:
    secure = request.url.scheme == "https"
    path = request.scope.get("root_path", "") or "/"
    answer.set_cookie(name, value, max_age=seconds, path=path, secure=secure, httponly=True, samesite="lax")


def own_path(target: str, root: str) -> str:
    r"""Give an address to go to after signing in: one of this server, and the first page for any other.

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


def routes(desk: Desk | None, figures: "Figures", services: "Callable[[], Iterable[Service]]") -> APIRouter:
    """Make the routes.

    Parameters
    ----------
    desk : Desk, or None
        Where people sign in; None: nobody has to.
    figures : Figures
    services : callable
        Gives the collections that are served now.
    """
    router = APIRouter()

    @router.get("/api/ready", tags=["server"], responses={503: {"description": "Not yet."}})
    def ready(request: Request, response: Response) -> dict[str, bool]:
        """Tell whether all is open that searches need; for those who watch over the server, without signing in.

        `confined` says whether photos are decoded by processes that can do nothing else.
        """
        found = all(service.searching.is_open for service in services())
        response.status_code = 200 if found else 503
        response.headers["Cache-Control"] = "no-store"
        return {"ready": found, "confined": is_confined()}

    @router.get(METRICS, tags=["server"], response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    def metrics(request: Request) -> Response:
        """Give figures in Prometheus' text format, to a token or to this machine."""
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(figures.text(), headers={"Content-Type": kind, "Cache-Control": "no-store"})

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
        address = request.client.host if request.client else ""
        try:
            entry = await desk.verify(address, name, fields.get("password", ""))
        except ProblemError as error:
            answer = desk.page(request, target, error, name)
            answer.headers["Retry-After"] = str(error.retry or 2)
            return answer
        if entry is None:
            return desk.page(request, target, ProblemError(401, "The name or the password is wrong."), name)
        answer = RedirectResponse(target, 303, {"Cache-Control": "no-store"})
        desk.sign_in(answer, request, entry)
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
        desk.sign_out(answer, request)
        return answer

    return router
