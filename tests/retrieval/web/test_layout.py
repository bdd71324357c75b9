"""What the wall, the time line and the map are made of: all photos in one short answer each."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from retrieval.web.kept import AnswerCache
from tests.conftest import Indexed
from tests.support.browser import PHONE, Visit, visiting, wait_for_results
from tests.support.live import client_of, import_by_name, serving_copy

VALUES: dict[str, dict[str, list[str]]] = {
    "coffee_001.jpg": {
        "taken": ["2004-07-03T14:30:05"],
        "camera": ["Leica M3"],
        "latitude": ["48.8584"],
        "longitude": ["2.2945"],
    },
    "coffee_002.jpg": {"taken": ["1923"], "latitude": ["48.8585"], "longitude": ["2.2946"]},
    "coffee_003.jpg": {
        "taken": ["2004-07"],
        "camera": ["Leica M3"],
        "latitude": ["-33.8568"],
        "longitude": ["151.2153"],
    },
}


@pytest.fixture(scope="module")
def served(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base address of a server of a copy of the small collection, with dates and places."""
    prepare = partial(import_by_name, values=VALUES)
    with serving_copy(indexed.folder, tmp_path_factory.mktemp("layout"), prepare) as (address, _):
        yield address


@pytest.fixture(scope="module")
def client(served: str) -> Iterator[httpx.Client]:
    with client_of(served) as client:
        yield client


def _names(client: httpx.Client, numbers: list[int]) -> list[str]:
    photos = client.get("/api/photos", params={"numbers": numbers}).json()["photos"]
    return [photo["name"] for photo in photos]


def test_the_layout_has_each_photo_that_passes_in_its_order(client: httpx.Client) -> None:
    listed = client.get("/api/photos?limit=500").json()["photos"]
    layout = client.get("/api/layout").json()
    assert layout["numbers"] == [photo["number"] for photo in listed]
    assert layout["ratios"] == [round(100 * photo["width"] / photo["height"]) for photo in listed]
    dated = ["coffee_001.jpg", "coffee_003.jpg", "coffee_002.jpg"]
    for order, first in (("newest", dated), ("oldest", dated[::-1])):
        numbers = client.get("/api/layout", params={"order": order}).json()["numbers"]
        assert _names(client, numbers[:3]) == first and len(numbers) == len(listed)
    added = client.get("/api/layout?order=added").json()["numbers"]
    assert sorted(added) == sorted(layout["numbers"])
    assert _names(client, client.get("/api/layout?camera=leica&order=oldest").json()["numbers"]) == dated[1::-1]
    assert client.get("/api/layout?order=random").status_code == 422


def test_what_the_browser_has_is_not_sent_again(client: httpx.Client) -> None:
    for path in ("/api/layout", "/api/timeline", "/api/places", "/api/cameras", "/api/facets"):
        first = client.get(path)
        again = client.get(path, headers={"If-None-Match": f"W/{first.headers['etag']}"})
        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_months_places_and_cameras(client: httpx.Client) -> None:
    timeline = client.get("/api/timeline").json()
    total = client.get("/api/health").json()["images"]
    assert timeline["months"] == [{"month": "1923", "photos": 1}, {"month": "2004-07", "photos": 2}]
    assert timeline["undated"] == total - 3
    places = client.get("/api/places", params={"near": "48.86,2.29,5"}).json()
    assert sorted(_names(client, places["numbers"])) == ["coffee_001.jpg", "coffee_002.jpg"]
    assert sorted(places["latitudes"]) == [48.8584, 48.8585]
    for box, found in (
        ("48.8584,2,48.8585,3", 2),
        ("48.85845,2,49,3", 1),
        ("48.8584,2,48.85845,3", 1),
        ("-90,-180,90,180", 3),
    ):
        assert client.get("/api/photos", params={"within": box}).json()["total"] == found, box
    for wrong in ("1,2,3", "2,0,1,0", "0,0,91,0", "a,b,c,d", "nan,0,1,1"):
        assert client.get("/api/photos", params={"within": wrong}).status_code == 422, wrong
    assert len(client.get("/api/places").json()["longitudes"]) == 3
    assert client.get("/api/cameras").json() == {"cameras": [{"camera": "Leica M3", "photos": 2}]}
    assert client.get("/api/facets").json()["facets"] == [
        {"field": "camera", "values": [{"value": "Leica M3", "photos": 2}]},
        {"field": "rating", "values": []},
        {"field": "favourite", "values": []},
    ]


def test_photos_of_numbers_come_in_that_order_without_those_that_are_gone(client: httpx.Client) -> None:
    numbers = client.get("/api/layout").json()["numbers"][:3]
    asked = [numbers[2], 10**9, numbers[0], numbers[2]]
    photos = client.get("/api/photos", params={"numbers": asked}).json()
    assert [photo["number"] for photo in photos["photos"]] == [numbers[2], numbers[0], numbers[2]]
    assert client.get("/api/photos", params={"numbers": list(range(501))}).status_code == 422


