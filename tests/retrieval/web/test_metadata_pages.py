"""Metadata in the web application: filters by date and tag in the API and in a real browser, and hostile values."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from tests.conftest import Indexed
from tests.retrieval.web.test_browser_pages import tiles
from tests.support.browser import PHONE, violations, visiting, wait_for_results
from tests.support.live import client_of, import_by_name, serving_copy

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
QUOTES = "\"'/><b onmouseover=alert(3)>"
VALUES: dict[str, dict[str, list[str]]] = {
    "coffee_001.jpg": {
        "taken": ["1923-05-17T14:30:05"],
        "title": [MARKUP],
        "camera": [QUOTES],
        "tag": ["cup", MARKUP, QUOTES],
        "latitude": ["-33.8567844"],
        "longitude": ["151.2152967"],
        MARKUP: [QUOTES],
        "__proto__": ["polluted"],
        "archive": ["Berlin"],
    },
    "coffee_002.jpg": {
        "taken": ["1923"],
        "tag": ["cup", "brown"],
        "latitude": ["-33.85"],
        "longitude": ["151.2"],
        "rating": ["3"],
        "caption": ["On the table"],
    },
    "cat_001.jpg": {"taken": ["1930-01"], "tag": ["Brown"], "rating": ["5"], "favourite": ["yes"]},
}


@pytest.fixture(scope="module")
def served(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base address of a server of a copy of the small collection, with metadata."""
    prepare = partial(import_by_name, values=VALUES)
    with serving_copy(indexed.folder, tmp_path_factory.mktemp("metadata"), prepare) as (address, _):
        yield address


@pytest.fixture(scope="module")
def client(served: str) -> Iterator[httpx.Client]:
    with client_of(served) as client:
        yield client


def _listed(client: httpx.Client, **asked: Any) -> list[str]:
    answer = client.get("/api/photos", params=asked)
    assert answer.status_code == 200, answer.text
    return [photo["name"] for photo in answer.json()["photos"]]


def test_photos_are_listed_and_found_by_what_is_known_of_them(client: httpx.Client) -> None:
    cups = ["coffee_001.jpg", "coffee_002.jpg"]
    (query,) = (one["number"] for one in client.get("/api/photos?name=coffee_003").json()["photos"])
    for asked, names in (
        ({"tag": "CUP"}, cups),
        ({"tag": ["cup", "brown"]}, cups[1:]),
        ({"tag": "cup", "without_tag": "brown"}, cups[:1]),
        ({"tag": MARKUP}, cups[:1]),
        ({"taken_to": "1923"}, cups),
        ({"taken_from": "1923-06", "taken_to": "1930"}, ["cat_001.jpg", "coffee_002.jpg"]),
        ({"near": "-33.8567844,151.2152967,0.1"}, cups[:1]),
        ({"where": "archive=BERLIN"}, cups[:1]),
        ({"camera": QUOTES.upper()}, cups[:1]),
        ({"title": "<script>"}, cups[:1]),
        ({"title": "%"}, []),
        ({"rating": 3}, ["cat_001.jpg", "coffee_002.jpg"]),
        ({"rating": 4}, ["cat_001.jpg"]),
        ({"favourite": True}, ["cat_001.jpg"]),
        ({"caption": "THE TABLE"}, ["coffee_002.jpg"]),
    ):
        assert _listed(client, **asked) == names, asked
    for asked, names in (({"tag": "cup", "taken_to": "1923"}, cups), ({"title": "%"}, [])):
        found = client.get("/api/search", params={"q": query, "turns": 1, "engine": "tf-idf", **asked}).json()
        assert (sorted(one["name"] for one in found["results"]), found["passing"]) == (names, len(names))
    assert found["filter"] == {"title": "%"}
    assert _listed(client, tag="", taken_from="", near="") == _listed(client)
    assert client.get("/api/tags?limit=2").json()["tags"] == [
        {"tag": "brown", "photos": 2},
        {"tag": "cup", "photos": 2},
    ]
    assert {one["tag"] for one in client.get("/api/tags").json()["tags"]} == {"brown", "cup", MARKUP, QUOTES}


