"""Words, dates, titles and stars in a real browser; and answers that go on."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from retrieval.catalogue.curation.albums import insert_album, put_in
from retrieval.collection.collection import Collection
from tests.conftest import VIEWS, Indexed
from tests.support.browser import PHONE, Visit, violations, visiting, wait_for_results
from tests.support.live import import_by_name, serving_copy

pytestmark = pytest.mark.browser

VALUES: dict[str, dict[str, list[str]]] = {
    "coffee_001.jpg": {
        "taken": ["1923-05-17"],
        "title": ["Café am Fluß"],
        "tag": ["Morgen", "Tasse"],
        "Attribution": ["Stadtarchiv."],
        "Source": ["https://archiv.example/1"],
    },
    "coffee_002.jpg": {"taken": ["1923-05"], "tag": ["Tasse"], "archiv": ["Stadtarchiv Łódź"]},
    "coffee_003.jpg": {"taken": ["2004-07-03T14:30:05"]},
    "cat_001.jpg": {"taken": ["2004-07-01"], "title": ["<img src=x onerror=alert(1)> Katze"]},
}


def prepare(collection: Collection) -> None:
    import_by_name(collection, VALUES)
    numbers = {name: number for number, name, _ in collection.catalogue.places()}
    with collection.catalogue.writing() as session:
        put_in(session, insert_album(session, "Ferien 1999"), [numbers["cat_001.jpg"], numbers["cat_002.jpg"]])


@pytest.fixture(scope="module")
def served(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a copy of the small collection, with dates, titles, tags and an album."""
    with serving_copy(indexed.folder, tmp_path_factory.mktemp("words"), prepare) as (address, _):
        yield address


def passing(page: Any, count: int) -> None:
    said = {0: "No photo passes the filter", 1: "1 photo passes the filter"}.get(
        count, f"{count} photos pass the filter"
    )
    page.locator("#said", has_text=said).wait_for()


def test_words_narrow_the_wall_and_what_is_left_is_counted(visit: Visit) -> None:
    page = visit.open("/")
    field = page.get_by_label("Search for words")
    for words, count in (
        ("CAFE flus", 1),
        ("tass", 2),
        ("tass łódź", 1),
        ("ferien", 2),
        ("Mai 1923", 2),
        ("may 1923 morg", 1),
        ("nowhere", 0),
        ("tass", 2),
    ):
        field.fill(words)
        passing(page, count)
    assert "words=tass" in page.url
    assert page.locator("#chips").inner_text().startswith("Words: tass")
    page.get_by_role("button", name="Folders and tags").click()
    tags = page.locator("#tag-list .entry")
    tags.nth(1).wait_for()
    assert [" ".join(one.split()) for one in tags.all_inner_texts()] == ["Tasse 2", "Morgen 1"]
    assert [" ".join(one.split()) for one in page.locator("#year-list .entry").all_inner_texts()] == ["1923 2"]
    assert page.locator("#album-part").is_hidden()  # none of these is in one
    tags.nth(1).click()
    passing(page, 1)
    page.reload()
    assert field.input_value() == "tass"
    passing(page, 1)
    page.get_by_role("link", name="Clear the filter").click()
    page.wait_for_function("() => document.querySelector('#words')?.value === ''")


@pytest.mark.slow
def test_words_narrow_a_visual_search(visit: Visit) -> None:
    page = visit.open(f"/search?q={visit.number('coffee_001.jpg')}&turns=1")
    assert len(wait_for_results(page)) > 2
    page.get_by_label("Only photos with these words").fill("łodz")
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_url("**words=*")
    page.wait_for_function("() => document.querySelectorAll('#results .result').length === 1")
    assert wait_for_results(page) == ["coffee_002.jpg"]


@pytest.mark.slow
def test_the_wall_has_headings_in_the_order_of_dates_alone(chromium: Any, served: str) -> None:
    with visiting(chromium, served, locale="de") as visit:
        page = visit.open("/?order=newest")
        heads = page.locator("#photos .wall-date")
        heads.first.wait_for()
        assert heads.all_inner_texts() == ["Juli 2004", "Mai 1923", "Ohne Datum"]
        # Each lies above the photos of its month, and before them for those who hear it; the months share no row.
        order = page.locator("#photos > li").evaluate_all(
            "all => all.map((one) => [one.className.split(' ')[0], one.getBoundingClientRect().top])"
        )
        kinds = [kind for kind, _ in order]
        assert kinds[:7] == ["wall-date", *["wall-photo"] * 2, "wall-date", *["wall-photo"] * 2, "wall-date"]
        assert all(one <= other for (_, one), (_, other) in pairwise(order))
        assert order[0][1] < order[1][1] == order[2][1] < order[3][1] < order[4][1]
        page.locator("#order").select_option("name")
        heads.first.wait_for(state="detached")


