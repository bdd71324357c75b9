"""Searching in a real browser: boxes, uploads, several photos, keys alone."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval.photos.remarks import Remarks
from retrieval.search.outlines import clip_polygon
from tests.conftest import VIEWS, Indexed
from tests.support.browser import (
    DOT,
    PHONE,
    Visit,
    corners,
    draw_box,
    drawn_lines,
    overlap,
    phone_photo,
    project,
    read_box,
    screen_point,
    tab_to,
    visiting,
    wait_for_results,
)

pytestmark = pytest.mark.browser

ASKED = "coffee_001"
FOUND = {f"coffee_{view:03d}.jpg" for view in range(1, VIEWS + 1)}


def give(page: Any, path: Path, how: str) -> None:
    """Hand a file to the page: by the file picker, by pasting, or by dropping it on the page."""
    if how == "picker":
        page.locator("#upload").set_input_files(path)
        return
    script = """async ({ bytes, name, how }) => {
        const carried = new DataTransfer();
        carried.items.add(new File([new Uint8Array(bytes)], name, { type: 'image/jpeg' }));
        const told = { bubbles: true, cancelable: true };
        if (how === 'paste')
            document.body.dispatchEvent(new ClipboardEvent('paste', { ...told, clipboardData: carried }));
        for (const kind of how === 'drop' ? ['dragenter', 'dragover', 'drop'] : [])
            document.body.dispatchEvent(new DragEvent(kind, { ...told, dataTransfer: carried }));
    }"""
    page.evaluate(script, {"bytes": list(path.read_bytes()), "name": path.name, "how": how})


def asked_box(indexed: Indexed) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = (round(value) for value in indexed.boxes[ASKED])
    return x0, y0, x1, y1


def assert_regions_right(page: Any, indexed: Indexed) -> None:
    """The region drawn on each other view is where the object is there."""
    for stem in sorted(name.removesuffix(".jpg") for name in FOUND - {f"{ASKED}.jpg"}):
        drawn = page.locator(f'.result:has(a.name[title="{stem}.jpg"]) .region').get_attribute("points")
        points = np.array([corner.split(",") for corner in drawn.split()], np.float64)
        true = project(indexed.homography(ASKED, stem), corners(asked_box(indexed)))
        assert overlap(points, clip_polygon(true, 640, 480)) > 0.85, stem
        assert points.min() >= -0.5 and (points.max(axis=0) <= [639.5, 479.5]).all(), stem


def test_a_box_drawn_with_the_mouse_finds_the_object(visit: Visit, indexed: Indexed) -> None:
    page = visit.open("/")
    page.get_by_role("link", name=f"{ASKED}.jpg").click()
    page.wait_for_selector(".box-canvas")
    box = asked_box(indexed)
    draw_box(page, box)
    assert np.abs(np.subtract(read_box(page), box)).max() <= 1  # the screen has fewer pixels than the photo
    for place, value in enumerate(box):
        page.locator(".box-numbers input").nth(place).fill(str(value))
        page.keyboard.press("Tab")
    assert read_box(page) == list(box)
    page.get_by_role("link", name="Search with this box").click()
    names = wait_for_results(page)
    assert set(names[: len(FOUND)]) == FOUND
    assert f"q={visit.number(f'{ASKED}.jpg')}:{','.join(map(str, box))}" in page.url
    assert_regions_right(page, indexed)
    # Reloading, going on and coming back: the address says it all.
    page.reload()
    assert wait_for_results(page) == names
    page.locator(".result").nth(1).get_by_role("link", name="Search this region").click()
    page.wait_for_url("**/search?q=*:*")
    again = wait_for_results(page)
    assert set(again[: len(FOUND)]) == FOUND and again[0] == names[1]
    page.go_back()
    page.locator(".chip .name", has_text=f"{ASKED}.jpg").wait_for()
    assert wait_for_results(page) == names


@pytest.mark.slow
def test_a_box_is_moved_resized_and_cleared(visit: Visit) -> None:
    page = visit.open(f"/photo?number={visit.number(f'{ASKED}.jpg')}")
    draw_box(page, (100, 100, 200, 180))
    drawn = read_box(page)
    for start, end, moved in (
        ((150, 140), (190, 170), [40, 30, 40, 30]),  # by its middle
        ((240, 210), (280, 240), [40, 30, 80, 60]),  # by its corner at the bottom right
        ((140, 170), (120, 300), [20, 30, 80, 60]),  # by its left edge
        ((250, 200), (2000, 200), None),  # out of the photo: it stays inside
    ):
        page.mouse.move(*screen_point(page, *start))
        page.mouse.down()
        page.mouse.move(*screen_point(page, *end))
        page.mouse.up()
        if moved is not None:
            assert np.abs(np.subtract(read_box(page), np.add(drawn, moved))).max() <= 3
    assert read_box(page)[2] == int(page.locator(".box-numbers input").nth(2).get_attribute("max"))
    inside = read_box(page)
    page.mouse.click(*screen_point(page, 20, 20))  # no box is lost by a click
    assert read_box(page) == inside
    page.get_by_role("button", name="Clear").click()
    assert page.locator(".box-canvas .region").count() == 0
    assert page.get_by_role("link", name="Search with the whole photo").is_visible()


@pytest.mark.slow
def test_a_box_drawn_with_a_finger(chromium: Any, served: str) -> None:
    with visiting(chromium, served, PHONE, has_touch=True, is_mobile=True) as visit:
        page = visit.open(f"/photo?number={visit.number(f'{ASKED}.jpg')}")
        page.get_by_role("button", name="Draw a box").click()  # else a finger leads to the next photo
        finger = page.context.new_cdp_session(page)
        start, end = (screen_point(page, *point) for point in ((120, 90), (420, 330)))
        way = [np.add(start, np.subtract(end, start) * part).tolist() for part in (0, 0.3, 0.7, 1)]
        for kind, (x, y) in zip(("touchStart", "touchMove", "touchMove", "touchMove"), way, strict=True):
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        assert np.abs(np.subtract(read_box(page), (120, 90, 420, 330))).max() <= 3  # two pixels are one of the screen's


@pytest.mark.parametrize("how", ["picker", *(pytest.param(one, marks=pytest.mark.slow) for one in ("paste", "drop"))])
def test_a_turned_phone_photo_is_uploaded_boxed_and_found(
    visit: Visit,
    indexed: Indexed,
    tmp_path: Path,
    how: str,
) -> None:
    page = visit.open("/search")
    give(page, phone_photo(indexed.photos / f"{ASKED}.jpg", tmp_path / "IMG_0001.jpg"), how)
    page.wait_for_selector(".box-canvas")
    box = asked_box(indexed)
    draw_box(page, box)
    assert np.abs(np.subtract(read_box(page), box)).max() <= 1
    page.locator("#run-box").click()
    assert set(wait_for_results(page)[: len(FOUND)]) == FOUND
    assert page.locator(".chip .name").text_content() == "IMG_0001.jpg"
    assert_regions_right(page, indexed)
    if how != "picker":
        return
    # The browser keeps the upload for the match page, for reloading and for going back.
    page.get_by_role("link", name="coffee_002.jpg: see the match").click()
    lines = drawn_lines(page)
    errors = np.linalg.norm(project(indexed.homography(ASKED, "coffee_002"), lines[:, 0]) - lines[:, 1], axis=1)
    assert len(lines) >= 20 and np.median(errors) < 3
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV of the matches").click()
    rows = Path(download.value.path()).read_text().splitlines()
    assert rows[0].startswith("query_x,query_y,photo_x,photo_y") and len(rows) == 1 + len(lines)
    page.get_by_role("link", name="Back to the results").click()
    assert set(wait_for_results(page)[: len(FOUND)]) == FOUND


def test_a_bad_upload_is_said_beside_it_and_changes_nothing_else(
    visit: Visit,
    indexed: Indexed,
    tmp_path: Path,
) -> None:
    page = visit.open(f"/search?q={visit.number(f'{ASKED}.jpg')}")
    names = wait_for_results(page)
    bad = tmp_path / "notes.jpg"
    bad.write_bytes(b"PK\x03\x04 no photo at all")
    page.locator("#upload").set_input_files(bad)
    page.wait_for_selector("#upload-error:not(:empty)")
    said = page.locator("#upload-error").text_content()
    assert said.endswith(".") and "Error" not in said and "\n" not in said
    assert wait_for_results(page) == names
    assert page.locator(".chip").count() == 1
    visit.excuse("Failed to load resource")
    # A good one afterwards takes the sentence away.
    page.locator("#upload").set_input_files(indexed.photos / "cat_001.jpg")
    page.wait_for_selector(".box-canvas")
    assert page.locator("#upload-error").text_content() == ""
    assert page.locator(".chip").count() == 2


@pytest.mark.slow
def test_several_photos_any_or_all(visit: Visit, indexed: Indexed) -> None:
    # One from the collection, a second picked there for it, a third from the results.
    box = ",".join(map(str, asked_box(indexed)))
    page = visit.open(f"/search?q={visit.number(f'{ASKED}.jpg')}:{box}")
    wait_for_results(page)
    assert page.locator("#several").is_hidden()
    page.get_by_role("link", name="or add one from the collection").click()
    page.get_by_text("Pick a photo to add to your query of 1 photo").wait_for()
    page.get_by_role("link", name="cat_001.jpg").click()
    page.wait_for_selector(".box-canvas")
    draw_box(page, indexed.boxes["cat_001"])
    page.get_by_role("link", name="Add to the query of 1 photo").click()
    names = wait_for_results(page)
    cats = {f"cat_{view:03d}.jpg" for view in range(1, VIEWS + 1)}
    assert set(names[: 2 * VIEWS]) == FOUND | cats  # any of them
    page.get_by_label("all of them").check()
    page.wait_for_url("**match=all*")
    both = wait_for_results(page)
    # A photo counts as well as it matches the worse of the two: none shows both, so none is surely first.
    told = page.locator("#said").text_content()
    assert "match=all" in page.url and (both != names or "surely shows this" in told)
    page.get_by_label("any of them").check()
    page.wait_for_function("!location.search.includes('match=all')")
    assert wait_for_results(page) == names
    page.get_by_role("link", name="Add coffee_002.jpg to the query").click()
    page.locator(".chip").nth(2).wait_for()
    assert set(wait_for_results(page)[: 2 * VIEWS]) == FOUND | cats
    page.get_by_role("button", name="Remove cat_001.jpg from the query").click()
    page.locator(".chip").nth(2).wait_for(state="detached")
    assert set(wait_for_results(page)[: len(FOUND)]) == FOUND


@pytest.mark.slow
def test_options_and_filters(visit: Visit) -> None:
    page = visit.open(f"/search?q={visit.number(f'{ASKED}.jpg')}")
    wait_for_results(page)
    page.get_by_text("Options and filters").click()
    page.get_by_label("Only names with").fill("c")
    page.get_by_label("Only names with").press("Enter")
    page.wait_for_url("**name=c*")
    names = wait_for_results(page)
    assert set(names) >= FOUND and all("c" in name for name in names)
    page.get_by_label("How photos are compared").select_option("tf-idf")
    page.wait_for_url("**engine=tf-idf*")
    wait_for_results(page)
    assert "The positions of things in the photos were not checked." in page.locator("#facts").text_content()
    assert page.locator("#said").text_content() == "No photo surely shows this"
    page.get_by_label("Search again with what was found").select_option("average")
    page.wait_for_url("**expand=average*")
    wait_for_results(page)
    page.reload()  # the address keeps them
    assert all("c" in name for name in wait_for_results(page))
    assert page.get_by_label("How photos are compared").input_value() == "tf-idf"
    assert page.get_by_label("Search again with what was found").input_value() == "average"
    # Options that go together with nothing: the server's sentence.
    page.get_by_label("How photos are compared").select_option("raw")
    page.wait_for_selector("#error:not(:empty)")
    assert "Expansion works on visual words" in page.locator("#error").text_content()
    visit.excuse("Failed to load resource")


@pytest.mark.slow
def test_an_upload_that_is_gone_is_said(visit: Visit) -> None:
    page = visit.open("/search?q=u0abc-def")
    page.wait_for_selector("#error:not(:empty)")
    assert "upload it again" in page.locator("#error").text_content()


def test_by_keys_alone(visit: Visit, indexed: Indexed) -> None:
    page = visit.open("/")
    keys = page.keyboard

    tab_to(page, "#photos a")
    for _ in range(20):
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == f"{ASKED}.jpg":
            break
        keys.press("ArrowRight")
    keys.press("Enter")
    page.wait_for_selector(".box-canvas")
    tab_to(page, ".box-canvas svg")
    keys.press("Enter")
    width, height = (int(page.locator(".box-numbers input").nth(place).get_attribute("max")) + 1 for place in (2, 3))
    middle = read_box(page)
    assert np.abs(np.subtract(middle, np.array([width, height, 3 * width, 3 * height]) / 4)).max() <= 1
    step = round(max(width, height) / 100)
    for key, moved in (
        ("ArrowRight", [step, 0, step, 0]),
        ("ArrowUp", [0, -step, 0, -step]),
        ("Shift+ArrowRight", [0, 0, step, 0]),
        ("Shift+ArrowUp", [0, 0, 0, -step]),
    ):
        before = read_box(page)
        keys.press(key)
        assert read_box(page) == np.add(before, moved).tolist(), key
    keys.press("Escape")
    assert page.locator(".box-canvas .region").count() == 0
    # The object's box, by its numbers.
    tab_to(page, ".box-numbers input")
    for value in asked_box(indexed):
        keys.type(str(value))
        keys.press("Tab")
    tab_to(page, "#search")
    assert page.locator(".box-canvas .region").count() == 1
    keys.press("Enter")
    assert set(wait_for_results(page)[: len(FOUND)]) == FOUND
    tab_to(page, '.result a[aria-label*="coffee_002.jpg: see"]')
    keys.press("Enter")
    assert len(drawn_lines(page)) >= 20
    tab_to(page, "#next")
    keys.press("Enter")
    assert page.locator("#pair .match.chosen").count() == 1
    assert page.locator("#which").text_content().startswith("Match 1 of ")


def focused(page: Any) -> str:
    """Identity of what has the focus."""
    return str(page.evaluate("document.activeElement.id"))


@pytest.mark.slow
def test_an_answer_is_completed_for_what_was_asked(visit: Visit) -> None:
    """Though a box was drawn on its query, and not searched with, in between."""
    page = visit.open("/")
    asked: list[str] = []
    held: list[Any] = []

    def note(route: Any) -> None:
        asked.append(route.request.url)
        if "every_turn=true" in route.request.url:
            held.append(route)
        else:
            route.fulfill(json=route.fetch().json() | {"sure": True})

    page.route("**/api/search?*", note)
    number = visit.number(f"{ASKED}.jpg")
    visit.open(f"/search?q={number}")
    page.wait_for_selector("#results[data-turned=offered]")
    page.get_by_role("button", name=f"Draw a box on {ASKED}.jpg").click()
    draw_box(page, (100, 100, 200, 180))
    page.get_by_role("button", name="Look at turned views too").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#results[data-turned=looking]")
    assert focused(page) == "stop"
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_selector("#results[data-turned=done]")
    assert len(asked) == 2 and all(f"q={number}&" in url for url in asked)
    links = page.locator(".result a").evaluate_all("(links) => links.map((link) => link.getAttribute('href'))")
    assert links and not any(f"q={number}:" in link for link in links if not link.startswith("/search"))
    adding = [link for link in links if link.startswith("/search") and link.count("q=") == 2]
    assert adding and all(f"q={number}&" in link for link in adding)


def _turned_upload(visit: Visit, indexed: Indexed, tmp_path: Path, degrees: int) -> None:
    """Search with a photo of the collection that lies on its side."""
    from PIL import Image

    path = tmp_path / "scan.png"
    with Image.open(indexed.photos / f"{ASKED}.jpg") as photo:
        photo.rotate(degrees, expand=True).save(path)
    visit.open("/search")
    give(visit.page, path, "picker")
    visit.page.wait_for_selector(".box-canvas")


@pytest.mark.slow
def test_an_answer_comes_upright_first_and_is_completed(visit: Visit, indexed: Indexed, tmp_path: Path) -> None:
    _turned_upload(visit, indexed, tmp_path, 90)
    page = visit.page
    asked: list[dict[str, Any]] = []
    states: list[str] = []

    def note(route: Any) -> None:
        body = route.request.post_data_buffer.decode("latin-1")
        asked.append({"upright": '"turns":1,' in body or '"turns":1}' in body, "every": '"every_turn":true' in body})
        if len(asked) == 2:  # the first answer is shown while the second is waited for
            page.wait_for_selector("#results[aria-busy=false][data-turned=looking]")
            states.append(page.locator("#turning").inner_text())
        route.continue_()

    page.route("**/api/search", note)
    page.get_by_role("button", name="Search", exact=True).first.click()
    names = wait_for_results(page)
    assert asked == [{"upright": True, "every": False}, {"upright": False, "every": True}]
    assert states and "turned views" in states[0]
    assert set(names[: len(FOUND)]) == FOUND and page.locator("#turning").is_hidden()
    assert "photos show this" in page.locator("#said").inner_text()


@pytest.mark.slow
def test_looking_at_turned_views_can_be_stopped_and_begun_again(visit: Visit, indexed: Indexed, tmp_path: Path) -> None:
    _turned_upload(visit, indexed, tmp_path, 90)
    page = visit.page
    held: list[Any] = []

    def hold(route: Any) -> None:
        if '"every_turn":true' in route.request.post_data_buffer.decode("latin-1") and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/api/search", hold)
    page.get_by_role("button", name="Search", exact=True).first.click()
    page.locator("#turning-elapsed", has_text="1 s").wait_for()
    page.get_by_role("button", name="Stop").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#turning", state="hidden")
    assert page.locator("#error").inner_text() == ""
    assert focused(page) == "look"  # the button that was pressed is hidden: its counterpart follows it
    page.evaluate("document.querySelector('#error').textContent = 'It went wrong.'")
    page.keyboard.press("Enter")
    page.wait_for_selector("#results[data-turned=done]")
    assert focused(page) == "results-title" and page.locator("#error").inner_text() == ""
    assert set(wait_for_results(page)[: len(FOUND)]) == FOUND
    assert page.get_by_role("button", name="Look at turned views too").is_hidden()


LONG = "Reisen/Großmutters Sommerfrische am Wörthersee/Straßenbahnhaltestellenbeleuchtung_1923_Abzug_0017.jpg"
HOSTILE = '=HYPERLINK("//x")<img src=x onerror=alert(1)>.jpg'


def found_photo(number: int, probability: float, name: str | None = None, **facts: Any) -> dict[str, Any]:
    """A result as the API gives it; found where it is as probable as that."""
    shape = {"homography": None, "region": None, "width": 640, "height": 480, "query_index": 0, "turn": 0.0}
    told = {"title": None, "score": 0.5, "inliers": 0, "probability": probability, "found": probability >= 0.95}
    return {"number": number, "name": name or f"{number}.jpg"} | shape | told | facts


def pretend_answers(page: Any, answer: Callable[[str], dict[str, Any] | None]) -> None:
    """Let the test answer searches, by their addresses: with results, or None for no answer at all."""
    page.route("**/thumbnail**", lambda route: route.fulfill(status=200, content_type="image/svg+xml", body=DOT))

    def reply(route: Any) -> None:
        said = answer(route.request.url)
        if said is None:
            return
        results = [one | {"rank": rank} for rank, one in enumerate(said.pop("results"), start=1)]
        body = {"engine": "tf-idf-sp", "results": results, "passing": None, "filter": None, "similarity": None}
        route.fulfill(json=body | {"seconds": {"total": 0.1}, "turned": False, "sure": True} | said)

    page.route("**/api/search?*", reply)


def test_the_answer_is_a_sentence(visit: Visit) -> None:
    page = visit.open("/")
    given: list[dict[str, Any]] = []
    remarks = [
        {"name": "<b>.jpg", "said": reason}
        for pages in (0, 1, 2)
        for reason in Remarks(0.03 * pages, bool(pages), pages, bool(pages), blank=pages).sentences()
    ]
    pretend_answers(page, lambda _: {"results": given, "remarks": remarks})
    visit.open("/search?q=0")
    some = [found_photo(7, 0.999), found_photo(8, 0.96), found_photo(9, 0.85), found_photo(10, 0.001)]
    for shown, said, similar in (
        (some, "2 photos show this, 1 other probably does", "1 photo is possibly similar"),
        (some[:2], "2 photos show this", None),
        (some[1:3], "1 photo shows this, 1 other probably does", None),
        (some[2:], "No photo surely shows this, 1 probably does", "1 photo is possibly similar"),
        (some[3:], "No photo surely shows this", "1 photo is possibly similar"),
        (
            [found_photo(0, 1.0), *some],
            "2 other photos show this, 1 other probably does",
            "1 photo is possibly similar",
        ),
        (
            [found_photo(0, 1.0), *some[2:]],
            "No other photo surely shows this, 1 probably does",
            "1 photo is possibly similar",
        ),
        ([found_photo(number, 1.0) for number in range(1, 21)], "20 photos or more show this", None),
        ([], "No photo surely shows this", None),
    ):
        given[:] = shown
        with page.expect_response("**/api/search?*"):
            page.locator("#run").click()
        page.wait_for_selector("#results[aria-busy=false][data-turned=offered]", state="attached")
        assert page.locator("h2 #said[role=status]").text_content() == said
        likely = [one for one in shown if one["probability"] >= 0.8]
        assert page.locator("#found .result").count() == len(likely)
        assert page.locator("#perhaps .result").count() == len(shown) - len(likely)
        folded = page.locator("#similar")
        assert folded.is_visible() == (similar is not None)
        if similar:
            assert folded.locator("summary").inner_text() == similar
            assert not folded.locator(".result").first.is_visible()  # what may be unrelated is shown to who asks
        words = {7: "Sure", 8: "Sure", 9: "Likely", 10: "Perhaps", 0: "The photo you search with"}
        if len(shown) < 20:
            told = page.locator(".strength").all_text_contents()
            assert told == [words[one["number"]] for one in shown]
    told = " ".join(f"{one['name']}: {one['said']}." for one in remarks)
    assert page.locator("#note").inner_text().endswith(told) and "larger box" in page.locator("#note").inner_text()
    assert len(remarks) == 10


@pytest.mark.slow
def test_what_a_curator_sees_first_is_plain_and_the_rest_is_behind_details(visit: Visit) -> None:
    page = visit.open("/")
    region = [[-0.5, -0.5], [639.5, -0.5], [639.5, 479.5], [-0.5, 300.0]]
    photos = [found_photo(7, 0.999, HOSTILE, title="Eine Tasse", region=region), found_photo(8, 0.96, LONG)]
    pretend_answers(page, lambda _: {"results": [*photos, found_photo(9, 0.001, "plain.jpg")]})
    visit.open("/search?q=0")
    page.wait_for_selector("#results[aria-busy=false] .result")
    seen = page.locator(".answer").inner_text()
    assert not re.search("inlier|score|%|tf-idf|engine", seen, re.IGNORECASE)
    titled, long = page.locator("#found .result").all()
    assert "Eine Tasse" in titled.inner_text() and HOSTILE not in titled.inner_text()
    end = long.locator(".name .end")
    assert LONG.endswith(end.inner_text()) and end.inner_text()
    assert end.evaluate("one => one.scrollWidth <= one.clientWidth + 1")  # the telling end is whole
    assert titled.locator("polygon.region").get_attribute("points").startswith("-0.5,-0.5 639.5,-0.5")
    assert titled.locator(".strength").get_attribute("title") == ">99% likely to show this"
    assert page.locator("#found .frame").first.bounding_box()["width"] > 300
    page.get_by_text("Details", exact=True).click()
    exact = titled.locator(".exact")
    assert exact.is_visible() and exact.locator(".name").text_content() == HOSTILE
    assert exact.locator(".number").inner_text() == ">99% likely, score 0.500"
    assert "(engine tf-idf-sp)" in page.locator("#facts").inner_text()
    page.get_by_text("1 photo is possibly similar").click()
    assert "<1% likely" in page.locator("#perhaps .result").inner_text()
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width


@pytest.mark.slow
def test_what_is_read_stays_where_it_is_when_an_answer_is_completed(visit: Visit) -> None:
    """And one request is enough where what is found upright leaves no doubt."""
    page = visit.open("/")
    answers: list[dict[str, Any]] = []

    def answer(address: str) -> dict[str, Any]:
        every = "every_turn=true" in address
        answers.append({"every": every})
        order = [9, *range(8), 10] if every else list(range(8))
        return {"results": [found_photo(number, 0.9) for number in order], "turned": every, "sure": sure}

    pretend_answers(page, answer)
    for sure, requests in ((True, 1), (False, 2)):
        answers.clear()
        page.goto("about:blank")
        visit.open("/search?q=0")
        wait_for_results(page)
        assert len(answers) == requests
        assert page.get_by_role("button", name="Look at turned views too").is_visible() == sure
        if sure:
            page.locator(".result").nth(5).get_by_role("link", name="Search").focus()
            page.evaluate("document.querySelectorAll('.result')[4].scrollIntoView()")
            page.evaluate("document.querySelectorAll('.result')[4].mark = 'same'")
            before = page.locator(".result").nth(4).bounding_box()["y"]
            page.evaluate("document.querySelector('#look').click()")
            page.wait_for_selector("#results[data-turned=done]")
            assert page.evaluate("document.querySelectorAll('.result')[5].mark") == "same"
            assert abs(page.locator(".result").nth(5).bounding_box()["y"] - before) < 400
            assert page.evaluate("document.activeElement.closest('.result').dataset.entry.includes('5.jpg')")
            assert page.locator(".result .rank").all_text_contents() == [f"{rank}." for rank in range(1, 11)]


@pytest.mark.slow
def test_a_search_that_takes_long_shows_it_and_can_be_cancelled(visit: Visit) -> None:
    page = visit.open("/")
    slow = [True]
    pretend_answers(page, lambda _: None if slow[0] else {"results": [found_photo(7, 1.0)]})
    page.emulate_media(reduced_motion="reduce")
    with page.expect_event("requestfailed") as aborted:
        page.goto(f"{visit.base}/search?q=0")
        page.get_by_role("button", name="Cancel").wait_for()
        assert page.locator("#said").inner_text() == "Searching…"
        assert page.locator(".skeleton").first.is_visible() and page.locator("#results").is_hidden()
        assert page.locator(".skeleton").first.evaluate("one => getComputedStyle(one).animationName") == "none"
        page.locator("#elapsed", has_text="1 s").wait_for()
        page.get_by_role("button", name="Cancel").focus()
        page.keyboard.press("Enter")
    assert "/api/search" in aborted.value.url
    assert page.locator("#said").inner_text() == "The search was cancelled"
    assert page.locator("#waiting").is_hidden() and page.locator(".skeleton").first.is_hidden()
    assert page.locator("#error").inner_text() == "" and focused(page) == "run"
    slow[0] = False
    page.keyboard.press("Enter")  # the same again
    page.wait_for_selector("#results[aria-busy=false] .result")
    assert page.locator("#said").inner_text() == "1 photo shows this"
    page.wait_for_timeout(400)
    assert page.locator("#waiting").is_hidden() and page.locator("#results").is_visible()


def kept(page: Any, button: str) -> str:
    """What a button of the page has the browser keep."""
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    assert download.value.suggested_filename == f"results.{button.rpartition('(')[2].rstrip(')').lower()}"
    return Path(download.value.path()).read_bytes().decode()


@pytest.mark.slow
def test_results_are_selected_and_kept(visit: Visit) -> None:
    page = visit.open("/")
    region = [[-0.5, -0.5], [639.5, 10.25], [300.0, 479.5]]
    names = [HOSTILE, 'a,"b"\n.jpg', LONG, "-1.jpg", "+x\r.jpg", "@sum.jpg", "plain.jpg"]
    titles = ["\t=1+1", None, "Straße, „groß“", "=cmd|' /C calc'!A0", None, "\r+1", None]
    results = [
        found_photo(number, 0.99 if number < 5 else 0.3, name, title=title, region=region if number == 0 else None)
        for number, (name, title) in enumerate(zip(names, titles, strict=True))
    ]
    pretend_answers(page, lambda _: {"results": results})
    visit.open("/search?q=9")
    page.wait_for_selector("#results[aria-busy=false] .result")
    bar, told, ticks = (page.locator(one) for one in ("#choice", "#chosen[role=status]", ".pick"))
    assert bar.is_hidden()

    def ticked() -> list[int]:
        return [place for place, one in enumerate(ticks.all()) if one.is_checked()]

    ticks.nth(1).click()
    assert told.inner_text() == "1 photo selected" and bar.is_visible()
    ticks.nth(3).click(modifiers=["Shift"])
    assert ticked() == [1, 2, 3]
    ticks.nth(2).focus()
    page.keyboard.press("Shift+Space")  # none from the last one to here
    assert ticked() == [1]
    page.get_by_role("button", name="Select all found").click()
    assert ticked() == [0, 1, 2, 3, 4] and told.inner_text() == "5 photos selected"
    page.get_by_text("2 photos are possibly similar").click()
    page.get_by_label("Select @sum.jpg").check()

    save = page.locator("#save > summary")
    save.click()
    text = kept(page, "Table (CSV)")
    assert text.startswith("\ufeff") and text.endswith("\r\n")
    header, *rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    assert header == ["name", "title", "probability", "found", "region"]
    for row, one in zip(rows, results[:6], strict=True):
        for cell, value in zip(row[:2], (one["name"], one["title"] or ""), strict=True):
            assert cell == (f"'{value}" if value[:1] in tuple("=+-@\t\r") else value)
        assert row[2:4] == [str(one["probability"]), "true" if one["found"] else "false"]
    assert json.loads(rows[0][4]) == region and rows[1][4] == ""
    columns = ("name", "title", "probability", "found", "region")
    save.click()
    assert json.loads(kept(page, "Table (JSON)")) == [{key: one[key] for key in columns} for one in results[:6]]

    asked: list[Any] = []

    def collect(route: Any) -> None:
        asked.append(route.request.post_data_json)
        if len(asked) == 1:
            route.fulfill(status=413, json={"detail": "These are too large: select fewer."})
        else:
            route.fulfill(content_type="application/zip", body="PK")

    page.route("**/api/export", collect)
    save.click()
    page.get_by_role("button", name="Photos as a ZIP file").click()
    page.get_by_text("These are too large: select fewer.").wait_for()
    visit.excuse("Failed to load resource")
    save.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Photos as a ZIP file").click()
    assert download.value.suggested_filename == "photos.zip" and Path(download.value.path()).read_bytes() == b"PK"
    assert [sorted(one["photos"]) for one in asked] == 2 * [[0, 1, 2, 3, 4, 5]]

    page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    save.click()
    page.get_by_role("button", name="Copy names").click()
    assert page.locator("#copied[role=status]").inner_text() == "6 names copied"
    assert page.evaluate("window.copied") == "\n".join(names[:6])
    page.keyboard.press("Escape")
    assert ticked() == [] and bar.is_hidden() and focused(page) == "results-title"


def test_what_is_clicked_right_after_typing_is_pressed(visit: Visit) -> None:
    page = visit.open(f"/search?q={visit.number(f'{ASKED}.jpg')}")
    wait_for_results(page)
    page.locator("#words").click()
    page.keyboard.type("coffee")
    page.locator("#save-search").click()
    page.locator("dialog[open]").wait_for()
    page.wait_for_url("**words=coffee**")  # and the words are asked for


def test_what_waits_for_the_end_of_a_press_is_done_when_a_drag_cancels_it(visit: Visit) -> None:
    page = visit.open(f"/search?q={visit.number(f'{ASKED}.jpg')}")
    wait_for_results(page)
    page.locator("#words").click()
    page.keyboard.type("coffee")
    page.evaluate(
        """() => {
            document.body.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
            document.activeElement.blur();
            document.body.dispatchEvent(new PointerEvent("pointercancel", { bubbles: true }));
        }"""
    )
    page.wait_for_url("**words=coffee**")
