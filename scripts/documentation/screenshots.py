#!/usr/bin/env python
"""Make the pictures of the web application for the documentation.

It needs playwright, and Chromium as `chromium`.

A small album of sample photos is written, indexed, grouped and served; headless Chromium visits its pages. The same
code and version of Chromium give the same pictures, except for a few grey levels at smoothed edges.
"""

import argparse
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrieval.web.languages import COOKIE

ROOT = Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 1160, 760
QUALITY = 70  # of the JPEG files: some 100 kB each, none above 150 KiB
SHOWN, BOX = "walls/wall-4.jpg", (450, 185, 735, 405)  # query of the tutorial: the cup of coffee
BINNED = ("copies/cat-small.jpg", "copies/coins-mirrored.jpg")  # photo in the bin for a moment
SEEN = """() => [...document.images].every((picture) =>
    picture.complete || picture.getBoundingClientRect().top > window.innerHeight)"""
STEADY = """() => {
    for (const term of document.querySelectorAll('#facts dt'))
        if (term.textContent === 'Added') { term.nextElementSibling.remove(); term.remove(); }
}"""
"""Removes from a page the time of adding a photo, which differs between runs."""

TABLE = """\
Datei;Titel;Datum;Schlagworte;Archiv
coffee-1.jpg;Eine Tasse;15.05.1923;Tasse|Küche;Berlin
coffee-2.jpg;Eine Tasse, von der Seite;1924;Tasse;Berlin
coffee-3.jpg;Die Tasse, näher;;Tasse;Köln
wall-4.jpg;Drei Bilder;03.06.1951;Wand;Köln
tea-1.jpg;Eine Kanne;1950;Kanne;Bonn
"""
"""Metadata of some photos; there is no photo tea-1.jpg."""

PLACES = """\
Datei;Breitengrad;Längengrad
coffee-1.jpg;52,52;13,40
coffee-2.jpg;52,51;13,42
coffee-3.jpg;50,94;6,96
wall-1.jpg;48,86;2,35
wall-4.jpg;50,73;7,10
cat-1.jpg;41,90;12,50
coins-1.jpg;59,33;18,07
"""
"""Positions of some of them."""


def make_album(folder: Path) -> Path:
    """Write, index and group the sample photos; return the collection's folder."""
    runpy.run_path(str(ROOT / "docs" / "examples" / "sample_photos.py"))["main"](folder / "photos")
    run(folder, "index", "album.cairn", "photos", "--workers", "1")
    run(folder, "group", "album.cairn", "--workers", "1")
    return folder / "album.cairn"


def describe(collection: Path, table: str = TABLE) -> None:
    """Import a table of metadata of some photos, while the collection is served."""
    (collection.parent / "mine.csv").write_text(table, encoding="utf-8")
    run(collection.parent, "metadata", collection.name, "mine.csv")


def run(folder: Path, *arguments: str) -> None:
    """Run a command of Cairn in a folder."""
    subprocess.run(_cairn(*arguments), cwd=folder, env=_environment(), check=True)


