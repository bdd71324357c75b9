"""Albums, tags and tables in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval.groups.groups import group_photos
from retrieval.web.models import MOST_PHOTOS
from tests.conftest import Indexed
from tests.support.browser import Visit, chromium, visit
from tests.support.live import serving_copy

__all__ = ["chromium", "visit"]  # fixtures

MARKUP = "<img src=x onerror=alert(1)> & Söhne"


@pytest.fixture(scope="module")
def served(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a copy of the small collection, with groups."""
    with serving_copy(indexed.folder, tmp_path_factory.mktemp("curated"), group_photos) as (address, _):
        yield address


def answer(page: Any, label: str, text: str, button: str) -> None:
    """Fill in a question, and accept it."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(label).fill(text)
    dialog.get_by_role("button", name=button, exact=True).click()
    dialog.wait_for(state="detached")


@pytest.mark.slow
def test_two_photos_become_an_album_that_is_renamed_and_tagged(visit: Visit) -> None:
    page = visit.open("/groups")
    ticks = page.locator(".pick")
    ticks.nth(0).check()
    ticks.nth(1).check()
    assert page.locator("#chosen").inner_text() == "2 photos selected"
    page.get_by_role("button", name="Add to album").click()
    answer(page, "Album, or the name of a new one", MARKUP, "Add")
    page.locator(".notice").get_by_text("is made").wait_for()
    visit.open("/albums")
    assert page.locator(".called").all_inner_texts() == [MARKUP]
    page.locator(".covers a").click()
    page.wait_for_selector("#photos .photo-tile")
    assert page.locator("#title").inner_text() == MARKUP and page.locator("#photos .photo-tile").count() == 2

    page.get_by_role("button", name="Rename").click()
    page.keyboard.type("Cups <b>")
    page.keyboard.press("Enter")
    page.get_by_text("The album is now called").wait_for()
    assert page.locator("#title").inner_text() == "Cups <b>" and page.title() == "Cups <b> · Cairn"
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone").wait_for()
    assert page.locator("#title").inner_text() == MARKUP

    for tick in page.locator(".pick").all():
        tick.check()
    page.get_by_role("button", name="Tags", exact=True).click()
    answer(page, "Add tags, with ; between them", "cup; <i>blue</i>", "Save")
    page.get_by_text("2 photos changed.").wait_for()
    listed = page.request.get(f"{visit.base}/api/photos?tag=cup&tag=<i>blue</i>").json()
    assert listed["total"] == 2 and listed["photos"][0]["tags"] == ["cup", "<i>blue</i>"]
    page.wait_for_selector("#photos .photo-tile")
    page.locator(".pick").nth(1).uncheck()
    page.get_by_role("button", name="Split off").click()
    answer(page, "Name of the new album", "One", "Split off")
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone").wait_for()
    page.locator("#photos .photo-tile").nth(1).wait_for()
    page.get_by_role("button", name="Delete the album").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("#photos .photo-tile")
    assert page.locator("#title").inner_text() == MARKUP


@pytest.mark.slow
def test_a_table_is_imported(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("/import")
    name = page.request.get(f"{visit.base}/api/photos").json()["photos"][0]["name"]
    table = tmp_path / "fotos.csv"
    table.write_text(f"Datei;Titel;Ort\n{name};Brücke;Köln\nfehlt.jpg;x;y\n", "cp1252")
    page.locator("#file").set_input_files(table)
    page.get_by_text("1 photo of the collection is in the table").wait_for()
    means = page.locator("#columns select")
    assert [one.input_value() for one in means.all()] == ["photo", "title", "text"]
    with page.expect_response("**/api/tables/preview"):
        means.nth(2).select_option("tags")
    page.get_by_role("button", name="Import").click()
    page.get_by_text("The table was imported for 1 photo.").wait_for()
    photo = page.request.get(f"{visit.base}/api/photos?tag=Köln").json()["photos"][0]
    assert (photo["name"], photo["title"]) == (name, "Brücke")


@pytest.mark.slow
def test_more_photos_than_a_request_may_name_are_tagged_and_hidden(visit: Visit) -> None:
    def with_small_requests(route: Any) -> None:
        script = route.fetch()
        text = script.text()
        limit = f"MOST_PHOTOS = {MOST_PHOTOS:_}"
        assert limit in text
        route.fulfill(response=script, body=text.replace(limit, "MOST_PHOTOS = 3"))

    requests: list[tuple[str, int]] = []

    def note(request: Any) -> None:
        if request.method in ("PATCH", "POST") and request.url.startswith(f"{visit.base}/api/"):
            named = request.post_data_json
            requests.append((request.url.rpartition("/api/")[2], len(named.get("photos") or named["restore"])))

    visit.page.route("**/js/api.js*", with_small_requests)
    visit.page.on("request", note)
    page = visit.open("/")
    total = page.request.get(f"{visit.base}/api/photos").json()["total"]
    assert total > 6
    parts = [min(3, total - start) for start in range(0, total, 3)]

    page.locator("#choose-all").click()
    page.get_by_role("button", name="Tags", exact=True).click()
    page.locator("dialog.question").wait_for()
    page.evaluate(
        """() => {
            window.progress = new Set();
            const node = document.querySelector("dialog.question [role=status]");
            new MutationObserver(() => window.progress.add(node.textContent)).observe(node, { childList: true });
        }"""
    )
    answer(page, "Add tags, with ; between them", "all of them", "Save")
    page.locator(".notice").get_by_text(f"{total} photos changed.").wait_for()
    assert f"3 of {total} photos so far" in page.evaluate("[...window.progress]")
    assert requests == [*(("photos/summary", size) for size in parts), *(("photos", size) for size in parts)]
    tagged = f"{visit.base}/api/photos?tag=all of them"
    assert page.request.get(tagged).json()["total"] == total
    page.get_by_role("button", name="Tags", exact=True).click()
    page.get_by_role("dialog").get_by_text(f"{total} photos", exact=True).wait_for()  # the tag that they all have
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone").wait_for()
    assert page.request.get(tagged).json()["total"] == 0

    page.get_by_role("button", name="Hide", exact=True).click()
    page.locator(".notice").get_by_text(f"{total} photos hidden.").wait_for()
    assert page.request.get(f"{visit.base}/api/photos").json()["total"] == 0
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone").wait_for()
    assert page.request.get(f"{visit.base}/api/photos").json()["total"] == total

    # Removal names the first three.
    page.locator("#choose-all").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    assert dialog.locator(".names .name").count() == 3
    assert dialog.get_by_text(f"and {total - 3} others").count() == 1
    dialog.get_by_role("button", name="Cancel").click()
