"""The main work in Firefox: every page, and from a folder of photos to the bin, by mouse and by keys alone."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from retrieval.jobs.child import NICE
from retrieval.web.languages import translate
from retrieval.web.routes.pages import PAGES
from retrieval.web.service import ServeOptions
from retrieval.web.shelf.app import create_shelf_app
from tests.conftest import Indexed
from tests.retrieval.web.shelf.test_app import small
from tests.support.browser import DESKTOP
from tests.support.firefox import DELETE, ENTER, PATIENCE, RIGHT, SHIFT, Firefox, find_firefox
from tests.support.live import listening, serving_copy
from tests.support.patience import patience

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ASKED = "coffee_001.jpg"
KEPT = ("coffee", "cat")  # the photos of a journey, and a copy of one of them
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
RESULTS = "document.querySelector('#results[aria-busy=false]:not([data-turned=looking]) .result') !== null"


@pytest.fixture(scope="module", params=["en"])
def firefox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """The browser, started once for a language."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    if find_firefox() is None:
        pytest.skip("there is no Firefox: neither firefox-esr nor firefox is installed")
    with Firefox(tmp_path_factory.mktemp("firefox") / "profile", DESKTOP, request.param) as browser:
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
        firefox.wait_for(FITS)
        errors = firefox.evaluate("document.querySelectorAll('.error:not([hidden]):not(:empty)').length")
        assert errors == (address in ("/bin", "/motif")), address  # this server has no bin, and no saved search


def test_a_box_is_drawn_and_its_photos_become_an_album(firefox: Firefox, own: str, indexed: Indexed) -> None:
    firefox.open(f"{own}/photo?number={number(own, ASKED)}")
    firefox.wait_for("document.querySelector('.box-canvas img')?.naturalWidth > 0")
    firefox.press("b")
    firefox.drag(".box-canvas", (0.2, 0.2), (0.8, 0.8))
    firefox.click("#search")
    firefox.wait_for(RESULTS)
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


