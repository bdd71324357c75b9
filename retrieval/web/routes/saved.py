"""Routes of searches that are kept, and of what standing ones have found."""

import contextlib
import hashlib
import io
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from PIL import Image
from starlette.concurrency import run_in_threadpool

from retrieval.catalogue.browsing import rows_there
from retrieval.catalogue.curation import saved
from retrieval.catalogue.curation.rejections import reject, rejected_for
from retrieval.web.access.rights import WRITING
from retrieval.web.curation_models import FoundPhoto, NewSearch, SavedQuery, SavedSearch, SearchChange, Seen
from retrieval.web.models import MAX_NUMBER
from retrieval.web.problems import ProblemError, refusing
from retrieval.web.service import changing, describe_photos, service_of
from retrieval.web.uploads import Uploads, form_of

router = APIRouter(prefix="/api/saved", tags=["saved searches"])

SIDE = 2048
"""Longer side, pixels, of a photo from elsewhere as it is kept: more than is looked at."""

Id = Annotated[int, Path(ge=0, le=MAX_NUMBER, description="Number of the saved search.")]
_FORM = form_of({"request": NewSearch, "photo": {"type": "string", "format": "binary"}}, required=["request"])


@router.get("")
def saved_searches(request: Request) -> list[SavedSearch]:
    """List the searches that are kept, favourites first."""
    return [_describe(one) for one in service_of(request).collection.catalogue.read(saved.saved_searches)]


@router.post("", status_code=201, dependencies=WRITING, openapi_extra=_FORM)
async def save_search(request: Request) -> SavedSearch:
    """Save a search, with the photo from elsewhere that it asks with: a form with its JSON in the field request."""
    service = service_of(request)
    async with service.forms.receive(request) as form:
        if "request" not in form.fields:
            raise ProblemError(422, "The form needs the field request, a JSON object.")
        wanted = NewSearch.model_validate_json(form.fields["request"])
        picture, factor, sha256 = await _picture(request, wanted, form)
    return await run_in_threadpool(_save, request, wanted, picture, factor, sha256)


@router.patch("/{search}", dependencies=WRITING)
def change_search(request: Request, search: Id, asked: SearchChange) -> SavedSearch:
    """Rename a saved search, make it a favourite or a standing one, or have its finds tagged."""
    values = {key: value for key, value in asked.model_dump(exclude_unset=True).items() if value is not None}
    with changing(request, 422) as session:
        saved.change_search(session, search, values)
        return _describe(saved.saved_search(session, search))


@router.delete("/{search}", status_code=204, dependencies=WRITING)
def delete_search(request: Request, search: Id) -> None:
    """Forget a saved search and what it has found."""
    with changing(request) as session:
        saved.delete_search(session, search)


@router.get("/{search}/photo", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}})
def saved_photo(request: Request, search: Id) -> Response:
    """Give the photo from elsewhere that a saved search asks with."""
    photo = service_of(request).collection.catalogue.read(saved.photo_of_search, search)
    if photo is None:
        raise ProblemError(404, "No photo is kept with the saved search {search}.", search=search)
    return Response(photo, media_type="image/jpeg", headers={"Cache-Control": "private, no-cache"})


@router.get("/{search}/finds")
def finds(request: Request, search: Id) -> list[FoundPhoto]:
    """List the photos that a standing search has found, the last first."""
    service = service_of(request)
    with refusing(), service.collection.catalogue.reading() as session:
        saved.saved_search(session, search)
        found = {one.number: one for one in saved.finds_of(session, search)}
        rows = rows_there(session, list(found))
    return [
        FoundPhoto(
            **photo.model_dump(),
            probability=found[photo.number].probability,
            region=[(x, y) for x, y in region] if (region := found[photo.number].region) is not None else None,
            found=found[photo.number].found,
            seen=found[photo.number].seen,
        )
        for photo in describe_photos(service, rows)
    ]


@router.post("/{search}/seen", status_code=204, dependencies=WRITING)
def mark_seen(request: Request, search: Id, asked: Seen) -> None:
    """Write that somebody has looked at what a standing search has found."""
    with changing(request) as session:
        saved.mark_seen(session, search, asked.photos)


async def _picture(request: Request, wanted: NewSearch, form: Uploads) -> tuple[bytes | None, float, str | None]:
    """The photo from elsewhere as it is kept, by how much it is smaller, and the SHA-256 of what was sent."""
    needed = any(one.photo is None for one in wanted.queries)
    if len(form.photos) != needed:
        raise ProblemError(422, "Send the photo that is searched with, if it is from elsewhere, and no other.")
    if not needed:
        return None, 1.0, None
    job = {"path": str(form.photos[0]), "name": form.names[0], "size": SIDE}
    facts, made = await service_of(request).decode(request, "preview", job, upload=True)
    with Image.open(io.BytesIO(made)) as picture:  # our own: only its header is read
        factor = max(picture.size) / max(facts["width"], facts["height"])
    contents = await run_in_threadpool(form.photos[0].read_bytes)
    return made, factor, hashlib.sha256(contents).hexdigest()


def _save(request: Request, wanted: NewSearch, picture: bytes | None, factor: float, sha256: str | None) -> SavedSearch:
    queries = []
    for one in wanted.queries:
        query = one.model_dump(mode="json", exclude_none=True)
        if one.photo is None and one.box is not None:  # pixels of what is kept: the centre of the first is at (0, 0)
            query["box"] = [(value + 0.5) * factor - 0.5 for value in one.box]
        queries.append(query)
    query = {"queries": queries, "options": wanted.options.model_dump(mode="json", exclude_unset=True)}
    with changing(request, 422) as session:
        if picture is not None and sha256 is not None:
            # It is another file, and what was no match of the one sent is none of it.
            rejected = rejected_for(session, None, sha256)
            if rejected:
                reject(session, hashlib.sha256(picture).hexdigest(), rejected)
        search = saved.save_search(
            session,
            wanted.name,
            query,
            picture,
            standing=wanted.standing,
            favourite=wanted.favourite,
            tag=wanted.tag,
        )
        return _describe(saved.saved_search(session, search))


def _describe(one: saved.SavedSearch) -> SavedSearch:
    queries: list[SavedQuery] = []
    with contextlib.suppress(ValueError):  # damaged: without what it asks with
        queries = [SavedQuery.model_validate(query) for query in one.query.get("queries", [])]
    cover = next((query.photo for query in queries if query.photo is not None), None)
    return SavedSearch(
        id=one.id,
        name=one.name,
        queries=queries,
        options=one.query.get("options", {}),
        uploaded=one.has_photo,
        standing=one.standing,
        favourite=one.favourite,
        tag=one.tag,
        created=one.created,
        found=one.found,
        new=one.new,
        cover=cover,
    )
