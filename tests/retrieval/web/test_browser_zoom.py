"""Zoom in a real browser: wheel, pinch, double click, drag, keys; boxes on it; tiles; both photos of a match."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Indexed
from tests.retrieval.web.test_iiif import HEIGHT, WIDTH, folder
from tests.support.browser import PHONE, Visit, chromium, drawn_lines, project, read_box, visit, visiting
from tests.support.live import serving, until

__all__ = ["chromium", "folder", "visit"]  # fixtures

pytestmark = pytest.mark.browser


def see(page: Any, selector: str = ".zoom-content") -> np.ndarray:
    """Left, top, width and height of an element on the screen."""
    seen = page.locator(selector).first.bounding_box()
    return np.array([seen["x"], seen["y"], seen["width"], seen["height"]])


def part_at(page: Any, x: float, y: float) -> np.ndarray:
    """Which point of the photo is at a point of the screen, as parts of its width and height."""
    left, top, width, height = see(page)
    return np.array([(x - left) / width, (y - top) / height])


def on_screen(page: Any, x: float, y: float, size: tuple[int, int]) -> tuple[float, float]:
    """Where a pixel of the photo is on the screen."""
    left, top, width, height = see(page)
    return float(left + (x + 0.5) * width / size[0]), float(top + (y + 0.5) * height / size[1])


def open_photo(visit: Visit, name: str = "coffee_001.jpg") -> Any:
    page = visit.open(f"/photo?number={visit.number(name)}")
    until(lambda: page.locator(".box-canvas img").first.evaluate("picture => picture.naturalWidth > 0"))
    return page


def test_a_wheel_zooms_at_the_pointer_and_a_drag_moves_the_photo(visit: Visit) -> None:
    page = open_photo(visit)
    before = see(page)
    x, y = before[0] + 0.3 * before[2], before[1] + 0.6 * before[3]
    page.mouse.move(x, y)
    page.mouse.wheel(0, -600)
    until(lambda: see(page)[2] > 2 * before[2])
    assert np.allclose(part_at(page, x, y), [0.3, 0.6], atol=0.01)
    page.mouse.down()
    page.mouse.move(x + 40, y + 25, steps=4)
    page.mouse.up()
    assert np.allclose(part_at(page, x + 40, y + 25), [0.3, 0.6], atol=0.01)
    assert page.locator(".box-canvas .region:not(.objects .region)").count() == 0  # no box was drawn by that
    # However far it is dragged, no gap is left at an edge.
    page.mouse.down()
    page.mouse.move(x + 4000, y + 3000, steps=4)
    page.mouse.up()
    view, content = see(page, ".box-tool"), see(page)
    assert content[0] <= view[0] + 1 and content[0] + content[2] >= view[0] + view[2] - 1
    page.mouse.move(x, y)
    page.mouse.wheel(0, 5000)
    until(lambda: np.allclose(see(page), before, atol=0.5))


@pytest.mark.slow
def test_a_double_click_zooms_and_fits_again(visit: Visit) -> None:
    page = open_photo(visit)
    before = see(page)
    x, y = before[0] + 0.5 * before[2], before[1] + 0.5 * before[3]
    page.mouse.dblclick(x, y)
    assert np.isclose(see(page)[2], 2.5 * before[2], rtol=0.01)
    page.mouse.dblclick(x, y)
    assert np.allclose(see(page), before, atol=0.5)


@pytest.mark.slow
def test_keys_zoom_and_move_and_go_on_only_without_zoom(visit: Visit) -> None:
    page = open_photo(visit)
    before, address = see(page), page.url
    page.keyboard.press("+")
    page.keyboard.press("+")
    zoomed = see(page)
    assert np.isclose(zoomed[2], 1.5**2 * before[2], rtol=0.01)
    page.keyboard.press("ArrowRight")
    assert see(page)[0] < zoomed[0] and page.url == address
    page.keyboard.press("-")
    assert see(page)[2] < zoomed[2]
    page.keyboard.press("Escape")  # all of the photo first, and back only then
    assert np.allclose(see(page), before, atol=0.5) and page.url == address
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Fit").click()
    assert np.allclose(see(page), before, atol=0.5)
    assert page.get_by_role("button", name="Zoom out").is_disabled()
    page.keyboard.press("ArrowRight")
    until(lambda: page.url != address)


def test_a_box_is_drawn_to_the_pixel_on_a_photo_that_is_zoomed(visit: Visit) -> None:
    page = open_photo(visit)

    left, top, width, height = see(page)
    page.mouse.move(left + 0.4 * width, top + 0.4 * height)
    page.mouse.wheel(0, -800)
    until(lambda: see(page)[2] > 3 * width)
    page.keyboard.press("b")
    size = tuple(int(page.locator(".box-numbers input").nth(place).get_attribute("max")) + 1 for place in (2, 3))
    corner = np.round(np.array(size) * 0.4).astype(int)
    box = [*corner, corner[0] + 21, corner[1] + 17]
    page.mouse.move(*on_screen(page, *box[:2], size))
    page.mouse.down()
    page.mouse.move(*on_screen(page, *box[2:], size), steps=3)
    page.mouse.up()
    assert read_box(page) == box
    # An edge is moved also when boxes are not drawn, and what is inside moves the photo.
    page.keyboard.press("b")
    page.mouse.move(*on_screen(page, box[2], (box[1] + box[3]) / 2, size))
    page.mouse.down()
    page.mouse.move(*on_screen(page, box[2] + 10, (box[1] + box[3]) / 2, size), steps=3)
    page.mouse.up()
    assert read_box(page) == [*box[:2], box[2] + 10, box[3]]
    x, y = on_screen(page, box[0] + 12, box[1] + 8, size)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 30, y - 20, steps=3)
    page.mouse.up()
    assert read_box(page) == [*box[:2], box[2] + 10, box[3]]
    assert np.allclose(on_screen(page, box[0] + 12, box[1] + 8, size), [x - 30, y - 20], atol=1)


@pytest.mark.slow
def test_two_fingers_zoom_and_one_moves(chromium: Any, served: str) -> None:
    with visiting(chromium, served, PHONE, has_touch=True, is_mobile=True) as visit:
        page = open_photo(visit)
        before, address = see(page), page.url
        x, y = before[0] + before[2] / 2, before[1] + before[3] / 2
        session = page.context.new_cdp_session(page)

        def touch(kind: str, *points: tuple[float, float]) -> None:
            touches = [{"x": point[0], "y": point[1], "id": place} for place, point in enumerate(points)]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

        touch("touchStart", (x - 20, y))
        touch("touchStart", (x - 20, y), (x + 20, y))
        for apart in (30, 45, 60):
            touch("touchMove", (x - apart, y), (x + apart, y))
        touch("touchEnd")
        assert np.isclose(see(page)[2], 3 * before[2], rtol=0.05)
        assert np.allclose(part_at(page, x, y), [0.5, 0.5], atol=0.02)
        touch("touchStart", (x, y))
        for moved in (20, 50, 80):
            touch("touchMove", (x - moved, y))
        touch("touchEnd")
        assert np.allclose(part_at(page, x - 80, y), [0.5, 0.5], atol=0.02)
        assert page.url == address

        def fits() -> bool:  # Chromium takes the first tap after touches that a program made for a part of them
            page.get_by_role("button", name="Fit").tap()
            page.wait_for_timeout(500)
            return np.allclose(see(page), before, atol=0.5)

        until(fits)


@pytest.mark.slow
def test_one_finger_turns_to_the_next_photo_where_nothing_is_zoomed(chromium: Any, served: str) -> None:
    with visiting(chromium, served, PHONE, has_touch=True, is_mobile=True) as visit:
        page = open_photo(visit)
        page.locator("#next:visible").wait_for()  # its neighbours are known
        left, top, width, height = see(page)
        x, y, address = left + width / 2, top + height / 2, page.url
        session = page.context.new_cdp_session(page)
        for kind, moved in (
            ("touchStart", 0),
            ("touchMove", 20),
            ("touchMove", 50),
            ("touchMove", 80),
            ("touchEnd", None),
        ):
            points = [{"x": x - moved, "y": y, "id": 0}] if moved is not None else []
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        until(lambda: page.evaluate("location.href") != address)


@pytest.mark.slow
def test_the_editor_of_a_search_zooms_too(visit: Visit) -> None:
    page = visit.open(f"/search?q={visit.number('coffee_001.jpg')}")
    page.get_by_role("button", name="Box").first.click()
    page.locator(".box-canvas img").first.evaluate("picture => picture.decode()")
    before = see(page)
    x, y = before[0] + before[2] / 2, before[1] + before[3] / 2
    page.mouse.move(x, y)
    page.mouse.wheel(0, 40)  # the page scrolls as ever
    assert np.isclose(see(page)[2], before[2])
    page.get_by_role("button", name="Zoom in").click()
    zoomed = see(page)
    assert zoomed[2] > 1.4 * before[2]
    page.get_by_role("button", name="Move the photo").click()
    left, top, width, height = see(page, ".box-canvas")
    page.mouse.move(left + width / 2, top + height / 2)
    page.mouse.down()
    page.mouse.move(left + width / 2 - 30, top + height / 2, steps=3)
    page.mouse.up()
    assert np.isclose(see(page)[0], zoomed[0] - 30, atol=1) and see(page)[2] == zoomed[2]
    assert page.locator(".box-canvas .region").count() == 0
    page.get_by_role("button", name="Move the photo").click()
    page.mouse.move(left + width / 3, top + height / 3)
    page.mouse.down()
    page.mouse.move(left + width / 2, top + height / 2, steps=3)
    page.mouse.up()
    assert page.locator(".box-canvas .region").count() == 1


def test_a_double_click_on_a_line_between_two_photos_zooms_them(visit: Visit) -> None:
    page = visit.open(f"/match?q={visit.number('coffee_001.jpg')}&photo={visit.number('coffee_002.jpg')}")
    page.locator("#pair .zoom-view").first.scroll_into_view_if_needed()
    before = see(page, "#pair .zoom-content")
    script = """() => {
        const line = [...document.querySelectorAll("#pair .match .join")].at(0);
        const { left, top } = line.ownerSVGElement.getBoundingClientRect();
        const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((name) => Number(line.getAttribute(name)));
        return [left + x1 + 0.1 * (x2 - x1), top + y1 + 0.1 * (y2 - y1)];
    }"""
    drawn_lines(page)  # they are there
    x, y = page.evaluate(script)
    page.mouse.move(x, y)
    assert page.locator("#pair .match.chosen").count() == 1  # the pointer is on a line
    page.mouse.move(x + 300, y + 300)
    page.mouse.dblclick(x, y)
    assert np.isclose(see(page, "#pair .zoom-content")[2], 2.5 * before[2], rtol=0.01)
    assert page.evaluate("getSelection().toString()") == ""


@pytest.mark.slow
def test_both_photos_of_a_match_are_zoomed_to_the_same_place(visit: Visit, indexed: Indexed) -> None:
    page = visit.open(f"/match?q={visit.number('coffee_001.jpg')}&photo={visit.number('coffee_002.jpg')}")
    before = np.sort(drawn_lines(page).reshape(-1, 4), axis=0)  # the one that is chosen comes last
    page.locator("#pair .zoom-view").first.scroll_into_view_if_needed()
    left, top, width, height = see(page, "#pair .zoom-view")
    page.mouse.move(left + width / 2, top + height / 2)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    until(lambda: see(page)[2] > 2 * width)
    script = """() => [...document.querySelectorAll("#pair .zoom-view")].map((view) => {
        const [seen, content] = [view, view.firstChild].map((one) => one.getBoundingClientRect());
        const picture = view.querySelector("img");
        const [w, h] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
        return [(seen.left + seen.width / 2 - content.left) / content.width * w - 0.5,
                (seen.top + seen.height / 2 - content.top) / content.height * h - 0.5, content.width / w];
    })"""
    one, other = np.array(page.evaluate(script))
    assert np.abs(project(indexed.homography("coffee_001", "coffee_002"), one[None, :2])[0] - other[:2]).max() < 6
    # Lines end at the same features as before; those that end outside are hidden.
    until(lambda: np.abs(np.sort(drawn_lines(page).reshape(-1, 4), axis=0) - before).max() < 0.1)
    hidden = page.locator("#pair .match.outside").count()
    assert 0 < hidden < len(before)
    # One that is chosen comes into view.
    for _ in range(3):
        page.get_by_role("button", name="Next match").click()
        until(lambda: not page.locator("#pair .match.chosen").evaluate("match => match.classList.contains('outside')"))
    page.keyboard.press("0")
    assert page.locator("#pair .match.outside").count() == 0
    page.locator("#stage").scroll_into_view_if_needed()
    stage = see(page, "#stage .zoom-content")
    page.locator("#stage").get_by_role("button", name="Zoom in").click()
    assert np.isclose(see(page, "#stage .zoom-content")[2], 1.5 * stage[2], rtol=0.01)


@pytest.fixture(scope="module")
def scans(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(folder, tmp_path_factory.mktemp("served") / "cache") as address:
        yield address


@pytest.mark.slow
def test_a_photo_larger_than_any_picture_comes_in_the_tiles_that_are_seen(chromium: Any, scans: str) -> None:
    with visiting(chromium, scans) as visit:
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(request.url))
        page = open_photo(visit, "scan.jpg")
        left, top, width, height = see(page)
        page.mouse.move(left + 0.8 * width, top + 0.5 * height)
        for _ in range(4):
            page.mouse.wheel(0, -600)
        until(
            lambda: (
                page.locator(".tiles img").count() > 1
                and page.evaluate(
                    "[...document.querySelectorAll('.tiles img')].every((tile) => tile.complete && tile.naturalWidth)"
                )
            )
        )
        tiles = [one for one in asked if "/api/iiif/" in one and "info.json" not in one]
        assert 1 < len(set(tiles)) < 60  # of a photo of 9000×1200: not all
        script = """() => [...document.querySelectorAll(".tiles img")].map((tile) => {
            const seen = tile.getBoundingClientRect();
            const all = document.querySelector(".zoom-content").getBoundingClientRect();
            const [x, y, w, h] = tile.src.match(/(\\d+),(\\d+),(\\d+),(\\d+)/).slice(1).map(Number);
            return [(seen.left - all.left) / all.width * WIDTH - x, (seen.top - all.top) / all.height * HEIGHT - y,
                    seen.width / all.width * WIDTH - w, seen.height / all.height * HEIGHT - h];
        })""".replace("WIDTH", str(WIDTH)).replace("HEIGHT", str(HEIGHT))
        assert np.abs(np.array(page.evaluate(script))).max() < 2  # each lies where it belongs
        assert page.locator(".box-canvas img").first.evaluate("picture => picture.naturalWidth") <= 4096
