"""Pages as they are sent: a page's own part in the shell that all share, with addresses below where the server lies."""

import re
from functools import cache
from html import escape
from pathlib import Path

PAGES = Path(__file__).resolve().parent / "pages"
SHELL = "shell"
_ADDRESS = re.compile(r'\b(href|src|action)="/')


def render(name: str, root: str = "", language: str = "en", **more: str) -> str:
    """Give a page as HTML.

    Parameters
    ----------
    name : str
        Which page: a file of `PAGES`.
    root : str
        What stands before all addresses of the server, such as ``/photos``; "" where it has a host of its own.
    language : str
        Of the page.
    **more : str
        HTML that takes the place of ``<!-- name -->``.

    Returns
    -------
    str
    """
    text = _page(name, language)
    for place, html in more.items():
        text = text.replace(f"<!-- {place} -->", html)
    return _ADDRESS.sub(lambda found: f'{found[1]}="{escape(root)}/', text)


@cache
def _page(name: str, language: str) -> str:
    """A page in its shell, as its files are when it is first asked for."""
    head, _, main = (PAGES / f"{name}.html").read_text(encoding="utf-8").partition("\n\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    text = (PAGES / f"{SHELL}.html").read_text(encoding="utf-8")
    here = f'<a href="{fields.get("here")}"'
    start, nav, rest = text.partition("<nav")
    text = start + nav + rest.replace(here, f'{here} aria-current="page"', 1)
    styles = "".join(
        f'\n  <link rel="stylesheet" href="/static/css/{one}">' for one in fields.get("styles", "").split()
    )
    values = {**fields, "styles": styles, "language": language, "main": main.rstrip("\n")}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], text)
