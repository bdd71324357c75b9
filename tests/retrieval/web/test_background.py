"""Work in the background over HTTP: jobs, their events, folders that may be chosen, and uploads that are kept."""

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import Request

from index.errors import CairnError
from retrieval.curation import uploads
from retrieval.iiif.addresses import FetchError
from retrieval.iiif.downloads import ManifestDownload
from retrieval.iiif.fetching import WithheldError
from retrieval.jobs.running import shortened
from retrieval.library.manifests import FetchedPages
from retrieval.web.access.limits import Listeners
from retrieval.web.routes import adding, jobs
from retrieval.web.uploads import UploadOptions
from tests.conftest import Indexed
from tests.support.live import client_of, ended, serving_copy
from tests.support.patience import patience

NOT_XMP = "its sidecar is not XMP"


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory, indexed: Indexed) -> Path:
    """A folder to choose from, with what must not be chosen in it and beside it."""
    top = tmp_path_factory.mktemp("home")
    root = top / "Pictures"
    (root / "trip <b>" / "day 1").mkdir(parents=True)
    (root / ".hidden").mkdir()
    (root / "a.cairn").mkdir()
    (root / "a.cairn" / "collection.toml").touch()
    (top / "secret").mkdir()
    (root / "out").symlink_to(top / "secret")
    (root / "inside").symlink_to(root / "trip <b>")
    (root / "loop").symlink_to(root / "loop")
    (root / "note.txt").touch()
    source = sorted(indexed.photos.iterdir())[0]
    shutil.copy(source, root / "trip <b>" / "new.jpg")
    (root / "trip <b>" / "broken.jpg").write_bytes(b"no photo")
    return root


@pytest.fixture(scope="module")
def own(indexed: Indexed, roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Path]]:
    """A server of a collection that may be changed, and its folder."""
    ways = roots, roots.parent / "gone"
    with (
        serving_copy(indexed.folder, tmp_path_factory.mktemp("own"), roots=ways) as (address, folder),
        client_of(address) as client,
    ):
        yield client, folder


@pytest.mark.slow
def test_work_is_named_in_the_language_of_who_asks(own: tuple[httpx.Client, Path]) -> None:
    client, _ = own
    job = client.post("/api/jobs", json={"kind": "check"}, headers={"Accept-Language": "de-AT"}).json()
    assert job["title"] == "Alle Dateien prüfen"
    ended(client, job["id"])
    assert client.get(f"/api/jobs/{job['id']}").json()["title"] == "Check all files"
    refused = client.get("/api/jobs/999999", headers={"Accept-Language": "de"}).json()
    assert refused["detail"] == "There is no such job: it may have been forgotten."
    assert refused["said"].startswith("Diese Aufgabe gibt es nicht: ")
    assert "said" not in client.get("/api/jobs/999999").json()
    assert client.delete(f"/api/jobs/{job['id']}").status_code == 204


def test_only_folders_below_a_root_are_listed(own: tuple[httpx.Client, Path], roots: Path) -> None:
    client, _ = own
    assert [one["name"] for one in client.get("/api/roots").json()["roots"]] == ["Pictures", "gone"]
    top = client.get("/api/roots/0/folders").json()
    assert [(one["name"], one["path"]) for one in top["folders"]] == [("inside", "inside"), ("trip <b>", "trip <b>")]
    below = client.get("/api/roots/0/folders", params={"path": "trip <b>"}).json()
    assert (below["photos"], [one["path"] for one in below["folders"]]) == (2, ["trip <b>/day 1"])
    assert str(roots) not in json.dumps([top, below])
    for path in (
        *("..", "../secret", "trip <b>/../../secret", "out", "/etc", str(roots), "loop", ".hidden", "a.cairn", "none"),
        *("note.txt", "a\0b", "~", "trip <b>/..", "%2e%2e", "x" * 4000, "\udce4".encode("utf-8", "surrogateescape")),
    ):
        answer = client.get("/api/roots/0/folders", params={"path": path})
        assert answer.status_code == 404, path
        asked = {"kind": "index", "root": 0, "path": path if isinstance(path, str) else "\\udce4"}
        assert client.post("/api/jobs", json=asked).status_code == 404, path
    assert client.get("/api/roots/1/folders").status_code == 404
    assert client.get("/api/roots/7/folders").status_code == 404
    assert client.get("/api/jobs").json() == {"jobs": []}


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"kind": "demo"},
        {"kind": "index"},
        {"kind": "index", "source": "known", "root": 0},
        {"kind": "index", "source": "manifest"},
        {"kind": "index", "source": "known", "address": "https://example.org/m"},
        {"kind": "index", "root": -1},
        {"kind": "remove"},
        {"kind": "remove", "missing": True, "photos": [1]},
        {"kind": "remove", "photos": ["--all"]},
        {"kind": ["index"]},
    ],
)
def test_what_is_no_job_is_refused(asked: dict[str, Any], own: tuple[httpx.Client, Path]) -> None:
    client, _ = own
    answer = client.post("/api/jobs", json=asked)
    assert answer.status_code == 422
    assert answer.json()["detail"].endswith(".")


