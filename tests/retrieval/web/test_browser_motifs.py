"""Motifs drawn in a real browser: the network of books, the years, and the map, by the keyboard too."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.retrieval.web.test_decisions import Served, home, several_kinds  # noqa: F401
from tests.support.browser import DESKTOP, PHONE, chromium, violations, visiting  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SHOTS = os.environ.get("CAIRN_SHOTS")
BOOKS = [f"Ship of Fools, edition {number}" for number in range(1, 13)]
PAIRS = [(0, 1, 9), (0, 2, 4), (1, 2, 4), (3, 7, 2), (4, 8, 1), (0, 11, 1), (5, 6, 6), (9, 10, 3), (2, 9, 1)]


def answering(page: Any, pattern: str, made: Any) -> None:
    """Answer for the server."""
    page.route(pattern, lambda route: route.fulfill(content_type="application/json", body=json.dumps(made)))


def shoot(page: Any, name: str) -> None:
    """Keep a picture of a page where they are asked for."""
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def test_books_that_share_pictures_are_a_network(chromium: Any, home: Served) -> None:  # noqa: F811
    pages = [{"first": "a", "second": "b", "first_page": "1", "second_page": "2", "numbers": [0, 1], "searches": []}]
    shared = [{"first": BOOKS[one], "second": BOOKS[two], "pictures": n, "pages": pages} for one, two, n in PAIRS]
    with visiting(chromium, home.base, DESKTOP) as visit:
        answering(visit.page, "**/api/books", {"books": BOOKS, "pairs": shared, "total": len(shared), "grouped": True})
        page = visit.open("/books")
        network = page.get_by_role("group", name="Which books share pictures")
        assert network.get_by_role("link").count() == len(PAIRS) and network.locator("circle").count() == len(BOOKS)
        widths = [float(one.get_attribute("stroke-width")) for one in network.locator("path:not(.near)").all()]
        assert sorted(range(len(PAIRS)), key=lambda place: -widths[place])[0] == 0
        edge = network.get_by_role("link", name=f"{BOOKS[3]} and {BOOKS[7]}: 2 pictures")
        edge.focus()
        page.keyboard.press("Enter")
        opened = page.locator("details[open]")
        opened.get_by_role("link").wait_for()  # it is filled when it opens
        assert opened.get_attribute("id") == "pair-3"
        assert page.evaluate("document.activeElement.closest('details').id") == "pair-3"
        assert violations(page) == []
        shoot(page, "network")
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_when_and_where_a_motif_occurs(chromium: Any, home: Served) -> None:  # noqa: F811
    numbers = home.numbers()
    wish = {"name": "Cup", "queries": [{"photo": numbers["coffee_0.png"], "box": [20, 20, 380, 380]}], "options": {}}
    search = home.ask("POST", "/api/saved", 201, files={"request": (None, json.dumps(wish))})["id"]
    places = [(47.56, 7.59), (47.57, 7.6), (45.76, 4.83), (None, None)]
    years = ["1494", "1494-02-11", "1512", None]
    photos = home.ask("GET", "/api/photos?limit=4")["photos"]
    more = {"probability": 0.9, "region": None, "found": "2026-01-01", "seen": True, "category": None, "book": "Book"}
    finds = [
        {**one, **more, "page_label": str(n), "place": None, "taken": taken, "latitude": north, "longitude": east}
        for n, (one, taken, (north, east)) in enumerate(zip(photos, years, places, strict=True))
    ]
    with visiting(chromium, home.base, DESKTOP) as visit:
        answering(visit.page, f"**/api/saved/{search}/finds", finds)
        page = visit.open(f"/motif?search={search}")
        bars = page.get_by_role("group", name="Photos by year").get_by_role("link")
        assert [one.get_attribute("aria-label") for one in bars.all()] == ["1494: 2 photos", "1512: 1 photo"]
        assert page.locator("#undated").text_content() == "1 photo has no date."
        bars.last.focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == f"find-{finds[2]['number']}"
        marks = page.get_by_role("list", name="Photos on the map").get_by_role("link")
        assert [one.get_attribute("aria-label") for one in marks.all()] == [
            "47.56, 7.59: 2 photos",
            "45.76, 4.83: 1 photo",
        ]
        boxes = [one.bounding_box() for one in marks.all()]
        assert boxes[0]["x"] > boxes[1]["x"] and boxes[0]["y"] < boxes[1]["y"]  # Basle is north-east of Lyon
        assert violations(page) == []
        shoot(page, "motif-charts")
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    home.ask("DELETE", f"/api/saved/{search}", 204)
