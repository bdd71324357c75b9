"""Route of the objects of a photo that other photos show too, by links."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from retrieval.groups.objects import PhotoObjects
from retrieval.web.models import Number as PhotoNumber
from retrieval.web.routes.photos import Number
from retrieval.web.search_models import Point
from retrieval.web.service import service_of

router = APIRouter(prefix="/api", tags=["photos"])


class ObjectOfPhoto(BaseModel):
    """A part of a photo that others show."""

    region: list[Point] = Field(
        description="Three to eight corners, clockwise, in pixels of the upright original, clipped to the photo."
    )
    photos: list[PhotoNumber] = Field(description="Those that show it, the surest first.")
    inliers: int = Field(description="Matches that agree with the surest of them.")
    share: float = Field(ge=0, le=1, description="Part of the photo that the region covers.")
    whole: bool = Field(description="It is all of the photo, or nearly.")


class ObjectsOfPhoto(BaseModel):
    """The parts of a photo that others show."""

    grouped: bool = Field(description="Whether photos were ever linked: false until `cairn group` has run.")
    objects: list[ObjectOfPhoto] = Field(description="Those that most photos show first; at most eight.")


@router.get("/photos/{number}/objects")
async def photo_objects(request: Request, number: Number) -> ObjectsOfPhoto:
    """Return the parts of a photo that other photos show, by the links of `cairn group`, without a search."""
    service = service_of(request)
    row = await service.row(number)
    state = request.app.state
    if getattr(state, "objects", None) is None:
        state.objects = PhotoObjects(service.collection)
    known: PhotoObjects = state.objects
    objects = await run_in_threadpool(known.of, row)
    return ObjectsOfPhoto(grouped=known.is_grouped, objects=[ObjectOfPhoto(**vars(one)) for one in objects])
