"""A folder that has gone: told without where it lay, looked for where it is now; no browser keeps what went wrong."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from tests.conftest import Indexed
from tests.support.browser import DESKTOP, PHONE, chromium, violations, visiting
from tests.support.live import client_of, ended, serving

__all__ = ["chromium"]  # a fixture


@pytest.fixture
def home(indexed: Indexed, tmp_path: Path) -> Path:
    """A collection of two folders of photos, one of them below the root that photos are chosen from."""
    for name, start in (("Rome <b>", 0), ("Paris", 6)):
        (tmp_path / "disk" / name).mkdir(parents=True)
        for path in sorted(indexed.photos.iterdir())[start : start + 6]:
            shutil.copy(path, tmp_path / "disk" / name / path.name)
    with Collection.create(tmp_path / "own.cairn", CollectionOptions(signature="none")) as collection:
        for folder in sorted((tmp_path / "disk").iterdir()):
            index_photos(collection, [folder], AddOptions(vocabulary=indexed.folder))
    return tmp_path


@pytest.fixture
def served(home: Path) -> Iterator[str]:
    (home / "shelves").mkdir()
    with serving(home / "own.cairn", home / "cache", roots=(home / "shelves",)) as address:
        yield address


def away(client: httpx.Client) -> list[dict[str, Any]]:
    answer = client.get("/api/away")
    assert answer.status_code == 200
    return list(answer.json()["folders"])


def number_in(client: httpx.Client, folder: str, home: Path) -> int:
    names = {path.name for path in (home / "disk" / folder).iterdir()}
    return next(int(one["number"]) for one in client.get("/api/photos").json()["photos"] if one["name"] in names)


def test_a_folder_that_has_gone_is_told_and_found_elsewhere(served: str, home: Path) -> None:
    with client_of(served) as client:
        assert away(client) == []
        number = number_in(client, "Rome <b>", home)
        shutil.move(home / "disk" / "Rome <b>", home / "shelves" / "Roma")
        (gone,) = away(client)
        assert (gone["name"], gone["photos"]) == ("Rome <b>", 6) and str(home) not in client.get("/api/away").text
        refused = client.get(f"/api/photos/{number}/image")
        assert refused.status_code == 410 and refused.headers["cache-control"] == "no-store"
        assert "cairn " not in refused.text and "say where its folder is now" in refused.text
        begun = client.post("/api/jobs", json={"kind": "move", "folder": gone["id"], "root": 0, "path": "Roma"})
        assert begun.status_code == 201 and begun.json()["about"] == "Rome <b>"
        job = ended(client, begun.json()["id"])
        assert job["state"] == "done" and len(job["result"]["moved"]) == 6 and job["result"]["left"] == []
        assert str(home) not in str(job)
        assert away(client) == []
        assert client.get(f"/api/photos/{number}/image").status_code == 200
        again = client.post("/api/jobs", json={"kind": "move", "folder": gone["id"], "root": 0, "path": "Roma"})
        assert again.status_code == 409


@pytest.mark.slow
def test_only_folders_below_the_roots_are_taken_and_only_by_who_may_write(served: str, home: Path) -> None:
    with client_of(served) as client:
        shutil.move(home / "disk" / "Paris", home / "elsewhere")
        (home / "shelves" / "out").symlink_to(home / "elsewhere")
        (gone,) = away(client)
        for path in ("../elsewhere", "out", "none", str(home / "elsewhere")):
            asked = {"kind": "move", "folder": gone["id"], "root": 0, "path": path}
            assert client.post("/api/jobs", json=asked).status_code == 404
        for folder in ("", "0" * 16, str(home / "disk" / "Paris"), str(home / "disk" / "Rome <b>")):
            asked = {"kind": "move", "folder": folder, "root": 0, "path": ""}
            assert client.post("/api/jobs", json=asked).status_code in (409, 422)
        # One where the photos are not: nothing is changed.
        (home / "shelves" / "empty").mkdir()
        begun = client.post("/api/jobs", json={"kind": "move", "folder": gone["id"], "root": 0, "path": "empty"}).json()
        job = ended(client, begun["id"])
        assert job["state"] == "failed" and "nothing was changed" in job["error"] and str(home) not in job["error"]
        assert away(client) == [gone]


@pytest.mark.slow
@pytest.mark.browser
def test_the_page_says_so_and_asks_where_it_is(chromium: Any, served: str, home: Path) -> None:
    with visiting(chromium, served, DESKTOP, bypass_csp=True, reduced_motion="reduce") as visit:
        with client_of(served) as client:
            number = number_in(client, "Rome <b>", home)
        shutil.move(home / "disk" / "Rome <b>", home / "shelves" / "Roma")
        said = "The folder Rome <b> cannot be found: searches still find its 6 photos, but they cannot be shown."
        page = visit.open("/status")
        assert page.locator("#away .note > p").first.inner_text() == said
        assert said in page.locator("#holdings").inner_text()
        page = visit.open(f"/photo?number={number}")
        visit.excuse("410")
        assert page.locator("#away").inner_text().startswith(said)
        assert violations(page) == []
        page = visit.open("/")
        page.get_by_role("button", name="Where is it now?").click()
        page.get_by_role("button", name="Roma").click()
        page.get_by_role("button", name="It is this folder").click()
        page.get_by_text("6 photos were found there.").wait_for()
        page.get_by_role("button", name="Look again").last.click()
        page.wait_for_load_state("networkidle")
        assert page.locator("#away").count() == 0
        page = visit.open(f"/photo?number={number}")  # the browser has not kept that it was broken
        page.locator(".box-canvas img").first.evaluate("picture => picture.decode()")
        assert not [one for one in visit.complaints if "410" not in one]
        visit.complaints.clear()


@pytest.mark.browser
def test_the_banner_fits_a_phone_and_is_told_in_german(chromium: Any, served: str, home: Path) -> None:
    (home / "disk" / "Paris").rename(home / "elsewhere")
    with visiting(chromium, served, PHONE, locale="de") as visit:
        page = visit.open("/")
        assert page.locator("#away").inner_text().startswith("Der Ordner Paris ist nicht da: ")
        page.get_by_role("button", name="Wo ist er jetzt?").click()
        page.get_by_role("button", name="Es ist dieser Ordner").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert all("410" in one for one in visit.complaints)  # of its thumbnails
        visit.complaints.clear()
