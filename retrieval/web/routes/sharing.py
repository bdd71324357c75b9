"""Routes of links to albums, and the pages that their visitors see."""

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from index.messages import said
from retrieval.catalogue.curation.albums import numbers_in_album
from retrieval.curation import albums as curation
from retrieval.curation.sharing import DAYS, MOST_DAYS, ShareLink, end_link, last_day, links_of, share
from retrieval.library.photos import photos_there
from retrieval.web.access.gate import LINK, SHARED
from retrieval.web.access.rights import WRITING, role_of, user_of
from retrieval.web.access.roles import Role
from retrieval.web.languages import translate
from retrieval.web.models import MAX_ALBUM, MAX_NUMBER
from retrieval.web.problems import ProblemError, refusing
from retrieval.web.rendering import language_of, render
from retrieval.web.routes.albums import AlbumId
from retrieval.web.routes.photos import PREVIEW_SIDE, image, thumbnail
from retrieval.web.service import Service, service_of

router = APIRouter()

PAGE = 200
"""Photos on one page of a visitor."""
_TILE = 256  # pixels
_HEADERS = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow"}


class SharedAlbum(BaseModel):
    """A link that shows an album."""

    id: str = Field(description="What it is ended by; it opens nothing.")
    album: int
    name: str | None = Field(description="Of the album; null if that was deleted.")
    created: str = Field(description="ISO 8601, UTC.")
    expires: str = Field(description="Last day (UTC) on which it holds.")
    over: bool = Field(description="Whether that has passed.")
    by: str | None = Field(description="Who made it; null: who runs the server.")


class NewSharedAlbum(SharedAlbum):
    """A link that was just made."""

    path: str = Field(description="Its address below that of the collection, which is returned only now.")


class SharedAlbums(BaseModel):
    """Links to albums, the newest first."""

    links: list[SharedAlbum]


class ShareRequest(BaseModel):
    """How long a link is to hold."""

    days: int = Field(DAYS, ge=0, le=MOST_DAYS, description="Days from today.")


@router.get("/api/shared", tags=["albums"])
def shared_albums(
    request: Request,
    album: Annotated[int | None, Query(ge=0, le=MAX_ALBUM, description="Of this album alone.")] = None,
) -> SharedAlbums:
    """List the links to albums, the newest first; only for users who may change the collection."""
    if role_of(request) is not Role.WRITE:
        raise ProblemError(403, "You can view this collection, but not change it.")
    service = service_of(request)
    return SharedAlbums(links=_facts(service, links_of(service.folder, album)))


@router.post("/api/albums/{album}/shared", status_code=201, dependencies=WRITING, tags=["albums"])
def share_album(request: Request, album: AlbumId, wanted: ShareRequest) -> NewSharedAlbum:
    """Make a link that shows the photos of an album, at viewing size, to everyone who has it."""
    service = service_of(request)
    with refusing():
        service.collection.catalogue.read(curation.read_album, album)
        token, link = share(service.folder, album, last_day(wanted.days), user_of(request))
    (shared,) = _facts(service, [link])
    return NewSharedAlbum(**shared.model_dump(), path=SHARED + token)


@router.delete("/api/shared/{id}", dependencies=WRITING, tags=["albums"])
def end_shared_album(
    request: Request, id: Annotated[str, Path(max_length=64, description="As /api/shared lists it.")]
) -> SharedAlbum:
    """End a link: from now on it shows nothing."""
    service = service_of(request)
    with refusing(404):
        (ended,) = _facts(service, [end_link(service.folder, id)])
    return ended