def _cairn(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cairn", *arguments]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@contextmanager
def serving(*what: str) -> Iterator[str]:
    """Run `cairn serve` or `cairn open` at a free port; yields its address."""
    command = _cairn(*what, "--port", "0", "--workers", "1")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as server:
        try:
            assert server.stdout is not None
            match = re.search(r"http://\S+?(?=/? \(|/?$)", server.stdout.readline())
            if match is None:
                sys.exit(f"cairn {what[0]} did not start.")
            yield match[0]
        finally:
            server.terminate()


@contextmanager
def browsing(address: str) -> Iterator[Any]:
    """Open a window of headless Chromium that visits the server."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        sys.exit("There is no Chromium: install it, so that `chromium` starts it.")
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # not available to root
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        # Reproducible: no animations, a fixed language and time.
        context = browser.new_context(
            base_url=address,
            viewport={"width": WIDTH, "height": HEIGHT},
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(60_000)
        yield context.new_page()
        browser.close()


def take(page: Any, path: Path) -> None:
    """Take a picture of the visible part of a page, once it is loaded."""
    page.wait_for_load_state("networkidle")
    page.wait_for_function(SEEN)  # pictures further down are loaded lazily
    page.evaluate(STEADY)
    page.mouse.move(2, 2)
    page.wait_for_timeout(300)  # a frame or two, for lines drawn after the pictures
    page.screenshot(path=path, type="jpeg", quality=QUALITY)
    print(f"{path}: {path.stat().st_size // 1000} kB")


def number(page: Any, name: str) -> int:
    """Number of a photo of the collection."""
    photos = page.request.get("/api/photos?limit=500").json()["photos"]
    return next(int(photo["number"]) for photo in photos if photo["name"] == name)


def visit(page: Any, collection: Path, out: Path) -> None:
    """Take a picture of each page of the tutorial, in its order."""
    photo, query = number(page, SHOWN), ",".join(map(str, BOX))
    page.goto("/")
    take(page, out / "photos.jpg")

    page.goto(f"/photo?number={photo}")
    page.wait_for_selector(".box-canvas img")
    for place, value in enumerate(BOX):
        page.locator(".box-numbers input").nth(place).fill(str(value))
        page.keyboard.press("Tab")
    take(page, out / "box.jpg")

    page.goto(f"/search?q={photo}:{query}")
    page.wait_for_selector("#results[aria-busy=false]:not([data-turned=looking]) .result")
    take(page, out / "results.jpg")

    page.goto(f"/match?q={photo}:{query}&photo={number(page, '2022/coffee-3.jpg')}")
    page.wait_for_selector("#pair .match")
    take(page, out / "pair.jpg")

    page.goto("/groups")
    take(page, out / "groups.jpg")

    describe(collection)
    page.goto("/?tag=Tasse")
    take(page, out / "tag.jpg")


def visit_others(page: Any, collection: Path, out: Path) -> None:
    """Take a picture of each other page, and of some in dark mode, in German and on a phone."""
    photo_number = number(page, SHOWN)
    sent = {"X-Cairn": "1"}
    groups = page.request.get("/api/groups?limit=50").json()["groups"]
    for thing, name in (("cells", "Cells"), ("coins", "Coins"), ("cat", "The cat")):
        stems = {one["group"]: [Path(photo["name"]).stem for photo in one["photos"]] for one in groups}
        group = max(stems, key=lambda one: sum(stem.startswith(f"{thing}-") for stem in stems[one]))
        page.request.post("/api/albums", headers=sent, data={"name": name, "group": group})
    query = {
        "name": "The cup of coffee",
        "queries": [{"photo": photo_number, "box": BOX}],
        "standing": True,
        "favourite": True,
    }
    page.request.post("/api/saved", headers=sent, multipart={"request": json.dumps(query)})
    album = page.request.get("/api/albums").json()["albums"][0]["album"]
    for name in ("albums", "duplicates", "saved", "work", "improve", "status"):
        page.goto(f"/{name}")
        take(page, out / f"{name}.jpg")
    page.goto(f"/album?album={album}")
    take(page, out / "album.jpg")

    page.goto("/import")
    page.locator("#file").set_input_files({"name": "mine.csv", "mimeType": "text/csv", "buffer": TABLE.encode()})
    page.wait_for_selector("#columns td")
    take(page, out / "import.jpg")

    numbers = [number(page, name) for name in BINNED]
    page.request.post("/api/bin", headers=sent, data={"photos": numbers})
    page.goto("/bin")
    page.wait_for_selector("#binned img")
    take(page, out / "bin.jpg")
    entries = [one["id"] for one in page.request.get("/api/bin").json()]
    page.request.post("/api/bin/back", headers=sent, data={"entries": entries})

    describe(collection, PLACES)
    page.goto("/map")
    page.wait_for_selector("#clusters img")
    take(page, out / "map.jpg")

    page.emulate_media(color_scheme="dark")
    page.goto(f"/search?q={photo_number}:{','.join(map(str, BOX))}")
    page.wait_for_selector("#results[aria-busy=false]:not([data-turned=looking]) .result")
    take(page, out / "results-dark.jpg")
    page.emulate_media(color_scheme="light")
    page.context.add_cookies([{"name": COOKIE, "value": "de", "url": page.url}])
    page.goto("/")
    take(page, out / "photos-german.jpg")
    page.set_viewport_size({"width": 390, "height": 760})
    page.locator("#menu").click()
    take(page, out / "phone-german.jpg")


def visit_locked(collection: Path, out: Path) -> None:
    """Take a picture of the sign-in page."""
    names = collection.parent / "names"
    subprocess.run(_cairn("password", str(names), "maria"), input="correct horse\n", text=True, check=True)
    with serving("serve", str(collection), "--password-file", str(names)) as address, browsing(address) as page:
        page.goto("/")
        take(page, out / "sign-in.jpg")


def main() -> None:
    """Make the album in a temporary folder, and the pictures in `--out`."""
    parser = argparse.ArgumentParser(description="Make the documentation's pictures of the web application.")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", help="where the pictures are written")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        collection = make_album(Path(folder))
        # Only offer the folder of the sample photos, whatever other folders this machine has.
        photos = str(collection.parent / "photos")
        bin_ = str(collection.parent / "bin")
        arguments = ("serve", str(collection), "--photos", photos, "--bin", bin_)
        with serving(*arguments) as address, browsing(address) as page:
            visit(page, collection, out)
            visit_others(page, collection, out)
        visit_locked(collection, out)
        home = ("open", str(collection.parent), "--no-browser", "--photos", photos)
        with serving(*home) as address, browsing(address) as page:
            page.goto("/")
            page.wait_for_selector(".volume img")
            take(page, out / "shelf.jpg")


if __name__ == "__main__":
    main()
