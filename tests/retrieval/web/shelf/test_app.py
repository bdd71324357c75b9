"""The application of a shelf: its API, collections at addresses of their own, and services that begin and end."""

import asyncio
import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint

from retrieval.jobs.kinds import KINDS
from retrieval.state.tokens import new_token
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import PasswordEntry, change_entry
from retrieval.web.access.rights import CALLER, Caller
from retrieval.web.access.roles import Role
from retrieval.web.service import ServeOptions
from retrieval.web.shelf.app import create_shelf_app
from retrieval.web.shelf.opened import OpenCollections
from retrieval.web.shelf.shelf import BIN
from tests.conftest import Indexed
from tests.support.patience import patience

WRITES = {"X-Cairn": "1"}
ODD = "100% été #1?.cairn"


def small(options: ServeOptions, **more: Any) -> ServeOptions:
    """One process of each kind."""
    search, pictures = replace(options.search, workers=1), replace(options.pictures, workers=1)
    return replace(options, search=search, pictures=pictures, **more)


@contextmanager
def running(app: FastAPI) -> Iterator[Callable[..., httpx.Response]]:
    """Ask an application that is started, and stopped after the block."""
    with asyncio.Runner() as runner:
        transport = httpx.ASGITransport(app)
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60)
        lifespan = app.router.lifespan_context(app)
        runner.run(lifespan.__aenter__())
        try:
            yield lambda method, path, **more: runner.run(client.request(method, path, **more))
        finally:
            runner.run(lifespan.__aexit__(None, None, None))


@pytest.mark.slow
def test_several_collections_in_one_server(tmp_path: Path, indexed: Indexed) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ODD).symlink_to(indexed.folder)
    app = create_shelf_app(home, small(ServeOptions(), roots=(indexed.photos.parent,)))
    photos = len(list(indexed.photos.iterdir()))
    with running(app) as ask:
        assert "<nav" not in ask("GET", "/").text
        (one,) = ask("GET", "/api/collections").json()["collections"]
        assert (one["title"], one["photos"], one["jobs"]) == ("100% été #1?", photos, 0)
        address = one["address"].rstrip("/")
        assert re.fullmatch(r"/c/[\w%.-]+", address)
        assert ask("GET", f"/api/collections/{address[3:]}/cover?size=128").content[:2] == b"\xff\xd8"
        shown = ask("PUT", f"/api/collections/{address[3:]}/cover", json={"photo": 1}, headers=WRITES)
        assert shown.status_code == 204
        assert ask("GET", "/api/collections").json()["collections"][0]["cover"]["number"] == 1
        for wrong in (f"/api/collections/{address[3:]}/cover", "/api/collections/none/cover"):
            assert ask("PUT", wrong, json={"photo": 10**6}, headers=WRITES).status_code == 404
        assert not app.state.service.opened.names  # the list opens nothing

        moved = ask("GET", f"{address}?a=b")
        assert (moved.status_code, moved.headers["location"]) == (307, f"{address}/?a=b")
        page = ask("GET", f"{address}/search").text
        assert all(link.startswith(f"{address}/") for link in re.findall(r'(?:href|src)="(/[^"]*)"', page))
        health = ask("GET", f"{address}/api/health").json()
        assert (health["collection"], health["images"], health["shelf"]) == ("100% été #1?", photos, "/")
        assert ask("GET", f"{address}/static/js/root.js").status_code == 200

        made = ask(
            "POST", "/api/collections", json={"title": "Été", "detail": "fine", "ignore": "text"}, headers=WRITES
        )
        assert (made.status_code, made.json()["address"], made.json()["job"]) == (201, "/c/ete/", None)
        made_with = (home / "ete" / "collection.toml").read_text()
        assert "max_side = 1600" in made_with and 'ignore = "text"' in made_with
        assert ask("GET", "/c/ete/api/photos").json()["total"] == 0
        assert ask("GET", f"{address}/api/photos").json()["total"] == photos
        again = ask("POST", "/api/collections", json={"title": "ÉTÉ"}, headers=WRITES)
        assert (again.status_code, "already" in again.json()["detail"]) == (400, True)
        named = ask("PATCH", "/api/collections/ete", json={"title": "<b>Winter</b>"}, headers=WRITES).json()
        assert named == {"name": "ete", "title": "<b>Winter</b>"}
        assert ask("GET", "/c/ete/api/health").json()["collection"] == "<b>Winter</b>"

        app.state.service.queue.stop()  # what is queued stays so
        job = app.state.service.index("ete", indexed.photos)
        refused = ask("DELETE", "/api/collections/ete", headers=WRITES)
        assert (refused.status_code, "under way" in refused.json()["detail"]) == (409, True)
        app.state.service.queue.cancel(job.id)
        gone = ask("DELETE", "/api/collections/ete", headers=WRITES).json()["folder"]
        assert gone.startswith(f"{BIN}/ete ") and (home / gone / "collection.toml").is_file()
        assert app.state.service.opened.names == [ODD] and app.state.service.queue.jobs() == []
        for lost in ("/c/ete/", "/c/ete", "/c/", "/c/bin/", "/c/%2e%2e/home/", "/c/..%2fhome/api/health"):
            assert ask("GET", lost).status_code == 404, lost
        for wrong in ("..", "bin", "%2e%2e", "nothing"):
            assert ask("DELETE", f"/api/collections/{wrong}", headers=WRITES).status_code in (404, 405), wrong

        (root,) = ask("GET", "/api/roots").json()["roots"]
        below = ask("GET", f"/api/roots/{root['root']}/folders", params={"path": indexed.photos.name}).json()
        assert below["photos"] == photos
        outside = {"title": "New", "root": 0, "path": "../.."}
        assert ask("POST", "/api/collections", json=outside, headers=WRITES).status_code == 404
        assert not (home / "new").exists()
    assert app.state.service.opened.names == []


