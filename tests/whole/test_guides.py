"""What guides and tutorials call buttons, menus and pages stands where they say, in a real browser."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from retrieval.catalogue.curation.albums import insert_album, put_in
from retrieval.collection.collection import Collection
from retrieval.groups.groups import group_photos
from retrieval.web.languages import messages
from tests.conftest import Indexed
from tests.support.browser import chromium, visiting  # noqa: F401
from tests.support.live import import_by_name, serving_copy
from tests.support.paths import ROOT

GUIDES = sorted([*(ROOT / "docs" / "how-to").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")])
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"(?<![*\w\[])\*([A-Z][^*]*)\*(?!\*)")

NO_NAMES = {
    *("The Old Mill", "Wedding", "Mühle", "The Ship of Merchants", "The Ship of Fortune", "Tasse"),  # titles and tags
    *("Item", "Page", "Page order", "Section", "Place", "Place of publication", "Archiv", "Taken"),  # columns
    *("Save as", "Unicode text", "Live Photo"),  # other programs
    *(
        "Good",
        "Junk",
        "Building blocks",
        "Boosted",
        "Use it from Python",
        "Proc. R. Soc. A",
    ),  # papers, and pages of the documentation
}
"""What else stands in italics."""

ELSEWHERE = {
    *("Pause", "Cancel", "Try again"),  # while a job runs, and after it failed: test_browser_work.py
    *("Look again", "Where is it now?"),  # once a folder has gone: test_away.py
    *("Move to the bin", "Put back"),  # the shelf: test_browser_shelf.py
    "Use as cover of the collection",  # a photo of a collection of a shelf: test_browser_shelf.py
    "Look for it in photos that are added later",  # a dialog: test_browser_decisions.py
    "Search with this box",  # once there is one: test_newcomer.py
    *("Sure", "Likely", "The same text?", "Play from"),  # of results, of printed pages, and of films
    *("Keep these decisions", "Take all decisions back"),  # a print clock
    "Likeness of whole photos",  # where a collection has global descriptors
    "Perhaps",  # the command line
}
"""Names that are on a page in some moment alone."""

WALL = ("Photos", "Search", "Groups", "Saved", "Map", "Work", "Status", "Folders and tags", "Add to album", "Tags")
WALL = (*WALL, "Title and caption", "Hide", "Remove", "Save", "Photos as a ZIP file", "Contact sheet (PDF)")
PAGES = {
    "/": (*WALL, "Table (CSV)", "Table (JSON)", "Copy names"),
    "/photo?number={one}": ("Details", "Title and caption", "Tags", "Add to album", "Draw a box"),
    "/search?q={one}": (
        *("Select all found", "Not a match", "Save this search", "Search this region", "Details"),
        *("Show more", "Stop", "Cancel", "Mirror images too", "Only photos with these words"),
    ),
    "/match?q={one}&photo={other}": ("Compare impressions", "Flicker", "In two colours", "What differs"),
    "/album?album=1": ("Share", "Filter these photos", "Print clock"),
    "/groups": ("Make an album", "Books that share pictures"),
    "/duplicates": ("Duplicates", "Copies", "Similar shots", "All at once", "Keep all photos of them", "Bin"),
    "/work": ("Add photos", "Look for new photos", "Import a table of titles and dates"),
    "/import": ("Import a table", "Import"),
    "/status": ("On the command line", "Write sidecars", "Read files again"),
    "/saved": ("Occurrences", "Books that share pictures"),
    "/motif?search={search}": ("Search all photos", "Print clock"),
    "/map": ("Show as a list",),
    "/improve": ("Details",),
}
"""What stands on each page."""

ELEMENTS = """() => [...document.querySelectorAll('button, a, summary, label, h1, h2, h3')].map((one) => {
    const copy = one.cloneNode(true);
    for (const key of copy.querySelectorAll('kbd, svg')) key.remove();
    return copy.textContent.trim();
})"""


def plain(text: str) -> str:
    """A name without what stands behind it: numbers, a time, dots."""
    return re.sub(r" *\(?(\{\w+\}|\d[\d:]*)\)?", "", " ".join(text.split())).rstrip("…., ").casefold()


def quoted(text: str) -> set[str]:
    return {" ".join(one.split()) for one in _QUOTED.findall(_FENCE.sub("", text))} - NO_NAMES


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_what_a_guide_calls_buttons_and_pages_is_said_by_a_page(guide: Any) -> None:
    said = {plain(text) for text in messages("de")}
    placed = {plain(name) for name in (*ELSEWHERE, *(name for names in PAGES.values() for name in names))}
    named = {plain(name) for name in quoted(guide.read_text("utf-8"))}
    assert {name for name in named if not any(text.startswith(name) for text in said)} == set()
    assert named - placed == set()


@pytest.fixture(scope="module")
def served(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a collection with groups, an album and a saved search, which may be changed, and has a bin."""

    def prepare(collection: Collection) -> None:
        import_by_name(collection, {"coffee_001.jpg": {"latitude": ["52.5"], "longitude": ["13.4"]}})
        group_photos(collection)
        with collection.catalogue.writing() as session:
            put_in(session, insert_album(session, "Summer"), [0, 1])

    root = tmp_path_factory.mktemp("guides")
    with serving_copy(indexed.folder, root, prepare, bin=root / "bin", roots=(indexed.photos.parent,)) as (address, _):
        yield address


@pytest.mark.slow
@pytest.mark.browser
def test_it_stands_on_the_page_that_the_guide_says(chromium: Any, served: str) -> None:  # noqa: F811
    with visiting(chromium, served) as visit:
        one, other = visit.number("coffee_001.jpg"), visit.number("coffee_002.jpg")
        wish = {"name": "Cup", "queries": [{"photo": one}]}
        sent = {"X-Cairn": "1"}
        made = visit.page.request.post(f"{served}/api/saved", headers=sent, multipart={"request": json.dumps(wish)})
        missing = {}
        for address, names in PAGES.items():
            page = visit.open(address.format(one=one, other=other, search=made.json()["id"]))
            wanted = {plain(name) for name in names}
            for _ in range(50):
                there = {plain(text) for text in page.evaluate(ELEMENTS)}
                if wanted <= there:
                    break
                page.wait_for_timeout(100)
            missing[address] = wanted - there
        assert {address: names for address, names in missing.items() if names} == {}