def events_of(client: httpx.Client) -> Iterator[list[dict[str, Any]]]:
    """What is told of the jobs; as in a browser, there is another connection where the server has ended one."""
    while True:
        with client.stream("GET", "/api/jobs/events") as events:
            for line in events.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))["jobs"]


def test_a_folder_is_indexed_and_what_failed_is_tried_again(own: tuple[httpx.Client, Path], roots: Path) -> None:
    client, _ = own
    before = client.get("/api/health").json()["images"]
    told: list[list[dict[str, Any]]] = []
    with closing(events_of(client)) as events:
        told.append(next(events))
        asked = {"kind": "index", "root": 0, "path": "trip <b>"}
        answer = client.post("/api/jobs", json=asked)
        assert answer.status_code == 201, answer.text
        number = answer.json()["id"]
        while not told[-1] or told[-1][-1]["state"] not in ("done", "failed"):
            told.append(next(events))
    states = [jobs[-1]["state"] for jobs in told[1:]]
    assert states == sorted(states, key=["queued", "running", "done"].index)
    assert any(jobs and jobs[-1]["of"] for jobs in told)
    job = ended(client, number)
    assert client.get(f"/api/jobs/{number}/photos/0").status_code == 204  # they are photos of the collection now
    assert client.get("/api/jobs/9999999/photos/0").status_code == 404
    assert (job["state"], job["about"], job["kind"]) == ("done", "trip <b>", "index")
    assert (job["result"]["added"], job["result"]["lengths"]["failed"]) == (1, 1)
    assert job["result"]["failed"][0]["name"] == "broken.jpg"
    assert str(roots.parent) not in json.dumps(client.get("/api/jobs").json())
    assert client.get("/api/health").json()["images"] == before + 1
    shutil.copy(roots / "trip <b>" / "new.jpg", roots / "trip <b>" / "broken.jpg")  # mended, though a copy now
    number = client.post("/api/jobs", json={"kind": "index", "source": "failed"}).json()["id"]
    assert ended(client, number)["result"]["added"] == 1
    assert client.post("/api/jobs", json={"kind": "index", "source": "failed"}).status_code == 404
    for act in ("pause", "resume", "cancel"):
        assert client.post(f"/api/jobs/{number}/{act}").status_code == 409
    assert client.delete(f"/api/jobs/{number}").status_code == 204
    assert client.get(f"/api/jobs/{number}").status_code == 404
    assert client.post("/api/jobs/9999999/pause").status_code == 404


def test_a_manifest_is_asked_for_on_the_public_internet_alone(own: tuple[httpx.Client, Path]) -> None:
    client, _ = own
    asked = {"kind": "index", "source": "manifest", "address": "file:///etc/passwd"}
    answer = client.post("/api/jobs", json=asked)
    assert answer.status_code == 400 and "not the address of a manifest" in answer.json()["detail"]
    answer = client.post("/api/jobs", json=asked | {"address": "http://127.0.0.1:9/manifest.json"})
    assert answer.status_code == 201, answer.text
    job = ended(client, answer.json()["id"])
    assert (job["state"], job["about"]) == ("failed", "127.0.0.1")
    assert "no address on the public Internet" in job["error"]