class Journey:
    """A person in Firefox, who uses the mouse or keys alone, and reads a language."""

    def __init__(self, firefox: Firefox, base: str, language: str, by_keys: bool) -> None:
        self.firefox, self.base, self.language, self.by_keys = firefox, base, language, by_keys

    def press(self, selector: str, english: str = "") -> None:
        """Press what a page calls so, in the language."""
        self.wait(FITS)
        self.firefox.activate(selector, translate(english, self.language) if english else "", self.by_keys)

    def type(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.firefox.wait_for(f"document.querySelector('{selector}') !== null")
        if self.by_keys and not self.firefox.evaluate(f"document.activeElement.matches('{selector}')"):
            self.firefox.tab_to(selector)
        elif not self.by_keys:
            self.firefox.click(selector)
        self.firefox.press(*text)

    def wait(self, script: str, seconds: float = PATIENCE) -> None:
        self.firefox.wait_for(script, seconds)

    def said(self, english: str) -> None:
        """Wait until a page says a sentence."""
        self.wait(f"document.body.textContent.includes({translate(english, self.language)!r})")

    def visit(self, path: str) -> None:
        """Go to a page by the menu, where there is one."""
        if self.firefox.evaluate("document.querySelector('#menu').checkVisibility()"):
            self.press("#menu")
        self.press(f"nav a[href$='{path}']")
        self.wait(f"location.pathname.endsWith('{path}') && document.querySelector('h1') !== null")

    def begin(self, photos: Path) -> None:
        """Make the first collection of a folder, and wait until its photos are there."""
        self.firefox.open(self.base)
        self.wait("document.activeElement?.id === 'title'")
        self.press(".folder-list button", photos.name)
        self.wait(f"document.querySelector('.folders [aria-current]').textContent === {photos.name!r}")
        self.press(".make .primary", "Make the collection")
        self.wait("document.querySelectorAll('#photos a[data-place]').length > 0", patience(60, NICE))

    def find_by_words(self) -> None:
        self.type("#words", "coffee")
        self.wait("location.search.includes('coffee') && document.querySelectorAll('#photos .wall-photo').length === 4")
        self.press("#clear", "Clear the filter")
        self.wait("document.querySelectorAll('#photos .wall-photo').length === 7")

    def search(self) -> None:
        """Open a photo, search with it, open a pair; then with a box."""
        self.press("#photos a[tabindex='0']")
        self.wait("document.querySelector('.box-canvas img')?.naturalWidth > 0")
        photo = self.firefox.evaluate("location.pathname + location.search")
        self.press("#search")
        self.wait(RESULTS)
        self.wait("document.querySelector('#said').getBoundingClientRect().top < innerHeight / 2")
        self.press("#results .result a[href*='/match?']")
        self.wait("document.querySelectorAll('#pair .match').length > 0")
        self.firefox.open(self.base + photo)
        self.wait("document.querySelector('.box-canvas img')?.naturalWidth > 0")
        self.firefox.press("b")
        if self.by_keys:
            self.firefox.press(ENTER)  # a box in the middle
            self.firefox.press(RIGHT, holding=SHIFT)
        else:
            self.firefox.drag(".box-canvas", (0.2, 0.2), (0.8, 0.8))
        self.said("Search with this box")
        self.press("#search")
        self.wait(RESULTS)
        assert re.search(r"q=\d+(:|%3A)\d", self.firefox.evaluate("location.search"))

    def make_album(self) -> None:
        """Select two photos, put them into an album, take that back, and do it again."""
        self.visit("/")
        for again in (False, True):
            self.wait("document.querySelectorAll('#photos .wall-photo').length === 7")
            self.firefox.evaluate("document.activeElement.blur()")
            self.firefox.tab_to("#photos a")
            self.firefox.press("x", RIGHT)
            self.wait("document.activeElement.dataset.place === '1'")
            self.firefox.press("x")
            self.wait("document.querySelectorAll('#photos .pick:checked').length === 2")
            self.press("#to-album", "Add to album")
            self.type("dialog.question input", "Tassen")
            self.firefox.press(ENTER)
            self.wait(
                "document.querySelector('.notice') !== null && document.querySelector('dialog.question') === null"
            )
            if not again:
                self.press(".notice button", "Undo")
                self.said("Undone")
                self.press("#choose-none", "Select none")
        self.visit("/albums")
        self.press(".covers a")
        self.wait("document.querySelectorAll('#photos .photo-tile').length === 2")

    def clear_duplicates(self, photos: Path) -> None:
        """Find copies; hide one, take that back, move it to the bin, and put it back from there."""
        self.visit("/groups")
        self.press(".note button", "Find groups")
        self.wait("location.pathname.endsWith('/work')")
        self.wait("document.querySelectorAll('.job[data-state=done]').length === 2", patience(60, NICE))
        self.visit("/groups")
        self.press("main a[href$='/duplicates']")
        self.wait("document.querySelectorAll('#candidates .candidate').length === 2")
        self.press("#hide-others", "Hide the others")
        self.said("Everything is decided")
        self.press("#undo-last", "Undo")
        self.wait("document.querySelectorAll('#candidates .candidate').length === 2")
        if self.by_keys:
            self.firefox.press(DELETE)
        else:
            self.press("#bin-others", "Move the others to the bin")
        self.said("Everything is decided")
        assert len(list(photos.iterdir())) == 6
        self.press("#to-bin", "Bin")
        self.wait("document.querySelector('#binned img')?.naturalWidth > 0")
        self.press("#binned button", "Put back")
        self.wait("document.querySelector('#empty:not([hidden])') !== null")
        assert len(list(photos.iterdir())) == 7


@pytest.mark.parametrize(
    ("firefox", "width", "by_keys"),
    [
        (language, width, (width == 1280) == (language == "de"))
        for language in ("en", "de")
        for width in (390, 1280, 2560)
    ],
    indirect=["firefox"],
)
def test_from_a_folder_of_photos_to_the_bin(
    firefox: Firefox, width: int, by_keys: bool, indexed: Indexed, tmp_path: Path
) -> None:
    photos = tmp_path / "roots" / "box 7"
    photos.mkdir(parents=True)
    for one in sorted(indexed.photos.iterdir()):
        if one.name.startswith(KEPT):
            shutil.copy(one, photos)
    shutil.copy(photos / ASKED, photos / "coffee_001 (1).jpg")
    options = small(ServeOptions(), roots=(tmp_path / "roots",), bin=tmp_path / "bin")
    firefox.resize((width, 900))
    with listening(create_shelf_app(tmp_path / "home", options)) as base:
        journey = Journey(firefox, base, firefox.language, by_keys)
        journey.begin(photos)
        journey.find_by_words()
        journey.search()
        journey.make_album()
        journey.clear_duplicates(photos)
        firefox.open("about:blank")  # a page would say that its server has gone
