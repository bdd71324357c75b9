"""What all pages share, in a real browser: the header by keys, light and dark, the language, accessibility."""

import json
import re
from typing import Any

import pytest

from retrieval.web.languages import messages
from retrieval.web.routes.pages import PAGES
from tests.support.browser import SMALLEST, WIDE, Visit, violations, visiting

pytestmark = pytest.mark.browser

NARROW = (390, 844)
PAPER = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.slow
def test_the_header_is_reached_and_left_by_keys(chromium: Any, served: str) -> None:
    with visiting(chromium, served, NARROW) as visit:
        page = visit.open("/status")
        menu, nav = page.get_by_role("button", name="Menu"), page.get_by_role("navigation", name="Main")
        page.keyboard.press("Tab")
        assert page.locator(":focus").text_content() == "Skip to the content"
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert nav.is_hidden() and menu.evaluate("node => node === document.activeElement")
        page.keyboard.press("Enter")
        assert nav.is_visible() and menu.get_attribute("aria-expanded") == "true"
        assert nav.get_by_role("link").count() == 8
        assert nav.locator("[aria-current=page]").text_content() == "Status"
        page.keyboard.press("Tab")
        assert page.locator(":focus").text_content() == "Photos"
        page.keyboard.press("Escape")  # the focus goes back to what opened it
        assert nav.is_hidden() and menu.evaluate("node => node === document.activeElement")
        page.keyboard.press("Space")
        for _ in range(9):
            page.keyboard.press("Tab")
        assert nav.is_hidden(), "it stays open where the focus has left it"
        assert page.locator(":focus").get_attribute("aria-label") == "Settings"
        page.keyboard.press("Enter")
        assert page.get_by_label("Language").is_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Escape")
        assert page.get_by_label("Language").is_hidden()
        assert page.locator(":focus").get_attribute("aria-label") == "Settings"


@pytest.mark.slow
def test_light_and_dark_are_as_the_system_has_them_or_as_chosen(visit: Visit) -> None:
    page = visit.open("/search")
    seen = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        seen[scheme] = page.evaluate(PAPER)
    assert seen["light"] != seen["dark"]
    page.get_by_label("Settings").click()
    page.get_by_label("Appearance").select_option("light")
    assert page.evaluate(PAPER) == seen["light"]
    # Kept, and there before anything is drawn: the script that sets it comes before the style sheets.
    visit.open("/status")
    assert page.evaluate(PAPER) == seen["light"]
    order = page.evaluate("[...document.head.querySelectorAll('script, link')].map((one) => one.src || one.href)")
    assert order[0].endswith("/theme.js")
    page.get_by_label("Settings").click()
    assert page.get_by_label("Appearance").input_value() == "light"
    page.get_by_label("Appearance").select_option("")
    assert page.evaluate(PAPER) == seen["dark"]


@pytest.mark.slow
def test_german_pages_show_no_english(chromium: Any, served: str) -> None:
    """Texts that German says otherwise; names of photos and commands stay as they are."""
    german = messages("de")
    english = {
        text
        for text, other in german.items()
        if isinstance(other, str) and other != text and "{" not in text and re.search(r"[a-z]{3}", text)
    }
    with visiting(chromium, served, WIDE, locale="de-DE") as visit:
        number = visit.number("coffee_001.jpg")
        for address in ("/search", f"/search?q={number}", f"/photo?number={number}", "/status"):
            page = visit.open(address)
            assert page.evaluate("document.documentElement.lang") == "de"
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            said = page.evaluate(
                """() => {
                    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
                    const all = [];
                    while (walker.nextNode()) all.push(walker.currentNode.data.trim());
                    for (const node of document.querySelectorAll('[title], [placeholder], [aria-label]'))
                        for (const name of ['title', 'placeholder', 'aria-label']) all.push(node.getAttribute(name));
                    return all;
                }"""
            )
            assert not english.intersection(said), (address, english.intersection(said))
            assert not [one for one in said if one and re.search(r"\b(the|and|photos?|with|of)\b", one)][3:], address
        page = visit.open("/status")  # as it is by itself: the settings are closed
        page.get_by_label("Einstellungen").click()
        with page.expect_navigation():
            page.get_by_label("Sprache").select_option("en")
        assert page.evaluate("document.documentElement.lang") == "en"
        assert page.get_by_role("navigation", name="Main").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_axe_finds_nothing_on_any_page(chromium: Any, served: str, size: tuple[int, int]) -> None:
    with visiting(chromium, served, size, bypass_csp=True, reduced_motion="reduce") as visit:
        number = visit.number("coffee_001.jpg")
        fields = {"/photo": f"?number={number}", "/match": f"?q={number}&photo={number}"}
        for path in PAGES:
            page = visit.open(path + fields.get(path, ""))
            with_header = page.locator(".bar").is_visible()  # a single photo has none, and Escape leads away from it
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                for opened in (False, True) if with_header else (False,):
                    if opened and size == NARROW:
                        page.locator("#menu").click()
                    elif opened:
                        page.locator("#settings summary").click()
                    found = violations(page)
                    assert not found, (path, scheme, opened, json.dumps(found, indent=1)[:3000])
                    if opened:
                        page.keyboard.press("Escape")
            visit.complaints[:] = [one for one in visit.complaints if "Failed to load resource" not in one]


@pytest.mark.slow
def test_pages_fit_all_widths_in_english_and_german(chromium: Any, served: str) -> None:
    for language in ("en-GB", "de-DE"):
        with visiting(chromium, served, SMALLEST, locale=language) as visit:
            number = visit.number("coffee_001.jpg")
            fields = {"/search": f"?q={number}", "/photo": f"?number={number}", "/match": f"?q={number}&photo={number}"}
            for path in PAGES:
                page = visit.open(path + fields.get(path, ""))
                for width in (320, 390, 768, 1023, 1024, 1280, 1440, 2560):
                    page.set_viewport_size({"width": width, "height": 800})
                    assert page.evaluate("document.scrollingElement.scrollWidth") <= width, (path, width, language)
                    small = page.locator("header a, header button, header summary").evaluate_all(
                        """all => all.filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect())
                            .filter(({ width, height }) => width < 24 || height < 24).length"""
                    )
                    assert small == 0, (path, width)
                visit.complaints[:] = [one for one in visit.complaints if "Failed to load resource" not in one]
