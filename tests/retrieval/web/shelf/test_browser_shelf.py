"""The first run in a real browser: an empty home, a collection of a folder, its photos, and the way back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval.web.service import ServeOptions
from retrieval.web.shelf.app import create_shelf_app
from retrieval.web.shelf.shelf import Shelf
from tests.conftest import Indexed
from tests.retrieval.web.shelf.test_app import small
from tests.support.browser import PHONE, SMALLEST, WIDE, tab_to, visiting
from tests.support.browser import chromium as chromium
from tests.support.live import listening

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def shelf(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a live server of an empty home, and the home."""
    home = tmp_path_factory.mktemp("shelf") / "home"
    app = create_shelf_app(home, small(ServeOptions(), roots=(indexed.photos.parent,)))
    with listening(app) as address:
        yield address, home


def test_the_first_collection(chromium: Any, shelf: tuple[str, Path], indexed: Indexed) -> None:
    base, home = shelf
    with visiting(chromium, base, SMALLEST) as visit:
        page = visit.open("/")
        make = page.get_by_role("button", name="Make the collection")
        make.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALLEST[0]
        assert page.get_by_label("Name of the collection").evaluate("one => one === document.activeElement")
        page.get_by_role("button", name=indexed.photos.name, exact=True).press("Enter")
        photos = len(list(indexed.photos.iterdir()))
        page.get_by_text(f"{photos} photos", exact=True).wait_for()
        assert page.get_by_label("Name of the collection").input_value() == indexed.photos.name
        page.get_by_label("Name of the collection").fill("Été <b>1998</b>")
        make.press("Enter")
        page.wait_for_url("**/c/ete-b-1998-b/")
        page.get_by_text("Your photos are being read").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALLEST[0]
        glimpse = page.locator(".glimpses button").first  # they can be looked at before any is known
        if glimpse.is_visible():  # a machine may be quicker
            glimpse.press("Enter")
            page.locator("dialog.glimpse img").evaluate("picture => picture.decode()")
            page.keyboard.press("Escape")
        page.locator("#collection").get_by_text(f"Été <b>1998</b> · {photos} photos").wait_for()  # it comes by itself
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for address in ("search?q=0", "photo?number=0", "groups", "match?q=0&photo=1", "status", "work"):
            visit.open(f"/c/ete-b-1998-b/{address}")
        assert [one for one in asked if not one.startswith((f"{base}/c/ete-b-1998-b/", "blob:", "data:"))] == []
        visit.excuse("/api/groups")  # none were looked for yet
        page = visit.open("/c/ete-b-1998-b/photo?number=1")
        page.get_by_role("button", name="Details").click()
        page.get_by_role("button", name="Use as cover of the collection").press("Enter")
        page.get_by_text("This photo is the cover of the collection now.").wait_for()
        page = visit.open("/c/ete-b-1998-b/work")  # the photo fills the window
        page.get_by_role("link", name="Cairn: all collections").click()
        page.locator(".volume img").evaluate("picture => picture.decode()")
        assert page.locator(".volume img").get_attribute("src").endswith("of=1")
        page.get_by_label("More for “Été <b>1998</b>”").press("Enter")
        page.get_by_role("button", name="Rename").press("Enter")
        page.get_by_role("dialog").get_by_label("Name of the collection").fill("Summer")
        page.get_by_role("dialog").get_by_role("button", name="Rename").click()
        page.get_by_role("link", name="Summer", exact=True).wait_for()
        page.get_by_label("More for “Summer”").click()
        page.get_by_role("button", name="Move to the bin").click()
        page.get_by_role("dialog").get_by_role("button", name="Move to the bin").click()
        make.wait_for()  # the home is empty again
        assert Shelf(home).names() == [] and len(list((home / "bin").iterdir())) == 1
        page.get_by_text("1 collection in the bin").wait_for()
        page.get_by_role("button", name="Put “Summer” back").click()
        page.get_by_text("“Summer” is back.").wait_for()
        assert make.is_hidden() and page.get_by_text("in the bin", exact=False).last.is_hidden()
        Shelf(home).discard(Shelf(home).names()[0])


@pytest.mark.parametrize(("size", "language"), [((1280, 800), "en"), ((1280, 800), "de"), (PHONE, "de")])
def test_the_button_of_the_first_page_is_in_sight(
    chromium: Any, indexed: Indexed, tmp_path: Path, size: tuple[int, int], language: str
) -> None:
    for number in range(40):
        (tmp_path / "photos" / f"folder {number}").mkdir(parents=True)
    app = create_shelf_app(tmp_path / "home", small(ServeOptions(), roots=(tmp_path / "photos",)))
    with listening(app) as base, visiting(chromium, base, size, locale=language) as visit:
        button = visit.open("/").locator(".make .primary")
        button.wait_for()
        seen = button.bounding_box()
        assert seen["y"] >= 0 and seen["y"] + seen["height"] <= size[1]


def test_the_first_collection_by_the_keyboard_alone(chromium: Any, shelf: tuple[str, Path], indexed: Indexed) -> None:
    base, home = shelf
    with visiting(chromium, base, WIDE) as visit:
        page = visit.open("/")
        page.get_by_role("button", name="Make the collection").wait_for()
        page.keyboard.type("Keys")  # the name has the focus
        tab_to(page, "button", indexed.photos.name)
        page.keyboard.press("Enter")
        photos = len(list(indexed.photos.iterdir()))
        page.get_by_text(f"{photos} photos", exact=True).wait_for()
        tab_to(page, "button", "Make the collection")
        page.keyboard.press("Enter")
        page.wait_for_url("**/c/keys/")
        page.locator("#collection").get_by_text(f"Keys · {photos} photos").wait_for()
        page.locator("#photos a").first.wait_for()
        tab_to(page, "#photos a")
        page.keyboard.press("Enter")
        page.wait_for_url("**/c/keys/photo?*")
        page.locator(".box-canvas").wait_for()
        page.keyboard.press("Escape")
        page.wait_for_url("**/c/keys/")
    assert Shelf(home).names() == ["keys"]


@pytest.mark.parametrize("size", [PHONE, (2560, 1200)])
def test_the_list_fits_every_window_and_keeps_markup_as_text(
    chromium: Any, indexed: Indexed, shelf: tuple[str, Path], size: tuple[int, int]
) -> None:
    base, home = shelf
    link = home / "<img src=x onerror=alert(1)>.cairn"
    link.symlink_to(indexed.folder)
    try:
        with visiting(chromium, base, size) as visit:
            page = visit.open("/")
            page.get_by_role("link", name="<img src=x onerror=alert(1)>").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
            page.get_by_role("button", name="New collection").click()
            page.get_by_role("button", name="Cancel").click()
            assert page.get_by_role("button", name="New collection").evaluate("one => one === document.activeElement")
    finally:
        link.unlink()
