"""A small application behind everything that stands before the routes of a server, and without a collection."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI, Request

from retrieval.state.tokens import new_token
from retrieval.web import problems
from retrieval.web.access import passwords
from retrieval.web.access.limits import SEARCHING
from retrieval.web.access.network import surround
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import PasswordEntry, change_entry
from retrieval.web.access.rights import WRITING, role_of, user_of
from retrieval.web.access.roles import Role
from retrieval.web.routes.pages import Static

QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
MACHINE, STRANGER = "127.0.0.1", "203.0.113.7"
ANNA, BEN = ("anna", "correct horse"), ("ben", "battery staple")


def make_app(options: AccessOptions, collection: str | None = None) -> FastAPI:
    """An application with a page, something to look at, to search, and to change."""
    app = FastAPI(redirect_slashes=False)
    problems.install(app)
    app.mount("/static", Static())

    @app.get("/")
    def page(request: Request) -> dict[str, Any]:
        return {"user": user_of(request), "role": role_of(request), "scheme": request.url.scheme}

    @app.get("/api/things/{number}")
    def thing(request: Request, number: int) -> dict[str, Any]:
        return {"user": user_of(request), "role": role_of(request)}

    @app.get("/api/search", dependencies=SEARCHING)
    def search() -> dict[str, bool]:
        return {"found": True}

    @app.post("/api/things", dependencies=WRITING)
    def change(thing: dict[str, Any]) -> dict[str, bool]:
        return {"changed": True}

    @app.get("/api/breaks")
    def breaks() -> None:
        raise RuntimeError("a defect")

    surround(app, options, lambda: [], collection)
    return app


class Visitor:
    """Asks an application from an address, and keeps cookies as a browser does."""

    def __init__(self, app: FastAPI, address: str = STRANGER, base: str = "http://photos.example") -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 50000))
        self.client = httpx.AsyncClient(transport=transport, base_url=base)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send one request."""
        import asyncio

        return asyncio.run(self.client.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        """Look at something."""
        return self.ask("GET", path, **more)

    def sign_in(self, name: str, password: str, target: str = "", root: str = "", **fields: str) -> httpx.Response:
        """Fill in the page to sign in."""
        form = {**hidden(self.get(f"{root}/login", params={"next": target})), "name": name, "password": password}
        return self.ask("POST", f"{root}/login", data=form | fields)


def hidden(page: httpx.Response) -> dict[str, str]:
    """The fields of a page's form that nobody sees."""
    import html
    import re

    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text)
    return {name: html.unescape(value) for name, value in found}


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords are hashed in no time."""
    monkeypatch.setattr(passwords, "usual_hasher", lambda: QUICK)


@pytest.fixture
def tokens() -> dict[str, str]:
    """Tokens of the file, by the name of each."""
    return {}


@pytest.fixture
def password_file(tmp_path: Path, tokens: dict[str, str]) -> Path:
    """A file with Anna, who may write, Ben, who may read, and a token for each role."""
    path = tmp_path / "passwords"
    for (name, password), role in ((ANNA, Role.WRITE), (BEN, Role.READ)):
        change_entry(path, name, token=False, entry=PasswordEntry(name, role, QUICK.hash(password)))
    for role in Role:
        tokens[role], kept = new_token()
        change_entry(path, f"program-{role}", token=True, entry=PasswordEntry(f"program-{role}", role, kept))
    return path


@pytest.fixture
def visit(password_file: Path) -> Iterator[Callable[..., Visitor]]:
    """Make visitors of one server with the file of passwords."""
    apps: dict[AccessOptions, FastAPI] = {}

    def visitor(address: str = STRANGER, base: str = "http://photos.example", **options: Any) -> Visitor:
        chosen = AccessOptions(password_file=password_file, **options)
        if chosen not in apps:
            apps[chosen] = make_app(chosen)
        return Visitor(apps[chosen], address, base)

    yield visitor
