"""Routes of saved searches and their results."""

import contextlib
import hashlib
import io
from collections.abc import Iterable, Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from PIL import Image
from starlette.concurrency import run_in_threadpool

from index.attributes import some_of
from retrieval.catalogue.curation import saved
from retrieval.library.motifs import occurrence_rows, occurrences_of, table_text
from retrieval.library.standing import SENT_SIDE, SentPhoto, keep_search
from retrieval.library.tei import occurrences_tei
from retrieval.web.access.limits import SEARCHING
from retrieval.web.access.rights import WRITING
from retrieval.web.curation_models import (
    Categorised,
    FoundPhoto,
    NewSearch,
    SavedQuery,
    SavedSearch,
    SearchChange,
    Seen,
)
from retrieval.web.models import MAX_NUMBER
from retrieval.web.problems import ProblemError
from retrieval.web.routes.exports import TEI, TEI_TYPE, attached
from retrieval.web.routes.groups import no_formula
from retrieval.web.service import changing, describe_those_there, service_of
from retrieval.web.uploads import Uploads, form_of

router = APIRouter(prefix="/api/saved", tags=["saved searches"])

Id = Annotated[int, Path(ge=0, le=MAX_NUMBER, description="Number of the saved search.")]
Category = Annotated[str | None, Query(description="Those of a category alone; empty: those that have none.")]
_FORM = form_of({"request": NewSearch, "photo": {"type": "string", "format": "binary"}}, required=["request"])


@router.get("")
def saved_searches(request: Request) -> list[SavedSearch]:
    """List the saved searches, favourites first."""
    return [_describe(one) for one in service_of(request).collection.catalogue.read(saved.saved_searches)]


@router.post("", status_code=201, dependencies=WRITING, openapi_extra=_FORM)
async def save_search(request: Request) -> SavedSearch:
    """Save a search, with a query photo that is not in the collection: a form with its JSON in the field request."""
    service = service_of(request)
    async with service.forms.receive(request) as form:
        wanted = form.request(NewSearch)
        sent = await _sent(request, wanted, form)
    return await run_in_threadpool(_save, request, wanted, sent)


@router.patch("/{search}", dependencies=WRITING)
def change_search(request: Request, search: Id, wanted: SearchChange) -> SavedSearch:
    """Rename a saved search, make it a favourite or a standing one, or have its finds tagged."""
    values = {key: value for key, value in wanted.model_dump(exclude_unset=True).items() if value is not None}
    with changing(request, 422) as session:
        saved.change_search(session, search, values)
        return _describe(saved.saved_search(session, search))


@router.delete("/{search}", status_code=204, dependencies=WRITING)
def delete_search(request: Request, search: Id) -> None:
    """Delete a saved search and its results."""
    with changing(request) as session:
        saved.delete_search(session, search)


@router.get("/{search}/photo", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}})
def saved_photo(request: Request, search: Id) -> Response:
    """Return the query photo of a saved search that is not in the collection."""
    photo = service_of(request).collection.catalogue.read(saved.photo_of_search, search)
    if photo is None:
        raise ProblemError(404, "No photo is stored with the saved search {search}.", search=search)
    return Response(photo, media_type="image/jpeg", headers={"Cache-Control": "private, no-cache"})


@router.post("/{search}/ask", dependencies=[*WRITING, *SEARCHING])
async def ask_search(request: Request, search: Id) -> SavedSearch:
    """Run a saved search on all photos, and store its results, including likely ones: 1,000 at most."""
    await run_in_threadpool(service_of(request).collection.catalogue.read, saved.saved_search, search)
    answer, _ = await service_of(request).search(request, "saved", {"search": search})
    return await run_in_threadpool(_keep, request, search, [saved.Find(**one) for one in answer["finds"]])


def _keep(request: Request, search: int, finds: list[saved.Find]) -> SavedSearch:
    with changing(request) as session:
        saved.keep_finds(session, search, finds, None)
        return _describe(saved.saved_search(session, search))


