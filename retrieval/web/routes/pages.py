"""The pages, and the static files that they load."""

import mimetypes
import re
from html import escape

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from retrieval.search.engines.registry import BEST, EXPANSIONS, PREFERRED, every_engine, find_engine
from retrieval.web.rendering import STATIC, show_page, static_version

PAGES = {
    "/": "photos",
    "/search": "search",
    "/photo": "photo",
    "/match": "match",
    "/albums": "albums",
    "/album": "album",
    "/groups": "groups",
    "/duplicates": "duplicates",
    "/bin": "bin",
    "/import": "import",
    "/saved": "saved",
    "/motif": "motif",
    "/books": "books",
    "/clock": "clock",
    "/map": "map",
    "/work": "work",
    "/improve": "improve",
    "/status": "status",
}
# The system's own table may say something else.
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}

router = APIRouter(include_in_schema=False)

_VERSION = re.compile(r"([0-9a-f]{12})[/\\]")  # how the address of a file with its version begins


class Static(StaticFiles):
    """The files of the package's static folder, and nothing else."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)
        for suffix, kind in TYPES.items():
            mimetypes.add_type(kind, suffix)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file: browsers cache it if its address has the version, and otherwise ask again each time."""
        if "\0" in path:
            raise HTTPException(404)
        match = _VERSION.match(path)
        # A page that was opened before an update gets the current file.
        path = path[match.end() :] if match else path
        current = match is not None and match[1] == static_version()
        try:
            response = await super().get_response(path, scope)
        except (OSError, ValueError):  # a name that no file can have
            raise HTTPException(404) from None
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if current else "no-cache"
        return response


def engine_choices() -> str:
    """List the engines as a page lets choose them, the default first."""
    verified = find_engine(PREFERRED[0]).verified.value
    best = f'<option value="{BEST}" data-verified="{verified}">Best for these photos</option>'
    return best + "".join(
        f'<option value="{escape(one.name)}" data-verified="{one.verified.value}">{escape(one.label)}</option>'
        for one in every_engine()
    )


def expansion_choices() -> str:
    """List the expansions as a page lets choose them."""
    return "".join(f'<option value="{escape(name)}">{escape(label)}</option>' for name, label in EXPANSIONS.items())


def _add(address: str, name: str) -> None:
    """Serve a fixed page of the package."""

    # Without parameters of ours: the framework would fill them from the query string.
    def show(request: Request) -> HTMLResponse:
        return show_page(request, name, engines=engine_choices(), expansions=expansion_choices())

    router.add_api_route(address, show, methods=["GET", "HEAD"])


for _address, _name in PAGES.items():
    _add(_address, _name)
