"""Decisions about photos over HTTP: no match, saved searches, duplicates, hidden photos, the bin."""

import csv
import io
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

import cairn as library
from retrieval.catalogue.changes import PhotoMove, move_photos
from retrieval.catalogue.curation.hidden import hidden_photos
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.groups.groups import FoundGroup, FoundGroups
from retrieval.jobs.child import NICE
from retrieval.library.print_clock import ClockDecisions, clock_key, kept_decisions
from retrieval.library.standing import ask_standing
from retrieval.web.routes import duplicates as routes
from tests.support.live import serving
from tests.support.patience import patience


@dataclass(frozen=True)
class Served:
    """A live server of a collection that may be changed."""

    base: str
    folder: Path  # the collection
    photos: Path
    bin: Path

    def ask(self, method: str, path: str, expected: int = 200, **how: Any) -> Any:
        """Ask, and give the answer's JSON."""
        answer = httpx.request(method, self.base + path, timeout=60, headers={"X-Cairn": "1"}, **how)
        assert answer.status_code == expected, answer.text
        return answer.json() if answer.content and "json" in answer.headers["content-type"] else answer.content

    def numbers(self, **fields: Any) -> dict[str, int]:
        """Photos that are listed, by name."""
        listed = self.ask("GET", "/api/photos", params={"limit": 500, **fields})
        assert listed["total"] == len(listed["photos"])
        return {photo["name"]: photo["number"] for photo in listed["photos"]}


