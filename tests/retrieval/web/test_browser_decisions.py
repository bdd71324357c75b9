"""Decisions in a real browser: no match and its way back, a saved search, duplicates by the keyboard alone."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cairn as library
from retrieval.catalogue.metadata_store import import_values, store_metadata
from retrieval.metadata.fields import Metadata
from tests.conftest import Indexed
from tests.retrieval.web.test_decisions import Served, home, several_kinds  # noqa: F401
from tests.support.browser import DESKTOP, PHONE, chromium, violations, visiting  # noqa: F401
from tests.support.live import serving

pytestmark = pytest.mark.browser
SHOTS = os.environ.get("CAIRN_SHOTS")


def shoot(page: Any, name: str) -> None:
    """Keep a picture of a page where they are asked for."""
    if SHOTS:
        page.wait_for_load_state("networkidle")
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


@pytest.mark.slow
def test_no_match_and_a_saved_search(chromium: Any, home: Served) -> None:  # noqa: F811
    one = home.numbers()["coffee_0.png"]
    with visiting(chromium, home.base, DESKTOP) as visit:
        page = visit.open(f"/search?q={one}:20,20,380,380&turns=1")
        page.locator("#found .result").nth(1).wait_for()
        wrong = page.get_by_role("button", name="coffee_1.png is not a match")
        wrong.focus()
        page.keyboard.press("Enter")
        page.get_by_text("1 photo you marked as not a match").wait_for()
        assert wrong.count() == 0 and page.locator("#said").text_content() == "No other photo surely shows this"
        page.reload()
        page.get_by_text("1 photo you marked as not a match").click()
        shoot(page, "no-match")
        page.get_by_role("button", name="coffee_1.png is a match after all").click()
        page.get_by_role("button", name="coffee_1.png is not a match").wait_for()
        assert page.locator("#rejected").is_hidden()
        # Of several at once, by the bar; and undone.
        page.get_by_label("Select coffee_1.png").check()
        page.locator("#choice").get_by_role("button", name="Not a match").click()
        page.get_by_text("1 photo is now marked as not a match.").wait_for()
        page.locator("#undo").click()
        page.get_by_role("button", name="coffee_1.png is not a match").wait_for()

        page.get_by_role("button", name="Save this search").click()
        page.get_by_label("Name", exact=True).fill("The <b>cup</b>")
        page.get_by_label("Look for it in photos that are added later").check()
        page.get_by_label("Tag for what is found (optional)").fill("cup")
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        page.get_by_text("is saved. You find it under Saved.").wait_for()

        page = visit.open("/saved")
        assert page.locator(".saved h2").all_text_contents() == ["The <b>cup</b>"]
        assert page.locator(".recent .called").all_text_contents() == ["coffee_0.png"]
        page.get_by_role("button", name="Favourite: The <b>cup</b>").click()
        page.locator("[aria-pressed=true]").wait_for()
        page.get_by_role("button", name="Change The <b>cup</b>").click()
        page.get_by_label("Name", exact=True).fill("Cup")
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        page.get_by_role("heading", name="Cup", exact=True).wait_for()
        shoot(page, "saved")
        page.get_by_role("button", name="Search for Cup").click()
        page.wait_for_url(f"**/search?q={one}:20,20,380,380&turns=1")
        page = visit.open("/saved")
        page.get_by_role("button", name="Delete Cup").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.locator("#nothing").wait_for()
        page.get_by_role("button", name="Forget them").click()
        assert page.locator("#recent").is_hidden()


@pytest.mark.slow
def test_occurrences_are_put_into_categories(chromium: Any, home: Served) -> None:  # noqa: F811
    one = home.numbers()["coffee_0.png"]
    wish = {"name": "<i>Cup</i>", "queries": [{"photo": one, "box": [20, 20, 380, 380]}], "options": {"turns": 1}}
    search = home.ask("POST", "/api/saved", 201, files={"request": (None, json.dumps(wish))})["id"]
    with visiting(chromium, home.base, DESKTOP) as visit:
        page = visit.open("/saved")
        page.get_by_role("link", name="Occurrences of <i>Cup</i>").click()
        page.get_by_role("button", name="Search all photos").click()
        choice = page.get_by_label("Category of coffee_1, coffee_1")
        choice.select_option("same block")
        page.get_by_label("Category", exact=True).select_option("same block")
        assert page.locator("#said").text_content() == "1 photo in 1 book"
        assert page.get_by_role("link", name="Download as CSV").get_attribute("href").endswith("category=same+block")
        page.reload()
        page.get_by_text("1 photo in 1 book").wait_for()
        choice.select_option("Another …")
        page.get_by_role("dialog").get_by_label("Category").fill("<b>recut</b>")
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        page.get_by_role("dialog").wait_for(state="detached")
        assert choice.locator("option:checked").text_content() == "<b>recut</b>"
        shoot(page, "motif")
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shoot(page, "motif-phone")
        page.get_by_role("link", name="Compare coffee_1.png").click()
        page.wait_for_url(f"**/match?q={one}:20,20,380,380&photo=*")
        page = visit.open("/books")
        page.locator("#matrix").get_by_role("link", name="coffee_0 and coffee_1: 1 picture").click()
        page.locator("details[open] a").click()
        page.wait_for_url("**/match?q=*")
    home.ask("DELETE", f"/api/saved/{search}", 204)


@pytest.mark.slow
def test_an_order_of_printing_is_overruled_and_kept(chromium: Any, indexed: Indexed, tmp_path: Path) -> None:  # noqa: F811
    shutil.copytree(indexed.folder, tmp_path / "c.cairn")
    with library.open(tmp_path / "c.cairn") as collection:
        album = collection.add_to_album("Prints", ["page_001.jpg", "page_003.jpg"]).id
        scanned = collection.photo("page_001.jpg").number
        collection.opened.catalogue.write(store_metadata, [(scanned, Metadata(taken="2019-05-01"))])
        collection.opened.catalogue.write(import_values, {collection.photo("page_003.jpg").number: {"taken": ["1497"]}})
    with serving(tmp_path / "c.cairn", tmp_path / "cache") as base, visiting(chromium, base, DESKTOP) as visit:
        page = visit.open(f"/album?album={album}")
        page.get_by_role("link", name="Print clock").click()
        first, second = page.locator("#rows a").nth(0), page.locator("#rows a").nth(1)
        names = [one.text_content() for one in (first, second)]
        keep = page.get_by_role("button", name="Keep these decisions")
        of_scan, of_print = (
            page.get_by_label(f"The date of {name} counts") for name in ("page_001.jpg", "page_003.jpg")
        )
        assert of_print.is_checked() and not of_scan.is_checked()
        assert page.locator("#rows").get_by_text("2019, in its file").is_visible()
        page.get_by_text("Drag to draw a box round what is not to be read").wait_for()
        for checked in (True, False):  # a decision that is taken back is none
            of_scan.set_checked(checked)
            page.locator("#page:not([inert])").wait_for()
            assert of_scan.is_checked() == checked == keep.is_enabled()
        page.get_by_role("button", name=f"{names[1]} is earlier than {names[0]}").click()
        page.get_by_role("button", name="as you say").wait_for()
        assert first.text_content() == names[1]
        for label in ("Left", "Top", "Right", "Bottom"):
            page.get_by_label(label, exact=True).fill("40" if label in ("Right", "Bottom") else "0")
        page.get_by_label("Bottom", exact=True).press("Tab")
        page.get_by_role("button", name="Leave this region out").click()
        page.get_by_role("button", name="Take back: Box from 0, 0 to 40, 40").wait_for()
        page.get_by_role("button", name="Keep these decisions").click()
        page.get_by_role("button", name="Keep these decisions", disabled=True).wait_for()
        assert not violations(page)
        page.reload()
        page.get_by_role("button", name="as you say").wait_for()
        shoot(page, "clock")
        width = page.locator("#picture").bounding_box()["width"]
        page.locator("#stage").dblclick()
        assert page.locator("#picture").bounding_box()["width"] == pytest.approx(2.5 * width, rel=0.01)
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name=f"Leave {names[0]} out").click()
        page.get_by_text("A print clock needs at least two impressions").wait_for()
        visit.complaints.clear()


@pytest.mark.slow
def test_duplicates_by_the_keyboard(chromium: Any, home: Served) -> None:  # noqa: F811
    with visiting(chromium, home.base, DESKTOP) as visit:
        page = visit.open("/duplicates")
        heading = page.locator("#set-title")
        why = page.locator("#why")
        assert heading.text_content() == "Set 1 of 3"
        parts = "others are parts, framed, negatives, turned, mirrored, or without colours"
        assert why.text_content() == f"Proposed: {parts}, the names of others say that they are copies."
        shoot(page, "duplicates")
        page.keyboard.press("f")
        page.locator("#stage").wait_for()
        seen = page.locator("#stage .zoom-content")
        seen.nth(1).wait_for()
        whole = page.locator("#stage figure:not([hidden]) .zoom-view").bounding_box()["width"]
        page.keyboard.press("+")
        for place in (0, 1):  # each is seen as large, when its turn comes
            page.wait_for_function(
                """([place, least]) => document.querySelectorAll('#stage .zoom-content')[place].clientWidth > least""",
                arg=[place, 1.4 * whole],
            )
        page.keyboard.press("f")
        assert seen.count() == 0
        contents = page.locator(".candidate .zoom-content")
        before = [one.bounding_box()["width"] for one in contents.all()]
        page.locator(".candidate .zoom-view").first.dblclick()  # all of a set are zoomed together
        widths = [one.bounding_box()["width"] for one in contents.all()]
        assert len(widths) > 1 and widths == pytest.approx([2.5 * width for width in before], rel=0.01)
        page.keyboard.press("0")
        assert [one.bounding_box()["width"] for one in contents.all()] == pytest.approx(before, rel=0.01)
        page.keyboard.press("h")
        page.get_by_text("Set 1 of 2").wait_for()
        assert list(home.numbers(hidden=True)) == ["astronaut_copy.png"]
        assert why.text_content() == f"Proposed: {parts}, it has the most pixels."
        page.keyboard.press("2")
        assert page.locator(".candidate.kept .name").text_content() == "chelsea_small.jpg"
        page.keyboard.press("1")
        page.keyboard.press("Delete")
        page.get_by_text("Set 1 of 1").wait_for()
        assert not (home.photos / "chelsea_small.jpg").exists() and (home.photos / "chelsea_1.png").exists()
        page.keyboard.press("k")
        page.get_by_text("Everything is decided").wait_for()
        page.keyboard.press("z")
        page.get_by_text("Set 1 of 1").wait_for()
        page.keyboard.press("z")
        page.get_by_text("Set 1 of 2").wait_for()
        assert (home.photos / "chelsea_small.jpg").is_file()
        page.keyboard.press("z")
        page.get_by_text("Set 1 of 3").wait_for()
        assert "astronaut_copy.png" in home.numbers()
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shoot(page, "duplicates-phone")


def test_copies_and_similar_shots_are_two_lists(
    chromium: Any,  # noqa: F811
    home: Served,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with several_kinds(home, monkeypatch) as of, visiting(chromium, home.base, DESKTOP, bypass_csp=True) as visit:
        page = visit.open("/duplicates")
        assert page.locator("#set-title").text_content() == "Set 1 of 1"
        assert page.locator("#lists a").all_text_contents() == ["Copies (1)", "Similar shots (1)"]
        assert page.locator("#lists [aria-current=page]").text_content() == "Copies (1)"
        assert page.locator(".candidate .name").all_text_contents()[0] == "coffee_0.png"
        kinds = {"a part of coffee_0.png", "a negative of coffee_0.png"}
        assert set(page.locator(".kind").all_text_contents()) == kinds
        assert page.locator("#different").is_hidden()
        assert page.locator(".stays").all_text_contents() == ["stays: shows what others do not"]
        assert page.locator("#stay").text_content() == "1 other stays, whichever you keep."
        assert page.locator(".primary").text_content().startswith("Hide the others")
        assert not violations(page)
        page.keyboard.press("h")  # of two others, the one that is no part
        page.get_by_text("1 photo hidden.").wait_for()
        assert list(home.numbers(hidden=True)) == ["chelsea_0.png"]
        page.get_by_text("Everything is decided").wait_for()  # what stays is not asked about again
        page.keyboard.press("z")
        page.get_by_text("Undone").wait_for()
        assert list(home.numbers(hidden=True)) == []
        page.get_by_text("Set 1 of 1").wait_for()

        # All others stay: none is hidden, nor moved to the bin.
        home.ask("PATCH", "/api/photos", json={"photos": [of["chelsea_0.png"]], "tags_add": ["cup"]})
        page.reload()
        page.get_by_text("2 others stay, whichever you keep.").wait_for()
        stays = ["stays: has a title, a caption, tags or an album", "stays: shows what others do not"]
        assert sorted(page.locator(".stays").all_text_contents()) == stays
        assert page.locator("#hide-others").is_disabled() and page.locator("#bin-others").is_disabled()
        assert page.locator(".primary").text_content().startswith("Keep all")
        shoot(page, "duplicates-stay")
        page.keyboard.press("h")
        page.keyboard.press("Delete")
        home.ask("PATCH", "/api/photos", json={"photos": [of["chelsea_0.png"]], "tags_remove": ["cup"]})
        assert home.numbers() == of

        page.get_by_role("link", name="Similar shots (1)").focus()
        page.keyboard.press("Enter")
        page.get_by_text("These are different photos of one view").wait_for()
        assert page.locator("#lists [aria-current=page]").text_content() == "Similar shots (1)"
        assert page.locator(".primary").text_content().startswith("Keep all")
        assert page.locator(".kind").count() == 0 and page.locator("#why").text_content() == ""
        for width, height in (DESKTOP, PHONE):
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            shoot(page, f"similar-{width}")
            assert not violations(page)
        page.keyboard.press("k")
        page.get_by_text("Everything is decided").wait_for()
        assert page.locator("#lists a").all_text_contents() == ["Copies (1)", "Similar shots (0)"]
        page.keyboard.press("z")
        page.get_by_text("Set 1 of 1").wait_for()


@pytest.mark.slow
def test_all_sets_are_decided_about_at_once_by_the_keyboard(chromium: Any, home: Served) -> None:  # noqa: F811
    before = home.numbers()
    with visiting(chromium, home.base, DESKTOP) as visit:
        page = visit.open("/duplicates")
        total = int(str(page.locator("#set-title").text_content()).split()[-1])
        page.get_by_role("link", name="All at once").press("Enter")
        page.locator("#set-list img").first.wait_for()
        lines = page.locator(".set-line")
        assert lines.count() == total and page.locator(".set-photos .kept").count() == total
        ticked = page.locator(".set-line input:checked").count()
        said = str(page.locator("#hide-chosen").text_content())
        assert ticked and re.fullmatch(r"Hide \d+ photos?, keep the best", said)
        page.locator("#hide-chosen").press("Enter")
        page.locator(".notice").get_by_text("hidden").wait_for()
        gone = set(before) - set(home.numbers())
        assert len(gone) == int(said.split()[1])
        page.get_by_role("button", name="Undo").press("Enter")
        page.get_by_text("Undone").wait_for()
        assert home.numbers() == before and lines.count() == total
        page.get_by_label("Select all").check()
        page.get_by_role("button", name="Keep all photos of them").press("Enter")
        page.get_by_text("There are no duplicates to decide about.").wait_for()
        page.get_by_role("button", name="Undo").press("Enter")
        page.get_by_text("Undone").wait_for()
        page.get_by_role("link", name="Look at set 2").press("Enter")
        page.get_by_text(f"Set 2 of {total}").wait_for()
    assert home.numbers() == before


@pytest.mark.slow
def test_what_is_in_the_bin_is_put_back_by_the_keyboard(chromium: Any, home: Served) -> None:  # noqa: F811
    before = home.numbers()
    home.ask("POST", "/api/bin", json={"photos": [before["chelsea_small.jpg"], before["astronaut_copy.png"]]})
    with visiting(chromium, home.base, DESKTOP) as visit:
        page = visit.open("/duplicates")
        page.get_by_role("link", name="Bin").click()
        page.locator(".photo-tile img").nth(1).wait_for()
        assert page.locator("#said").text_content() == "2 photos"
        page.wait_for_function("() => [...document.images].every((one) => one.naturalWidth > 0)")
        shoot(page, "bin")
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shoot(page, "bin-phone")
        page.get_by_role("button", name="Put chelsea_small.jpg back").focus()
        page.keyboard.press("Enter")
        page.get_by_text("1 photo is back where it was.").wait_for()
        assert page.evaluate("document.activeElement.id") == "title"
        page.locator("#undo").click()
        page.get_by_role("button", name="Put chelsea_small.jpg back").wait_for()
        page.get_by_label("Select all").check()
        page.get_by_role("button", name="Put 2 photos back").click()
        page.get_by_text("2 photos are back where they were.").wait_for()
        assert page.locator("#empty").is_visible() and page.locator("#content").is_hidden()
    assert home.numbers() == before


@pytest.mark.slow
def test_the_bin_is_not_offered_without_the_option(chromium: Any, home: Served, tmp_path: Path) -> None:  # noqa: F811
    with serving(home.folder, tmp_path / "cache") as base, visiting(chromium, base) as visit:
        page = visit.open("/duplicates")
        page.locator("#set-title").wait_for()
        before = page.locator("#set-title").text_content()
        assert page.locator("#bin-others").is_hidden()
        page.keyboard.press("Delete")
        page.wait_for_timeout(300)
        assert page.locator("#set-title").text_content() == before and str(before).startswith("Set 1 of ")


@pytest.mark.slow
def test_axe_finds_nothing_on_pages_with_decisions(chromium: Any, home: Served) -> None:  # noqa: F811
    numbers = list(home.numbers().values())
    album = home.ask("POST", "/api/albums", 201, json={"name": "Cups", "photos": numbers[:3]})["album"]
    asked = {"name": "A cup", "queries": [{"photo": numbers[0], "box": [10, 10, 90, 90]}], "standing": True, "tag": "x"}
    home.ask("POST", "/api/saved", 201, files={"request": (None, json.dumps(asked))})
    home.ask("POST", "/api/bin", json={"photos": [home.numbers()["chelsea_small.jpg"]]})
    table = f"file;Datum;Breitengrad;Längengrad\n{next(iter(home.numbers()))};1923;52,5;13,4\nnone.jpg;x;1;2\n".encode()
    file = {"name": "t.csv", "mimeType": "text/csv", "buffer": table}

    def read(page: Any) -> None:
        page.locator("#file").set_input_files(file)
        page.locator("#problems summary").click()

    def import_it(page: Any) -> None:
        read(page)
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_text("The table was imported for").wait_for()

    def share_it(page: Any) -> None:
        page.get_by_role("button", name="Share").press("Enter")
        page.get_by_role("button", name="Make a link").press("Enter")
        link = page.get_by_label("The link, which is shown")
        link.wait_for()
        assert link.input_value().startswith(f"{home.base}/shared/cairn_")

    shared = home.ask("POST", f"/api/albums/{album}/shared", 201, json={})["path"]
    pages: tuple[tuple[str, str, Callable[[Any], None] | None], ...] = (
        (shared, ".shared img", None),
        (f"{shared}/2", ".shared-photo img", None),
        ("/bin", "#binned img", lambda page: page.get_by_label("Select all").check()),
        ("/duplicates", "#set-title", None),
        ("/duplicates?view=all", "#set-list img", None),
        ("/albums", ".covers img", None),
        (f"/album?album={album}", ".photo-tile img", lambda page: page.get_by_role("button", name="Rename").click()),
        (f"/album?album={album}", ".photo-tile img", share_it),
        ("/saved", "article, .card, li", None),
        ("/import", "#file", read),
        ("/import", "#file", import_it),
        ("/map", "#clusters img", None),
    )
    with visiting(chromium, home.base, DESKTOP, bypass_csp=True, reduced_motion="reduce") as visit:
        for address, there, act in pages:
            page = visit.open(address)
            page.locator(there).first.wait_for()
            if act is not None:
                act(page)
            for size in (DESKTOP, PHONE):
                page.set_viewport_size({"width": size[0], "height": size[1]})
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
                for scheme in ("light", "dark"):
                    page.emulate_media(color_scheme=scheme)
                    found = violations(page)
                    assert not found, (address, size, scheme, json.dumps(found, indent=1)[:3000])
            page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    home.ask("POST", "/api/bin/back", json={"entries": [one["id"] for one in home.ask("GET", "/api/bin")]})
