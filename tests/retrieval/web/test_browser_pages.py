"""The pages in a real browser: browsing, paging, groups, status, names with markup, phones, accessibility."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import VIEWS, Indexed
from tests.support.browser import DESKTOP, DOT, PHONE, SMALLEST, Visit, draw_box, violations, visiting, wait_for_results
from tests.support.live import serving

pytestmark = pytest.mark.browser

MARKUP = "<img src=x onerror=alert(1)>.jpg"


def pretend(page: Any, path: str, answer: Callable[[dict[str, str]], tuple[int, Any]]) -> list[dict[str, str]]:
    """Let the test answer requests for a path; gives the list that their fields are added to."""
    from urllib.parse import parse_qsl, urlsplit

    asked = []

    def reply(route: Any) -> None:
        fields = dict(parse_qsl(urlsplit(route.request.url).query))
        asked.append(fields)
        status, body = answer(fields)
        route.fulfill(status=status, json=body)

    page.route(re.compile(re.escape(path) + r"(\?.*)?$"), reply)
    return asked


def photo(number: int, name: str | None = None) -> dict[str, Any]:
    return {
        "number": number,
        "name": name or f"photo_{number:06d}.jpg",
        "folder": "",
        "width": 640,
        "height": 480,
        "features": 1000,
        "taken": None,
        "tags": [],
        "date_added": None,
    }


def wall(photos: list[dict[str, Any]]) -> dict[str, Any]:
    """What GET /api/layout says of photos."""
    ratios = [round(100 * one["width"] / one["height"]) for one in photos]
    return {"numbers": [one["number"] for one in photos], "ratios": ratios}


def tiles(page: Any) -> list[str]:
    """What the photos of the wall are called: their titles, or their names."""
    page.wait_for_load_state("networkidle")
    named = "all => all.every((one) => one.querySelector('.wall-caption'))"
    page.wait_for_function(f"() => ({named})([...document.querySelectorAll('#photos .wall-photo')])")
    return [str(name) for name in page.locator("#photos .wall-caption").all_text_contents()]


@pytest.mark.slow
def test_browse_and_filter(visit: Visit, indexed: Indexed) -> None:
    page = visit.open("/")
    everything = sorted(path.name for path in indexed.photos.iterdir())
    assert tiles(page) == everything
    assert page.get_by_role("link", name="coffee_001.jpg", exact=True).count() == 1
    page.locator("#photos img").last.scroll_into_view_if_needed()
    page.wait_for_function("[...document.querySelectorAll('#photos img')].every((one) => one.naturalWidth > 0)")
    page.get_by_label("Search for words").fill("COFFEE")
    page.wait_for_url("**/?words=COFFEE")
    page.locator("#photos li").nth(VIEWS).wait_for(state="detached")
    coffee = [name for name in everything if "coffee" in name]
    assert tiles(page) == coffee
    assert page.locator("#said").text_content() == f"{VIEWS} photos pass the filter"
    page.reload()
    assert tiles(page) == coffee and page.get_by_label("Search for words").input_value() == "COFFEE"
    page.get_by_role("button", name="Folders and tags").click()
    page.get_by_label("Folder starts with").fill("nowhere")
    page.get_by_role("button", name="Show these photos").click()
    page.get_by_text("No photo passes the filter").wait_for()
    assert tiles(page) == []
    page.get_by_role("link", name="Clear the filter").click()
    page.get_by_text(f"{len(everything)} photos").first.wait_for()
    assert tiles(page) == everything
    assert page.get_by_role("link", name="Clear the filter").is_hidden()
    assert (
        page.get_by_label("Search for words").input_value()
        == page.get_by_label("Folder starts with").input_value()
        == ""
    )
    page.get_by_label("Search for words").fill("coffee_001")
    page.get_by_text("1 photo passes the filter").wait_for()


LONG = [
    f"Holiday in the south of France, summer of 1998, with Grandmother, roll 3, frame {number}.jpg"
    for number in (17, 18)
]


# Of names, with this space between letters: whether the last six letters are within the line, and the line is one line.
SEEN_ENDS = """(all, spacing) => all.map((one) => {
    one.style.letterSpacing = spacing;
    const text = one.lastElementChild.firstChild;
    const end = document.createRange();
    end.setStart(text, text.length - 6);
    end.setEnd(text, text.length);
    const [whole, letters] = [one.getBoundingClientRect(), end.getBoundingClientRect()];
    const part = one.lastElementChild.getBoundingClientRect();
    const [left, right] = [Math.max(whole.left, part.left) - 0.5, Math.min(whole.right, part.right) + 0.5];
    return [
        left <= letters.left && letters.right <= right,
        whole.height < 2 * letters.height,
        end.toString(),
    ];
})"""


@pytest.mark.parametrize("size", [DESKTOP, SMALLEST])
def test_long_names_keep_their_ends_and_titles_are_shown(chromium: Any, served: str, size: tuple[int, int]) -> None:
    names = [*LONG, "short.jpg", "石" * 40 + "_b.jpg"]
    photos = [photo(place, name) | {"title": None} for place, name in enumerate(names)]
    photos.append(photo(len(names), "IMG_0042.jpg") | {"title": "The harbour"})
    with visiting(chromium, served, size) as visit:
        pretend(visit.page, "/api/layout", lambda _: (200, wall(photos)))
        pretend(visit.page, "/api/photos", lambda _: (200, {"total": 5, "offset": 0, "photos": photos}))
        visit.page.route(
            "**/thumbnail**", lambda route: route.fulfill(status=200, content_type="image/svg+xml", body=DOT)
        )
        page = visit.open("/")
        assert tiles(page) == [*names, "The harbour"]
        assert page.locator("#photos .name").evaluate_all("all => all.map((one) => one.title)") == names
        # What tells names apart is seen, whatever fonts there are: with letters far apart, too.
        for spacing in ("normal", "0.35em"):
            seen = page.locator("#photos .name").evaluate_all(SEEN_ENDS, spacing)
            assert [one[:2] for one in seen] == [[True, True]] * 4, (spacing, seen)
            assert [one[2] for one in seen] == ["17.jpg", "18.jpg", "rt.jpg", "_b.jpg"]
        # A title stands in place of the name, which is its tooltip.
        titled = page.locator("#photos .title")
        assert titled.all_text_contents() == ["The harbour"]
        assert titled.get_attribute("title") == "The harbour (IMG_0042.jpg)"
        # Those who hear the page hear the name once, and whole.
        assert page.get_by_role("link", name="The harbour, IMG_0042.jpg", exact=True).count() == 1
        assert page.get_by_role("link", name=LONG[1], exact=True).count() == 1


@pytest.mark.slow
def test_a_wall_holds_a_hundred_thousand_photos(visit: Visit) -> None:
    total = 100_000
    page = visit.page
    page.route("**/thumbnail**", lambda route: route.fulfill(status=200, content_type="image/svg+xml", body=DOT))
    pretend(
        page, "/api/layout", lambda _: (200, {"numbers": list(range(total)), "ratios": [133, 67, 150, 100] * 25_000})
    )
    months = [{"month": "1998-12", "photos": 60_000}, {"month": "2004-07", "photos": 39_000}]
    pretend(page, "/api/timeline", lambda _: (200, {"months": months, "undated": 1000}))
    asked = []

    def named(route: Any) -> None:
        from urllib.parse import parse_qs, urlsplit

        numbers = [int(one) for one in parse_qs(urlsplit(route.request.url).query)["numbers"]]
        asked.append(len(numbers))
        route.fulfill(json={"total": len(numbers), "offset": 0, "photos": [photo(one) for one in numbers]})

    page.route("**/api/photos?**", named)
    visit.open("/")
    shown = page.locator("#photos li")
    assert 10 < shown.count() < 120 and page.locator("#said").text_content() == "100,000 photos"
    assert shown.first.get_attribute("aria-setsize") == str(total)
    # By keys: to the right, a row down, to the end; what has the focus is in view.
    page.locator("#photos a[tabindex='0']").focus()
    row = shown.evaluate_all("all => all.filter((one) => one.style.top === all[0].style.top).length")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert row <= int(page.evaluate("document.activeElement.dataset.place")) <= 2 * row
    page.keyboard.press("Control+End")
    assert page.evaluate("document.activeElement.dataset.place") == str(total - 1)
    page.wait_for_url("**at=99***")
    page.get_by_role("link", name=photo(total - 1)["name"]).wait_for()
    assert shown.count() < 120
    where = page.url
    page.reload()
    page.wait_for_function("() => document.querySelector('#photos [data-place=\"99999\"]')")
    assert page.url == where
    # The time line leads to a month.
    page.get_by_label("Jump to a month").select_option(label="December 1998 (60,000 photos)")
    page.wait_for_url("**order=newest**")
    page.wait_for_function("() => document.querySelector('#photos [data-place=\"39000\"]')")
    assert page.locator("#rail [aria-current]").text_content() == "1998"
    # So does the calendar, by keys alone.
    page.get_by_role("button", name="Calendar").press("Enter")
    assert page.get_by_role("heading", name="2004 39,000 photos").is_visible()
    page.get_by_role("button", name="July 2004 (39,000 photos)").press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "December 1998 (60,000 photos)"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#photos [data-place=\"0\"]')")
    assert page.locator("#rail [aria-current]").text_content() == "2004"
    assert max(asked) <= 200


@pytest.mark.slow
def test_rows_fill_the_width_and_hold_each_photo_once(visit: Visit) -> None:
    page = visit.open("/status")
    found = page.evaluate(
        """async () => {
            const { justify, boxes, rowAt, rowOf, beside, total } = await import("/static/js/photos/justified.js");
            const { places, years } = await import("/static/js/photos/timeline.js");
            const { tree } = await import("/static/js/photos/drawer.js");
            const bad = [];
            let seed = 1;
            const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
            for (const width of [320, 390, 1440, 2560]) {
                const shape = () => Math.round(random() < 0.1 ? 900 * random() : 60 + 120 * random());
                const ratios = Array.from({ length: 3000 }, shape);
                const layout = justify(ratios, width, 200, 4);
                const rows = layout.heights.map((_, row) => boxes(layout, row));
                if (rows.flat().map(({ place }) => place).join() !== [...ratios.keys()].join()) bad.push("places");
                for (const [row, some] of rows.slice(0, -1).entries()) {
                    const right = some.at(-1).left + some.at(-1).width;
                    if (Math.abs(right - width) > 0.01) bad.push(["width", width, row, right]);
                    if (some[0].height > 640 || some[0].height < 60) bad.push(["height", width, some[0].height]);
                    const { place, top } = some[0];
                    if (rowAt(layout, top + 1) !== row || rowOf(layout, place) !== row) bad.push("row");
                    const below = beside(layout, place, 1);
                    const above = beside(layout, below, -1);
                    if (rowOf(layout, below) !== row + 1 || rowOf(layout, above) !== row) bad.push("beside");
                }
                const { top, height } = rows.at(-1)[0];
                if (Math.abs(total(layout) - top - height) > 0.01) bad.push("total");
            }
            const empty = justify([], 500, 200, 4);
            const months = [{ month: "1923", photos: 2 }, { month: "1923-05", photos: 3 },
                { month: "1998-01", photos: 4 }];
            const folders = tree([{ folder: "", photos: 1 }, { folder: "a/b", photos: 2 }, { folder: "a", photos: 3 }]);
            return { bad, empty: total(empty), newest: places(months, true).map(({ place }) => place),
                years: years(places(months, false)).map(({ year, photos, place }) => [year, photos, place]),
                folders: [folders.all, folders.below[0].all, folders.below[0].own, folders.below[0].below[0].path] };
        }"""
    )
    assert found["bad"] == [] and found["empty"] == 0
    assert found["newest"] == [0, 4, 7] and found["years"] == [["1923", 5, 0], ["1998", 4, 5]]
    assert found["folders"] == [6, 5, 3, "a/b"]


@pytest.mark.slow
def test_by_keys_alone_from_the_wall_to_a_photo_its_neighbours_and_back(visit: Visit, indexed: Indexed) -> None:
    names = sorted(path.name for path in indexed.photos.iterdir())
    coffee = [name for name in names if "coffee" in name]
    page = visit.open("/?name=coffee")
    page.locator("#photos a[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(".box-canvas")
    assert page.locator("h1").text_content() == coffee[1]
    page.get_by_text(f"2 of {VIEWS}").wait_for()
    page.keyboard.press("ArrowRight")
    page.get_by_text(f"3 of {VIEWS}").wait_for()
    assert page.locator("h1").text_content() == coffee[2]
    page.keyboard.press("b")  # the photo has the focus now, and Enter draws a box
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Search with this box").wait_for()
    page.keyboard.press("ArrowRight")  # moves the box
    assert page.locator("h1").text_content() == coffee[2]
    page.keyboard.press("Escape")  # clears it
    shown = page.locator("#panel").is_visible()
    page.keyboard.press("i")
    assert page.locator("#panel").is_visible() is not shown
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement?.dataset?.place === '2'")
    assert "name=coffee" in page.url and tiles(page) == coffee
    page.keyboard.press("x")
    assert page.locator("#photos .picked").count() == 1


def test_names_with_markup_are_text(
    chromium: Any,
    indexed: Indexed,
    tmp_path: Path,
) -> None:
    from retrieval.collection.collection import Collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.indexing.add_options import AddOptions
    from retrieval.indexing.adding import index_photos
    from retrieval.photos.options import ImageOptions

    photos = tmp_path / "photos"
    photos.mkdir()
    shutil.copy(indexed.photos / "coffee_001.jpg", photos / MARKUP)
    shutil.copy(indexed.photos / "coffee_002.jpg", photos / "plain.jpg")
    (photos / "<b>broken.jpg").write_bytes(b"no photo")
    small = CollectionOptions(image=ImageOptions(max_side=320), signature="none")
    with Collection.create(tmp_path / "c.cairn", small) as collection:
        report = index_photos(collection, [photos], AddOptions(vocabulary=indexed.folder))
    assert report.added == 2
    with serving(tmp_path / "c.cairn", tmp_path / "cache") as base, visiting(chromium, base) as visit:
        page = visit.open("/")
        assert MARKUP in tiles(page)
        page.locator("#photos a").first.click()
        page.wait_for_selector(".box-canvas")
        assert page.locator("h1").text_content() == MARKUP
        page.locator("#search").click()
        assert set(wait_for_results(page)) == {MARKUP, "plain.jpg"}
        page.get_by_role("link", name="plain.jpg: see the match").click()
        page.wait_for_selector("#page:not([hidden])")
        assert MARKUP in page.locator("h1").text_content()
        visit.open("/status")
        assert "<b>broken.jpg" in page.locator("#failed").text_content()
        assert page.evaluate("document.querySelectorAll('main b, img[src=x]').length") == 0


def test_groups(visit: Visit) -> None:
    page = visit.open("/groups")
    if page.locator("#note").is_visible():  # nobody looked for groups
        assert page.locator("#note").get_by_role("button", name="Find groups").is_visible()
        visit.excuse("Failed to load resource")
    groups = [
        {"group": 7, "photos": [photo(number) for number in range(30)], "links": 41},
        {"group": 9, "photos": [photo(40), photo(41, MARKUP) | {"duplicate_of": 40}], "links": 1},
    ]
    pretend(page, "/api/groups", lambda _: (200, {"total": 2, "inliers": 20, "out_of_date": True, "groups": groups}))
    page.route("**/thumbnail**", lambda route: route.fulfill(status=200, content_type="image/svg+xml", body=DOT))
    visit.open("/groups")
    first, second = page.locator(".album").all()
    assert first.locator("li").count() == 12
    first.get_by_role("button", name="Show 18 more photos").click()
    assert first.locator("li").count() == 30
    assert page.evaluate("document.activeElement.href.includes('number=12&list=')")  # the keyboard goes on where it was
    assert second.locator(".name").all_text_contents() == ["photo_000040.jpg", MARKUP]
    assert second.locator("li").last.text_content().endswith("near duplicate of photo_000040.jpg")
    assert page.locator("#note").get_by_role("button", name="Find groups again").is_visible()
    assert page.get_by_role("link", name="Review duplicates").get_attribute("href") == "/duplicates"
    assert page.get_by_role("link", name="Download as CSV").get_attribute("href") == "/api/groups.csv"


def test_status(visit: Visit, indexed: Indexed) -> None:
    page = visit.open("/status")
    facts = page.request.get(visit.base + "/api/collection").json()
    assert f"{facts['images']} photos can be searched" in page.locator("#holdings").text_content()
    assert f"{facts['vocabulary']['words']:,} small patterns" in page.locator("#fit").text_content()
    assert "Nothing needs to be done" in page.locator("#steps").text_content()
    assert page.locator("#failures").is_hidden() and page.locator("#cards").is_hidden()
    page.get_by_role("heading", name="Details").click()
    cards = page.locator("#cards").text_content()
    fingerprint = facts["descriptor"]["fingerprint"]
    for fact in (facts["descriptor"]["name"], f"{fingerprint[:12]}…", f"{facts['vocabulary']['words']:,}"):
        assert str(fact) in cards
    assert page.locator("#cards [title]").first.get_attribute("title") == fingerprint  # whole, for who wants it
    assert not re.search(r"[0-9a-f]{20}|[{}\[\]\"]|undefined|NaN|null", page.locator("#page").text_content())
    assert "demo.cairn" in page.locator("#collection").text_content()


NO_PHOTO = "it is not a photo in a format that can be read"


def test_status_says_what_failed_why_and_what_to_do(visit: Visit) -> None:
    page = visit.page
    facts = page.request.get(visit.base + "/api/collection").json()
    failed = [{"name": f"rome/{number}.jpg", "said": NO_PHOTO} for number in range(3)]
    failed.insert(1, {"name": MARKUP, "said": "the file is empty"})
    drift = {
        "trained": {"images": 10, "quantisation_error": 0.1},
        "added": {"images": 40, "quantisation_error": 0.137},
        "ratio": 1.37,
        "fit": "poor",
        "advice": "The vocabulary does not fit the 40 photos that were added: cairn retrain makes a new one.",
    }
    vocabulary = facts["vocabulary"] | {"drift": drift, "trained_on": "1 photos of demo.cairn"}
    bad = facts | {"failed": failed, "missing": 1, "removed": 2, "vocabulary": vocabulary}
    pretend(page, "/api/collection", lambda _: (200, bad))
    pretend(page, "/api/health", lambda _: (200, {"status": "ok", "collection": "my own.cairn", "images": 16}))
    visit.open("/status")
    assert page.locator("#said").text_content() == "4 photos could not be read"
    reasons = page.locator("#failed details")
    assert reasons.locator("summary").all_text_contents() == [f"3 photos: {NO_PHOTO}.", "1 photo: the file is empty."]
    assert page.get_by_text("rome/0.jpg").is_hidden()
    reasons.first.locator("summary").click()
    assert reasons.first.locator("li").all_text_contents() == [f"rome/{number}.jpg" for number in range(3)]
    assert page.get_by_text("rome/0.jpg").is_visible()
    held, fit = (page.locator(one).text_content() for one in ("#holdings", "#fit"))
    assert "The file of 1 photo is no longer" in held and "2 removed photos still take space" in held
    assert "learnt from 1 photo of demo.cairn" in fit and "The 40 photos" in fit and "37% less closely" in fit
    assert page.locator("#steps .writes").all_text_contents() == [
        *("Try again", "Look again", "Remove them", "Free space", "Learn new patterns"),
        *("Add photos", "Find groups", "Check all files", "Improve search", "Read files again", "Write sidecars"),
    ]
    assert page.locator("#commands").is_hidden()
    assert page.locator("#commands code").all_text_contents() == [
        "cairn index 'my own.cairn' FOLDER",
        "cairn remove 'my own.cairn' --missing",
        "cairn compact 'my own.cairn'",
        "cairn retrain 'my own.cairn'",
        "cairn group 'my own.cairn'",
        "cairn metadata 'my own.cairn' --write-sidecars",
        "cairn check 'my own.cairn'",
    ]


@pytest.mark.slow
def test_status_of_a_collection_without_photos(visit: Visit) -> None:
    page = visit.page
    facts = page.request.get(visit.base + "/api/collection").json()
    empty = {"images": 0, "features": 0, "words": 0, "segments": 0, "bytes": {}, "vocabulary": None}
    pretend(page, "/api/collection", lambda _: (200, facts | empty))
    visit.open("/status")
    assert page.locator("#said").text_content() == ""
    assert page.locator("#holdings p").first.text_content() == "There are no photos yet."
    assert page.locator("#steps a").get_attribute("href") == "/work"
    assert "cairn index demo.cairn FOLDER" in page.locator("#commands").text_content()


def test_a_server_that_is_gone_is_said(visit: Visit) -> None:
    page = visit.page
    page.route("**/api/**", lambda route: route.abort())
    visit.open("/")
    assert "does not answer" in page.locator("#error").text_content()
    visit.excuse("Failed to load resource")


@pytest.mark.slow
def test_a_busy_server_is_asked_again(visit: Visit) -> None:
    page = visit.page
    busy = [True, True]

    def reply(route: Any) -> None:
        if busy:
            busy.pop()
            route.fulfill(status=503, headers={"Retry-After": "1"}, json={"detail": "The server is busy."})
        else:
            route.continue_()

    page.route("**/api/layout", reply)
    visit.open("/")
    page.wait_for_selector("#photos li")
    assert not busy and page.locator("#error").text_content() == ""
    visit.excuse("Failed to load resource")


@pytest.mark.slow
def test_what_is_not_there_is_said(visit: Visit) -> None:
    page = visit.open("/photo?number=987654321")
    page.wait_for_selector("#error:not(:empty)")
    assert page.locator("#error").text_content().endswith(".")
    visit.excuse("Failed to load resource")
    visit.open("/photo")
    assert "names no photo" in page.locator("#error").text_content()
    visit.open("/match")
    assert "names no match" in page.locator("#error").text_content()
    visit.open("/search?q=1:2,3")
    assert "neither NUMBER nor" in page.locator("#error").text_content()


def addresses(visit: Visit) -> list[str]:
    first, second = visit.number("coffee_001.jpg"), visit.number("coffee_002.jpg")
    box = "150,100,450,350"
    return [
        "/",
        f"/photo?number={first}",
        "/search",
        f"/search?q={first}:{box}&q={second}&top=50",
        f"/match?q={first}:{box}&photo={second}",
        "/groups",
        "/status",
    ]


@pytest.mark.slow
def test_pages_fit_a_phone(chromium: Any, served: str) -> None:
    with visiting(chromium, served, PHONE, has_touch=True, is_mobile=True) as visit:
        for address in addresses(visit):
            page = visit.open(address)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], address
            if address == "/groups" and visit.complaints:  # nobody looked for groups: a 404
                visit.excuse("Failed to load resource")


@pytest.mark.slow  # like a phone, narrower still
def test_pages_fit_the_smallest_screen(chromium: Any, served: str) -> None:
    word = "a_name_without_a_place_to_break_it_" * 5
    grouped = [photo(place, f"{word}{place}.jpg") | {"duplicate_of": 0 if place else None} for place in range(5)]
    groups = [{"group": 1234567, "photos": grouped, "links": 123456}]
    listed = [one | {"title": word} for one in grouped]
    with visiting(chromium, served, SMALLEST) as visit:
        page = visit.page
        everything = [*addresses(visit), "/?name=nothing&tag=nothing"]
        for pretended in (False, True):
            if pretended:
                found = {"total": 1, "inliers": 20, "out_of_date": True, "groups": groups}
                facts = page.request.get(visit.base + "/api/collection").json()
                failed = [{"name": f"{word}.jpg", "reason": f"its header says {word}"}]
                pretend(page, "/api/groups", lambda _, found=found: (200, found))
                pretend(page, "/api/layout", lambda _: (200, wall(listed)))
                pretend(page, "/api/photos", lambda _: (200, {"total": 5, "offset": 0, "photos": listed}))
                pretend(page, "/api/collection", lambda _, facts=facts | {"failed": failed}: (200, facts))
                page.route(
                    "**/thumbnail**", lambda route: route.fulfill(status=200, content_type="image/svg+xml", body=DOT)
                )
            for address in ("/", "/groups", "/status") if pretended else everything:
                visit.open(address)
                page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
                assert page.evaluate("document.scrollingElement.scrollWidth") <= SMALLEST[0], (address, pretended)
                if page.locator(".bar").is_visible():  # a single photo has the window to itself
                    page.locator("#menu").click()
                    # No word of the navigation is broken.
                    heights = page.locator(".bar nav a").evaluate_all("all => all.map((one) => one.offsetHeight)")
                    assert max(heights) < 50, address
                if address == "/groups" and visit.complaints:  # nobody looked for groups: a 404
                    visit.excuse("Failed to load resource")


@pytest.mark.slow
def test_axe_finds_nothing(chromium: Any, served: str) -> None:
    with visiting(chromium, served, bypass_csp=True, reduced_motion="reduce") as visit:
        for address in addresses(visit):
            page = visit.open(address)
            if address.startswith("/photo"):
                draw_box(page, (150, 100, 450, 350))
            elif address.startswith("/search?"):
                page.locator(".pick").first.check()
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                found = violations(page)
                assert not found, (address, scheme, json.dumps(found, indent=1)[:3000])
            if address == "/groups" and visit.complaints:
                visit.excuse("Failed to load resource")


@pytest.mark.parametrize("path", ["/", "/photo?number=0", "/search", "/match", "/groups", "/status"])
def test_each_page_has_landmarks_one_heading_and_no_inline_code(visit: Visit, path: str) -> None:
    source = visit.page.request.get(visit.base + path).text()
    for tag in ("main", "header", "nav", "h1"):
        assert len(re.findall(f"<{tag}[ >]", source)) >= 1, tag
    assert len(re.findall("<h1[ >]", source)) == 1
    assert 'href="#main"' in source and 'lang="en"' in source
    assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|https?://", source)
