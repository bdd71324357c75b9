"""Albums, edits, tables and removals by the API."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from retrieval.catalogue.exclusions import exclusions_in
from retrieval.collection.layout import SEAL
from retrieval.collection.seal import read_seal
from retrieval.integrity.check import check_collection
from tests.conftest import Indexed
from tests.support.live import client_of, serving_copy, until

MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def served(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    with serving_copy(indexed.folder, tmp_path_factory.mktemp("curated")) as served:
        yield served


@pytest.fixture(scope="module")
def folder(served: tuple[str, Path]) -> Path:
    return served[1]


@pytest.fixture(scope="module")
def client(served: tuple[str, Path]) -> Iterator[httpx.Client]:
    with client_of(served[0]) as client:
        yield client


def asked(client: httpx.Client, method: str, path: str, status: int = 200, **body: Any) -> Any:
    answer = client.request(method, path, json=body or None)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_albums(client: httpx.Client) -> None:
    made = asked(client, "POST", "/api/albums", 201, name=MARKUP, photos=[3, 1, 2, 10**15])
    path = f"/api/albums/{made['album']}"
    assert made["name"] == MARKUP and (made["photos"], made["cover"]) == (3, 3)
    assert [one["number"] for one in asked(client, "GET", f"{path}/photos")["photos"]] == [3, 1, 2]
    assert "already" in asked(client, "POST", "/api/albums", 409, name=MARKUP)["detail"]
    assert "needs a name" in asked(client, "POST", "/api/albums", 422, name=" \n")["detail"]
    assert asked(client, "PATCH", path, name="Cups", cover=2)["cover"] == 2
    assert asked(client, "PATCH", path, 422) and asked(client, "PATCH", path, 409, cover=7)
    assert asked(client, "POST", f"{path}/photos", photos=[1, 4])["changed"] == [4]
    assert asked(client, "POST", f"{path}/move", photos=[4], before=3)["photos"] == 4
    made = asked(client, "POST", f"{path}/split", 201, photos=[1, 4], name="Others")
    assert asked(client, "GET", f"/api/photos?album={made['album']}")["total"] == 2
    assert [one["name"] for one in asked(client, "GET", "/api/photos/4/albums")["albums"]] == ["Others"]
    assert asked(client, "POST", f"{path}/merge", albums=[made["album"]])["photos"] == 4
    assert asked(client, "POST", f"{path}/merge", 404, albums=[made["album"]])
    assert asked(client, "POST", f"{path}/remove", photos=[3, 5])["changed"] == [3]
    gone = asked(client, "DELETE", path)
    assert gone["numbers"] == [2, 4, 1] and gone["cover"] == 2
    assert asked(client, "GET", path, 404)["detail"].startswith("There is no such album")
    assert asked(client, "GET", "/api/albums") == {"albums": []}
    assert asked(client, "POST", "/api/albums", 404, name="x", group=1)  # groups were never looked for


def test_edits_are_undone_and_sealed(client: httpx.Client, folder: Path) -> None:
    before = [asked(client, "GET", f"/api/photos/{number}") for number in (1, 2)]
    edited = asked(client, "PATCH", "/api/photos", photos=[1, 2], title=MARKUP, caption="By a lake", tags_add=[MARKUP])
    assert asked(client, "GET", "/api/photos/1")["caption"] == "By a lake"
    assert edited["changed"] == 2
    assert [one["number"] for one in client.get("/api/photos", params={"tag": MARKUP}).json()["photos"]] == [1, 2]
    summary = asked(client, "POST", "/api/photos/summary", photos=[1, 2, 3])
    assert (summary["titles"], summary["captions"]) == ([MARKUP, ""], ["By a lake", ""])
    assert summary["tags"] == [{"tag": MARKUP, "photos": 2, "imported": 2}]
    assert "is not a date" in asked(client, "PATCH", "/api/photos", 422, photos=[1], taken="x")["detail"]
    assert asked(client, "PATCH", "/api/photos", 422, photos=[1], restore=edited["before"])
    assert asked(client, "PATCH", "/api/photos", restore=edited["before"])["changed"] == 2
    assert [asked(client, "GET", f"/api/photos/{number}") for number in (1, 2)] == before
    from retrieval.catalogue.catalogue import Catalogue

    with Catalogue.open(folder) as catalogue:
        until(lambda: (kept := read_seal(folder / SEAL)) is not None and kept.revision == catalogue.revision())
    report = check_collection(folder)
    assert report.ok and not report.notes, report


def test_a_table_is_looked_at_changed_and_imported(client: httpx.Client) -> None:
    names = [one["name"] for one in client.get("/api/photos").json()["photos"][:2]]
    rows = ["Bild;Aufnahmedatum;Titel;Ort", f"{names[0]};17.05.1923;Brücke {MARKUP};Köln", f"{names[1]};gestern;;Bonn"]
    table = "\n".join([*rows, "x.jpg;;;", ""])

    def send(action: str, request: str = "{}", contents: bytes = table.encode("cp1252")) -> Any:
        files = {"table": ("Fotos.csv", contents)}
        return client.post(f"/api/tables/{action}", files=files, data={"request": request})

    told = send("preview").json()
    assert {one["header"]: one["means"] for one in told["columns"]} == {
        "Bild": "photo", "Aufnahmedatum": "date", "Titel": "title", "Ort": "text"
    }  # fmt: skip
    assert (told["rows"], told["matched"], told["photos"], told["imported"]) == (3, 2, 2, False)
    assert told["sample"][0] == [names[0], "17.05.1923", f"Brücke {MARKUP}", "Köln"]
    assert told["unmatched"][0]["line"] == 4 and "no date" in told["warnings"][0]["reason"]
    assert any("Fotos.csv is not UTF-8" in note for note in told["notes"])
    assert told["said"] == told["notes"] and told["unmatched"][0]["said"] == "no photo is called so"
    client.headers["Accept-Language"] = "de"
    german = send("preview").json()
    assert german["notes"] == told["notes"] and any("ist nicht in UTF-8" in note for note in german["said"])
    assert german["unmatched"][0]["said"] == "kein Foto heißt so"
    assert german["warnings"][0]["said"].startswith("'gestern' ist kein Datum")
    wrong = send("preview", '{"columns": {"Titel": "date", "Aufnahmedatum": "date"}}').json()
    assert wrong["said"] == "Für „Aufgenommen“ sind zwei Spalten gewählt: Behalten Sie eine."
    assert wrong["detail"] == "the columns below gives two columns for date: keep one of them."
    del client.headers["Accept-Language"]
    assert client.get("/api/photos", params={"title": "Brücke"}).json()["total"] == 0

    request = '{"columns": {"Ort": "tags", "Titel": "text"}}'
    told = send("import", request).json()
    assert told["imported"] and [one["means"] for one in told["columns"]] == ["photo", "date", "text", "tags"]
    photo = client.get("/api/photos", params={"tag": "köln"}).json()["photos"][0]
    assert (photo["name"], photo["taken"], photo["title"]) == (names[0], "1923-05-17", None)
    for wrong, request in (
        (table, '{"columns": {"Ort": "x"}}'),
        ("a;b\n1;2\n", "{}"),
        (table, '{"columns": {"no": "date"}}'),
    ):
        answer = send("preview", request, wrong.encode())
        assert answer.status_code == 422 and "--" not in answer.json()["detail"], answer.text
        assert "/" not in answer.json()["detail"]


def test_photos_are_removed(client: httpx.Client, folder: Path) -> None:
    total = client.get("/api/photos").json()["total"]
    assert asked(client, "POST", "/api/photos/remove", photos=[5, 10**15], for_good=True) == {"removed": 1}
    assert asked(client, "GET", "/api/photos/5", 404)
    assert client.get("/api/photos").json()["total"] == total - 1
    from retrieval.catalogue.catalogue import Catalogue

    with Catalogue.open(folder) as catalogue:
        assert [one.number for one in catalogue.read(exclusions_in)] == [5]


def test_a_contact_sheet_as_a_picture(client: httpx.Client) -> None:
    answer = client.post("/api/export", json={"photos": [1, 2, 3], "form": "png"})
    assert answer.status_code == 200 and answer.headers["content-type"] == "image/png"
    assert answer.content[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_full_disk_is_said_and_loses_nothing(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asked(client, "GET", "/api/albums")

    def full(*_: Any, **__: Any) -> None:
        raise sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr("sqlalchemy.orm.Session.flush", full)
        detail = asked(client, "POST", "/api/albums", 507, name="Too much")["detail"]
    assert "is full" in detail and "nothing was lost" in detail and "INSERT" not in detail
    assert asked(client, "GET", "/api/albums") == before
    assert asked(client, "DELETE", f"/api/albums/{asked(client, 'POST', '/api/albums', 201, name='Now')['album']}")