@pytest.mark.slow
def test_what_is_being_added_is_shown_before_it_can_be_searched(
    own: tuple[httpx.Client, Path], roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _ = own
    monkeypatch.setattr(jobs, "ENDED", ())  # this one ends in a moment
    folder = roots / "shown"
    folder.mkdir()
    shutil.copy(roots / "trip <b>" / "new.jpg", folder)
    number = client.post("/api/jobs", json={"kind": "index", "root": 0, "path": "shown"}).json()["id"]
    shown = [client.get(f"/api/jobs/{number}/photos/{place}") for place in (0, 1, jobs.GLIMPSES)]
    (folder / "bad.jpg").write_bytes(b"no photo")
    assert client.get(f"/api/jobs/{number}/photos/0").status_code == 204
    ended(client, number)
    shutil.rmtree(folder)
    assert [answer.status_code for answer in shown] == [200, 204, 422]
    assert shown[0].headers["content-type"] == "image/jpeg"


@pytest.mark.slow
def test_uploads_are_kept_under_safe_names_and_found_again(
    own: tuple[httpx.Client, Path], indexed: Indexed, cairn: Callable[..., Any]
) -> None:
    client, folder = own
    photos = [path.read_bytes() for path in sorted(indexed.photos.iterdir())[:3]]
    names = ["../../../etc/cron.d/x.jpg", "photo.JPG", "photo.JPG"]
    files = [("photos", (name, body + b"0", "image/jpeg")) for name, body in zip(names, photos, strict=True)]
    answer = client.post("/api/photos", files=files)
    assert answer.status_code == 201, answer.text
    kept = answer.json()["photos"]
    assert [name.partition("/")[2] for name in kept] == ["x.jpg", "photo.JPG", "photo (2).JPG"]
    assert ended(client, answer.json()["job"])["result"]["added"] == 3
    again = client.post("/api/photos", files=files, data={"index": "no"}).json()
    assert again == {"photos": kept, "job": None}  # the same photo is kept once
    uploads = folder / "uploads"
    one = [("photos", ("b.jpg", photos[0] + b"1", "image/jpeg"))]
    deep = client.post("/api/photos", files=one, data={"index": "no", "folder": "/../Sommer/x.jpg/.git"}).json()[
        "photos"
    ]
    assert [name.partition("/")[2] for name in deep] == ["Sommer/x.jpg/git/b.jpg"]
    flat = client.post("/api/photos", files=one, data={"index": "no", "folder": "x.jpg"}).json()["photos"]
    assert [name.partition("/")[2] for name in flat] == ["x.jpg_/b.jpg"]  # a photo has that name already
    for name in (*deep, *flat):
        (uploads / name).unlink()
    there = [path.relative_to(uploads).as_posix() for path in uploads.rglob("*.*") if path.is_file()]
    assert sorted(there) == sorted(kept)
    assert [path.read_bytes() for path in map(uploads.joinpath, kept)] == [body + b"0" for body in photos]
    assert cairn("check", folder, "--json").json["notes"] == []
    found = cairn("index", folder, uploads, "--json").json
    assert (found["added"], found["unchanged"], found["vanished"]) == (0, 3, [])


def test_what_cannot_be_kept_is_refused(own: tuple[httpx.Client, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    client, folder = own
    before = sorted((folder / "uploads").rglob("*")) if (folder / "uploads").exists() else []
    for name in ("run.exe", "x.jpg.html", ".jpg", "photo", "collection.toml", "a.jp\x00g"):
        answer = client.post("/api/photos", files=[("photos", (name, b"x", "image/jpeg"))])
        assert answer.status_code == 415, name
    assert client.post("/api/photos", data={"index": "no"}, files=[("other", b"x")]).status_code == 400
    monkeypatch.setattr(uploads, "SPARE", 1 << 60)
    answer = client.post("/api/photos", files=[("photos", ("a.jpg", b"x", "image/jpeg"))])
    assert (answer.status_code, "nearly full" in answer.json()["detail"]) == (507, True)
    left = sorted((folder / "uploads").rglob("*")) if before else []
    assert [path for path in left if ".incoming" not in str(path)] == [
        path for path in before if ".incoming" not in str(path)
    ]


def test_of_several_first_uploads_at_once_one_makes_the_folder_that_receives_all(tmp_path: Path) -> None:
    uploads = tmp_path / "uploads"
    for name, age in (("dead", 25 * 3600), ("living", 3600)):
        (uploads / f".incoming-{name}").mkdir(parents=True)
        os.utime(uploads / f".incoming-{name}", (time.time() - age,) * 2)
    options = SimpleNamespace(kept=UploadOptions())
    service: Any = SimpleNamespace(folder=tmp_path, keeping=None, keeping_lock=threading.Lock(), options=options)
    with ThreadPoolExecutor(8) as several:
        receivers = set(several.map(lambda _: adding._receiver(service, ""), range(8)))
    assert len(receivers) == 1
    incoming = service.keeping[0]
    assert set(uploads.iterdir()) == {incoming, uploads / ".incoming-living"}
    incoming.rmdir()  # another server has taken it for abandoned
    assert {adding._receiver(service, "")} == receivers and incoming.is_dir()


def test_who_may_only_read_changes_nothing(own: tuple[httpx.Client, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from retrieval.web.access import rights
    from retrieval.web.app import create_app

    app = create_app(own[1])
    monkeypatch.setattr(rights, "role_of", lambda _: rights.Role.READ)

    async def ask() -> list[int]:
        transport = httpx.ASGITransport(app=app)
        headers = {"X-Cairn": "1"}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            asked = [("GET", "roots"), ("GET", "roots/0/folders"), ("POST", "photos"), ("DELETE", "jobs/1")]
            asked += [("POST", f"jobs/1/{act}") for act in ("pause", "resume", "cancel")]
            answers = [await client.request(method, f"/api/{path}") for method, path in asked]
            answers.append(await client.post("/api/jobs", json={"kind": "compact"}))
            assert (await client.get("/api/jobs")).status_code == 200
            return [answer.status_code for answer in answers]

    assert set(asyncio.run(ask())) == {403}


@pytest.mark.skipif(os.name != "posix", reason="signals end it elsewhere")
@pytest.mark.slow
def test_the_server_ends_though_somebody_listens(indexed: Indexed, tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys

    folder = tmp_path / "own.cairn"
    shutil.copytree(indexed.folder, folder)
    command = [sys.executable, "-m", "cairn", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[2]
        with httpx.stream("GET", f"{address}api/jobs/events", timeout=60) as events:
            lines = events.iter_lines()
            next(line for line in lines if line.startswith("data"))
            began = time.monotonic()
            server.send_signal(signal.SIGTERM)
            assert not [line for line in lines if line.startswith("data")]
        server.wait(patience(30))
        assert time.monotonic() - began < patience(4.5)
    assert not (folder / "jobs.sqlite").exists()


def test_one_client_leaves_room_for_others_to_listen() -> None:
    listeners = Listeners(most=10, of_one=3)
    first, *others = (listeners.enter("anna") for _ in range(4))
    assert first not in listeners and all(one in listeners for one in others) and len(listeners) == 3
    ben = [listeners.enter("ben") for _ in range(3)]
    assert all(one is not None for one in ben) and len(listeners) == 6
    guests = [listeners.enter(f"guest {place}") for place in range(5)]
    assert [guest is None for guest in guests] == 4 * [False] + [True]
    again = listeners.enter("ben")  # in the place of his oldest
    assert again is not None and ben[0] not in listeners and len(listeners) == 10
    listeners.leave(ben[0])
    listeners.leave(again)
    assert len(listeners) == 9 and listeners.enter("carl") is not None  # he breaks off before he is answered
    assert len(listeners) == 9


@pytest.mark.parametrize(
    "result",
    [
        *(
            '{"shortened": 5}',
            '{"shortened": {"names": "x"}, "names": []}',
            '{"failed": [1]}',
            '{"sidecars": 5}',
            '{"failed": [{"path": 1}]}',
        ),
        *(
            '{"kept_out": 3}',
            '{"a": ' * 800 + "1" + "}" * 800,
            '{"a": ' * 200 + "1" + "}" * 200,
            '{"a": NaN}',
            '{"a": "\\ud800"}',
            "no JSON",
            "[]",
        ),
    ],
    ids=lambda result: result[:30],
)
def test_jobs_are_listed_whatever_is_said_to_have_come_of_them(
    result: str, indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [one.state for one in _listed(result, indexed.folder, tmp_path, monkeypatch)] == ["done"]


def test_sidecars_that_could_not_be_written_are_told_by_the_names_of_photos(
    indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = [{"path": str(indexed.photos / "cup.jpg"), "reason": NOT_XMP}] * 3000
    counts = {"written": 2, "unchanged": 1, "missing": 0}
    printed = json.dumps(shortened({"collection": "/c", "sidecars": {**counts, "failed": failed}}))
    assert len(printed) < 200_000
    (job,) = _listed(printed, indexed.folder, tmp_path, monkeypatch)
    assert job.result == {
        **counts,
        "failed": [{"name": "cup.jpg", "reason": NOT_XMP, "said": NOT_XMP}] * jobs.LISTED,
        "lengths": {"failed": 3000},
    }


def test_why_a_job_failed_and_pages_were_not_fetched_is_said_in_the_language_of_a_visitor(
    indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    withheld = WithheldError("{name} is not given out (status {status})", name="https://x.org/1", status=403)
    later = FetchError("{reason}: run the same command again later", reason=withheld.message)
    error = CairnError("{manifest} cannot be fetched: {reason}.", manifest="https://x.org/m", reason=later)
    pages = FetchedPages(
        tmp_path, [ManifestDownload("https://x.org/m", failed=[{"page": "1r", "reason": later.message}])], [], {}
    )
    printed = json.dumps({"manifests": pages.to_dicts()})
    told = json.dumps(error.message.to_dict())
    (job,) = _listed(printed, indexed.folder, tmp_path, monkeypatch, told, "de")
    withheld_in_german = "https://x.org/1 wird nicht herausgegeben (Status 403): Versuchen Sie es später noch einmal"
    assert job.error == f"https://x.org/m kann nicht geholt werden: {withheld_in_german}."
    assert job.result and job.result["manifests"][0]["said"] == ""
    reason = "https://x.org/1 is not given out (status 403): run the same command again later"
    assert job.result["manifests"][0]["failed"] == [{"page": "1r", "reason": reason, "said": withheld_in_german}]


@pytest.mark.parametrize(
    "told", ["A sentence of {an} earlier version.", '{"text": 1}', '{"text": "a", "values": {"b": 1}}', "[]"]
)
def test_what_is_no_message_is_shown_as_it_is(
    told: str, indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = _listed("{}", indexed.folder, tmp_path, monkeypatch, told, "de")
    assert job.error == told


def _listed(
    result: str,
    folder: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: str | None = None,
    language: str = "en",
) -> list[jobs.Job]:
    """Jobs that are listed, where a queue holds one that is said to have had some result, or to have failed."""
    import contextlib
    import sqlite3

    from retrieval.jobs.kinds import Compact
    from retrieval.state.folder import STATE
    from retrieval.web.app import create_app

    monkeypatch.setenv(STATE, str(state))
    app = create_app(folder)
    service = app.state.service
    service.begin(Compact())
    (file,) = state.glob("queues/*/jobs.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as rows, rows:
        rows.execute("UPDATE jobs SET state = ?, result = ?, error = ?", ["failed" if error else "done", result, error])
    headers = [(b"accept-language", language.encode())]
    told = jobs.list_jobs(Request({"type": "http", "headers": headers, "app": app}))
    assert json.loads(told.model_dump_json())
    service.collection.catalogue.close()
    return told.jobs