@router.get("/{search}/finds")
def finds(request: Request, search: Id) -> list[FoundPhoto]:
    """List the results of a saved search by date of the books, with their categories."""
    service = service_of(request)
    with service.collection.catalogue.reading() as session:
        stored = saved.saved_search(session, search)
        finds_by_number = {one.number: one for one in saved.finds_of(session, search)}
    listed = {one.number: one for one in occurrences_of(service.collection, stored)}
    return [
        FoundPhoto(
            **photo.model_dump(),
            **some_of(one, "probability", "region", "category", "book", "place"),
            page_label=one.page,
            found=finds_by_number[photo.number].found,
            seen=finds_by_number[photo.number].seen,
        )
        for photo in describe_those_there(service, list(listed))
        if (one := listed[photo.number]).number in finds_by_number
    ]


@router.get("/{search}/finds.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def finds_file(request: Request, search: Id, category: Category = None) -> Response:
    """Return the results of a saved search as a table (CSV)."""
    collection = service_of(request).collection
    stored = collection.catalogue.read(saved.saved_search, search)
    return table_file(occurrence_rows(occurrences_of(collection, stored, category)), "occurrences.csv")


@router.get("/{search}/finds.xml", response_class=Response, responses=TEI)
def finds_tei(request: Request, search: Id, category: Category = None) -> Response:
    """Return the results of a saved search as TEI: a zone for each region, and books and pages that point to them."""
    collection = service_of(request).collection
    stored = collection.catalogue.read(saved.saved_search, search)
    text = occurrences_tei(collection, stored, category)
    return attached(text.encode(), TEI_TYPE, "occurrences.xml")


@router.patch("/{search}/finds", status_code=204, dependencies=WRITING)
def categorise(request: Request, search: Id, wanted: Categorised) -> None:
    """Put results of a saved search into a category; photos that it has not found are added."""
    with changing(request) as session:
        saved.categorise(session, search, wanted.photos, wanted.category)


@router.post("/{search}/seen", status_code=204, dependencies=WRITING)
def mark_seen(request: Request, search: Id, wanted: Seen) -> None:
    """Mark results of a standing search as seen."""
    with changing(request) as session:
        saved.mark_seen(session, search, wanted.photos)


def table_file(rows: Iterable[Sequence[str]], name: str) -> Response:
    """Return a table as a download (CSV), with no cell that a spreadsheet takes for a formula."""
    return attached(table_text(map(no_formula, row) for row in rows).encode(), "text/csv; charset=utf-8", name)


async def _sent(request: Request, wanted: NewSearch, form: Uploads) -> SentPhoto | None:
    """The query photo that is not in the collection, if the search has one."""
    needed = any(one.photo is None for one in wanted.queries)
    if len(form.photos) != needed:
        raise ProblemError(422, "Send only the photo that is searched with, and only if it is not in the collection.")
    if not needed:
        return None
    job = {"path": str(form.photos[0]), "name": form.names[0], "size": SENT_SIDE}
    facts, made = await service_of(request).decode(request, "preview", job, upload=True)
    with Image.open(io.BytesIO(made)) as picture:  # our own: only its header is read
        factor = max(picture.size) / max(facts["width"], facts["height"])
    contents = await run_in_threadpool(form.photos[0].read_bytes)
    return SentPhoto(hashlib.sha256(contents).hexdigest(), made, factor)


def _save(request: Request, wanted: NewSearch, sent: SentPhoto | None) -> SavedSearch:
    with changing(request, 422) as session:
        search = keep_search(
            session,
            wanted.name,
            [one.model_dump(mode="json", exclude_none=True) for one in wanted.queries],
            wanted.options.model_dump(mode="json", exclude_unset=True),
            sent,
            standing=wanted.standing,
            favourite=wanted.favourite,
            tag=wanted.tag,
        )
        return _describe(saved.saved_search(session, search))


def _describe(one: saved.StoredSearch) -> SavedSearch:
    queries: list[SavedQuery] = []
    with contextlib.suppress(ValueError):  # damaged: without what it asks with
        queries = [SavedQuery.model_validate(query) for query in one.query.get("queries", [])]
    cover = next((query.photo for query in queries if query.photo is not None), None)
    return SavedSearch(
        queries=queries,
        options=one.query.get("options", {}),
        uploaded=one.has_photo,
        cover=cover,
        **some_of(one, "id", "name", "standing", "favourite", "tag", "created", "found", "new"),
    )
