"""Routes with compact data of all photos, for a wall, a time line and a map of them."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from retrieval.library import browsing
from retrieval.web.models import Cameras, Facets, Filters, Layout, Places, Timeline
from retrieval.web.routes.photos import is_known, keep_for_a_while
from retrieval.web.service import service_of

router = APIRouter(prefix="/api", tags=["photos"])

NOT_CHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "Not changed."}}


class LayoutParameters(Filters):
    """Which photos are laid out, and in which order."""

    order: Literal["name", "newest", "oldest", "added", "album"] = Field(
        "name",
        description="name; newest or oldest, by when they were taken, undated ones last; added, the last added first; "
        "album, as in the album that is asked for.",
    )


@router.get("/layout", response_model=Layout, responses=NOT_CHANGED)
def layout(request: Request, parameters: Annotated[LayoutParameters, Query()]) -> Response:
    """Return the numbers and shapes of all photos that pass the filters."""
    return answer_kept(request, browsing.layout, parameters.wanted(), parameters.order)


@router.get("/timeline", response_model=Timeline, responses=NOT_CHANGED)
def timeline(request: Request, parameters: Annotated[Filters, Query()]) -> Response:
    """Count by month the photos that pass the filters."""
    return answer_kept(request, browsing.timeline, parameters.wanted())


@router.get("/places", response_model=Places, responses=NOT_CHANGED)
def places(request: Request, parameters: Annotated[Filters, Query()]) -> Response:
    """Return where the photos that pass the filters were taken, if known."""
    return answer_kept(request, browsing.places, parameters.wanted())


@router.get("/cameras", response_model=Cameras, responses=NOT_CHANGED)
def cameras(request: Request, limit: Annotated[int, Query(ge=0, le=5000)] = 500) -> Response:
    """List the cameras of the photos, those of the most photos first."""
    return answer_kept(request, browsing.cameras, limit)


class FacetParameters(Filters):
    """Which photos are counted, and how many values are listed of each facet."""

    limit: int = Field(500, ge=0, le=5000)


@router.get("/facets", response_model=Facets, responses=NOT_CHANGED)
def facets(request: Request, parameters: Annotated[FacetParameters, Query()]) -> Response:
    """List values of the photos that pass the filters: of fields, folders, tags, albums, years."""
    return answer_kept(request, browsing.facets, parameters.wanted(), parameters.limit)


def answer_kept(request: Request, make: Callable[..., dict[str, Any]], *wanted: Any) -> Response:
    """Answer from the cache, compressed if the browser takes that, and without content if the browser has it
    already.
    """
    service = service_of(request)
    catalogue = service.collection.catalogue
    answer = service.kept.answer(catalogue.revision(), (make.__name__, *wanted), partial(make, catalogue, *wanted))
    headers = {**keep_for_a_while(answer.tag), "Vary": "Accept-Encoding"}
    if is_known(request, answer.tag):
        return Response(status_code=304, headers=headers)
    if answer.zipped and "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(answer.zipped, media_type="application/json", headers=headers)
    return Response(answer.plain, media_type="application/json", headers=headers)
