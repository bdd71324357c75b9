"""The documentation: its links lead somewhere, its commands exist, and no command or option is left out."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.documentation.command_reference import MARK, PAGE, pages, reference
from tests.support.command_tree import command_tree
from tests.support.paths import ROOT

README = ROOT / "README.md"
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("data/*.md")])
COMMANDS = dict(pages(command_tree()))
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _anchors(text: str) -> set[str]:
    """What the headings of a page can be linked by, as GitHub and GitLab name them."""
    seen: Counter[str] = Counter()
    anchors = set()
    for heading in re.findall(r"^#+ +(.+?) *#*$", _FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return anchors


def _links(path: Path) -> Iterator[str]:
    """The relative links of a page."""
    for target in _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z][a-z0-9+.-]*:", target):
            yield target


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 160


@pytest.mark.parametrize("path", TEXTS, ids=_name)
def test_links_lead_to_files_and_headings_that_exist(path: Path) -> None:
    for link in _links(path):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.is_relative_to(ROOT) and target.exists(), link
        if anchor:
            assert anchor in _anchors(target.read_text(encoding="utf-8")), link


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [README]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            targets = ((page.parent / link.partition("#")[0]).resolve() for link in _links(page))
            waiting += [target for target in targets if target.suffix == ".md" and target.is_file()]
    assert {path for path in TEXTS if path.is_relative_to(ROOT / "docs")} <= reached


@pytest.mark.parametrize("path", TEXTS, ids=_name)
def test_files_that_are_named_exist(path: Path) -> None:
    folders = "cairn|data|deploy|docs|eval|index|learning|retrieval|scripts|tests"
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", path.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def _command_lines() -> Iterator[tuple[str, str]]:
    """Every line in a block of code that runs cairn."""
    for path in TEXTS:
        for block in _FENCE.findall(path.read_text(encoding="utf-8")):
            if path != PAGE:
                yield from ((_name(path), line.strip()) for line in block.splitlines() if re.match(r"cairn \S", line))


def test_commands_in_examples_exist_with_their_options() -> None:
    wrong = []
    for page, line in _command_lines():
        for part in re.split(r"(?<=\S) {2,}(?=cairn )", line):  # two commands may stand side by side
            words = shlex.split(part, comments=True)
            called = max((path for path in COMMANDS if tuple(words[: len(path)]) == path), key=len, default=())
            command: Any = COMMANDS.get(called)
            if command is None or (hasattr(command, "commands") and len(words) > 1 and not words[-1].startswith("-")):
                wrong.append(f"{page}: {line}")
                continue
            known = {"--help"}.union(*(one.opts + one.secondary_opts for one in command.params))
            wrong += [f"{page}: {line}" for word in words if word.startswith("--") and word not in known]
    assert not wrong


def _sections() -> dict[str, str]:
    """The sections of the command reference by their titles."""
    parts = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_documented(path: tuple[str, ...]) -> None:
    section = _sections()[" ".join(path)]
    for option in COMMANDS[path].params:
        if option.param_type_name == "option":
            row = re.search(rf"^\| `[^`]*{re.escape(option.opts[0])}\b[^`]*` \| (.*) \|$", section, re.MULTILINE)
            assert row is not None and len(row[1]) > 8, option.opts[0]
            for name in option.secondary_opts:
                assert name in row[0]


def test_the_reference_is_what_the_help_texts_say() -> None:
    written = PAGE.read_text(encoding="utf-8").partition(MARK)[2]
    assert written == f"\n{reference()}", "out of date: run python -m scripts.documentation.command_reference"
