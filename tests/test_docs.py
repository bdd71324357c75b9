"""The documentation: no command or option is left out."""

import re

import pytest
import typer

from cairn import make_app
from scripts.command_reference import MARK, PAGE, pages, reference

COMMANDS = dict(pages(typer.main.get_command(make_app())))


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
    assert written == f"\n{reference()}", "docs/commands.md is out of date: run python -m scripts.command_reference"
