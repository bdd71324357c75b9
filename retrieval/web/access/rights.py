"""What the one who asks may do."""

from typing import Any

from fastapi import Depends, Request

from retrieval.web.access.roles import Role as Role
from retrieval.web.problems import ProblemError

ROLE = "cairn.role"
"""Where the scope of a request says the role of the one who asks."""
USER = "cairn.user"
"""Where the scope of a request says the name of the one who asks; None for one who has none."""


def role_of(request: Request) -> Role:
    """Give the role of the one who asks."""
    return Role(request.scope.get(ROLE, Role.WRITE))


def user_of(request: Request) -> str | None:
    """Give the name of the one who asks; None where this machine alone is answered."""
    user = request.scope.get(USER)
    return None if user is None else str(user)


def require_write(request: Request) -> None:
    """Refuse those who may only read."""
    if role_of(request) is not Role.WRITE:
        raise ProblemError(403, "You may look at this collection, but not change it.")


def describe_signing_in(document: dict[str, Any]) -> None:
    """Put into an OpenAPI document how requests say who asks, where the server has a password."""
    document.setdefault("components", {})["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "A token that cairn token has made."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "cairn-xxxxxxxx",
            "description": "The cookie of who signed in at /login. What its name has after the hyphen differs between "
            "servers. Requests that change something need the header X-Cairn beside it.",
        },
    }
    # The last one is for a server without a password, which answers its own machine alone.
    document["security"] = [{"token": []}, {"session": []}, {}]


WRITING: list[Any] = [Depends(require_write)]
"""What every route that changes something depends on: ``dependencies=WRITING``."""