class _Toy:
    """An application whose service counts."""

    def __init__(self, name: str, said: list[str]) -> None:
        self.name, self.said = name, said
        self.state = self
        self.service = self

    def start(self) -> None:
        self.said.append(f"+{self.name}")

    def stop(self) -> None:
        self.said.append(f"-{self.name}")


def test_collections_end_when_they_are_long_not_used_and_few_are_open() -> None:
    said: list[str] = []
    now = [0.0]
    opened = OpenCollections(lambda name: _Toy(name, said), most=2, idle=10, clock=lambda: now[0])  # type: ignore

    async def visit(*names: str) -> None:
        for name in names:
            now[0] += 1
            async with opened.visit(name):
                pass

    async def run() -> None:
        await visit("a", "b", "a", "c")
        assert said == ["+a", "+b", "-b", "+c"]  # the longest unused gives way
        async with opened.visit("a"):
            now[0] += 100
            await opened.close_idle()
            assert opened.names == ["a"]  # it is being asked
            async with opened.visit("b"), opened.visit("c"):
                assert len(opened.names) == 3  # rather one more than an answer broken off
        async with opened.visit("a", counts=False):  # who only listens keeps nothing open
            now[0] += 100
            await opened.close_idle()
            assert opened.names == []
        said.clear()
        await asyncio.gather(*(visit("d") for _ in range(5)))
        assert said == ["+d"]  # together, they start one
        async with opened.closed("d"):
            assert said == ["+d", "-d"]
        await visit("d")
        await opened.close_all()
        assert opened.names == [] and said.count("-d") == 2

    asyncio.run(run())


def test_a_collection_that_cannot_be_opened_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "collection.toml").write_text("[")
    with running(create_shelf_app(tmp_path, small(ServeOptions()))) as ask:
        answer = ask("GET", "/c/broken/api/health")
        assert f"{tmp_path.name}/broken/collection.toml is not" in answer.json()["detail"]
        assert answer.status_code == 503 and str(tmp_path) not in answer.text
        assert ask("GET", "/api/collections").json()["collections"][0]["photos"] is None


@pytest.mark.parametrize("path", ["/c/x/", "/", "/api/collections"])
def test_hosts_of_others_are_refused(tmp_path: Path, path: str) -> None:
    app = create_shelf_app(tmp_path, ServeOptions(access=AccessOptions(hosts=frozenset(("localhost",)))))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://evil.example") as client:
            return await client.get(path)

    assert asyncio.run(ask()).status_code == 400


