"""Routes of photos as manifests of the IIIF Presentation API 3.0, which the Content Search API 2.0 finds words in."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from index.messages import said
from retrieval.curation import albums as curation
from retrieval.groups.groups import NotGrouped, read_groups
from retrieval.library.browsing import numbers_of, photo_of_content
from retrieval.library.filters import Filter
from retrieval.library.photos import Photo, photos_there
from retrieval.library.tei import matches_text
from retrieval.metadata.columns import CANVAS
from retrieval.metadata.text import LONGEST_KEY, LONGEST_VALUE
from retrieval.search.probability import LIKELY
from retrieval.web.access.limits import SEARCHING
from retrieval.web.access.viewers import access_service
from retrieval.web.languages import spoken
from retrieval.web.models import MAX_NUMBER, Filters
from retrieval.web.models import Number as ListedNumber
from retrieval.web.presentation import MOST, Presentation, Resource, plain
from retrieval.web.problems import ProblemError
from retrieval.web.routes.exports import TEI, TEI_TYPE, attached
from retrieval.web.routes.groups import group_of
from retrieval.web.routes.iiif import linked_data, served_sizes
from retrieval.web.routes.layout import LayoutParameters
from retrieval.web.routes.photos import Number
from retrieval.web.routes.search import SearchParameters, search, search_with_photos
from retrieval.web.service import service_of

router = APIRouter(prefix="/api/iiif", tags=["photos"])
pages = APIRouter(include_in_schema=False)

_OBJECT = {"schema": {"type": "object"}}
_JSON: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": _OBJECT, "application/ld+json": _OBJECT}}
}
_MOST_WORDS = 1000  # photos in an answer of the Content Search API
MOST_PAIRS = 100
"""Pairs of photos that are compared for one answer."""

IDENTIFIERS = (CANVAS, "Identifier")
"""Columns that may hold a source's identifier of a photo."""

Own = Annotated[
    bool, Query(description="Name the canvases of this server, also where a photo came by IIIF from another.")
]
Start = Annotated[int, Query(ge=0, le=MAX_NUMBER, description="Pairs that are left out before the first.")]
GroupNumber = Annotated[int, Path(ge=1, le=MAX_NUMBER)]


@router.get("/collection.json", responses=_JSON, response_class=Response)
def iiif_collection(request: Request) -> Response:
    """List all photos, the albums and the groups as manifests: a Collection of the IIIF Presentation API 3.0."""
    service, presented = service_of(request), _presentation(request)
    listed: list[tuple[str, Resource, int | None]] = [("/api/iiif/manifest.json", spoken(said("All photos")), None)]
    for album in service.collection.catalogue.read(curation.list_albums):
        address = f"/api/iiif/manifest.json?album={album.album}&order=album"
        listed.append((address, plain(album.name), album.cover))
    with contextlib.suppress(NotGrouped):
        for group in read_groups(service.collection).groups[:MOST]:
            address = f"/api/iiif/groups/{group.number}/manifest.json"
            listed.append((address, _group_label(group.number), group.photos[0]))
    return linked_data(request, presented.collection(_here(request), plain(service.name), listed))


@router.get("/manifest.json", responses=_JSON, response_class=Response)
def iiif_manifest(request: Request, parameters: Annotated[LayoutParameters, Query()]) -> Response:
    """Return photos that pass the filters, such as those of an album, as a Manifest of the Presentation API 3.0."""
    service = service_of(request)
    numbers = numbers_of(service.collection.catalogue, parameters.wanted(), parameters.order)
    label = service.name
    if parameters.album is not None:
        label = service.collection.catalogue.read(curation.read_album, parameters.album).name
    manifest = _manifest(request, plain(label), numbers)
    query = f"?{request.url.query}" if request.url.query else ""
    return linked_data(request, _presentation(request).searched(manifest, f"{_root(request)}/api/iiif/words{query}"))


