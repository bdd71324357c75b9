"""No answer of the server tells where things lie on it, and its operations have names that people can read."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from retrieval.collection.collection import Collection
from retrieval.indexing.add_options import AddOptions
from retrieval.web.discretion import discreet_facts, failures_by_name, names_of_places, without_paths
from retrieval.web.pool.workers import WorkerPoolOptions
from tests.conftest import Indexed
from tests.support.live import serving

ONE = WorkerPoolOptions(workers=1)


@dataclass(frozen=True)
class Served:
    """A live server of a collection, and where its parts lie."""

    client: httpx.Client
    folder: Path
    photos: Path
    numbers: dict[str, int]

    def check(self, answer: httpx.Response) -> None:
        """Assert that nothing in an answer is the place of the collection or of its photos."""
        told = f"{answer.text} {dict(answer.headers)}"
        for place in (self.folder, self.photos, self.folder.parent, self.photos.parent):
            for way in {str(place), str(place.resolve()), place.as_uri()}:
                assert way not in told, (answer.request.url, told[max(told.find(way) - 200, 0) :][:500])


@pytest.fixture(scope="module")
def home(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a collection of photos in folders with spaces, of which some failed and some are linked."""
    from retrieval.collection.options import CollectionOptions
    from retrieval.groups.groups import group_photos
    from retrieval.indexing.adding import index_photos

    home = tmp_path_factory.mktemp("home of somebody")
    photos = home / "my photos"
    (photos / "trip to Rome").mkdir(parents=True)
    for place, path in enumerate(sorted(indexed.photos.iterdir())):
        shutil.copy(path, (photos if place % 2 else photos / "trip to Rome") / path.name)
    (photos / "trip to Rome" / "broken one.jpg").write_bytes(b"no photo")
    (photos / "empty.jpg").write_bytes(b"")
    with Collection.create(home / "my own.cairn", CollectionOptions(signature="none")) as collection:
        report = index_photos(collection, [photos], AddOptions(vocabulary=indexed.folder))
        assert len(report.failed) == 2
        group_photos(collection)
    return home


