"""A collection, or a folder of them, that somebody sent: whatever lies in it, to open it begins no work."""

import contextlib
import json
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from retrieval.catalogue.exclusions import exclusions_in
from retrieval.catalogue.photos import count_indexed
from retrieval.catalogue.schema import path_hash_of
from retrieval.collection.collection import Collection
from retrieval.web.pool.workers import WorkerPoolOptions
from retrieval.web.service import ServeOptions
from tests.conftest import Indexed
from tests.support.live import client_of, ended, listening

LIST = """
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, collection TEXT NOT NULL, command TEXT NOT NULL,
    title TEXT NOT NULL, about TEXT NOT NULL, state TEXT NOT NULL, result TEXT, error TEXT, added TEXT NOT NULL,
    started TEXT, ended TEXT
)
"""


def plant(place: Path, collection: Path, *commands: list[object]) -> None:
    """Leave a list of work where earlier versions kept theirs."""
    with contextlib.closing(sqlite3.connect(place / "jobs.sqlite")) as file, file:
        file.execute(LIST)
        for command in commands:
            words = json.dumps([str(word) for word in command])
            values = ("compact", str(collection.resolve()), words, "Free space", "", "queued", "2026-01-01")
            file.execute(
                "INSERT INTO jobs (kind, collection, command, title, about, state, added) VALUES (?,?,?,?,?,?,?)",
                values,
            )


@pytest.fixture
def home(indexed: Indexed, tmp_path: Path) -> Path:
    """A folder with the collection that somebody sent, and beside it one of one's own."""
    shutil.copytree(indexed.folder, tmp_path / "home" / "sent")
    shutil.copytree(indexed.folder, tmp_path / "own.cairn")
    return tmp_path / "home"


@contextlib.contextmanager
def opened(home: Path, way: str) -> Iterator[httpx.Client]:
    """Open what was sent in one of two ways."""
    from retrieval.web.app import create_app
    from retrieval.web.shelf.app import create_shelf_app

    one = WorkerPoolOptions(workers=1)
    options = ServeOptions(search=one, pictures=one)
    app = create_app(home / "sent", options) if way == "serve" else create_shelf_app(home, options)
    with listening(app) as address, client_of(address if way == "serve" else f"{address}/c/sent") as client:
        yield client


WAYS = pytest.mark.parametrize("way", ["serve", "open"])


@WAYS
def test_no_command_of_a_list_that_came_along_is_run(home: Path, way: str, cairn: Callable[..., Any]) -> None:
    place, sent, own = (home / "sent" if way == "serve" else home), home / "sent", home.parent / "own.cairn"
    site = home.parent / "site-packages"
    site.mkdir()
    with Collection.open(own) as collection:
        photos = collection.catalogue.read(count_indexed)
        names = [name for _, name, _ in collection.catalogue.places()][:2]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    plant(
        place,
        sent,
        ["remove", own, "--json", "--for-good", "--", *names],
        ["metadata", sent, "--export", site / "evil.pth", "--json"],
        ["serve", sent, "--port", port, "--photos", "/", "--cache", "--json"],
        ["compact", sent],  # without --json
    )
    before = (place / "jobs.sqlite").read_bytes()
    with opened(home, way) as client:
        assert client.get("/api/jobs").json() == {"jobs": []}
        # What waited before would have been done by the time that this is.
        answer = client.post("/api/jobs", json={"kind": "compact"})
        assert answer.status_code == 201, answer.text
        assert ended(client, answer.json()["id"])["state"] == "done"
        assert len(client.get("/api/jobs").json()["jobs"]) == 1
        with pytest.raises(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            pass
    with Collection.open(own) as collection:
        assert collection.catalogue.read(count_indexed) == photos
        assert not collection.catalogue.read(exclusions_in)
    assert list(site.iterdir()) == []
    assert (place / "jobs.sqlite").read_bytes() == before
    assert not list(place.glob("jobs.sqlite?*")) and not (place / "jobs.lock").exists()
    notes = cairn("check", sent, "--json").json["notes"]
    assert ["jobs.sqlite is a list of work" in note for note in notes] == ([True] if way == "serve" else [])


def name_elsewhere(folder: Path, place: Path) -> None:
    """Have the catalogue say that the photos are in another folder."""
    with contextlib.closing(sqlite3.connect(folder / "catalogue.sqlite")) as file, file:
        file.create_function("path_hash_of", 1, path_hash_of)
        file.execute("UPDATE images SET path = ? || '/' || name", [str(place)])
        file.execute("UPDATE images SET path_hash = path_hash_of(path)")


@WAYS
def test_no_photos_are_taken_from_where_the_collection_says(home: Path, way: str, indexed: Indexed) -> None:
    secret = home.parent / "secret"
    secret.mkdir()
    shutil.copy(sorted(indexed.photos.iterdir())[0], secret / "private.png")
    name_elsewhere(home / "sent", secret)
    with opened(home, way) as client:
        assert client.get("/api/photos").status_code == 200
        # A collection with such a link is not opened at all.
        (home / "sent" / "uploads").symlink_to(secret)
        assert not any(one["there"] for one in client.get("/api/roots").json()["known"])
        for source in ("known", "uploads"):
            answer = client.post("/api/jobs", json={"kind": "index", "source": source})
            assert answer.status_code == 403 and "does not take photos from that folder" in answer.json()["detail"]
        answer = client.post("/api/photos", files=[("photos", ("a.jpg", b"x", "image/jpeg"))])
        assert (answer.status_code, "is a link to another place" in answer.json()["detail"]) == (409, True)
    assert [path.name for path in secret.iterdir()] == ["private.png"]


def test_the_folder_of_a_day_is_no_link_either(home: Path) -> None:
    from datetime import UTC, datetime

    secret, uploads = home.parent / "secret", home / "sent" / "uploads"
    secret.mkdir()
    uploads.mkdir()
    with opened(home, "serve") as client:
        day = uploads / datetime.now(UTC).strftime("%Y-%m-%d")
        day.symlink_to(secret)
        answer = client.post("/api/photos", files=[("photos", ("a.jpg", b"x", "image/jpeg"))])
        assert answer.status_code == 201, answer.text
        assert (uploads / answer.json()["photos"][0]).parent != day
    assert list(secret.iterdir()) == []


@WAYS
def test_without_a_state_folder_it_is_served_all_the_same(
    home: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval.state.folder import STATE

    (home.parent / "file").touch()
    monkeypatch.setenv(STATE, str(home.parent / "file" / "below"))
    with opened(home, way) as client:
        assert client.get("/api/photos").status_code == 200
        assert client.get("/api/jobs").json() == {"jobs": []}
        answer = client.post("/api/jobs", json={"kind": "compact"})
        assert (answer.status_code, STATE in answer.json()["detail"]) == (507, True)
