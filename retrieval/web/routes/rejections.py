"""Routes of what was decided about photos: pairs that are no match, and photos that are hidden."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from retrieval.catalogue.curation.hidden import hide, show
from retrieval.catalogue.curation.rejections import reject, rejected_for, take_back
from retrieval.web.access.rights import WRITING
from retrieval.web.curation_models import Done, Hiding, Numbers, Rejection
from retrieval.web.models import MAX_NUMBER, Photo
from retrieval.web.problems import ProblemError
from retrieval.web.service import Service, describe_photos, service_of

router = APIRouter(prefix="/api", tags=["decisions"])


@router.get("/rejections")
def rejections(
    request: Request,
    photo: Annotated[int | None, Query(ge=0, le=MAX_NUMBER, description="Number of the query's photo, or:")] = None,
    upload: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$", description="SHA-256 of its file.")] = None,
) -> list[Photo]:
    """List the photos that somebody called no match of a photo."""
    service = service_of(request)
    if photo is None and upload is None:
        raise ProblemError(422, "Say of which photo: give its number, or the SHA-256 of its file.")
    return _photos(service, rejected_for(service.collection.catalogue, photo, upload))


@router.post("/rejections", dependencies=WRITING)
def call_no_match(request: Request, asked: Rejection) -> Done:
    """Remember that photos are no match of a photo: its answers, and groups, go without them from now on."""
    service = service_of(request)
    new = reject(service.collection.catalogue, asked.query, asked.photos)
    service.wrote()
    return Done(changed=new)


@router.delete("/rejections", dependencies=WRITING)
def take_back_no_match(request: Request, asked: Annotated[Rejection, Query()]) -> Done:
    """Forget that photos are no match of a photo."""
    service = service_of(request)
    take_back(service.collection.catalogue, asked.query, asked.photos)
    service.wrote()
    return Done(changed=asked.photos)


@router.post("/hidden", dependencies=WRITING)
def hide_photos(request: Request, asked: Hiding) -> Done:
    """Hide photos: lists, answers and groups leave them out, unless hidden ones are asked for."""
    service = service_of(request)
    new = hide(service.collection.catalogue, asked.photos, asked.because)
    service.wrote()
    return Done(changed=new)


@router.post("/hidden/show", dependencies=WRITING)
def show_photos(request: Request, asked: Numbers) -> Done:
    """Show photos again that were hidden."""
    service = service_of(request)
    show(service.collection.catalogue, asked.photos)
    service.wrote()
    return Done(changed=asked.photos)


def _photos(service: Service, numbers: list[int]) -> list[Photo]:
    """Photos of some numbers, without those that were removed meanwhile."""
    there = service.collection.catalogue.names_of(numbers)
    try:
        return describe_photos(service, service.collection.catalogue.images([one for one in numbers if one in there]))
    except KeyError:
        raise ProblemError(503, "The collection has just changed: try again.") from None