@router.get("/words", responses=_JSON, response_class=Response)
def iiif_words(
    request: Request,
    parameters: Annotated[Filters, Query()],
    q: Annotated[str, Query(max_length=1000, description="Words, or beginnings of words.")] = "",
) -> Response:
    """Find words in titles, captions, tags and other metadata of photos: IIIF Content Search API 2.0."""
    service = service_of(request)
    wanted = replace(parameters.wanted(), words=q)
    numbers = numbers_of(service.collection.catalogue, wanted, "name") if q.strip() else []
    photos = photos_there(service.collection.catalogue, numbers[:_MOST_WORDS], service.cache)
    return linked_data(request, _presentation(request).words(_here(request), photos))


@router.get("/groups/{group}/manifest.json", responses=_JSON, response_class=Response)
def iiif_group(request: Request, group: GroupNumber) -> Response:
    """Return the photos of a group as a Manifest of the Presentation API 3.0."""
    photos = group_of(service_of(request), group).photos
    address = f"{_root(request)}/api/iiif/groups/{group}/annotations.json"
    notes = {number: {"id": f"{address}?photo={number}&own=true", "type": "AnnotationPage"} for number in photos}
    return linked_data(request, _manifest(request, _group_label(group), photos, notes))


@router.get("/groups/{group}/annotations.json", dependencies=SEARCHING, responses=_JSON, response_class=Response)
async def iiif_group_annotations(
    request: Request,
    group: GroupNumber,
    photo: Annotated[ListedNumber | None, Query(description="Only matches whose target is this photo.")] = None,
    own: Own = False,
    start: Start = 0,
) -> Response:
    """Return the matches within a group as W3C Web Annotations: 100 pairs, and the address of the next ones."""
    page = await _group_page(request, {"group": group, "photo": photo, "own": own, "start": start})
    return _annotations(request, page, own)


@router.get("/groups/{group}/annotations.xml", dependencies=SEARCHING, responses=TEI, response_class=Response)
async def iiif_group_tei(request: Request, group: GroupNumber, own: Own = False, start: Start = 0) -> Response:
    """Return the matches within a group as TEI: 100 pairs, and the address of the next ones in a Link header."""
    page = await _group_page(request, {"group": group, "photo": None, "own": own, "start": start})
    answer = attached(matches_text(page, f"Group {group}").encode(), TEI_TYPE, "matches.xml")
    if "next" in page:
        answer.headers["Link"] = f'<{page["next"]}>; rel="next"'
    return answer


@router.get("/search/manifest.json", dependencies=SEARCHING, responses=_JSON, response_class=Response)
async def iiif_search(request: Request, parameters: Annotated[SearchParameters, Query()]) -> Response:
    """Return the results of a search as a Manifest of the Presentation API 3.0; the parts that match are
    annotations.
    """
    answer = await search(request, parameters)
    results = [one for one in answer["results"] if one["found"] or one["probability"] >= LIKELY]
    presented, notes = _presentation(request), {}
    for one in results:
        if one["region"]:
            x, y = zip(*one["region"], strict=True)
            box = (min(x) + 0.5, min(y) + 0.5, max(x) + 0.5, max(y) + 0.5)
            notes[one["number"]] = presented.marked(one["number"], box, f"{one['probability']:.1%}")
    name = answer["query"] if isinstance(answer["query"], str) else ", ".join(answer["query"])
    label = spoken(said("Photos that show the same as {name}"), name=name)
    numbers = [one["number"] for one in results]
    return linked_data(request, await run_in_threadpool(_manifest, request, label, numbers, notes))


@router.get("/search/annotations.json", dependencies=SEARCHING, responses=_JSON, response_class=Response)
async def iiif_search_annotations(
    request: Request, parameters: Annotated[SearchParameters, Query()], own: Own = False
) -> Response:
    """Return the results of a search as W3C Web Annotations, as `cairn query --annotations` writes them."""
    page = await search_with_photos(request, parameters, "found", {"own": own, "root": _root(request)})
    return _annotations(request, page, own)