def test_who_may_only_read_changes_nothing_in_any_collection(tmp_path: Path) -> None:
    app = create_shelf_app(tmp_path / "home", small(ServeOptions(access=None), roots=(tmp_path,)))
    name = app.state.service.shelf.make("One")

    class Reader(BaseHTTPMiddleware):
        async def dispatch(self, request: Request, answer: RequestResponseEndpoint) -> Response:
            request.scope[CALLER] = Caller("ben", Role.READ)
            return await answer(request)

    app.add_middleware(Reader)
    with running(app) as ask:
        assert ask("GET", "/api/health").json()["role"] == "read"
        assert len(ask("GET", "/api/collections").json()["collections"]) == 1
        for method, path, body in (
            ("POST", "/api/collections", {"title": "Two"}),
            ("PATCH", f"/api/collections/{name}", {"title": "Two"}),
            ("DELETE", f"/api/collections/{name}", None),
            ("GET", "/api/roots", None),
            ("GET", "/api/roots/0/folders", None),
            ("POST", f"/c/{name}/api/jobs", {"kind": "group"}),
        ):
            assert ask(method, path, json=body, headers=WRITES).status_code == 403, path
    assert [(card.name, card.title) for card in app.state.service.shelf.cards()] == [(name, "One")]


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with running(create_shelf_app(tmp_path, small(ServeOptions()))) as ask:

        def collections() -> list[dict[str, Any]]:  # the first is written to a while after it was made
            return [one | {"changed": ""} for one in ask("GET", "/api/collections").json()["collections"]]

        assert ask("POST", "/api/collections", json={"title": "First"}, headers=WRITES).status_code == 201
        listed = collections()
        address = f"/api/collections/{listed[0]['name']}"
        for place in ("retrieval.web.shelf.shelf.save_bytes", "retrieval.web.shelf.shelf.create"):
            with monkeypatch.context() as patch:
                patch.setattr(place, full if place.endswith("bytes") else lambda *_, **__: full())
                answer = ask("POST", "/api/collections", json={"title": "Second"}, headers=WRITES)
            assert answer.status_code == 507 and "is full" in answer.json()["detail"], place
            assert collections() == listed, place
        with monkeypatch.context() as patch:
            patch.setattr("retrieval.web.shelf.shelf.save_bytes", full)
            assert ask("PATCH", address, json={"title": "Third"}, headers=WRITES).status_code == 507
        assert collections() == listed


