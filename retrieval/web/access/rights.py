"""Rights of the current user."""

from dataclasses import dataclass
from typing import Any

from fastapi import Depends, Request
from starlette.types import Scope

from retrieval.web.access.roles import Role as Role
from retrieval.web.problems import ProblemError

CALLER = "cairn.caller"
"""Key in a request's scope: the `Caller`."""
STILL = "cairn.still"
"""Key in a request's scope: a function that says whether the caller would still be let in."""
WRITE = "cairn.write"
"""Key in a request's scope: a dict that routes which change something fill, see `audit.py`."""


@dataclass(frozen=True)
class Caller:
    """The current user."""

    name: str | None  # None if this machine alone is answered
    role: Role
    collections: tuple[str, ...] = ()  # names of folders of those that may be seen; (): all
    signed_in: bool = False  # on the page to sign in, and may sign out


_ANYBODY = Caller(None, Role.WRITE)  # if nothing stands before the routes


def caller_of(scope: Scope) -> Caller:
    """Return the current user."""
    caller = scope.get(CALLER, _ANYBODY)
    assert isinstance(caller, Caller)
    return caller


def role_of(request: Request) -> Role:
    """Return the role of the current user."""
    return caller_of(request.scope).role


def user_of(request: Request) -> str | None:
    """Return the name of the current user; None if this machine alone is answered."""
    return caller_of(request.scope).name


def require_write(request: Request) -> None:
    """Refuse users who may only read; put the route in the scope."""
    written: dict[str, Any] = request.scope.get(WRITE, {})
    root, route = request.scope.get("root_path", ""), request.scope.get("route")
    written |= {"root": root, "route": getattr(route, "path", ""), "ids": dict(request.path_params)}
    if role_of(request) is not Role.WRITE:
        raise ProblemError(403, "You can view this collection, but not change it.")


def describe_signing_in(document: dict[str, Any]) -> None:
    """Add the security schemes to an OpenAPI document, if the server has a password file."""
    document.setdefault("components", {})["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "A token that cairn token has made."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "cairn-xxxxxxxx",
            "description": "The cookie of who signed in at /login. What its name has after the hyphen differs between "
            "servers. Requests that change something also need the header X-Cairn.",
        },
    }
    # The last one is for a server without a password, which answers its own machine alone.
    document["security"] = [{"token": []}, {"session": []}, {}]


WRITING: list[Any] = [Depends(require_write)]
"""Dependency of every route that changes something: ``dependencies=WRITING``."""