@pytest.fixture(scope="module")
def live(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    cache = tmp_path_factory.mktemp("served") / "cache"
    folder = home / "my own.cairn"
    with serving(folder, cache, search=ONE, pictures=ONE) as base, httpx.Client(base_url=base, timeout=120) as client:
        photos = client.get("/api/photos", params={"limit": 500}).json()["photos"]
        yield Served(client, folder, home / "my photos", {photo["name"]: photo["number"] for photo in photos})


COFFEE = "coffee_001.jpg"


def test_no_answer_tells_where_things_lie(live: Served) -> None:
    document = live.client.get("/api/openapi.json").json()
    one, other = (next(number for name, number in live.numbers.items() if name.endswith(f"_00{k}.jpg")) for k in (1, 2))
    match = {"q": one, "photo": other}
    asked: dict[str, list[dict[str, object]]] = {
        "/api/match": [match, match | {"format": "csv"}, match | {"format": "jpg"}],
        "/api/photos": [{}, {"name": "coffee"}],
        "/api/search": [{"q": one}, {"q": [one, other], "engine": "tf-idf", "top": 500}],
    }
    routes = {path for path, methods in document["paths"].items() if "get" in methods}
    assert asked.keys() < routes
    missing = 0
    for path in sorted(routes - {"/api/jobs/events"}):  # that one never ends, and says what /api/jobs does
        for fields in asked.get(path, [{}]):
            address = path.replace("{number}", str(one)).replace(
                "{region}/{size}/{rotation}/{file}", "full/64,/0/default.jpg"
            )
            address = re.sub(r"\{\w+\}", "1", address)
            answer = live.client.get(address, params=fields)
            assert answer.status_code in (200, 403, 404, 422) and answer.content, path
            missing += answer.status_code != 200
            live.check(answer)
    assert missing <= len(routes) // 3  # jobs, albums and the like, of which there are none
    live.check(live.client.get("/api/openapi.json"))
    found = live.client.get("/api/search", params={"q": one}).json()["results"]
    assert found and all("path" not in entry for entry in found)
    failed = live.client.get("/api/collection").json()["failed"]
    assert {entry["name"] for entry in failed} == {"trip to Rome/broken one.jpg", "empty.jpg"}
    assert all(entry.keys() == {"name", "reason", "said"} for entry in failed)
    table = live.client.get("/api/groups.csv").text
    assert table.startswith("group,name,duplicate_of,kind,similar_to\n") and COFFEE in table


def test_no_refusal_tells_where_things_lie(live: Served, home: Path) -> None:
    name, number = next((name, number) for name, number in live.numbers.items() if name.endswith(COFFEE))
    file, away = live.photos / name, live.photos / "away.jpg"
    file.rename(away)
    try:
        found = live.client.get("/api/search", params={"q": number})  # by what is stored of it
        assert found.status_code == 200 and found.json()["results"][0]["name"] == name
        live.check(found)
        for path in (f"photos/{number}/image", f"photos/{number}/thumbnail?size=512"):
            answer = live.client.get(f"/api/{path}")
            assert answer.status_code == 410 and "no longer there" in answer.json()["detail"], path
            assert name in answer.json()["detail"]
            live.check(answer)
    finally:
        away.rename(file)
    answer = live.client.get("/api/search", params={"q": number, "engine": "raw"})  # it keeps no descriptors
    assert answer.status_code == 400 and "my own.cairn keeps none" in answer.json()["detail"]
    live.check(answer)


@pytest.mark.slow
def test_a_damaged_collection_is_told_of_by_its_name(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "another one.cairn"
    shutil.copytree(home / "my own.cairn", folder)
    cache = tmp_path / "cache"
    with serving(folder, cache, search=ONE, pictures=ONE) as base, httpx.Client(base_url=base, timeout=120) as client:
        served = Served(client, folder, home / "my photos", {})
        (folder / "groups.json").write_text("{")
        answer = client.get("/api/groups")
        assert answer.status_code >= 400 and "another one.cairn/groups.json is damaged" in answer.json()["detail"]
        served.check(answer)
        (folder / "catalogue.sqlite").write_bytes(b"nothing of the kind" * 1000)
        for path in ("health", "photos", "groups.csv", "collection", "search?q=0", "photos/0/thumbnail"):
            answer = client.get(f"/api/{path}")
            assert answer.status_code >= 400 and answer.json()["detail"].endswith("."), path
            served.check(answer)


def test_operations_have_short_names_of_words(live: Served) -> None:
    document = live.client.get("/api/openapi.json").json()
    names = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names)) > 12
    for name in names:
        assert re.fullmatch(r"[a-z]+(_[a-z]+){0,3}", name), name
        assert not {"api", "get", "post"} & set(name.split("_")), name
    assert document["paths"]["/api/search"]["get"]["operationId"] == "search"


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("/srv/cairn/a.sqlite is missing: run cairn check.", "a.sqlite is missing: run cairn check."),
        ("Run cairn group /srv/my photos.cairn again.", "Run cairn group my photos.cairn again."),
        ("The file /srv/my photos.cairn/groups.json is damaged.", "The file my photos.cairn/groups.json is damaged."),
        (r"C:\Users\me\photo.jpg cannot be read.", "photo.jpg cannot be read."),
        ("'/tmp/x/y.npz' was learnt elsewhere.", "'y.npz' was learnt elsewhere."),
        ("It looks in /mnt/photos/ for it.", "It looks in a folder for it."),
        # These are no paths.
        (
            "Give KEY=VALUE and/or a date such as 3/4, or 12:310,80.",
            "Give KEY=VALUE and/or a date such as 3/4, or 12:310,80.",
        ),
        (
            "See http://localhost:8000/api/openapi.json for more.",
            "See http://localhost:8000/api/openapi.json for more.",
        ),
        ("The photo 'rome/042.jpg' is gone.", "The photo 'rome/042.jpg' is gone."),
    ],
)
def test_sentences_keep_the_names_of_files_alone(sentence: str, told: str) -> None:
    known = names_of_places((Path("/srv/my photos.cairn"), "my photos.cairn"))
    assert without_paths(sentence, known) == told


def test_failed_photos_are_named_below_what_was_indexed() -> None:
    folders = [Path("/home/me/Pictures"), Path("/mnt/card")]
    failed = [
        {"path": "/home/me/Pictures/rome/old/3.jpg", "reason": "/home/me/Pictures/rome/old/3.jpg is empty"},
        {"path": "/mnt/card/4.jpg", "reason": "it is cut short"},
        {"path": "/srv/a/5.jpg", "reason": "it is cut short"},
    ]
    assert failures_by_name(failed, folders) == [
        {"name": "rome/old/3.jpg", "reason": "rome/old/3.jpg is empty"},
        {"name": "4.jpg", "reason": "it is cut short"},
        {"name": "5.jpg", "reason": "it is cut short"},
    ]


def test_addresses_of_databases_and_odd_paths_are_not_told() -> None:
    told = {
        "The database postgresql+psycopg://ann:secret@db.example:5432/photos cannot be reached.": (
            "The database its address cannot be reached."
        ),
        "sqlite:////srv/secret/c.sqlite is locked": "its address is locked",
        "error:/home/ann/x/y.jpg": "error:y.jpg",
        r"\\server\share\a.jpg is missing": "a.jpg is missing",
        "See https://example.org/a/b for more.": "See https://example.org/a/b for more.",
    }
    for sentence, discreet in told.items():
        assert without_paths(sentence) == discreet


def test_photos_removed_for_good_are_counted_and_not_named() -> None:
    secret = {"name": "a.jpg", "path": "/srv/secret/a.jpg", "sha256": "0" * 64, "removed": "2026-01-01"}
    facts = discreet_facts({"images": 3, "failed": [], "removed_for_good": [secret]}, [])
    assert facts == {"images": 3, "failed": [], "removed_for_good": 1}