def test_who_may_see_some_collections_finds_no_others(
    tmp_path: Path, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, passwords = tmp_path / "home", tmp_path / "passwords"
    home.mkdir()
    for name in ("mine.cairn", "theirs.cairn"):
        shutil.copytree(indexed.folder, home / name)
    tokens = {}
    for who, role, seen in (
        ("all", Role.WRITE, ()),
        ("some", Role.WRITE, ("mine.cairn", "gone.cairn")),
        ("reader", Role.READ, ("mine.cairn",)),
    ):
        drawn, kept = new_token()
        tokens[who] = {"Authorization": f"Bearer {drawn}"}
        change_entry(passwords, who, token=True, entry=PasswordEntry(who, role, kept, seen))
    access = AccessOptions(password_file=passwords)
    app = create_shelf_app(home, small(ServeOptions(access=access), roots=(indexed.photos,)))
    with running(app) as ask:
        queue = app.state.service.queue
        queue.stop()  # what is queued stays so
        hidden = app.state.service.index("theirs.cairn", indexed.photos).id
        # What one's work waits for is named to those who may see it.
        mine = queue.add("mine.cairn", KINDS["compact"]()).id
        monkeypatch.setattr(queue, "before_each", lambda: {mine: queue.job(hidden)})
        told = {"title": "Add photos", "here": False}
        about = {"all": (indexed.photos.name, "theirs"), "some": ("", None)}
        for who, (folder, collection) in about.items():
            job = ask("GET", f"/c/mine.cairn/api/jobs/{mine}", headers=tokens[who]).json()
            assert job["waits_for"] == {**told, "about": folder, "collection": collection}
        queue.cancel(mine)
        queue.forget(mine)
        everything = ask("GET", "/api/collections", headers=tokens["all"]).json()["collections"]
        assert {one["name"] for one in everything} == {"mine.cairn", "theirs.cairn"}
        assert ask("GET", "/c/theirs.cairn/api/health", headers=tokens["all"]).status_code == 200  # it is open now
        photo = {"photo": 1}
        for who in ("some", "reader"):
            said = tokens[who]
            (one,) = ask("GET", "/api/collections", headers=said).json()["collections"]
            assert one["name"] == "mine.cairn"
            assert ask("GET", "/api/health", headers=said).json()["collections"] == 1
            assert ask("GET", "/c/mine.cairn/api/health", headers=said).status_code == 200
            assert ask("GET", "/c/mine.cairn/api/jobs", headers=said).json()["jobs"] == []
            assert ask("GET", f"/c/mine.cairn/api/jobs/{hidden}", headers=said).status_code == 404
            assert ask("GET", "/metrics", headers=said).status_code == 403
            for path in ("", "/", "/api/photos", "/api/jobs", "/api/jobs/events", "/search", "/static/js/api.js", "/x"):
                for name in ("theirs.cairn", "nothing.cairn"):
                    answer = ask("GET", f"/c/{name}{path}", headers=said)
                    nothing = ask("GET", "/c/nothing.cairn/", headers=said)
                    assert (answer.status_code, answer.text) == (404, nothing.text), (name, path)
            for way in ("/c/THEIRS.cairn/", "/c/mine.cairn/../theirs.cairn/api/photos", "/c//theirs.cairn/", "/c/./"):
                assert ask("GET", way, headers=said).status_code == 404, way
            assert ask("GET", "/api/collections/theirs.cairn/cover", headers=said).status_code == 404
        said = tokens["some"] | WRITES
        for name, status in (("theirs.cairn", 404), ("mine.cairn", 403)):
            # Another title would tell which others there are.
            renamed = ask("PATCH", f"/api/collections/{name}", json={"title": "theirs"}, headers=said)
            assert renamed.status_code == status and "already" not in renamed.text
            assert ask("DELETE", f"/api/collections/{name}", headers=said).status_code == status
        assert ask("POST", "/api/collections", json={"title": "theirs"}, headers=said).status_code == 403
        assert ask("PUT", "/api/collections/theirs.cairn/cover", json=photo, headers=said).status_code == 404
        assert ask("PUT", "/api/collections/mine.cairn/cover", json=photo, headers=said).status_code == 204
        assert ask("POST", "/c/theirs.cairn/api/albums", json={"name": "x"}, headers=said).status_code == 404
        for act in ("pause", "cancel"):
            assert ask("POST", f"/c/mine.cairn/api/jobs/{hidden}/{act}", headers=said).status_code == 404
        figures = ask("GET", "/metrics", headers=tokens["all"]).text
        assert "theirs" in figures  # which is why they are not for all


def test_what_is_told_of_jobs_ends_with_the_right_to_it(tmp_path: Path, indexed: Indexed) -> None:
    """A page that is open is told nothing more once its session or token has ended."""
    from retrieval.web.routes import jobs
    from tests.support.live import listening

    home, passwords = tmp_path / "home", tmp_path / "passwords"
    home.mkdir()
    (home / "one.cairn").symlink_to(indexed.folder)
    drawn, kept = new_token()
    change_entry(passwords, "page", token=True, entry=PasswordEntry("page", Role.READ, kept))
    app = create_shelf_app(home, small(ServeOptions(access=AccessOptions(password_file=passwords))))
    bearer = {"Authorization": f"Bearer {drawn}"}
    with (
        listening(app) as address,
        httpx.Client(base_url=address, headers=bearer, timeout=patience(60)) as client,
        client.stream("GET", "/c/one.cairn/api/jobs/events") as events,
    ):
        lines = events.iter_lines()
        assert next(lines).startswith("retry")
        begun = time.monotonic()
        change_entry(passwords, "page", token=True, entry=None)
        list(lines)  # it ends
        assert time.monotonic() - begun < patience(jobs.BEAT)
