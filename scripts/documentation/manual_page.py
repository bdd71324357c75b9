"""Write the manual page, docs/cairn.1, from the help texts: python -m scripts.documentation.manual_page"""

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from cairn import COMMANDS, make_app
from retrieval.commands.help_pages import argument_name, explanation, first_paragraph, option_name, pages

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cairn.1"

# Characters with a special meaning in roff.
_ESCAPES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
_CODES = (
    ("0", "All was done."),
    ("1", "Done, but something failed that was asked for, such as a check, or a photo with --strict."),
    ("2", "The request was wrong: one sentence on standard error says what, and with --json an object too."),
    ("130", "Stopped by Ctrl-C; the same command, run again, goes on from there."),
    ("143", "Stopped by SIGTERM."),
)
_VARIABLES = (
    (
        "CAIRN_CACHE",
        "Folder for functions compiled for this processor, and for what is fetched from an object store; else they are "
        "next to the program or in the user's cache folder.",
    ),
    ("OMP_NUM_THREADS", "Threads of linear algebra and of faiss in each process; 1 where many processes are at work."),
)


def manual_page() -> str:
    """Return the page as roff, with the macros of man(7)."""
    app: Any = typer.main.get_command(make_app())
    lines = [
        r".\" Written by scripts/documentation/manual_page.py: change the help texts and run it again.",
        ".TH CAIRN 1",
        ".SH NAME",
        rf"cairn \- {roff(first_paragraph(app).rstrip('.'))}",
        ".SH SYNOPSIS",
        r"\fBcairn\fR \fICOMMAND\fR [\fIARGUMENT\fR]... [\fIOPTION\fR]...",
        ".br",
        r"\fBcairn\fR [\fICOMMAND\fR] \fB\-\-help\fR",
        ".SH DESCRIPTION",
        roff(
            "A collection is a folder that cairn index makes from photos, which stay where they are. cairn query finds "
        ),
        roff(
            "those that show the same as a photo, or as a box in it. --json prints the report of a command as one JSON "
        ),
        roff("object on standard output; progress and notes go to standard error."),
        *_entries(app.params),
    ]
    panels: dict[str, list[str]] = {panel: [] for _, panel in COMMANDS.values()}
    for path, command in list(pages(app))[1:]:
        panels[app.commands[path[1]].rich_help_panel] += _section(path, command)
    for panel, sections in panels.items():
        lines += [f'.SH "{roff(panel.upper())}"', *sections]
    lines += [".SH EXIT STATUS", *_list(_CODES), ".SH ENVIRONMENT", *_list(_VARIABLES)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def roff(text: str) -> str:
    """Escape a text, so that it is printed literally anywhere in a line."""
    escaped = "".join(_ESCAPES.get(one, one if one.isascii() else rf"\[u{ord(one):04X}]") for one in text)
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


def _section(path: tuple[str, ...], command: Any) -> list[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    required = [one for one in command.params if one.param_type_name == "option" and one.required]
    usage = [rf"\fB{roff(' '.join(path))}\fR", *(_value(argument_name(one)) for one in arguments)]
    usage += [_option(one) for one in required] + [r"\fICOMMAND\fR"] * hasattr(command, "commands")
    lines = [f'.SS "{roff(" ".join(path))}"', f"{' '.join(usage)} [\\fIOPTION\\fR]..."]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines += [".PP", roff(" ".join(paragraph.split()))]
    return lines + _entries(command.params)


def _entries(parameters: Iterable[Any]) -> list[str]:
    lines = []
    for one in sorted(parameters, key=lambda one: one.param_type_name):  # arguments first
        is_option = one.param_type_name == "option"
        lines += [".TP", _option(one) if is_option else _value(argument_name(one)), roff(explanation(one).plain)]
    return lines


def _option(one: Any) -> str:
    names, _, value = option_name(one).plain.partition(" ")
    while value and names.endswith(","):  # a short name comes first
        following, _, value = value.partition(" ")
        names = f"{names} {following}"
    return rf"\fB{roff(names)}\fR" + (f" {_value(value)}" if value else "")


def _value(text: str) -> str:
    return re.sub(r"[^][|.]+", lambda found: rf"\fI{roff(found[0])}\fR", text)


def _list(entries: Iterable[tuple[str, str]]) -> list[str]:
    return [line for name, text in entries for line in (".TP", rf"\fB{roff(name)}\fR", roff(text))]


def main() -> None:
    """Write the page."""
    PAGE.write_text(manual_page(), encoding="ascii")


if __name__ == "__main__":
    main()
