"""Self-contained HTML pages that load nothing and run nothing."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from index.arrays import save_bytes
from index.errors import CairnError
from index.text import printable

_SUFFIXES = (".html", ".htm")


def check_html(path: Path, kind: str) -> None:
    """Refuse a path to which no page can be written; called before the work."""
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise CairnError(f"{path.name} is no name for a {kind}: let it end with .html.")
    if not path.parent.is_dir():
        raise CairnError(f"The folder {path.parent} for the {kind} does not exist: make it first, or choose another.")
    if path.is_dir():
        raise CairnError(f"{path} is a folder: choose another name for the {kind}.")


def write_html(path: Path, page: str, kind: str) -> None:
    """Write a page atomically; raises CairnError if it cannot be written."""
    try:
        save_bytes(Path(path), page.encode())
    except OSError as error:
        raise CairnError(f"The {kind} {path} cannot be written ({error.strerror}).") from error


def document(title: str, style: str, body: Sequence[str]) -> str:
    """Return a whole page: its title as plain text, its style sheet, and the HTML of its parts."""
    # The policy makes the browser enforce it: nothing is loaded, nothing runs.
    head = [
        '<meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(printable(title))}</title>",
        f"<style>{style}</style>",
    ]
    lines = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", *body, "</body>", "</html>"]
    return "\n".join(lines) + "\n"