@router.get("/search/annotations.xml", dependencies=SEARCHING, responses=TEI, response_class=Response)
async def iiif_search_tei(
    request: Request, parameters: Annotated[SearchParameters, Query()], own: Own = False
) -> Response:
    """Return the results of a search as TEI: zones, and links between them."""
    page = await search_with_photos(request, parameters, "found", {"own": own, "root": _root(request)})
    return attached(matches_text(page).encode(), TEI_TYPE, "matches.xml")


@router.get("/{number}/manifest.json", responses=_JSON, response_class=Response)
async def iiif_photo_manifest(request: Request, number: Number) -> Response:
    """Return a photo as a Manifest of the Presentation API 3.0."""
    row = await service_of(request).row(number)
    return linked_data(request, await run_in_threadpool(_manifest, request, plain(row.name or ""), [number]))


@pages.get("/photo/source")
def photo_of_source(
    request: Request,
    id: Annotated[str, Query(min_length=1, max_length=LONGEST_VALUE, description="As the source calls the photo.")],
    column: Annotated[str, Query(max_length=LONGEST_KEY, description="Column that holds the identifier.")] = "",
) -> RedirectResponse:
    """Redirect to the photo with this identifier of its source, or to a list if there are several."""
    catalogue = service_of(request).collection.catalogue
    for key in [column] if column else IDENTIFIERS:
        total, rows = catalogue.page(0, 1, wanted=Filter(where=((key, id),)))
        if total:
            target = f"photo?number={rows[0].number}" if total == 1 else f"?{urlencode({'where': f'{key}={id}'})}"
            return RedirectResponse(f"{_root(request)}/{target}", 303)
    raise ProblemError(404, "No photo of this collection has this identifier.")


@pages.get("/photo/{content}")
def content_page(request: Request, content: str) -> RedirectResponse:
    """Redirect to a photo by the beginning of its SHA-256: an address that stays valid as long as the file does not
    change.
    """
    is_hash = re.fullmatch("[0-9a-f]{12,64}", content)
    row = photo_of_content(service_of(request).collection.catalogue, content) if is_hash else None
    if row is None:
        raise ProblemError(404, "No photo of this collection has this content.")
    return RedirectResponse(f"{_root(request)}/photo?number={row.number}", 303)


def _annotations(request: Request, page: Resource, own: bool) -> Response:
    here = _here(request)
    return linked_data(request, _presentation(request).matches(page, here) if own else {**page, "id": here})


async def _group_page(request: Request, wanted: dict[str, Any]) -> Resource:
    """Annotations of some pairs of a group, with the address of the next ones."""
    page, _ = await service_of(request).search(request, "group", {**wanted, "root": _root(request), "most": MOST_PAIRS})
    following = page.pop("next")
    more = {} if following is None else {"next": str(request.url.include_query_params(start=following))}
    return {**page, **more}


def _manifest(
    request: Request,
    label: Resource,
    numbers: Sequence[int],
    notes: Mapping[int, Resource] = MappingProxyType({}),
) -> Resource:
    if len(numbers) > MOST:
        raise ProblemError(
            413,
            "A manifest has {most} photos at most, and these are {count}: ask for fewer.",
            most=MOST,
            count=len(numbers),
        )
    service = service_of(request)
    photos = photos_there(service.collection.catalogue, numbers, service.cache)
    if len(photos) == 1 and photos[0].title and len(numbers) == 1:
        label = plain(photos[0].title)
    return _presentation(request).manifest(_here(request), label, photos, notes)


def _presentation(request: Request) -> Presentation:
    service = service_of(request)

    def size_of(photo: Photo) -> tuple[int, int]:
        return served_sizes(service, photo.width, photo.height)[1][0]

    return Presentation(_root(request), size_of, access_service(request))


def _root(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _here(request: Request) -> str:
    return str(request.url)


def _group_label(number: int) -> Resource:
    return spoken(said("Group {number}"), number=number)
