"""Routes of decisions about photos: pairs that do not match, and hidden photos."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from retrieval.catalogue.curation.hidden import hide, show
from retrieval.catalogue.curation.rejections import reject, rejected_for, take_back
from retrieval.web.access.rights import WRITING
from retrieval.web.curation_models import Done, Hiding, Numbers, Rejection
from retrieval.web.models import MAX_NUMBER, Photo
from retrieval.web.problems import ProblemError
from retrieval.web.service import changing, describe_those_there, service_of

router = APIRouter(prefix="/api", tags=["decisions"])


@router.get("/rejections")
async def rejections(
    request: Request,
    photo: Annotated[int | None, Query(ge=0, le=MAX_NUMBER, description="Number of the query's photo, or:")] = None,
    upload: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$", description="SHA-256 of its file.")] = None,
) -> list[Photo]:
    """List the photos that were rejected as matches of a photo."""
    service = service_of(request)
    if photo is None and upload is None:
        raise ProblemError(422, "Say for which photo: give its number, or the SHA-256 of its file.")
    if photo is not None:
        await service.row(photo)
    numbers = await run_in_threadpool(service.collection.catalogue.read, rejected_for, photo, upload)
    return await run_in_threadpool(describe_those_there, service, numbers)


@router.post("/rejections", dependencies=WRITING)
def call_no_match(request: Request, wanted: Rejection) -> Done:
    """Reject photos as matches of a photo: its results, and groups, leave them out from now on."""
    with changing(request) as session:
        return Done(changed=reject(session, wanted.query, wanted.photos))


@router.delete("/rejections", dependencies=WRITING)
def take_back_no_match(request: Request, wanted: Annotated[Rejection, Query()]) -> Done:
    """Undo the rejection of photos as matches of a photo."""
    with changing(request) as session:
        take_back(session, wanted.query, wanted.photos)
    return Done(changed=wanted.photos)


@router.post("/hidden", dependencies=WRITING)
def hide_photos(request: Request, wanted: Hiding) -> Done:
    """Hide photos: lists, results and groups leave them out unless hidden photos are requested."""
    with changing(request) as session:
        return Done(changed=hide(session, wanted.photos, wanted.because))


@router.post("/hidden/show", dependencies=WRITING)
def show_photos(request: Request, wanted: Numbers) -> Done:
    """Show hidden photos again."""
    with changing(request) as session:
        show(session, wanted.photos)
    return Done(changed=wanted.photos)