@pytest.mark.parametrize(
    "asked",
    [
        {"taken_from": "soon"},
        {"rating": 6},
        {"rating": "good"},
        {"favourite": "very"},
        {"taken_to": "1923-13"},
        {"taken_from": "1924", "taken_to": "1923"},
        {"near": "1,2"},
        {"near": "91,0,1"},
        {"near": "0,0,nan"},
        {"where": "no equals sign"},
        {"tag": ["x"] * 21},
        {"tag": "x" * 1025},
    ],
)
def test_filters_that_make_no_sense_are_refused_in_a_sentence(client: httpx.Client, asked: dict[str, Any]) -> None:
    for path in ("/api/photos", "/api/search?q=0"):
        answer = client.get(path, params={"q": 0, **asked})
        assert answer.status_code == 422
        assert answer.json()["detail"].startswith("The ") and answer.json()["detail"].endswith(".")


def test_a_photo_tells_what_is_known_of_it(client: httpx.Client) -> None:
    (listed,) = client.get("/api/photos?name=coffee_001").json()["photos"]
    shown = client.get(f"/api/photos/{listed['number']}").json()
    assert client.get(shown.pop("link")).headers["location"].endswith(f"/photo?number={listed['number']}")
    others = {MARKUP: [QUOTES], "__proto__": ["polluted"], "archive": ["Berlin"]}
    assert shown == listed | {"others": others, "film": None}
    assert (shown["title"], shown["tags"], shown["camera"]) == (MARKUP, ["cup", MARKUP, QUOTES], QUOTES)
    assert (shown["taken"], shown["latitude"]) == ("1923-05-17T14:30:05", -33.8567844)


@pytest.mark.browser
@pytest.mark.slow
def test_pages_choose_by_the_values_of_fields_and_show_them(chromium: Any, served: str) -> None:
    with visiting(chromium, served) as visit:
        page = visit.open("/")
        page.get_by_role("button", name="Folders and tags").click()
        ratings = page.get_by_role("region", name="Ratings")
        ratings.get_by_role("button").nth(1).wait_for()
        assert ratings.get_by_role("button").all_inner_texts() == ["5 or more\n1", "3 or more\n2"]
        ratings.get_by_role("button", name="3 or more").click()
        page.wait_for_url("**/?rating=3")
        page.get_by_text("2 photos pass the filter").wait_for()
        page.get_by_text("Rating: 3 or more").wait_for()
        page.get_by_role("region", name="Favourites").get_by_role("button").click()
        page.get_by_text("1 photo passes the filter").wait_for()
        assert tiles(page) == ["cat_001.jpg"]
        with httpx.Client(base_url=served) as client:
            (number,) = (one["number"] for one in client.get("/api/photos?name=coffee_002").json()["photos"])
        page = visit.open(f"/photo?number={number}")
        page.locator("#facts dt").first.wait_for(state="attached")
        shown = page.locator("#facts dt, #facts dd").evaluate_all("all => all.map((one) => one.textContent)")
        facts = dict(zip(shown[::2], shown[1::2], strict=True))
        assert (facts["Taken"], facts["Caption"], facts["Rating"]) == ("1923", "On the table", "3")
        assert "Camera" not in facts and facts["Position"].startswith("33.85")
        assert not violations(page)


