"""The main work in Firefox: every page, a box drawn and answered, an album made, photos walked through by keys."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from retrieval.web.routes.pages import PAGES
from tests.conftest import Indexed
from tests.support.browser import DESKTOP
from tests.support.firefox import Firefox, find_firefox
from tests.support.live import serving_copy

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ENTER, RIGHT = "\ue007", "\ue014"
ASKED = "coffee_001.jpg"


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """The browser, started once."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    if find_firefox() is None:
        pytest.skip("there is no Firefox: neither firefox-esr nor firefox is installed")
    with Firefox(tmp_path_factory.mktemp("firefox") / "profile", DESKTOP) as browser:
        yield browser


@pytest.fixture(autouse=True)
def without_complaints(firefox: Firefox) -> Iterator[None]:
    """What the browser's console says is wrong fails the test."""
    firefox.complaints.clear()
    yield
    assert not firefox.complaints


@pytest.fixture
def own(indexed: Indexed, tmp_path: Path) -> Iterator[str]:
    """The address of a live server with a copy of the small collection, which may be changed."""
    with serving_copy(indexed.folder, tmp_path) as (address, _):
        yield address


def number(base: str, name: str) -> int:
    photos = httpx.get(f"{base}/api/photos?limit=500").json()["photos"]
    return next(int(photo["number"]) for photo in photos if photo["name"] == name)


def test_every_page_opens(firefox: Firefox, served: str) -> None:
    one = number(served, ASKED)
    fields = {"/photo": f"?number={one}", "/match": f"?q={one}&photo={one}", "/search": f"?q={one}"}
    for address in PAGES:
        if address == "/album":  # there is none
            continue
        firefox.open(f"{served}{address}{fields.get(address, '')}")
        firefox.wait_for("document.querySelector('h1') && document.querySelector('main').innerText.length > 20")
        wide = firefox.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, (address, wide)
        errors = firefox.evaluate("document.querySelectorAll('.error:not([hidden]):not(:empty)').length")
        assert errors == (address == "/bin"), address  # this server has none


def test_a_box_is_drawn_and_its_photos_become_an_album(firefox: Firefox, own: str, indexed: Indexed) -> None:
    firefox.open(f"{own}/photo?number={number(own, ASKED)}")
    firefox.wait_for("document.querySelector('.box-canvas img')?.naturalWidth > 0")
    firefox.press("b")
    firefox.drag(".box-canvas", (0.2, 0.2), (0.8, 0.8))
    firefox.click("#search")
    firefox.wait_for("document.querySelector('#results[aria-busy=false]:not([data-turned=looking]) .result') !== null")
    assert re.search(r"q=\d+(:|%3A)\d", firefox.evaluate("location.search"))
    names = firefox.evaluate("[...document.querySelectorAll('#results .name')].map((one) => one.textContent)")
    assert names[0] == ASKED and all(name.startswith("coffee") for name in names[:2]), names
    firefox.click("#results .result .pick")
    firefox.wait_for("document.querySelectorAll('#results .pick:checked').length === 1")


def test_photos_are_walked_through_by_keys(firefox: Firefox, served: str) -> None:
    firefox.open(f"{served}/")
    seen = "[...document.querySelectorAll('#photos img')].slice(0, 5)"
    firefox.wait_for(f"{seen}.length === 5 && {seen}.every((one) => one.naturalWidth > 0)")
    firefox.evaluate("document.querySelector(\"#photos a[tabindex='0']\").focus()")
    firefox.press(RIGHT, RIGHT, "x")
    assert firefox.evaluate("document.activeElement.dataset.place") == "2"
    firefox.wait_for("document.querySelectorAll('#photos .picked').length === 1")
    firefox.press("x")
    firefox.press(ENTER)
    firefox.wait_for("location.pathname === '/photo'")
