#!/usr/bin/env python
"""Serve forty synthetic books by IIIF for the tutorial about them, or write the output of its commands.

The books have pages of text and procedurally drawn woodcuts; some share a block. They are served until Ctrl-C. With
--write, each command of docs/tutorials/woodcut.md is run, its output replaces the text below it, and its picture is
written to docs/images.
"""

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from PIL import Image

from tests.support.iiif_server import IiifServer, serve_iiif
from tests.support.printed_pages import MARGIN, WIDTH, PrintedPage, photograph, print_page, typefaces
from tests.support.woodcuts import print_block

ROOT = Path(__file__).resolve().parents[2]
PAGE, PICTURE = ROOT / "docs/tutorials/woodcut.md", ROOT / "docs/images/woodcut.jpg"
PORT = 8013
BOOKS = 40
SHARED = {
    1: {3: 0.0, 9: 0.1, 14: 0.2, 22: 0.3, 30: 0.4, 37: 1.0},
    2: {6: 0.0, 12: 0.1, 35: 0.6},
    3: {19: 0.0, 20: 0.05},
}
"""Blocks shared by several books: the age of a block in each of them."""

_THINGS = "Mirror", "Garden", "Ship", "Castle", "Book"
_OF = "Fools", "Sailors", "Virtues", "Rivers", "Merchants", "Hermits", "Beasts", "Fortune"
_PLACES = "Basel", "Strasbourg", "Lyon", "Venice", "Nuremberg"
_SIZE, _LINE = 22, 30  # of type, and from line to line, pixels
_LINES = r"((?:(?!```).*\n)*)"
_BLOCK = re.compile(rf"^```(|python)\n{_LINES}```\n\n```text\n{_LINES}```", re.MULTILINE)
_SHOWN = 12  # lines of output shown in full


def main() -> None:
    """Serve, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="run the commands of the page, and write what they print")
    if not parser.parse_args().write:
        with served() as address:
            print(f"Forty books at {address} (end with Ctrl-C)", flush=True)
            with suppress(KeyboardInterrupt):
                threading.Event().wait()
        return
    with tempfile.TemporaryDirectory() as scratch:
        PAGE.write_text(follow(PAGE.read_text("utf-8"), Path(scratch)), "utf-8")
        shutil.copyfile(Path(scratch) / "found.jpg", PICTURE)


def follow(text: str, folder: Path) -> str:
    """Run the commands of a page in a folder, and return the page with their output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}

    def printed(block: re.Match[str]) -> str:
        language, command = block[1], block[2]
        arguments = ["-c", command] if language else ["-m", *command.split()]
        ran = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"{command}{ran.stderr}")
        lines = [line.rstrip() for line in ran.stdout.splitlines()]
        if len(lines) > _SHOWN:
            lines[2:-2] = ["…"]
        return "\n".join([f"```{language}\n{command}```\n\n```text", *lines, "```"])

    with served():
        return _BLOCK.sub(printed, text)


@contextmanager
def served() -> Iterator[str]:
    """Serve the books; yields the address of their collection."""
    with serve_iiif(PORT) as server:
        members = [_add_book(server, number) for number in range(BOOKS)]
        yield server.add_json("/books.json", {"type": "Collection", "label": {"en": ["Forty books"]}, "items": members})


def _add_book(server: IiifServer, number: int) -> dict[str, str]:
    """Serve a book of three leaves; return its entry for a collection."""
    title = f"The {_THINGS[number % 5]} of {_OF[number // 5]}"
    blocks = [(block, ages[number]) for block, ages in SHARED.items() if number in ages] or [(100 + number, 0.0)]
    names, sizes = {}, []
    for leaf in (1, 2, 3):
        page = print_page(10 * number + leaf, font=typefaces()[number % 2], size=_SIZE, head=title.upper())
        if leaf == 2:
            page = with_woodcut(page, *blocks[0], after=4 + number % 20)
        file, (photo, _) = io.BytesIO(), photograph(page, 10 * number + leaf)
        Image.fromarray(photo).save(file, "JPEG", quality=80)
        name = f"{number:02}-{leaf}"
        server.add_picture(name, file.getvalue(), photo.shape[1], photo.shape[0])
        names[name] = f"f. {leaf}r"
        sizes.append({"width": photo.shape[1], "height": photo.shape[0]})
    pairs = {"Date": str(1490 + number), "Place": _PLACES[number * 3 % 5], "Title": title}
    metadata = [{"label": {"en": [key]}, "value": {"none": [value]}} for key, value in pairs.items()]
    path = f"/{title.lower().replace(' ', '-')}/manifest.json"
    manifest = server.manifest(path, names, label={"en": [title]}, metadata=metadata)
    manifest["items"] = [canvas | size for canvas, size in zip(manifest["items"], sizes, strict=True)]
    return {"id": server.add_json(path, manifest, ETag='"1"'), "type": "Manifest"}


def with_woodcut(page: PrintedPage, block: int, age: float, after: int) -> PrintedPage:
    """Print a block on a page, replacing some lines."""
    cut, pixels = print_block(block, age), page.pixels.copy()
    top, left = MARGIN + after * _LINE, (WIDTH - cut.shape[1]) // 2
    lines = -(-cut.shape[0] // _LINE) + 1
    pixels[top : top + lines * _LINE] = pixels[0, 0]
    top += (lines * _LINE - cut.shape[0]) // 2
    pixels[top : top + cut.shape[0], left : left + cut.shape[1]] = cut
    return PrintedPage(pixels, {block: (left, top, left + cut.shape[1], top + cut.shape[0])})


if __name__ == "__main__":
    main()