@router.get(f"{SHARED}{{token}}", include_in_schema=False)
def shared_page(request: Request, token: str, page: Annotated[int, Query(ge=1, le=MAX_NUMBER)] = 1) -> Response:
    """Show the photos of the album, a page at a time; without a script."""
    service, name, numbers = _album(request)
    pages = max(1, -(-len(numbers) // PAGE))
    page = min(page, pages)
    first = (page - 1) * PAGE
    titles = _titles(service, numbers[first : first + PAGE])
    language, here = language_of(request), _here(request, token)
    words = translate("Photo {number}", language)
    tiles = []
    for place, number in enumerate(numbers[first : first + PAGE], first + 1):
        title = titles.get(number, "")
        alt = title or words.format(number=place)
        tiles.append(
            f'<li><a href="{here}/{place}"><img src="{here}/{place}/small" alt="{escape(alt)}" loading="lazy">'
            f"</a>{f'<p dir=auto>{escape(title)}</p>' if title else ''}</li>"
        )
    more = [
        f'<a href="{here}?page={other}">{translate(text, language)}</a>'
        for other, text in ((page - 1, said("Earlier photos")), (page + 1, said("More photos")))
        if 1 <= other <= pages
    ]
    return _page(request, "shared", name=escape(name), items="".join(tiles), pages=" ".join(more))


@router.get(f"{SHARED}{{token}}/{{place}}", include_in_schema=False)
def shared_photo_page(request: Request, token: str, place: int) -> Response:
    """Show one photo of the album, with links to those before and after it."""
    service, name, numbers = _album(request)
    number = _number(numbers, place)
    language, here = language_of(request), _here(request, token)
    title = _titles(service, [number]).get(number) or translate("Photo {number}", language).format(number=place)
    turns = [
        f'<a class="button" rel="{rel}" href="{here}/{other}">{translate(text, language)}</a>'
        for other, rel, text in ((place - 1, "prev", "Previous photo"), (place + 1, "next", "Next photo"))
        if 1 <= other <= len(numbers)
    ]
    back = f'<a href="{here}?page={(place - 1) // PAGE + 1}" dir="auto">{escape(name)}</a>'
    # Without a script, the browser's own view of a picture zooms.
    picture = f'<a href="{here}/{place}/large"><img src="{here}/{place}/large" alt="{escape(title)}"></a>'
    where = translate("{place} of {total}", language).format(place=place, total=len(numbers))
    return _page(
        request,
        "shared-photo",
        back=back,
        place=where,
        title=escape(title),
        turns=" ".join(turns),
        picture=picture,
    )


@router.get(f"{SHARED}{{token}}/{{place}}/small", include_in_schema=False)
async def shared_thumbnail(request: Request, place: int) -> Response:
    """Return a thumbnail of a photo of the album."""
    return await thumbnail(request, await run_in_threadpool(_photo, request, place), _TILE)


@router.get(f"{SHARED}{{token}}/{{place}}/large", include_in_schema=False)
async def shared_picture(request: Request, place: int) -> Response:
    """Return a picture of a photo of the album at viewing size, encoded again without any metadata of its file."""
    return await image(request, await run_in_threadpool(_photo, request, place), PREVIEW_SIDE)


def _facts(service: Service, links: Sequence[ShareLink]) -> list[SharedAlbum]:
    names = {one.album: one.name for one in service.collection.catalogue.read(curation.list_albums)}
    return [
        SharedAlbum(
            **{name: value for name, value in asdict(link).items() if name in SharedAlbum.model_fields},
            id=link.id,
            over=link.is_over,
            name=names.get(link.album),
        )
        for link in links
    ]


def _album(request: Request) -> tuple[Service, str, list[int]]:
    """The album of the link that a visitor came by, and its photos, in order; ProblemError if it is no longer there."""
    service, link = service_of(request), request.scope.get(LINK)
    if not isinstance(link, ShareLink) or not link.is_of(service.folder):
        raise ProblemError(404, "This link is no longer valid: ask the person who sent it for a new one.")
    with service.collection.catalogue.reading() as session, refusing(404):
        name = curation.read_album(session, link.album).name
        return service, name, numbers_in_album(session, link.album, hidden=False)


def _photo(request: Request, place: int) -> int:
    return _number(_album(request)[2], place)


def _number(numbers: list[int], place: int) -> int:
    if not 1 <= place <= len(numbers):
        raise ProblemError(404, "There is no such photo in this album.")
    return numbers[place - 1]


def _titles(service: Service, numbers: list[int]) -> dict[int, str]:
    """Titles of photos: visitors see no file names."""
    photos = photos_there(service.collection.catalogue, numbers, service.cache)
    return {one.number: one.title for one in photos if one.title}


def _here(request: Request, token: str) -> str:
    return escape(quote(f"{request.scope.get('root_path', '')}{SHARED}{token}"))


def _page(request: Request, page: str, **parts: str) -> Response:
    """A page for a visitor; `parts` are HTML in the visitor's language."""
    language = language_of(request)
    text = render(page, request.scope.get("root_path", ""), language)
    for part, html in parts.items():
        text = text.replace(f"<!-- {part} -->", html)
    return HTMLResponse(text, headers={**_HEADERS, "Content-Language": language})
