"""Work in a real browser: photos are added to an empty collection, followed while they are indexed, and found."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from tests.conftest import Indexed
from tests.support.books import PAGES
from tests.support.browser import DESKTOP, SMALLEST, visiting
from tests.support.browser import chromium as chromium
from tests.support.films import FPS, shot, write_film
from tests.support.hostile import photo
from tests.support.iiif_server import serve_iiif
from tests.support.live import serving

pytestmark = pytest.mark.browser


@pytest.fixture
def empty(indexed: Indexed, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server of an empty collection, and a folder of photos that it may read."""
    photos = tmp_path / "Pictures" / "trip <i>"
    photos.mkdir(parents=True)
    for path in sorted(indexed.photos.iterdir())[:4]:
        shutil.copy(path, photos)
    (photos / "broken <b>.jpg").write_bytes(b"no photo")
    folder = tmp_path / "new.cairn"
    Collection.create(folder, CollectionOptions(signature="none")).catalogue.close()
    with serving(folder, tmp_path / "cache", roots=(photos.parent,)) as address:
        yield address, photos


def follow(page: Any) -> None:
    """Wait until what was begun has ended."""
    page.wait_for_selector(".job[data-state=done], .job[data-state=failed]")


@pytest.mark.slow
def test_photos_are_added_followed_and_tried_again(chromium: Any, empty: tuple[str, Path], indexed: Indexed) -> None:
    address, photos = empty
    with visiting(chromium, address, DESKTOP) as visit:
        page = visit.open("/work")
        page.get_by_role("button", name="trip <i>").click()
        page.locator(".folders [aria-current]", has_text="trip <i>").wait_for()
        page.get_by_role("button", name="Add these photos").click()
        page.wait_for_selector("#now .job")
        bars = page.locator("#now progress")
        follow(page)
        assert bars.count() == 0
        card = page.locator("#past .job").first
        assert card.locator("h3").text_content() == "Add photos: trip <i>"
        assert "4 photos were added. 1 could not be read." in card.locator(".measure").text_content()
        card.locator("summary").click()
        assert card.locator(".what").text_content() == "broken <b>.jpg"
        shutil.copy(sorted(indexed.photos.iterdir())[5], photos / "broken <b>.jpg")
        card.get_by_role("button", name="Try again").click()
        page.wait_for_selector("#past .job:nth-child(2)")
        assert "1 photo was added." in page.locator("#past .job").first.locator(".measure").text_content()
        card.get_by_role("button", name="Remove from the list").last.click()
        page.wait_for_selector("#past .job:nth-child(2)", state="detached")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_uploads_pause_and_cancel(chromium: Any, empty: tuple[str, Path], indexed: Indexed) -> None:
    address, _ = empty
    with visiting(chromium, address, SMALLEST) as visit:
        page = visit.open("/work")
        files = [str(path) for path in sorted(indexed.photos.iterdir())]
        page.locator("#add-files").set_input_files(files)
        page.wait_for_selector("#now .job[data-state=running]")
        page.locator("#now").get_by_role("button", name="Pause").click()
        page.wait_for_selector("#now .job[data-state=paused]")
        text = page.locator("#now .measure").text_content()
        time.sleep(1)
        assert page.locator("#now .measure").text_content() == text
        page.reload()  # nothing of it is the page's own
        page.locator("#now").get_by_role("button", name="Go on").click()
        page.wait_for_selector("#now .job[data-state=running]")
        page.locator("#now").get_by_role("button", name="Cancel").click()
        page.wait_for_selector("#past .job[data-state=cancelled]")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_films_are_uploaded_and_played(chromium: Any, empty: tuple[str, Path], tmp_path: Path) -> None:
    film = write_film(tmp_path / "trip.webm", *(shot(name, 15) for name in PAGES[:2]))
    (tmp_path / "broken.mp4").write_bytes(b"no film")
    (tmp_path / "notes.txt").write_text("no film")
    with visiting(chromium, empty[0], DESKTOP) as visit:
        page = visit.open("/work")
        page.locator("#add-files").set_input_files([str(tmp_path / "notes.txt")])
        page.get_by_text("None of these files is a photo or a film.").wait_for()
        page.locator("#add-files").set_input_files([str(film), str(tmp_path / "broken.mp4")])
        page.get_by_text("2 of 2 files uploaded").wait_for()
        follow(page)
        card = page.locator("#past .job").first
        assert "2 photos were added. 1 could not be read." in card.locator(".measure").text_content()
        card.locator("summary").click()
        assert card.locator(".what").text_content().endswith("broken.mp4")
        page = visit.open("/?order=name")
        page.get_by_role("link", name="trip.webm at 00:00:00").click()
        page.get_by_role("button", name="Play from 00:00:00").click()
        began = """video => new Promise((resolve) => {
            const tell = () => resolve(video.currentTime);
            video.readyState > 1 ? tell() : video.addEventListener("loadeddata", tell);
        })"""
        assert page.locator("video").evaluate(began) >= 15 / FPS


@pytest.mark.slow
def test_pages_of_a_library_are_added_and_those_that_lack_are_told(chromium: Any, tmp_path: Path) -> None:
    folder = tmp_path / "new.cairn"
    Collection.create(folder, CollectionOptions(signature="none")).catalogue.close()
    with serve_iiif() as library, serving(folder, tmp_path / "cache", iiif_hosts=("127.0.0.1",)) as address:
        library.pictures = {name: photo(name, (320, 240)) for name in PAGES[:2]}
        leaves = {name: f"f. {place}r" for place, name in enumerate([*PAGES[:2], "lost"], 1)}
        book = library.add_json("/book.json", library.manifest("/book.json", leaves))
        with visiting(chromium, address, DESKTOP) as visit:
            page = visit.open("/work")
            card = page.locator("#past .job").first
            for asked, told in (
                (book, "Ship of Fools: 2 photos were added. 1 page could not be fetched."),
                (f"{library.address}/none.json", "there is nothing at"),
            ):
                page.get_by_label("Address of an IIIF manifest").fill(asked)
                page.get_by_role("button", name="Add these pages").click()
                card.get_by_text(told).wait_for()
            card = page.locator("#past .job").nth(1)
            card.locator("summary").click()
            assert card.locator(".what").text_content() == "Ship of Fools, f. 3r"
            visit.open("/").get_by_role("link", name="Ship of Fools, f. 2r").wait_for()