@pytest.mark.browser
@pytest.mark.slow
def test_pages_filter_by_dates_and_tags(chromium: Any, served: str) -> None:
    with visiting(chromium, served) as visit:
        page = visit.open("/")
        page.get_by_role("button", name="Folders and tags").click()
        page.get_by_label("Taken until").fill("192")  # not yet a date: nothing is asked for
        page.get_by_label("Taken until").fill("1923")
        page.wait_for_url("**/?taken_to=1923")
        page.get_by_text("2 photos pass the filter").wait_for()
        assert tiles(page) == [MARKUP, "coffee_002.jpg"]
        offered = page.locator("#tags option").evaluate_all("all => all.map((one) => one.value)")
        assert offered[:2] == ["brown", "cup"] and MARKUP in offered
        page.get_by_label("Tags, with").fill("cup; ")
        assert "cup; brown" in page.locator("#tags option").evaluate_all("all => all.map((one) => one.value)")
        page.get_by_label("Tags, with").fill("cup; brown")
        page.wait_for_url("**/?taken_to=1923&tag=cup&tag=brown")
        page.get_by_text("1 photo passes the filter").wait_for()
        page.reload()
        assert tiles(page) == ["coffee_002.jpg"]
        assert page.get_by_label("Tags, with").input_value() == "cup; brown"
        chips = page.locator("#chips a")
        assert [one[:-1] for one in chips.all_text_contents()] == ["Until 1923", "Tag: cup", "Tag: brown"]
        chips.nth(2).click()
        page.get_by_text("2 photos pass the filter").wait_for()
        page.go_back()
        page.get_by_text("1 photo passes the filter").wait_for()

        number = visit.number("coffee_003.jpg")
        visit.open(f"/search?q={number}&tag=cup")
        assert set(wait_for_results(page)) == {"coffee_001.jpg", "coffee_002.jpg"}
        assert page.get_by_label("Only with tags").input_value() == "cup"
        page.get_by_label("Taken from").fill("1923-06")
        page.get_by_label("Taken from").press("Tab")
        page.wait_for_url("**taken_from=1923-06**")
        page.locator("#results .result").nth(1).wait_for(state="detached")
        assert wait_for_results(page) == ["coffee_002.jpg"]
        page.get_by_label("Taken from").fill("1950")
        page.get_by_label("Taken from").press("Enter")
        page.get_by_text("No photo of the collection passes the filters").wait_for()
        page.get_by_role("link", name="Clear the filters").click()
        page.wait_for_url(f"**/search?q={number}")
        assert len(wait_for_results(page)) > 2
        assert page.get_by_label("Taken from").input_value() == page.get_by_label("Only with tags").input_value() == ""
        assert page.get_by_role("link", name="Clear the filters").is_hidden()
        page.get_by_label("Taken until").fill("soon")
        page.get_by_role("button", name="Search", exact=True).click()
        assert "soon" not in page.url


@pytest.mark.browser
@pytest.mark.slow
def test_metadata_with_markup_is_text(chromium: Any, served: str) -> None:
    with visiting(chromium, served) as visit:  # whatever runs or opens a dialog is a complaint
        number = visit.number("coffee_001.jpg")
        page = visit.open(f"/photo?number={number}")
        page.wait_for_selector(".box-canvas")
        terms = page.locator("#facts dt").all_text_contents()
        facts = dict(zip(terms, page.locator("#facts dd").all_text_contents(), strict=True))
        assert (facts["Title"], facts["Camera"], facts[MARKUP]) == (MARKUP, QUOTES, QUOTES)
        assert facts["Taken"].startswith("May 17, 1923, 2:30:05") and facts["archive"] == "Berlin"
        assert facts["__proto__"] == "polluted"
        assert facts["Position"] == "33.85678° S, 151.21530° E"
        links = page.locator("#facts .tags a")
        assert links.all_text_contents() == ["cup", MARKUP, QUOTES]
        assert page.evaluate("document.querySelectorAll('main script, main b, img[src=x], [onerror]').length") == 0
        links.nth(1).click()
        page.get_by_text("1 photo passes the filter").wait_for()
        assert tiles(page) == [MARKUP]
        assert page.get_by_label("Tags, with").input_value() == MARKUP
        visit.open(f"/search?q={number}&tag={QUOTES.replace('&', '%26')}")
        assert wait_for_results(page) == ["coffee_001.jpg"]
        assert page.evaluate("document.querySelectorAll('main script, main b, img[src=x], [onerror]').length") == 0


@pytest.mark.browser
@pytest.mark.slow
def test_pages_with_metadata_are_accessible_and_fit_a_phone(chromium: Any, served: str) -> None:
    with visiting(chromium, served, PHONE, has_touch=True, is_mobile=True, bypass_csp=True) as visit:
        number = visit.number("coffee_001.jpg")
        for address in ("/?tag=cup&taken_to=1923", f"/photo?number={number}", f"/search?q={number}&tag=cup"):
            page = visit.open(address)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], address
            assert not violations(page), (address, violations(page))
