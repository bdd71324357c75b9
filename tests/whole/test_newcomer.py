"""A newcomer does what the tutorial says, in its order: commands print what it shows, and pages say what it quotes."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import chromium, screen_point, visiting  # noqa: F401
from tests.support.live import running, until
from tests.support.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.browser]
TEXT = (ROOT / "docs/tutorials/photos.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
QUOTED = set(re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", TEXT))
PHOTO, CUP = "walls/wall-4.jpg", (450, 185, 735, 405)
_NUMBER = re.compile(r"\d[\d.,]*")


class Newcomer:
    """Somebody at a terminal, in a folder with the sample photos."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._left = [block for block in BLOCKS if "pipx" not in block[1]]  # what is installed is tested elsewhere

    def type(self, begins: str) -> str:
        """Type the next command of the page; what is printed has the words of the block below it. Return that."""
        place = next(place for place, (_, text) in enumerate(self._left) if text.startswith(begins))
        command = self._left[place][1].splitlines()[0]
        arguments = [sys.executable, "-m", "cairn", *command.split()[1:]]
        done = subprocess.run(arguments, cwd=self.folder, env=_environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shown = next(
            text for kind, text in self._left[place + 1 :] if kind == "text" and not text.startswith("Serving")
        )
        printed = done.stdout + done.stderr
        for line in shown.splitlines():
            assert _NUMBER.sub("#", line.strip()) in _NUMBER.sub("#", printed), (line, printed)
        del self._left[: place + 1]
        return done.stdout

    def save(self, name: str, begins: str) -> None:
        """Save a text of the page as a file."""
        (self.folder / name).write_text(next(text for _, text in self._left if text.startswith(begins)), "utf-8")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


@contextmanager
def served(newcomer: Newcomer, chromium: Any) -> Iterator[Any]:  # noqa: F811
    """Serve the collection of the page, and open a window."""
    arguments = ("serve", newcomer.folder / "album.cairn", "--port", "0")
    with running(arguments, newcomer.folder, newcomer.folder / "said.txt") as base, visiting(chromium, base) as visit:
        yield visit.open("/")


def quoted(page: Any, label: str) -> Any:
    """What can be pressed by a name that the page quotes."""
    assert label in QUOTED, label
    return page.get_by_role("button", name=label).or_(page.get_by_role("link", name=label)).first


def test_the_tutorial_holds_from_its_first_command_to_its_last(chromium: Any, tmp_path: Path) -> None:  # noqa: F811
    runpy.run_path(str(ROOT / "docs/examples/sample_photos.py"))["main"](tmp_path / "photos")
    newcomer = Newcomer(tmp_path)
    assert newcomer.type("cairn index").startswith(
        "album.cairn: 55 added, 0 unchanged, 0 moved, 0 vanished, 0 failed; 55"
    )

    with served(newcomer, chromium) as page:
        page.get_by_role("searchbox").first.fill("wall")
        page.get_by_role("link", name=PHOTO).first.click()
        page.locator(".box-canvas img").wait_for()
        page.mouse.move(*screen_point(page, *CUP[:2]))
        page.mouse.down()
        page.mouse.move(*screen_point(page, *CUP[2:]), steps=5)
        page.mouse.up()
        quoted(page, "Search with this box").click()
        page.get_by_text("4 other photos show this").first.wait_for()
        assert "4 other photos show this" in TEXT
        found = page.locator("#results .result .name")
        assert found.first.text_content() == PHOTO
        assert all("coffee" in found.nth(place).text_content() for place in range(1, 5))
        assert quoted(page, "Search this region").is_visible()
        page.locator("#results .result").nth(1).locator("a").first.click()
        page.locator("#pair .match").first.wait_for()
        assert page.locator("#pair .match").count() >= 15
        quoted(page, "Flicker").click()

    printed = newcomer.type("cairn group")
    assert printed.startswith("album.cairn: 54 of 55 photos in 12 groups"), printed
    with served(newcomer, chromium) as page:
        quoted(page, "Groups").click()
        page.locator("section.album").nth(11).wait_for()
        assert page.locator("section.album").count() == 12
    newcomer.save("mine.csv", "Datei;Titel")
    newcomer.type("cairn metadata")
    with served(newcomer, chromium) as page:
        quoted(page, "Folders and tags").click()
        drawer = page.get_by_role("dialog")
        drawer.get_by_role("button", name="Tasse").or_(drawer.get_by_role("link", name="Tasse")).first.click()
        until(lambda: page.locator("#photos a[data-place]").count() == 3)
    answer = newcomer.type("cairn query")
    assert [line.split()[-1] for line in answer.splitlines()] == ["2020/coffee-1.jpg", "2021/coffee-2.jpg"]