@pytest.fixture(scope="module")
def home(linked: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The linked photos, grouped, with photos of their own that may be moved, and a bin."""
    folder = tmp_path_factory.mktemp("home")
    photos = Path(shutil.copytree(linked.parent / "photos", folder / "photos"))
    shutil.copytree(linked, folder / "c.cairn")
    with library.open(folder / "c.cairn") as collection:
        rows = collection.opened.catalogue.read(all_indexed)
        states = [(photos / Path(row.path).name).stat() for row in rows]
        collection.opened.catalogue.write(
            move_photos,
            [
                PhotoMove(row.number, str(photos / Path(row.path).name), None, state.st_size, state.st_mtime_ns)
                for row, state in zip(rows, states, strict=True)
            ],
        )
        collection.group(workers=1)
    with serving(folder / "c.cairn", folder / "cache", bin=folder / "bin") as base:
        yield Served(base, folder / "c.cairn", photos, folder / "bin")


def test_no_match_is_remembered_by_photo_and_by_upload(home: Served) -> None:
    numbers = home.numbers()
    one, other = numbers["coffee_0.png"], numbers["coffee_1.png"]
    how = {"q": one, "turns": 1}
    assert other in [found["number"] for found in home.ask("GET", "/api/search", params=how)["results"]]
    assert home.ask("POST", "/api/rejections", json={"photo": one, "photos": [other, 99]}) == {"changed": [other]}
    answer = home.ask("GET", "/api/search", params=how)
    assert answer["rejected"] == [other] and other not in [found["number"] for found in answer["results"]]
    (listed,) = home.ask("GET", "/api/rejections", params={"photo": other})
    assert listed["number"] == one
    home.ask("DELETE", "/api/rejections", params={"photo": one, "photos": [other]})
    assert "rejected" not in home.ask("GET", "/api/search", params=how)

    upload = {"photos": ("x.png", (home.photos / "coffee_0.png").read_bytes() + b"\0")}
    form = {"request": '{"queries": [{"upload": 0}], "turns": 1}'}
    (sha256,) = home.ask("POST", "/api/search", files=upload, data=form)["uploads"]
    home.ask("POST", "/api/rejections", json={"upload": sha256, "photos": [other]})
    assert home.ask("POST", "/api/search", files=upload, data=form)["rejected"] == [other]
    home.ask("DELETE", "/api/rejections", params={"upload": sha256, "photos": [other]})
    for wrong in ({"photos": [other]}, {"photo": one, "upload": sha256, "photos": [1]}, {"photo": one, "photos": []}):
        home.ask("POST", "/api/rejections", 422, json=wrong)
    home.ask("POST", "/api/rejections", 422, json={"upload": "x" * 64, "photos": [other]})
    home.ask("GET", "/api/rejections", 422)


def test_what_a_search_finds_among_all_photos_is_categorised(home: Served) -> None:
    numbers = home.numbers()
    wish = {"name": "Cup", "queries": [{"photo": numbers["coffee_0.png"], "box": [20, 20, 380, 380]}]}
    search = home.ask("POST", "/api/saved", 201, files={"request": (None, field(wish | {"options": {"turns": 1}}))})
    at = f"/api/saved/{search['id']}"
    assert home.ask("GET", f"{at}/finds") == []
    asked = home.ask("POST", f"{at}/ask")
    found = {one["name"]: one for one in home.ask("GET", f"{at}/finds")}
    assert found.keys() >= {"coffee_0.png", "coffee_1.png"} and (asked["found"], asked["new"]) == (len(found), 0)
    one = found["coffee_1.png"]
    assert (one["book"], one["page_label"], one["category"], one["seen"]) == ("coffee_1", "coffee_1", None, True)
    assert one["probability"] >= 0.8 and len(one["region"]) >= 3
    put = {"photos": [one["number"], numbers["chelsea_0.png"]], "category": "=1+1"}
    home.ask("PATCH", f"{at}/finds", 204, json=put)
    home.ask("POST", f"{at}/ask")
    table = home.ask("GET", f"{at}/finds.csv", params={"category": "=1+1"}).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["photo"], row["category"]) for row in rows] == [
        ("chelsea_0.png", "'=1+1"),
        ("coffee_1.png", "'=1+1"),
    ]
    told = home.ask("GET", "/api/books")  # each photo is in no folder, and so a book
    shared = {(one["first"], one["second"]): one for one in told["pairs"]}
    (page,) = shared["coffee_0", "coffee_1"]["pages"]
    assert page["numbers"] == [numbers["coffee_0.png"], numbers["coffee_1.png"]] and page["searches"] == ["Cup"]
    assert ("chelsea_0", "chelsea_1") in shared and told["grouped"] and told["total"] == len(shared)  # by a group
    rows = list(csv.reader(io.StringIO(home.ask("GET", "/api/books.csv").decode("utf-8-sig"))))
    assert rows[0] == ["", *told["books"]] and len(rows) == 1 + len(told["books"])
    only = home.ask("GET", "/api/books", params={"category": "=1+1"})
    assert {page for one in only["pairs"] for page in one["pages"][0]["searches"]} == {"Cup"}
    home.ask("PATCH", f"{at}/finds", 422, json=put | {"category": "x" * 201})
    home.ask("PATCH", "/api/saved/99/finds", 404, json=put)
    for method, path in (("POST", "ask"), ("GET", "finds.csv")):
        home.ask(method, f"/api/saved/99/{path}", 404)
    home.ask("DELETE", at, 204)


def test_decisions_about_a_print_clock_are_kept(home: Served) -> None:
    numbers = home.numbers()
    one, other = (numbers[f"coffee_{place}.png"] for place in (0, 1))
    path, asked = "/api/impressions/clock", {"q": f"{one}:0,0,399,299"}
    home.ask("PUT", path, 204, params=asked, json={"clock": "widths", "before": [[one, other]]})
    with library.open(home.folder) as collection:
        kept = collection.opened.catalogue.read(kept_decisions, clock_key(one, (0, 0, 399, 299)))
    assert kept == ClockDecisions("widths", before=((one, other),))
    home.ask("PUT", path, 422, params=asked, json={"regions": [[9, 0, 3, 4]]})
    home.ask("PUT", path, 404, params={"q": "987654"}, json={})
    home.ask("PUT", path, 204, params=asked, json={})


@pytest.mark.slow
def test_a_search_is_saved_with_the_pixels_of_an_upload(home: Served) -> None:
    numbers = home.numbers()
    name = "<img src=x onerror=alert(1)>"
    plain = {"name": name, "queries": [{"photo": numbers["coffee_0.png"], "box": [0, 0, 99, 99]}]}
    one = home.ask("POST", "/api/saved", 201, files={"request": (None, field(plain))})
    assert (one["name"], one["cover"], one["uploaded"], one["options"]) == (name, numbers["coffee_0.png"], False, {})
    home.ask("GET", f"/api/saved/{one['id']}/photo", 404)

    with Image.open(home.photos / "astronaut_1.png") as picture:
        large = picture.convert("RGB").resize((3000, 3000 * picture.height // picture.width))
    buffer = io.BytesIO()
    large.save(buffer, "PNG")
    wish = {
        "name": "Mine",
        "queries": [{"name": "mine.png", "box": [600, 300, 2400, 1800]}],
        "options": {"turns": 1},
        "standing": True,
        "tag": "face",
    }
    form = {"request": (None, field(wish)), "photo": ("mine.png", buffer.getvalue())}
    mine = home.ask("POST", "/api/saved", 201, files=form)
    assert mine["uploaded"] and mine["options"] == {"turns": 1} and mine["cover"] is None
    with Image.open(io.BytesIO(home.ask("GET", f"/api/saved/{mine['id']}/photo"))) as kept:
        assert max(kept.size) == 2048 and kept.format == "JPEG"
    factor = 2048 / 3000
    assert mine["queries"][0]["box"] == pytest.approx(
        [(value + 0.5) * factor - 0.5 for value in wish["queries"][0]["box"]]
    )
    # Another photo comes.
    shutil.copy(home.photos / "astronaut_2.png", home.photos / "later.png")
    with Image.open(home.photos / "later.png") as picture:
        picture.convert("RGB").save(home.photos / "later.png")
    with library.open(home.folder) as collection:
        collection.add(home.photos, workers=1)
        assert [len(asking.found) for asking in ask_standing(collection.opened)] == [1]
    (find,) = home.ask("GET", f"/api/saved/{mine['id']}/finds")
    assert (find["name"], find["seen"], find["tags"]) == ("later.png", False, ["face"]) and len(find["region"]) >= 3
    assert [(each["name"], each["new"]) for each in home.ask("GET", "/api/saved")] == [(name, 0), ("Mine", 1)]
    home.ask("POST", f"/api/saved/{mine['id']}/seen", 204, json={"photos": [find["number"]]})
    changed = home.ask("PATCH", f"/api/saved/{mine['id']}", json={"favourite": True, "tag": "", "name": " My\tface "})
    assert (changed["name"], changed["favourite"], changed["tag"], changed["new"]) == ("My face", True, None, 0)
    home.ask("PATCH", f"/api/saved/{mine['id']}", 422, json={"name": "\t"})
    home.ask("PATCH", "/api/saved/99", 404, json={"name": "x"})
    home.ask("GET", "/api/saved/99/finds", 404)
    for each in (one, mine):
        home.ask("DELETE", f"/api/saved/{each['id']}", 204)
    assert home.ask("GET", "/api/saved") == []
    # What is wrong is said.
    for wrong in ({"name": "x", "queries": []}, plain | {"name": ""}, {"name": "x", "queries": [{"box": [1, 2, 3]}]}):
        home.ask("POST", "/api/saved", 422, files={"request": (None, field(wrong))})
    home.ask("POST", "/api/saved", 422, files={"request": (None, field({"name": "x", "queries": [{}]}))})
    home.ask("POST", "/api/saved", 422, files={"request": (None, field(plain)), "photo": ("x", b"x")})
    broken = {"request": (None, field({"name": "x", "queries": [{}]})), "photo": ("x", b"no photo")}
    home.ask("POST", "/api/saved", 415, files=broken)


def test_duplicates_are_kept_hidden_or_moved_to_the_bin_and_back(home: Served) -> None:
    page = home.ask("GET", "/api/duplicates")
    sets = [[photo["name"] for photo in one["photos"]] for one in page["sets"]]
    assert [one[:2] for one in sets] == [
        ["astronaut_0.png", "astronaut_copy.png"],
        ["chelsea_0.png", "chelsea_small.jpg"],
        ["coffee_0.png", "coffee_1.png"],
    ]
    assert [set(one[2:]) for one in sets] == [{"astronaut_1.png", "astronaut_2.png"}, {"chelsea_1.png"}, set()]
    assert page["total"] == 3 and page["bin"]
    assert [one["reasons"] for one in page["sets"]] == [["kind", "copy"], ["kind", "resolution"], ["kind"]]
    told = {photo["name"]: (photo["kind"], photo["stays"]) for one in page["sets"] for photo in one["photos"]}
    assert {name for name, (kind, stays) in told.items() if (kind, stays) == (None, None)} == {
        "astronaut_0.png",
        "chelsea_0.png",
        "coffee_0.png",
    }
    assert told["astronaut_copy.png"] == told["chelsea_small.jpg"] == ("copy", None)
    assert told["astronaut_1.png"] == told["chelsea_1.png"] == told["coffee_1.png"] == ("part", "kind")
    assert (page["copies"], page["similar"]) == (3, 0)
    assert [one["proposed"] for one in page["sets"]] == ["hide", "hide", "keep"]
    assert home.ask("GET", "/api/duplicates", params={"similar": True}) == page | {"total": 0, "sets": []}
    small = page["sets"][1]["photos"][1]
    assert small["format"] == "jpg" and small["size"] == (home.photos / "chelsea_small.jpg").stat().st_size

    every = [photo["number"] for photo in page["sets"][0]["photos"]]
    home.ask("POST", "/api/duplicates/kept", json={"photos": every})
    assert home.ask("GET", "/api/duplicates")["total"] == 2
    home.ask("POST", "/api/duplicates/ask", json={"photos": every})
    assert home.ask("GET", "/api/duplicates")["total"] == 3
    both = every[:2]
    home.ask("POST", "/api/hidden", json={"photos": both[1:], "because": "duplicate"})
    assert [photo["number"] for photo in home.ask("GET", "/api/duplicates")["sets"][1]["photos"]] == every[:1] + every[
        2:
    ]
    assert "astronaut_copy.png" not in home.numbers() and list(home.numbers(hidden=True)) == ["astronaut_copy.png"]
    home.ask("PATCH", "/api/photos", json={"photos": both, "tags_add": ["moon"]})
    assert {"tag": "moon", "photos": 1} in home.ask("GET", "/api/tags")["tags"]  # as many as are shown
    assert sum(one["photos"] for one in home.ask("GET", "/api/folders")["folders"]) == len(home.numbers())
    home.ask("POST", "/api/hidden/show", json={"photos": both[1:]})
    assert {"tag": "moon", "photos": 2} in home.ask("GET", "/api/tags")["tags"]
    home.ask("PATCH", "/api/photos", json={"photos": both, "tags_remove": ["moon"]})
    assert "astronaut_copy.png" in home.numbers()

    before = home.numbers()
    moved = home.ask("POST", "/api/bin", json={"photos": [small["number"], 99]})
    assert [one["name"] for one in moved["moved"]] == ["chelsea_small.jpg"] and moved["failed"] == []
    assert not (home.photos / "chelsea_small.jpg").exists() and "chelsea_small.jpg" not in home.numbers()
    assert [one["id"] for one in home.ask("GET", "/api/bin")] == [moved["moved"][0]["id"]]
    picture = home.ask("GET", f"/api/bin/{moved['moved'][0]['id']}/picture")
    assert max(Image.open(io.BytesIO(picture)).size) <= 256
    for wrong in ("20200101T000000-0123456789abcdef", "..%2F..%2Fphotos"):
        home.ask("GET", f"/api/bin/{wrong}/picture", 404)
    home.ask("POST", "/api/bin/back", json={"entries": ["..", "../../photos"]})
    (home.photos / "chelsea_small.jpg").touch()
    german = {"cookies": {"cairn-language": "de"}, "json": {"entries": [moved["moved"][0]["id"]]}}
    (left,) = home.ask("POST", "/api/bin/back", **german)["failed"]
    assert left["reason"] == "Wo chelsea_small.jpg war, liegt jetzt eine andere Datei: Es bleibt im Papierkorb."
    (home.photos / "chelsea_small.jpg").unlink()
    back = home.ask("POST", "/api/bin/back", json={"entries": [moved["moved"][0]["id"]]})
    assert [one["name"] for one in back["moved"]] == ["chelsea_small.jpg"] and back["job"] is None
    assert (home.photos / "chelsea_small.jpg").is_file() and home.numbers() == before
    assert home.ask("GET", "/api/bin") == [] and list(home.bin.iterdir()) == []


def test_copies_say_what_they_are_and_similar_shots_are_a_list_of_their_own(
    home: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with several_kinds(home, monkeypatch) as of:
        page = home.ask("GET", "/api/duplicates")
        copies = {photo["name"]: (photo["kind"], photo["stays"]) for photo in page["sets"][0]["photos"]}
        assert copies == {
            "coffee_0.png": (None, None),
            "coffee_1.png": ("part", "kind"),
            "chelsea_0.png": ("negative", None),
        }
        assert (page["total"], page["copies"], page["similar"]) == (1, 1, 1)
        (shots,) = home.ask("GET", "/api/duplicates", params={"similar": True})["sets"]
        assert {photo["name"] for photo in shots["photos"]} == {"astronaut_0.png", "astronaut_1.png"}
        assert {(photo["kind"], photo["stays"]) for photo in shots["photos"]} == {(None, None)}
        assert shots["proposed"] == "keep"

        titled = of["chelsea_0.png"]
        home.ask("PATCH", "/api/photos", json={"photos": [titled], "title": "A cup"})
        (one,) = home.ask("GET", "/api/duplicates")["sets"]
        assert one["photos"][0]["name"] == "coffee_0.png"
        assert {photo["name"]: photo["stays"] for photo in one["photos"]} == {
            "coffee_0.png": None,
            "coffee_1.png": "kind",
            "chelsea_0.png": "said",
        }
        home.ask("PATCH", "/api/photos", json={"photos": [titled], "title": ""})


@contextmanager
def several_kinds(home: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Photos by name, while copies of several kinds and similar shots are said to be found among them."""
    of = home.numbers()
    photos = tuple(of[name] for name in ("coffee_0.png", "coffee_1.png", "chelsea_0.png"))
    first, *versions = photos
    shots = tuple(sorted(of[name] for name in ("astronaut_0.png", "astronaut_1.png")))

    def read(collection: Collection) -> FoundGroups:
        hidden = collection.catalogue.read(hidden_photos)
        kinds = {one: kind for one, kind in zip(versions, ("part", "negative"), strict=True) if one not in hidden}
        copies = FoundGroup(1, photos, 2, dict.fromkeys(kinds, first), kinds)
        return FoundGroups((copies, FoundGroup(2, shots, 1, {}, {}, (shots,))), 20, len(of))

    with monkeypatch.context() as patch:
        patch.setattr(routes, "read_groups", read)
        yield of


@pytest.mark.slow
def test_what_the_collection_forgot_is_indexed_again_when_it_is_put_back(home: Served, tmp_path: Path) -> None:
    number = home.numbers()["chelsea_small.jpg"]
    (moved,) = home.ask("POST", "/api/bin", json={"photos": [number]})["moved"]
    with library.open(home.folder) as collection:
        collection.compact()
    back = home.ask("POST", "/api/bin/back", json={"entries": [moved["id"]]})
    assert (back["moved"], back["job"]) == ([], None) and "does not take photos" in back["failed"][0]["reason"]
    assert [one["id"] for one in home.ask("GET", "/api/bin")] == [moved["id"]]
    with serving(home.folder, tmp_path / "cache", bin=home.bin, roots=(home.photos,)) as base:
        other = Served(base, home.folder, home.photos, home.bin)
        back = other.ask("POST", "/api/bin/back", json={"entries": [moved["id"]]})
        assert [one["id"] for one in back["moved"]] == [moved["id"]] and (home.photos / "chelsea_small.jpg").is_file()
        end = time.monotonic() + patience(100, NICE)
        while other.ask("GET", f"/api/jobs/{back['job']}")["state"] not in ("done", "failed"):
            assert time.monotonic() < end
            time.sleep(0.3)
    assert "chelsea_small.jpg" in home.numbers()


@pytest.mark.slow
def test_without_the_option_no_file_is_moved(home: Served, tmp_path: Path) -> None:
    number = home.numbers()["chelsea_small.jpg"]
    with serving(home.folder, tmp_path / "cache") as base:
        other = Served(base, home.folder, home.photos, home.bin)
        assert other.ask("GET", "/api/duplicates")["bin"] is False
        assert "--bin" in other.ask("POST", "/api/bin", 403, json={"photos": [number]})["detail"]
        other.ask("GET", "/api/bin", 403)
    assert (home.photos / "chelsea_small.jpg").is_file()


def field(value: object) -> bytes:
    """JSON as a form's field."""
    return json.dumps(value).encode()
