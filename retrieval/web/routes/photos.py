"""Routes of the collection and its photos."""

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from pydantic import AfterValidator, BeforeValidator, Field
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from retrieval.library import browsing
from retrieval.metadata.pages import FILMS, file_of
from retrieval.photos.thumbnails import SIZES, kept_thumbnail
from retrieval.web.access.limits import SEARCHING
from retrieval.web.access.rights import caller_of, role_of, user_of
from retrieval.web.discretion import discreet_facts
from retrieval.web.models import MAX_NUMBER, Filters, Folders, Health, PhotoDetails, PhotoPage, Tag, Tags
from retrieval.web.models import Number as ListedNumber
from retrieval.web.pool.workers import Answer
from retrieval.web.problems import ProblemError
from retrieval.web.reasons import say_reasons
from retrieval.web.rendering import SHELF, language_of
from retrieval.web.service import MOST_TAGS, describe_photo, describe_photos, service_of
from retrieval.web.taking.exports import open_film, refuse_originals
from retrieval.web.uploads import form_of

router = APIRouter(prefix="/api", tags=["photos"])

PREVIEW_SIDE = 1600  # pixels
LARGEST_PICTURE = 4096  # pixels


def _thumbnail_size(size: int) -> int:
    if size not in SIZES:
        raise ValueError(f"a thumbnail is {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]} pixels")
    return size


def _known_number(text: Any) -> Any:
    """Refuse what is no number of a photo as a photo that does not exist, as the standard of the Image API has it."""
    if not re.fullmatch(r"[0-9]{1,18}", str(text), re.ASCII):
        raise ProblemError(404, "There is no photo {number} in this collection.", number=str(text)[:30])
    return text


Number = Annotated[int, InPath(ge=0, le=MAX_NUMBER, description="Number of the photo."), BeforeValidator(_known_number)]
ThumbnailSize = Annotated[int, Query(json_schema_extra={"enum": list(SIZES)}), AfterValidator(_thumbnail_size)]
JPEG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}}, 304: {"description": "Not changed."}}


@router.get("/health")
def health(request: Request) -> Health:
    """Tell that the server is alive."""
    service = service_of(request)
    images = service.count()
    return Health(
        status="ok",
        collection=service.name,
        images=images,
        originals=service.options.exports.files,
        folders=bool(service.options.roots),
        ready=service.searching.is_open,
        shelf=request.scope.get(SHELF),
        role=role_of(request),
        user=user_of(request),
        session=caller_of(request.scope).signed_in,
        server=service.options.server,
    )


@router.get("/collection")
async def collection(request: Request) -> dict[str, Any]:
    """Report on the collection as `cairn info --json` does, without the paths of photos that failed."""
    service = service_of(request)
    facts, _ = await service.search(request, "collection", {})
    folders = await run_in_threadpool(service.indexed_folders) if facts["failed"] else []
    facts = discreet_facts(facts, folders)
    return {**facts, "failed": say_reasons(facts["failed"], language_of(request))}


class PageParameters(Filters):
    """Which photos are listed."""

    offset: int = Field(0, ge=0, le=MAX_NUMBER)
    limit: int = Field(60, ge=0, le=500)
    numbers: list[ListedNumber] = Field(
        [], max_length=500, description="Only these photos, in this order; missing ones are left out."
    )


@router.get("/photos")
def photos(request: Request, parameters: Annotated[PageParameters, Query()]) -> PhotoPage:
    """List photos by name, a page at a time, or by their numbers."""
    service = service_of(request)
    if parameters.numbers:
        rows = browsing.some_photos(service.collection.catalogue, parameters.numbers)
        service.recent.remember(rows)
        return PhotoPage(total=len(rows), offset=0, photos=describe_photos(service, rows))
    total, rows = service.collection.catalogue.page(parameters.offset, parameters.limit, wanted=parameters.wanted())
    service.recent.remember(rows)
    return PhotoPage(total=total, offset=parameters.offset, photos=describe_photos(service, rows))


@router.get("/folders")
def folders(request: Request) -> Folders:
    """List the folders of the photos' names."""
    return Folders.model_validate(browsing.folders(service_of(request).collection.catalogue))


@router.get("/tags")
def tags(request: Request, limit: Annotated[int, Query(ge=0, le=MOST_TAGS)] = 500) -> Tags:
    """List the tags of the photos, those of the most photos first."""
    listed = service_of(request).tags()[:limit]
    return Tags(tags=[Tag(tag=tag, photos=photos) for tag, photos in listed])


