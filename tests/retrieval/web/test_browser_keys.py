"""What people do most, by the keyboard alone in a real browser; duplicates and the first run are with their pages."""

from typing import Any

import pytest

from tests.conftest import Indexed
from tests.retrieval.web.test_browser_curation import served
from tests.support.browser import WIDE, Visit, chromium, tab_to, visiting, wait_for_results

__all__ = ["chromium", "served"]  # fixtures

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"))


def test_a_box_in_a_photo_that_was_found_is_searched_for(chromium: Any, served: str) -> None:
    with visiting(chromium, served, WIDE) as visit:
        page = visit.open("/search?q=" + str(visit.number("coffee_001.jpg")))
        assert wait_for_results(page)[0] == "coffee_001.jpg"
        tab_to(page, "#results .result a[href*='/photo?']", "coffee_002.jpg")
        page.keyboard.press("Enter")
        page.wait_for_url("**/photo?*")
        page.locator(".box-canvas img").evaluate("picture => picture.decode()")
        page.keyboard.press("b")
        page.keyboard.press("Enter")  # a box in the middle
        page.get_by_role("link", name="Search with this box").wait_for()
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search?*:*")
        assert "coffee_002.jpg" in wait_for_results(page)
        tab_to(page, "#results .result a[href*='/match?']")
        page.keyboard.press("Enter")
        page.wait_for_url("**/match?*")
        page.locator("#pair .match").first.wait_for()


def test_photos_are_selected_put_into_an_album_and_named(chromium: Any, served: str, indexed: Indexed) -> None:
    with visiting(chromium, served, WIDE) as visit:
        page = visit.open("/")
        tab_to(page, "#photos a")
        page.keyboard.press("x")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("x")
        assert page.locator("#chosen").inner_text() == "2 photos selected"
        tab_to(page, "#to-album")
        page.keyboard.press("Enter")
        page.get_by_role("dialog").wait_for()
        page.keyboard.type("By keys")
        page.keyboard.press("Enter")
        page.get_by_role("dialog").wait_for(state="detached")
        page.locator(".notice").get_by_text("is made").wait_for()
        assert focused(page) == "Add to album"  # and not lost with the dialog
        page = visit.open("/albums")
        tab_to(page, ".covers a")
        page.keyboard.press("Enter")
        page.wait_for_url("**/album?*")
        page.locator("#photos .photo-tile").nth(1).wait_for()
        assert page.locator("#photos .photo-tile").count() == 2
        tab_to(page, "#photos a")
        page.keyboard.press("Enter")
        page.wait_for_url("**/photo?*")
        page.locator(".box-canvas").wait_for()
        edit_title(page, "Cups <b>", visit)


def edit_title(page: Any, title: str, visit: Visit) -> None:
    """Give the photo that is shown a title, and take that back."""
    if not page.locator("#panel").is_visible():
        page.keyboard.press("i")
    page.locator("#edit-details").wait_for()
    tab_to(page, "#edit-details")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    page.keyboard.type(title)
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for(state="detached")
    page.get_by_text("1 photo changed.").wait_for()
    photos = page.request.get(f"{visit.base}/api/photos?title=cups").json()["photos"]
    assert [one["title"] for one in photos] == [title]
    tab_to(page, ".notice button", "Undo")
    page.keyboard.press("Enter")
    page.get_by_text("Undone").wait_for()
    assert page.request.get(f"{visit.base}/api/photos?title=cups").json()["total"] == 0
