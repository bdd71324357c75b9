"""The match page in a real browser: lines, ellipses, the overlay, downloads; and the arithmetic under them."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Indexed
from tests.support.browser import Visit, drawn_lines, project
from tests.support.live import until

pytestmark = pytest.mark.browser

QUERY, PHOTO = "coffee_001", "coffee_002"


@pytest.fixture
def address(visit: Visit, indexed: Indexed) -> str:
    box = ",".join(str(round(value)) for value in indexed.boxes[QUERY])
    return f"/match?q={visit.number(f'{QUERY}.jpg')}:{box}&photo={visit.number(f'{PHOTO}.jpg')}"


def test_lines_join_what_is_the_same(visit: Visit, indexed: Indexed, address: str) -> None:
    page = visit.open(address)
    lines = drawn_lines(page)
    errors = np.linalg.norm(project(indexed.homography(QUERY, PHOTO), lines[:, 0]) - lines[:, 1], axis=1)
    assert len(lines) >= 20
    assert np.median(errors) < 2 and np.mean(errors < 8) > 0.9
    said = page.locator("#said").text_content()
    assert said.startswith("These photos show the same thing: >99% likely, ")
    assert f"{len(lines)} details are arranged alike in both" in said
    # Side by side, and one above the other on a phone: the lines follow.
    page.set_viewport_size({"width": 360, "height": 740})
    until(lambda: np.abs(drawn_lines(page) - lines).max() < 0.1)


def test_of_two_copies_some_matches_are_drawn_and_the_page_says_how_many(visit: Visit) -> None:
    number = visit.number(f"{QUERY}.jpg")
    page = visit.open(f"/match?q={number}&photo={number}")
    lines = drawn_lines(page)
    found = page.request.get(f"{visit.base}/api/match?q={number}&photo={number}").json()
    assert 390 <= len(lines) <= 400 < len(found["matches"])
    assert page.locator("#which").text_content() == f"{len(lines)} of {len(found['matches']):,} matches are drawn"
    # From everywhere on the photo.
    across = np.percentile([one["query"][0] for one in found["matches"]], [10, 50, 90])
    np.testing.assert_allclose(np.percentile(lines[:, 0, 0], [10, 50, 90]), across, atol=40)


@pytest.mark.slow
def test_the_box_is_drawn_on_both_photos_and_leaves_neither(visit: Visit, address: str) -> None:
    page = visit.open(address)
    drawn_lines(page)
    drawn = page.locator("#pair .region").evaluate_all("all => all.map((one) => one.getAttribute('points'))")
    found = page.request.get(visit.base + "/api" + address).json()
    box, region = (np.array([corner.split(",") for corner in points.split()], float) for points in drawn)
    assert region.tolist() == found["region"]
    assert box[0].tolist() == found["query"]["box"][:2] and box[2].tolist() == found["query"]["box"][2:]
    size = np.array([found["photo"]["width"], found["photo"]["height"]])
    assert region.min() >= -0.5 and (region.max(axis=0) <= size - 0.5).all()


@pytest.mark.slow
def test_ellipses_lie_where_their_lines_end(visit: Visit, address: str) -> None:
    page = visit.open(address)
    drawn_lines(page)
    script = """() => JSON.stringify([...document.querySelectorAll('#pair .match')].slice(0, 20).map((match) => {
        const host = document.querySelector('#pair').getBoundingClientRect();
        const spots = document.querySelectorAll(`#pair .spot[data-match="${match.dataset.match}"]`);
        const line = match.querySelector('.join');
        return [...spots].map((spot, side) => {
            const seen = spot.getBoundingClientRect();
            return [seen.left + seen.width / 2 - host.left - line.getAttribute(`x${side + 1}`),
                    seen.top + seen.height / 2 - host.top - line.getAttribute(`y${side + 1}`)];
        });
    }))"""
    assert np.abs(np.array(json.loads(page.evaluate(script)))).max() < 0.5


def test_a_match_is_highlighted_by_the_pointer_and_by_buttons(visit: Visit, address: str) -> None:
    page = visit.open(address)
    count = len(drawn_lines(page))
    page.locator("#pair .match").first.dispatch_event("pointerenter")
    assert page.locator("#pair .chosen.spot").count() == 2 and page.locator("#pair .match.chosen").count() == 1
    page.locator("#pair .match.chosen").dispatch_event("pointerleave")
    assert page.locator("#pair .chosen").count() == 0
    page.get_by_role("button", name="Previous match").click()
    assert page.locator("#which").text_content().startswith(f"Match {count} of {count}: ")
    page.get_by_role("button", name="Next match").click()
    assert page.locator("#which").text_content().startswith(f"Match 1 of {count}: ")
    page.get_by_role("checkbox", name="Lines").uncheck()
    assert page.locator("#pair .match").first.is_hidden()
    assert page.locator("#pair .spot").first.is_visible()


@pytest.mark.slow
def test_the_overlay_registers_the_photos(visit: Visit, indexed: Indexed, address: str) -> None:
    page = visit.open(address)
    page.wait_for_selector("#overlay:not([hidden]) .above")
    page.evaluate("document.querySelector('.above').decode()")
    # Where the browser puts points of the query's picture, as pixels of the photo.
    points = np.random.default_rng(0).uniform(0, 1, (50, 2))
    script = """(points) => {
        const above = document.querySelector('.above');
        const stage = document.querySelector('#stage');
        const matrix = new DOMMatrix(getComputedStyle(above).transform);
        return JSON.stringify(points.map(([x, y]) => {
            const there = matrix.transformPoint(new DOMPoint(x * above.offsetWidth, y * above.offsetHeight));
            return [there.x / there.w / stage.clientWidth, there.y / there.w / stage.clientHeight];
        }));
    }"""
    there = np.array(json.loads(page.evaluate(script, points.tolist())))
    found = page.request.get(visit.base + "/api" + address).json()
    size = np.array([found["query"]["width"], found["query"]["height"]])
    true = project(np.array(found["homography"]), points * size - 0.5)
    here = there * np.array([found["photo"]["width"], found["photo"]["height"]]) - 0.5
    assert np.abs(here - true).max() < 0.05
    # And in the middle of the object the estimate is the truth, nearly.
    x0, y0, x1, y1 = indexed.boxes[QUERY]
    middle = np.array([[(x0 + x1) / 2, (y0 + y1) / 2]])
    estimate = project(np.array(found["homography"]), middle)
    assert np.abs(estimate - project(indexed.homography(QUERY, PHOTO), middle)).max() < 3


@pytest.mark.slow
def test_flicker_and_slider(visit: Visit, address: str) -> None:
    page = visit.open(address)
    button = page.get_by_role("button", name="Flicker")
    button.wait_for()

    def opacity() -> float:
        return float(page.locator(".above").evaluate("above => getComputedStyle(above).opacity"))

    assert opacity() == 0.5
    page.get_by_label("Query over photo").fill("20")
    assert opacity() == pytest.approx(0.2)
    page.keyboard.press("f")
    assert button.get_attribute("aria-pressed") == "true"
    for shown in (0, 1, 0):
        page.wait_for_function(
            "(shown) => getComputedStyle(document.querySelector('.above')).opacity == shown", arg=shown
        )
    page.keyboard.press("F")
    assert button.get_attribute("aria-pressed") == "false" and opacity() == pytest.approx(0.2)
    box = page.get_by_label("Only the box")
    clipped = page.locator(".above").evaluate("above => getComputedStyle(above).clipPath")
    box.uncheck()
    assert clipped.startswith("inset(")
    assert page.locator(".above").evaluate("above => getComputedStyle(above).clipPath") == "none"


@pytest.mark.slow
def test_impressions_are_laid_over_each_other(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.get_by_role("button", name="Compare impressions").click()
    page.locator("#impressions-page").wait_for(state="visible")
    laid, below = page.locator("#impressions-stage .laid"), page.locator("#impressions-stage .below").first
    page.get_by_label("Photo over query").fill("20")
    assert float(laid.evaluate("one => getComputedStyle(one).opacity")) == pytest.approx(0.2)
    sizes = [one.evaluate("one => [one.clientWidth, one.clientHeight]") for one in (laid, below)]
    first = below.get_attribute("src")
    page.get_by_role("radio", name="What differs").check()
    assert laid.is_hidden() and below.get_attribute("src") != first and sizes[0] == sizes[1]
    assert page.locator("#impressions-flicker").is_disabled()
    page.get_by_role("radio", name="Both").check()
    page.locator("#impressions-stage").get_by_role("button", name="Zoom in").click()
    zoomed = [one.evaluate("one => [one.clientWidth, one.clientHeight]") for one in (laid, below)]
    assert zoomed[0] == zoomed[1] and zoomed[0][0] == pytest.approx(1.5 * sizes[0][0], abs=1)
    page.locator("#impressions-flicker").click()
    for shown in (1, 0, 1):
        page.wait_for_function(
            "(shown) => getComputedStyle(document.querySelector('.laid')).opacity == shown", arg=shown
        )


@pytest.mark.slow
def test_downloads(visit: Visit, address: str) -> None:
    page = visit.open(address)
    lines = drawn_lines(page)
    taken = {}
    for name in ("CSV of the matches", "JSON of the matches", "Picture"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        taken[download.value.suggested_filename] = Path(download.value.path()).read_bytes()
    assert sorted(taken) == ["match.csv", "match.jpg", "match.json"]
    rows = list(csv.DictReader(io.StringIO(taken["match.csv"].decode())))
    ends = [[[float(row[f"{side}_{axis}"]) for axis in "xy"] for side in ("query", "photo")] for row in rows]
    assert np.abs(np.array(ends) - lines).max() < 0.05
    assert len(json.loads(taken["match.json"])["matches"]) == len(lines)
    assert taken["match.jpg"].startswith(b"\xff\xd8\xff")


@pytest.mark.slow
def test_photos_that_do_not_match_are_said_to(visit: Visit) -> None:
    numbers = [visit.number(name) for name in ("cat_001.jpg", "page_001.jpg")]
    page = visit.open(f"/match?q={numbers[0]}&photo={numbers[1]}")
    page.get_by_text("It is not certain that these photos show the same thing").wait_for()
    assert page.locator("#overlay").is_hidden() and page.locator("#pair-tools").is_hidden()
    assert page.locator("#pair img").count() == 2


def test_the_arithmetic_of_homographies_and_ellipses(visit: Visit) -> None:
    """js/homography.js against NumPy."""
    rng = np.random.default_rng(1)
    page = visit.open("/status")
    matrix = np.eye(3) + rng.normal(0, [[0.3, 0.3, 50], [0.3, 0.3, 50], [2e-4, 2e-4, 0]])
    shapes = []
    for _ in range(20):
        root = rng.normal(0, 5, (2, 2))
        a, b, _b, c = np.linalg.inv(root @ root.T + np.eye(2)).ravel()
        shapes.append([a, b, c])
    script = """async ({ matrix, shapes }) => {
        const { ellipse, multiply } = await import('/static/js/homography.js');
        return { squared: multiply(matrix, matrix), axes: shapes.map(ellipse) };
    }"""
    done = page.evaluate(script, {"matrix": matrix.tolist(), "shapes": shapes})
    np.testing.assert_allclose(done["squared"], matrix @ matrix, rtol=1e-12)
    for (a, b, c), axes in zip(shapes, done["axes"], strict=True):
        # Points of the drawn ellipse satisfy the equation.
        angle, turn = np.linspace(0, 2 * np.pi, 9), np.deg2rad(axes["degrees"])
        x, y = axes["rx"] * np.cos(angle), axes["ry"] * np.sin(angle)
        dx, dy = np.cos(turn) * x - np.sin(turn) * y, np.sin(turn) * x + np.cos(turn) * y
        np.testing.assert_allclose(a * dx**2 + 2 * b * dx * dy + c * dy**2, 1, rtol=1e-9)
