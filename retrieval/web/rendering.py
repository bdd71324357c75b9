"""Rendering of pages: a page's own part in the shared shell, with addresses below the root of the server."""

import hashlib
import json
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse

from retrieval.metadata.fields import FIELDS, FieldFilter
from retrieval.web.languages import COOKIE, ENGLISH, choose_language, languages, translate, translate_html

PAGES = Path(__file__).resolve().parent / "pages"
STATIC = PAGES.parent / "static"
SCRIPTS = STATIC / "js"
SHELL = "shell"
HEADERS = {"Cache-Control": "no-cache", "Vary": "Accept-Language, Cookie"}
"""Headers of a page, which depends on the visitor's language."""

SHELF = "cairn.shelf"
"""Key in a request's scope: address of the list of collections, if the server has several."""

_NAV = re.compile(r'\s*<button[^>]* id="menu".*?</button>|\s*<nav\b.*?</nav>', re.DOTALL)
_ADDRESS = re.compile(r'\b(href|src|action)="/')
_IMPORT = re.compile(r'^(?:import|export|\}) .*?"(\.{1,2}/[\w./-]+\.js)";$', re.MULTILINE)


def render(name: str, root: str = "", language: str = ENGLISH, server: str | None = None, **more: str) -> str:
    """Return a page, a file of `PAGES`, as HTML in one of `languages`.

    `root` precedes all addresses of the server, such as ``/photos``, and `server` that of the page to sign in, if that
    differs. `more` has the English HTML that replaces ``<!-- name -->``.
    """
    text = _page(name, language)
    for place, html in more.items():
        text = text.replace(f"<!-- {place} -->", translate_html(html, language))
    if server is not None:
        text = text.replace("<html ", f'<html data-server="{escape(server)}" ', 1)
    return _ADDRESS.sub(lambda found: f'{found[1]}="{escape(quote(root))}/', text)


def language_of(request: Request) -> str:
    """Choose the language of an answer: that of the visitor's choice, else of the browser."""
    return choose_language(request.cookies.get(COOKIE), request.headers.get("accept-language", ""))


def show_page(request: Request, name: str, status: int = 200, **more: str) -> HTMLResponse:
    """Answer with a page of `render`, in the language that the visitor chose or their browser prefers."""
    language = language_of(request)
    shelf = request.scope.get(SHELF)
    server = None if shelf is None else str(shelf).removesuffix("/")
    text = render(name, request.scope.get("root_path", ""), language, server, **more)
    return HTMLResponse(text, status, {**HEADERS, "Content-Language": language})


def read_page(name: str) -> tuple[dict[str, str], str]:
    """Read a page's file: the fields of its head, and the contents of <main>."""
    head, _, main = (PAGES / f"{name}.html").read_text(encoding="utf-8").partition("\n\n")
    return dict(line.split(": ", 1) for line in head.splitlines()), main.rstrip("\n")


@cache
def modules_of(script: str | None) -> tuple[str, ...]:
    """List the modules that a script imports, and those that they import: paths below `SCRIPTS`, such as ``dom.js``.

    A browser that knows them from the start asks for all at once.
    """
    modules = dict.fromkeys([] if script is None else [script])
    waiting = list(modules)
    while waiting:
        file = SCRIPTS / waiting.pop(0)
        for address in _IMPORT.findall(file.read_text(encoding="utf-8")):
            path = (file.parent / address).resolve().relative_to(SCRIPTS).as_posix()
            if path not in modules:
                modules[path] = None
                waiting.append(path)
    return tuple(modules)[1:]


@cache
def static_version() -> str:
    """Return what stands in the addresses of all files of `STATIC`: 12 hexadecimal digits, others once one has changed.

    So a browser need not ask again for a file that it has. It is worked out once: restart the server after a change.
    """
    digest = hashlib.sha256()
    for path in sorted(one for one in STATIC.rglob("*") if one.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(STATIC).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def _fields(language: str) -> list[dict[str, Any]]:
    """The fields of metadata, as ``static/js/fields.js`` takes them."""
    return [
        {
            "name": row.name,
            "word": row.word,
            "kind": row.kind.name,
            "label": translate(row.label, language),
            "facet": translate(row.facet, language) if row.facet else "",
            "filter": hasattr(FieldFilter, row.name) and row.kind.name != "tags",
        }
        for row in FIELDS.values()
    ]


@cache
def _page(name: str, language: str) -> str:
    """A page in its shell, cached at its first request."""
    fields, main = read_page(name)
    text = translate_html((PAGES / f"{fields.get('shell', SHELL)}.html").read_text(encoding="utf-8"), language)
    if fields.get("nav") == "none":  # it belongs to no collection
        text = _NAV.sub("", text)
    here = f'<a href="{fields.get("here")}"'
    start, nav, rest = text.partition("<nav")
    text = start + nav + rest.replace(here, f'{here} aria-current="page"', 1)
    styles = "".join(
        f'\n  <link rel="stylesheet" href="/static/css/{one}">' for one in fields.get("styles", "").split()
    )
    modules = "".join(
        f'\n  <link rel="modulepreload" href="/static/js/{one}">' for one in modules_of(fields.get("script"))
    )
    choices = "".join(
        f'<option value="{code}" lang="{code}"{" selected" if code == language else ""}>{escape(own)}</option>'
        for code, own in languages().items()
    )
    values = {
        **fields,
        "title": escape(translate(fields["title"], language)),
        "styles": styles,
        "modules": modules,
        "language": language,
        "languages": choices,
        "fields": escape(json.dumps(_fields(language), ensure_ascii=False)),
        "main": translate_html(main, language),
    }
    text = re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], text)
    return text.replace('="/static/', f'="/static/{static_version()}/')
