"""What --help prints, of every command: in panels, as wide as the terminal, and for people."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from index.options.panels import EVERYDAY, HEALTH, LEARN, MEASURE
from tests.conftest import Ran
from tests.support.command_tree import command_tree
from tests.support.paths import ROOT

APP = command_tree()
Cairn = Callable[..., Ran]


def pages(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group, with how it is called."""
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from pages(one, *path, name)


PAGES = dict(pages(APP))


@pytest.fixture(params=[60, *(pytest.param(width, marks=pytest.mark.slow) for width in (80, 120))])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def panels(text: str) -> dict[str, str]:
    """The panels of a page by their titles."""
    return dict(re.findall(r"╭─ (.*?) ─*╮\n(.*?)╰─", text, re.DOTALL))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: " ".join(path) or "cairn")
def test_a_page_fits_the_terminal_and_shows_every_option_in_a_panel(
    cairn: Cairn, path: tuple[str, ...], width: int
) -> None:
    ran = cairn(*path, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= width
    assert not re.search(r"<\w+(\[|>|,| range)|list\[|\bNone\b|\bPath\(", ran.out)
    found = panels(ran.out)
    inside = "".join(found.values())
    options = [one for one in PAGES[path].params if one.param_type_name == "option"]
    for option in options:
        for name in (*option.opts, *option.secondary_opts):
            assert name in inside, name
    if len(options) > 10:
        assert len([title for title in found if title != "Arguments"]) >= 3
        most = max(len(re.findall(r"^│ -", rows, re.MULTILINE)) for rows in found.values())
        assert most <= 12, "too many options in a panel"
    # A paragraph is broken where the line is full, not where the source breaks it.
    for paragraph in ran.out.split("╭")[0].split("\n\n"):
        lines = paragraph.strip("\n").splitlines()
        for line, after in pairwise(lines):
            assert len(line.rstrip()) + 1 + len(after.split()[0]) > width or width > 110


def test_commands_are_in_panels(cairn: Cairn) -> None:
    found = panels(cairn("--help").out)
    assert list(found)[:4] == [EVERYDAY, HEALTH, LEARN, MEASURE]
    assert "Commands" not in found
    for name, command in APP.commands.items():  # type: ignore[attr-defined]
        assert re.search(rf"^│ {name} ", found[command.rich_help_panel], re.MULTILINE), name


def test_values_and_what_must_be_given_are_named(cairn: Cairn) -> None:
    query = cairn("query", "--help").out
    for shown in ("COLLECTION PHOTOS...", "--box X0 Y0 X1 Y1", "--where KEY=VALUE", "--top N", "(default: 20)"):
        assert shown in query
    learn = cairn("learn", "descriptor", "--help").out
    assert "SOURCES... --out PATH" in learn and "(required)" in learn
    assert "[FILE.csv]" in cairn("metadata", "--help").out
    assert "--upright/--rotated" in cairn("index", "--help").out
    change = cairn("searches", "change", "--help").out  # what is left out stays as it is
    assert "--standing/--not-standing" in change and "(default: not-standing)" not in change


@pytest.mark.slow
@pytest.mark.parametrize(("words", "expected"), [("cairn que", "query"), ("cairn query c --taken-f", "--taken-from")])
def test_a_shell_completes_commands_and_options(words: str, expected: str) -> None:
    count = str(len(words.split()) - 1)
    requested = {"_CAIRN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
    code = "import sys; sys.argv = ['cairn']; import cairn; cairn.main()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | requested, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [expected], "")