def test_answers_are_kept_until_the_catalogue_changes_and_within_a_bound() -> None:
    kept = AnswerCache(most=5000)
    made: list[str] = []

    def make(name: str) -> Any:
        def answer() -> dict[str, Any]:
            made.append(name)
            return {"name": name * 2000}

        return answer

    first = kept.answer(1, "a", make("a"))
    assert kept.answer(1, "a", make("a")) is first and made == ["a"]
    kept.answer(1, "b", make("b"))
    kept.answer(1, "c", make("c"))  # no room for three
    kept.answer(1, "a", make("a"))
    assert made == ["a", "b", "c", "a"]
    kept.answer(2, "a", make("a"))
    kept.answer(1, "a", make("a"))  # of a moment that is over: not kept
    kept.answer(2, "a", make("a"))
    assert made == ["a", "b", "c", "a", "a", "a"]


@pytest.mark.browser
@pytest.mark.slow
def test_the_map_gathers_photos_and_leads_to_them(chromium: Any, served: str) -> None:
    with visiting(chromium, served, PHONE) as visit:
        page = visit.open("/map")
        page.get_by_text("3 photos say where they were taken").wait_for()
        shown = page.locator(".cluster a")
        assert sorted(shown.all_text_contents()) == ["", "2"]  # two in Paris, one in Sydney
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        page.locator("#view").focus()
        page.keyboard.press("+")
        page.wait_for_url("**/map?at=*")
        page.keyboard.press("Home")
        paris = page.get_by_role("link", name="2 photos at 48.858")
        assert "within=48.858" in paris.get_attribute("href")
        paris.focus()
        page.keyboard.press("Enter")
        page.get_by_text("2 photos pass the filter").wait_for()
        assert "Around 48.86, 2.29" in page.locator("#chips").text_content()
        near = page.evaluate(
            """async () => {
                const { project, unproject, distance, gather } = await import("/static/js/photos/mercator.js");
                const back = unproject(...project(48.8584, 2.2945));
                const far = distance([48.8584, 2.2945], [-33.8568, 151.2153]);
                return [back, far, gather([0.1, 0.11, 0.9], [0.1, 0.1, 0.9], 0.05).length];
            }"""
        )
        # A click lists just what was counted, wherever photos were within the digits that the map has of them.
        wrong = page.evaluate(
            """async () => {
                const { project, gather, within } = await import("/static/js/photos/mercator.js");
                const digits = (one) => Number(one.toFixed(5));
                let seed = 7;
                const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
                const places = Array.from({ length: 3000 }, (_, place) => place % 9
                    ? [48 + random(), 2 + random()] : [180 * random() - 90, 360 * random() - 180]);
                const points = places.map(([north, east]) => project(digits(north), digits(east)));
                const found = gather(points.map(([x]) => x), points.map(([, y]) => y), 0.0001);
                return found.filter(({ count, box }) => {
                    const [south, west, north, east] = within(box).split(",").map(Number);
                    const is = ([y, x]) => south <= y && y <= north && west <= x && x <= east;
                    return count !== places.filter(is).length;
                }).map(({ count, box }) => [count, within(box)]);
            }"""
        )
        assert wrong == []
        assert near[0] == pytest.approx([48.8584, 2.2945]) and near[2] == 2
        assert near[1] == pytest.approx(16960, abs=20)  # kilometres from Paris to Sydney


def open_results(visit: Visit) -> tuple[Any, list[str]]:
    """Search for a photo; give the page of results, and the addresses of their matches."""
    page = visit.open(f"/search?q={visit.number('coffee_001.jpg')}&turns=1")
    wait_for_results(page)
    return page, page.locator("#results a[href*='/match?']").evaluate_all("all => all.map((one) => one.href)")


@pytest.mark.browser
def test_a_match_leads_to_that_of_the_next_result(chromium: Any, served: str) -> None:
    with visiting(chromium, served) as visit:
        page, matches = open_results(visit)
        page.goto(matches[0])
        page.get_by_role("link", name="Next result").click()
        page.get_by_role("link", name="Previous result").wait_for()
        second = next(one for one in matches if one != matches[0])
        assert page.url == second


@pytest.mark.slow
@pytest.mark.browser
def test_a_link_stays_where_it_is_pressed_while_a_match_is_read(chromium: Any, served: str) -> None:
    with visiting(chromium, served) as visit:
        page, matches = open_results(visit)
        held: list[Any] = []
        page.route("**/api/photos/*", lambda route: held.append(route))
        page.goto(matches[0])
        link = page.get_by_role("link", name="Next result")
        link.hover()
        page.mouse.down()
        page.unroute("**/api/photos/*")  # which lets what is held go on
        page.locator("#title", has_text="coffee_001.jpg and").wait_for()  # the title is longer now
        page.mouse.up()
        page.wait_for_url(next(one for one in matches if one != matches[0]))
