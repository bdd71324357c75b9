"""Answers to requests that fail: one sentence, never a traceback."""

import html
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from index.errors import DISK_FULL, CairnError, DatabaseError, kind_of
from index.messages import Message, Naming, on_command_line, said
from retrieval.web.discretion import without_paths
from retrieval.web.languages import ENGLISH, translate_html
from retrieval.web.pool.job_process import DAMAGED, Refused
from retrieval.web.reasons import in_language
from retrieval.web.rendering import language_of

BUSY_SECONDS = 2  # after which a client may try again

_STATUSES = {"request": 400, "locked": 403, "missing": 404, "elsewhere": 409, "gone": 410, "pixels": 413, "large": 413}
_STATUSES |= {"photo": 415, "name": 422, "memory": 503, "cluster": 503, "changed": 503, DAMAGED: 503, "full": 507}
"""HTTP status by the kind of an error, the same wherever it is raised."""
_KNOWN = {
    404: said("There is nothing at this address."),
    405: said("This address does not accept that kind of request."),
    408: said("The request took too long to arrive: try again."),
    413: said("The request is too large."),
}


class ProblemError(Exception):
    """A request failed, with an HTTP status; the client may try again after `retry` seconds. `naming`: of options."""

    def __init__(
        self,
        status: int,
        text: str | Message,
        retry: int | None = None,
        naming: Naming = on_command_line,
        **values: object,
    ) -> None:
        self.message = Message.of(text, **values)
        super().__init__(self.message)
        self.status, self.retry, self.naming = status, retry, naming


@contextmanager
def refusing(status: int = 409) -> Iterator[None]:
    """Turn a CairnError into a refused request, with a default status. Errors of the database itself pass unchanged."""
    try:
        yield
    except DatabaseError:
        raise
    except CairnError as error:
        raise ProblemError(_status_of(error, status), error.message) from None


def _status_of(error: CairnError, otherwise: int) -> int:
    return _STATUSES.get(error.kind, 400) if isinstance(error, Refused) else _STATUSES.get(kind_of(error), otherwise)


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised for, says that a disk is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            return True
        cause = error.cause if isinstance(error, DatabaseError) else str(error)
        if isinstance(error, (DatabaseError, sqlite3.Error)) and re.search("disk is full|No space left", cause):
            return True
        error = error.__cause__ or error.__context__
    return False


def validation_sentence(errors: Sequence[Any]) -> str:
    """Describe the first invalid field of a request, without its value."""
    if not errors:
        return "The request is not valid."
    first = errors[0]
    place = [str(part) for part in first.get("loc", ()) if part not in ("query", "path", "body")]
    # Names of fields are ours, but a wrong request may have names of its own.
    field = ".".join(part for part in place if part.isidentifier() or part.isdecimal())[:80]
    reason = str(first.get("msg", "not valid")).removeprefix("Value error, ").removesuffix(".")
    reason = reason[:1].lower() + reason[1:]
    return f"The field {field} is wrong: {reason}." if field else f"The request is wrong: {reason}."


def problem(
    request: Request,
    status: int,
    message: str | Message,
    headers: dict[str, str] | None = None,
    naming: Naming = on_command_line,
) -> Response:
    """The answer to a failed request, without paths: JSON, or a small page for a browser. JSON has the sentence in
    English, ``detail``, and its translation into the visitor's language, ``said``, if there is one.
    """
    service = getattr(request.app.state, "service", None)  # a server of several collections has no single one
    places = service.places if service is not None else ()
    message, language = Message.of(message), language_of(request)
    sentence, translated = (
        without_paths(" ".join(in_language(message, one, naming).split()), places) for one in (ENGLISH, language)
    )
    headers = {"Cache-Control": "no-store"} | dict(headers or {})  # the cause may be gone in a moment
    if status == 503:
        headers.setdefault("Retry-After", str(BUSY_SECONDS))
    root = request.scope.get("root_path", "")
    page = not str(request.scope["path"]).removeprefix(root).startswith("/api") and "text/html" in request.headers.get(
        "accept", ""
    )
    if page and request.method in ("GET", "HEAD"):
        text = translate_html(_PAGE, language).format(
            language=language, status=status, sentence=html.escape(translated), root=html.escape(quote(root))
        )
        return HTMLResponse(text, status, headers)
    return JSONResponse(
        {"detail": sentence} | ({"said": translated} if translated != sentence else {}), status, headers
    )


def install(app: FastAPI) -> None:
    """Install these answers as error handlers of an application."""

    def full(request: Request) -> Response:
        error = ProblemError(507, "The disk of the server is full: nothing was lost; free some space, then try again.")
        return problem(request, error.status, error.message)

    @app.exception_handler(OSError)
    async def _system(request: Request, error: OSError) -> Response:
        if not is_full(error):
            raise error
        return full(request)

    @app.exception_handler(ProblemError)
    async def _problem(request: Request, error: ProblemError) -> Response:
        if error.status != 507 and is_full(error):
            return full(request)
        headers = None if error.retry is None else {"Retry-After": str(error.retry)}
        return problem(request, error.status, error.message, headers, error.naming)

    @app.exception_handler(CairnError)
    async def _cairn(request: Request, error: CairnError) -> Response:
        status = _status_of(error, 503)  # else the catalogue cannot be read
        return full(request) if status != 507 and is_full(error) else problem(request, status, error.message)

    @app.exception_handler(RequestValidationError)
    @app.exception_handler(ValidationError)  # of a form
    async def _fields(request: Request, error: RequestValidationError | ValidationError) -> Response:
        return problem(request, 422, validation_sentence(error.errors()))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        sentence = _KNOWN.get(error.status_code, said("The request is wrong."))
        return problem(request, error.status_code, sentence, dict(error.headers or {}))


_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cairn: {status}</title>
<link rel="stylesheet" href="{root}/static/css/cairn.css">
</head>
<body>
<main>
<h1>{status}</h1>
<p>{sentence}</p>
<p><a href="{root}/">Back to the photos</a></p>
</main>
</body>
</html>
"""
