#!/usr/bin/env python3
"""Measure the responsiveness of the photos page with many photos, in a real browser (headless Chromium).

The photos are synthetic rows of a catalogue, with dates, places and tags; five hundred small pictures are shared among
them. Measured are the time from opening the page until the photos of the first view are seen, frames a second while
scrolling slowly, fast and by jumps, and how long a key and a filter take to be answered on the screen.

FOLDER: of the collection; an existing one is measured unchanged. --beside-load keeps one core busy meanwhile.
--beside-job makes the same server index the photos of a folder meanwhile, into another collection, and reports its
progress at the end. Prints a table in Markdown.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import socket
import statistics
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from catalogue_at_size import DAYS, Synthetic, synthetic_photos, write_in_bulk

from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.photos.thumbnails import encode_jpeg, thumbnail_file, with_checksum
from retrieval.web.shelf.mounted import collection_address
from tests.support.browser import find_chromium

PICTURES = 500
PART = 10_000  # photos written at a time
SHAPES = ((4000, 3000), (3000, 4000), (6000, 4000), (4000, 6000), (4000, 4000), (9000, 3000))
WINDOW = 1440, 900

# Frames and the longest of them while the page scrolls by so many pixels a frame.
SCROLL = """([speed, seconds]) => new Promise((done) => {
  const times = [];
  const begun = performance.now();
  const step = (now) => {
    times.push(now);
    if (now - begun > 1000 * seconds) {
      const each = times.slice(1).map((time, place) => time - times[place]);
      const mean = each.reduce((a, b) => a + b) / each.length;
      done([1000 / mean, Math.max(...each), each.filter((one) => one > 34).length]);
      return;
    }
    scrollBy({ top: speed, behavior: "instant" });
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""

# From a key press to the frame with its effect.
KEY = """(key) => new Promise((done) => {
  const begun = performance.now();
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
})"""

SEEN = """() => {
  const shown = [...document.querySelectorAll("#photos li")].filter((item) => {
    const { top, bottom } = item.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  });
  return shown.length > 5 && shown.every((item) => item.querySelector("img").naturalWidth > 0) && performance.now();
}"""


def make_collection(folder: Path, photos: int, seed: int = 0) -> None:
    """Make a collection of synthetic photos, and the small pictures of them."""
    rng = np.random.default_rng(seed)
    contents = [rng.bytes(32).hex() for _ in range(PICTURES)]
    shapes = [SHAPES[at] for at in rng.choice(len(SHAPES), PICTURES, p=(0.45, 0.15, 0.2, 0.1, 0.07, 0.03))]
    for sha256, (width, height) in zip(contents, shapes, strict=True):
        for size in (256, 512):
            scale = size / max(width, height)
            colours = rng.integers(0, 255, (5, 7, 3)).astype(np.float64)
            rows, columns = (np.linspace(0, n - 1, round(scale * m)).astype(int) for n, m in ((5, height), (7, width)))
            picture = (colours[rows][:, columns] + rng.normal(0, 12, (len(rows), len(columns), 1))).clip(0, 255)
            file = thumbnail_file(sha256, size, folder / "cache")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(with_checksum(encode_jpeg(picture.astype(np.uint8))))
    with Collection.create(folder, CollectionOptions(signature="none")) as collection:
        database = collection.catalogue._database
        for part, first in enumerate(range(0, photos, PART)):
            count = min(PART, photos - first)
            days = (DAYS * first / photos, DAYS * (first + count) / photos)
            write_in_bulk(database, part + 1, list(_given_pictures(first, count, days, seed, contents, shapes)))


def _given_pictures(
    first: int, count: int, days: tuple[float, float], seed: int, contents: list[str], shapes: list[tuple[int, int]]
) -> Iterator[Synthetic]:
    rng = np.random.default_rng([seed, first, 1])
    for one, at in zip(synthetic_photos(first, count, days, seed), rng.integers(0, PICTURES, count), strict=True):
        one.row.sha256 = contents[at]
        one.row.width, one.row.height = shapes[at]
        yield one


@contextmanager
def serving(home: Path, root: Path | None = None) -> Iterator[str]:
    """Serve the collections of a folder from a subprocess, with photos below a root; yield the base address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(home, port, root))
    process.start()
    try:
        for _ in range(600):
            with socket.socket() as trying:
                if trying.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.join()


def _serve(home: Path, port: int, root: Path | None) -> None:
    import uvicorn

    from retrieval.web.app import ServeOptions
    from retrieval.web.shelf.app import create_shelf_app

    app = create_shelf_app(home, ServeOptions(roots=(root,) if root else ()))
    uvicorn.run(app, port=port, log_level="warning", access_log=False)


@contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Keep a core busy with work of lower priority, like an indexing worker."""
    if not wanted:
        yield
        return
    process = multiprocessing.get_context("spawn").Process(target=_work, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _work() -> None:
    os.nice(5)
    matrix = np.random.default_rng(0).normal(size=(400, 400))
    while True:
        np.linalg.svd(matrix)


def ask(address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Send a GET request to the server, or a POST request with `body`."""
    headers = {"X-Cairn": "1", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(address, content, headers), timeout=60) as answer:
        reply: dict[str, Any] = json.load(answer)
    return reply


@contextmanager
def indexing(base: str, home: Path, wanted: bool) -> Iterator[list[tuple[str, str]]]:
    """Make the server index the photos of its root; yield rows on its progress."""
    rows: list[tuple[str, str]] = []
    if not wanted:
        yield rows
        return
    collection = ask(f"{base}/api/collections", {"title": "Beside", "root": 0})
    address = f"{base}{collection['address']}api/jobs/{collection['job']}"
    try:
        while (job := ask(address))["done"] < 3:  # photos, so that it is under way
            if job["state"] not in ("queued", "running"):
                raise SystemExit(f"The job ended: {job['error'] or job['result']}")
            time.sleep(0.2)
        yield rows
        job = ask(address)
        rows.append(("the job meanwhile", f"{job['state']}, {job['title_of_step']}: {job['done']} of {job['of']}"))
        ask(f"{address}/cancel", {})
        while ask(address)["state"] == "running":
            time.sleep(0.2)
    finally:
        shutil.rmtree(home / collection["name"])


def measure(base: str) -> list[tuple[str, str]]:
    """Measure the page; return the names of measurements and the figures."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WINDOW[0], "height": WINDOW[1]})
        first = _open(page, base)
        warm = statistics.median(_open(page, base) for _ in range(5))
        rows = [("first photos seen, first visit", f"{first:.0f} ms"), ("first photos seen, warm", f"{warm:.0f} ms")]
        for name, speed in (("reading", 15), ("fast", 150), ("flying", 3000)):
            rate, longest, dropped = page.evaluate(SCROLL, [speed, 4])
            rows.append((f"scrolling, {name}: {speed} pixels a frame", _frames(rate, longest, dropped)))
        begun = time.perf_counter()
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
        page.wait_for_function(SEEN)
        rows.append(("photos seen after a jump to the middle", f"{1000 * (time.perf_counter() - begun):.0f} ms"))
        page.locator("#photos a[tabindex='0']").focus()
        keys = [page.evaluate(KEY, key) for key in ["ArrowRight", "ArrowDown"] * 15 + ["x"] * 4 + ["PageDown"] * 10]
        rows.append(("a key, median and longest", f"{statistics.median(keys):.0f} ms, {max(keys):.0f} ms"))
        begun = time.perf_counter()
        page.locator("#words").fill("IMG 0000")
        page.wait_for_function("() => document.querySelector('#said').textContent.includes('pass the filter')")
        rows.append(
            ("a filter typed, answered (250 ms of it waiting)", f"{1000 * (time.perf_counter() - begun):.0f} ms")
        )
        rows.append(("photos in the document", str(page.locator("#photos li").count())))
        browser.close()
    return rows


def _open(page: Any, base: str) -> float:
    page.goto(base + "/")
    return float(page.wait_for_function(SEEN, polling="raf").json_value())


def _frames(rate: float, longest: float, dropped: int) -> str:
    return f"{rate:.0f} frames a second, longest {longest:.0f} ms, {dropped} beyond 34 ms"


def main() -> int:
    """Make the collection if it does not exist, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--photos", type=int, default=100_000)
    parser.add_argument("--beside-load", action="store_true")
    parser.add_argument("--beside-job", type=Path, metavar="PHOTOS")
    arguments = parser.parse_args()
    folder = arguments.folder / "browse.cairn"
    if not folder.exists():
        arguments.folder.mkdir(parents=True, exist_ok=True)
        make_collection(folder, arguments.photos)
    root = arguments.beside_job and arguments.beside_job.absolute()
    home, beside = arguments.folder, root is not None
    with serving(home, root) as base, busy(arguments.beside_load), indexing(base, home, beside) as meanwhile:
        rows = measure(base + collection_address(folder.name).rstrip("/"))
    rows += meanwhile
    print("| measured | figure |\n|---|---|")
    for name, figure in rows:
        print(f"| {name} | {figure} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