@router.get("/photos/{number}")
async def photo(request: Request, number: Number) -> PhotoDetails:
    """Return one photo with its metadata."""
    service = service_of(request)
    return await run_in_threadpool(describe_photo, service, await service.row(number))


@router.get("/photos/{number}/thumbnail", responses=JPEG, response_class=Response)
async def thumbnail(request: Request, number: Number, size: ThumbnailSize = 256) -> Response:
    """Return a thumbnail of a photo."""
    service = service_of(request)
    # A photo that was just listed is served here: a small file is read in less time than a thread takes to start.
    row = service.recent.recall(number)
    if row is None:
        row = await service.row(number)
    return await answer_thumbnail(request, service.decode, row, size, service.cache)


@router.get("/photos/{number}/image", responses=JPEG, response_class=Response)
async def image(
    request: Request, number: Number, size: Annotated[int, Query(ge=16, le=LARGEST_PICTURE)] = 1600
) -> Response:
    """Return an upright picture of a photo."""
    service = service_of(request)
    row = await service.row(number)
    tag = f'"{row.sha256}-image-{size}"'
    if is_known(request, tag):
        return Response(status_code=304, headers=keep_for_a_while(tag))
    wanted = {"path": row.path, "name": row.name, "sha256": row.sha256, "size": size}
    _, picture = await service.decode(request, "image", wanted)
    return Response(picture, media_type="image/jpeg", headers=keep_for_a_while(tag))


@router.get(
    "/photos/{number}/film",
    response_class=Response,
    responses={200: {"content": {kind: {} for kind in FILMS.values()}}, 206: {"description": "The part asked for."}},
)
async def film(request: Request, number: Number) -> FileResponse:
    """Return the film that a photo is a frame of, or the part in the header Range."""
    service = service_of(request)
    refuse_originals(service.options.exports)
    row = await service.row(number)
    file = await run_in_threadpool(open_film, row)
    # By its handle: what lies at the path may change meanwhile.
    return FileResponse(
        f"/dev/fd/{file.fileno()}",
        media_type=FILMS[file_of(row.path).suffix.lower()],
        headers={"Cache-Control": "private, no-cache"},
        stat_result=os.fstat(file.fileno()),
        background=BackgroundTask(file.close),
    )


_FORM = form_of({"photo": {"type": "string", "format": "binary"}}, required=["photo"])


@router.post(
    "/preview", dependencies=SEARCHING, responses={200: JPEG[200]}, response_class=Response, openapi_extra=_FORM
)
async def preview(request: Request) -> Response:
    """Return an upload as an upright picture, whatever its format, or say why it cannot be used."""
    service = service_of(request)
    async with service.forms.receive(request) as form:
        if len(form.photos) != 1:
            raise ProblemError(400, "Send one photo, as the field photo of the form.")
        wanted = {"path": str(form.photos[0]), "name": form.names[0], "size": PREVIEW_SIDE}
        facts, picture = await service.decode(request, "preview", wanted, upload=True)
    headers = {"X-Photo-Width": str(facts["width"]), "X-Photo-Height": str(facts["height"])}
    return Response(picture, media_type="image/jpeg", headers=headers | {"Cache-Control": "no-store"})


async def answer_thumbnail(
    request: Request, decode: Callable[..., Awaitable[Answer]], photo: Any, size: int, cache: Path
) -> Response:
    """Answer with a thumbnail of a photo (a `PhotoRow` or `CoverPhoto`), if the browser does not have it already."""
    tag = f'"{photo.sha256}-{size}"'
    if photo.sha256 and is_known(request, tag):
        return Response(status_code=304, headers=keep_for_a_while(tag))
    picture = await run_in_threadpool(kept_thumbnail, photo.sha256, size, cache)
    if picture is None:
        known = photo.sha256 or ""  # of no file: unknown photos are not shown
        wanted = {"path": photo.path, "name": photo.name, "sha256": known, "size": size, "cache": str(cache)}
        _, picture = await decode(request, "thumbnail", wanted)
    return Response(picture, media_type="image/jpeg", headers=keep_for_a_while(tag))


def is_known(request: Request, tag: str) -> bool:
    """Whether the browser has that answer already."""
    known = request.headers.get("if-none-match", "")
    return tag in [one.strip().removeprefix("W/") for one in known.split(",")]


def keep_for_a_while(tag: str) -> dict[str, str]:
    """Headers of a picture that a browser may cache but must revalidate each time."""
    # Revalidated each time: another collection may be served at the same address later.
    return {"ETag": tag, "Cache-Control": "private, no-cache"}
