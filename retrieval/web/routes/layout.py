"""Routes that say something of all photos at once, shortly: what a wall, a time line and a map of them need."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from retrieval.catalogue.browsing import months_of, positions_of, shapes_of, values_of
from retrieval.catalogue.facets import facets_of
from retrieval.web.models import Cameras, Facets, Filters, Layout, Places, Timeline
from retrieval.web.service import Service, service_of

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
def layout(request: Request, asked: Annotated[LayoutParameters, Query()]) -> Response:
    """Give the numbers and shapes of all photos that pass the filters."""
    service, wanted = service_of(request), asked.wanted()

    def make() -> dict[str, Any]:
        shapes = service.collection.catalogue.read(shapes_of, wanted, asked.order)
        ratios = np.rint(100 * shapes[:, 1] / np.maximum(shapes[:, 2], 1)).astype(np.int64)
        return {"numbers": shapes[:, 0].tolist(), "ratios": ratios.tolist()}

    return _answer(request, service, ("layout", wanted, asked.order), make)


@router.get("/timeline", response_model=Timeline, responses=NOT_CHANGED)
def timeline(request: Request, asked: Annotated[Filters, Query()]) -> Response:
    """Count by month the photos that pass the filters."""
    service, wanted = service_of(request), asked.wanted()

    def make() -> dict[str, Any]:
        counted = dict(service.collection.catalogue.read(months_of, wanted))
        undated = counted.pop("", 0)
        months = [{"month": month, "photos": photos} for month, photos in counted.items()]
        return {"months": months, "undated": undated}

    return _answer(request, service, ("timeline", wanted), make)


@router.get("/places", response_model=Places, responses=NOT_CHANGED)
def places(request: Request, asked: Annotated[Filters, Query()]) -> Response:
    """Give where the photos that pass the filters were taken, as far as they say so."""
    service, wanted = service_of(request), asked.wanted()

    def make() -> dict[str, Any]:
        numbers, at = service.collection.catalogue.read(positions_of, wanted)
        latitudes, longitudes = np.round(at, 5).T.tolist()
        return {"numbers": numbers.tolist(), "latitudes": latitudes, "longitudes": longitudes}

    return _answer(request, service, ("places", wanted), make)


@router.get("/cameras", response_model=Cameras, responses=NOT_CHANGED)
def cameras(request: Request, limit: Annotated[int, Query(ge=0, le=5000)] = 500) -> Response:
    """List the cameras of the photos, those of the most photos first."""
    service = service_of(request)

    def make() -> dict[str, Any]:
        listed = service.collection.catalogue.read(values_of, "camera")[:limit]
        return {"cameras": [{"camera": camera, "photos": photos} for camera, photos in listed]}

    return _answer(request, service, ("cameras", limit), make)


class FacetParameters(Filters):
    """Which photos are counted, and how many values are listed of each facet."""

    limit: int = Field(500, ge=0, le=5000)


@router.get("/facets", response_model=Facets, responses=NOT_CHANGED)
def facets(request: Request, asked: Annotated[FacetParameters, Query()]) -> Response:
    """List what the photos have that pass the filters: values of fields, folders, tags, albums, years."""
    service, wanted = service_of(request), asked.wanted()

    def make() -> dict[str, Any]:
        found = service.collection.catalogue.read(facets_of, wanted, asked.limit)
        return {
            "facets": [
                {"field": name, "values": [{"value": value, "photos": photos} for value, photos in values]}
                for name, values in found.fields.items()
            ],
            "folders": [{"folder": folder, "photos": photos} for folder, photos in found.folders],
            "tags": [{"tag": tag, "photos": photos} for tag, photos in found.tags],
            "albums": [{"album": album, "name": name, "photos": photos} for album, name, photos in found.albums],
            "years": [{"year": year, "photos": photos} for year, photos in found.years],
        }

    return _answer(request, service, ("facets", wanted, asked.limit), make)


def _answer(request: Request, service: Service, asked: Any, make: Callable[[], dict[str, Any]]) -> Response:
    """Answer with what is kept, zipped where the browser takes that, and shortly where it has it already."""
    answer = service.kept.answer(service.collection.catalogue.revision(), asked, make)
    headers = {"ETag": answer.tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    known = request.headers.get("if-none-match", "")
    if answer.tag in [one.strip().removeprefix("W/") for one in known.split(",")]:
        return Response(status_code=304, headers=headers)
    if answer.zipped and "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(answer.zipped, media_type="application/json", headers=headers)
    return Response(answer.plain, media_type="application/json", headers=headers)