@pytest.mark.slow
def test_a_title_stands_in_place_of_the_name(visit: Visit) -> None:
    page = visit.open("/?words=fluss")
    link = page.get_by_role("link", name="Café am Fluß, coffee_001.jpg")
    link.wait_for()
    assert link.locator(".wall-caption").inner_text().strip() == "" or "coffee" not in link.inner_text()
    link.click()
    page.locator("#title", has_text="Café am Fluß").wait_for()
    assert page.title() == "Café am Fluß · Cairn"
    cited = page.locator("#citation").text_content()
    assert cited.startswith("Stadtarchiv, “Café am Fluß”, May 17, 1923. https://archiv.example/1, http://")
    address = page.url
    page.goto(cited.partition(" (seen on ")[0].rpartition(", ")[2])
    page.locator("#title", has_text="Café am Fluß").wait_for()
    assert page.url.partition("&")[0] == address.partition("&")[0]
    visit.open("/?words=katze")
    page.locator("#photos .wall-caption .title").wait_for(state="attached")
    assert page.locator("#photos .wall-caption .title").text_content() == VALUES["cat_001.jpg"]["title"][0]


@pytest.mark.slow
def test_stars_and_favourites_are_given_and_taken_back(visit: Visit) -> None:
    number = visit.number("coffee_003.jpg")

    def known() -> tuple[int | None, bool]:
        photo = page.request.get(f"{visit.base}/api/photos/{number}").json()
        return photo["rating"], photo["favourite"]

    page = visit.open(f"/photo?number={number}")
    page.get_by_role("button", name="4 stars").click()
    page.locator(".notice").get_by_text("1 photo changed.").wait_for()
    page.locator("#facts", has_text="Rating").wait_for()
    assert known() == (4, False)
    assert page.locator(".star.on").count() == 4
    page.get_by_role("button", name="Favourite").click()
    page.locator(".heart[aria-pressed=true]").wait_for()
    assert known() == (4, True)
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone").wait_for()
    page.locator(".heart[aria-pressed=false]").wait_for()
    assert known() == (4, False)
    page.get_by_role("button", name="4 stars").click()  # pressed again
    page.wait_for_function("() => !document.querySelector('.star.on')")
    assert known() == (None, False)
    assert violations(page) == []


@pytest.mark.slow
def test_a_photo_with_nothing_to_recognise_says_so(visit: Visit) -> None:
    number = visit.number("coffee_003.jpg")
    page = visit.open(f"/photo?number={number}")
    page.wait_for_selector("#page:not([hidden])")
    assert page.locator("#featureless").get_attribute("hidden") is not None

    def blank(route: Any) -> None:
        photo = route.fetch().json()
        route.fulfill(json=photo | {"features": 0})

    page.route(f"**/api/photos/{number}", blank)
    page.reload()
    page.locator("#featureless:not([hidden])").wait_for(state="attached")
    page.get_by_text("nothing to recognise in this photo").wait_for()
    page.route("**/api/search?*", lambda route: route.fulfill(json=route.fetch().json() | {"results": []}))
    page = visit.open(f"/search?q={number}&turns=1")
    page.locator("#note", has_text="nothing to recognise in this photo").wait_for()


def few(route: Any) -> None:
    """Let the page ask for five results first."""
    answer = route.fetch()
    route.fulfill(
        response=answer, body=answer.text().replace("<option>20</option>", "<option>5</option><option>20</option>")
    )


@pytest.mark.slow
def test_more_is_shown_and_the_query_is_not_selected_with_what_is_found(visit: Visit) -> None:
    page = visit.page
    page.route(re.compile(r"/search\?"), few)
    visit.open(f"/search?q={visit.number('coffee_001.jpg')}&turns=1&top=5")
    first = wait_for_results(page)
    assert len(first) == 5
    page.get_by_role("button", name="Select all found").click()
    chosen = page.locator("#chosen")
    assert chosen.inner_text() == f"{VIEWS - 1} photos selected"
    assert not page.locator(".result", has_text="The photo you search with").locator(".pick").is_checked()
    page.get_by_role("button", name="Show more").click()
    page.wait_for_function("() => document.querySelectorAll('#results .result').length > 5")
    page.wait_for_url("**turns=1*")
    assert "top=" not in page.url  # as many as there are anyway
    shown = [one for one in wait_for_results(page)]
    assert shown[:5] == first
    page.locator("#more-results").wait_for(state="hidden")  # all that there are
    page.go_back()
    page.wait_for_function("() => document.querySelectorAll('#results .result').length === 5")


@pytest.mark.parametrize("path", ["/?order=newest", "/?words=tasse", "/search"])
def test_pages_with_words_fit_a_phone_and_everybody(chromium: Any, served: str, path: str) -> None:
    with visiting(chromium, served, PHONE, locale="de") as visit:
        page = visit.open(path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        assert violations(page) == []
        if "newest" in path:
            page.locator("#open-calendar").click()
            page.locator("#years button, #years a").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
            assert violations(page) == []
