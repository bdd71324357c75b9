"""Routes of search and of matches."""

from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from index.text import csv_text
from retrieval.web.access.limits import SEARCHING
from retrieval.web.access.rights import WRITING
from retrieval.web.models import Filters, Number
from retrieval.web.pool.workers import Answer
from retrieval.web.problems import ProblemError
from retrieval.web.reasons import say_reasons
from retrieval.web.rendering import language_of
from retrieval.web.routes.exports import attached
from retrieval.web.routes.saved import table_file
from retrieval.web.search_models import (
    ClockDecided,
    HowToExplain,
    HowToSearch,
    ImpressionsAnswer,
    LikeAnswer,
    MatchAnswer,
    MatchRequest,
    PrintClockAnswer,
    QueryPhoto,
    SearchAnswer,
    SearchRequest,
    TextAlone,
)
from retrieval.web.service import changing, describe_photos, describe_those_there, service_of
from retrieval.web.uploads import Uploads, form_of

router = APIRouter(prefix="/api", tags=["search"])

QueryText = Annotated[
    str,
    Query(
        pattern=r"^[0-9]{1,19}(:[-+0-9.eE,]{1,200})?$", description="NUMBER or NUMBER:x0,y0,x1,y1, a box in a photo."
    ),
]
Format = Annotated[Literal["json", "csv", "jpg"], Query(description="csv and jpg are files to keep.")]
_CLOCK_SECONDS = 300.0  # seconds that 24 impressions may take
_TABLE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {}}}}
_FILES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {}, "image/jpeg": {}}}}
COLUMNS = (
    *("query_x", "query_y", "photo_x", "photo_y"),
    *("query_a", "query_b", "query_c", "photo_a", "photo_b", "photo_c"),
)


class SearchParameters(HowToSearch):
    """A search for photos of the collection, as query parameters."""

    q: list[QueryText]

    def request(self) -> SearchRequest:
        """As the body of a request has it."""
        return SearchRequest(queries=_parse(self.q), **self.model_dump(exclude={"q"}))


class SearchAndTextParameters(SearchParameters):
    """The same, and whether text is looked for."""

    text: TextAlone = False


class LikeParameters(Filters):
    """What photos are to look like, and which of them may be found."""

    like: str = Field(min_length=1, max_length=1000, description="Words such as: a red door in snow.")
    top: int = Field(20, ge=1, le=1000, description="Number of photos, at most.")


class MatchParameters(HowToExplain):
    """A request about a match of two photos of the collection, as query parameters."""

    q: QueryText
    photo: Number

    def request(self) -> MatchRequest:
        """As the body of a request has it."""
        return MatchRequest(queries=_parse([self.q]), **self.model_dump(exclude={"q"}))


def _form(model: type[SearchRequest] | type[MatchRequest]) -> dict[str, Any]:
    """Describe a request form with uploads."""
    photos = {"type": "array", "items": {"type": "string", "format": "binary"}}
    return form_of({"request": model, "photos": photos}, required=["request"])


@router.get("/search", response_model=SearchAnswer, dependencies=SEARCHING, response_model_exclude_unset=True)
async def search(request: Request, parameters: Annotated[SearchAndTextParameters, Query()]) -> Any:
    """Search with photos of the collection, or boxes in them."""
    return await _search(request, parameters.request(), None)


@router.post(
    "/search",
    response_model=SearchAnswer,
    dependencies=SEARCHING,
    openapi_extra=_form(SearchRequest),
    response_model_exclude_unset=True,
)
async def search_uploads(request: Request) -> Any:
    """Search with uploaded photos, photos of the collection, and boxes in them."""
    service = service_of(request)
    async with service.forms.receive(request) as form:
        return await _search(request, form.request(SearchRequest), form)


@router.get("/like", response_model=LikeAnswer, dependencies=SEARCHING)
async def like(request: Request, parameters: Annotated[LikeParameters, Query()]) -> dict[str, Any]:
    """Find photos that look like what words say, in a collection whose global descriptors describe words, too."""
    service = service_of(request)
    answer, _ = await service.search(request, "like", parameters.model_dump(mode="json"))
    likeness = dict(answer["found"])
    photos = await run_in_threadpool(describe_those_there, service, list(likeness))
    found = [{**one.model_dump(), "likeness": round(likeness[one.number], 4)} for one in photos]
    return {"like": parameters.like, "photos": found}


@router.get("/match", dependencies=SEARCHING, response_model=MatchAnswer, responses=_FILES)
async def match(request: Request, parameters: Annotated[MatchParameters, Query()], format: Format = "json") -> Any:
    """Explain why a photo of the collection, or a box in one, matches another."""
    return await _match(request, parameters.request(), None, format)


@router.get("/impressions", dependencies=SEARCHING, response_model=ImpressionsAnswer)
async def impressions(request: Request, parameters: Annotated[MatchParameters, Query()]) -> Any:
    """Align and compare impressions of a block or plate: a photo, or a box in one, and another photo."""
    answer, _ = await _have_done(request, "impressions", {"expand": "none", **_job(parameters.request(), None)})
    return answer


@router.get("/impressions/clock", dependencies=SEARCHING, response_model=PrintClockAnswer, responses=_TABLE)
async def print_clock(
    request: Request,
    q: Annotated[QueryText, Query(description="The reference: NUMBER or NUMBER:x0,y0,x1,y1, a box in a photo.")],
    photo: Annotated[list[Number], Query(max_length=100, description="Impressions of one block or plate.")],
    decisions: Annotated[
        str | None,
        Query(max_length=20_000, description="JSON of `ClockDecided`; if left out, the stored decisions."),
    ] = None,
    format: Annotated[Literal["json", "csv"], Query(description="csv is a file to keep.")] = "json",
) -> Any:
    """Estimate in which order impressions of a block or plate were printed, and when, by breaks or widths of lines."""
    decided = None if decisions is None else ClockDecided.model_validate_json(decisions).model_dump()
    match = _job(MatchRequest(queries=_parse([q]), photo=photo[0]), None)
    job = {"expand": "none", **match, "photos": photo, "decisions": decided, "table": format == "csv"}
    answer, _ = await service_of(request).search(request, "print clock", job, seconds=_CLOCK_SECONDS)
    return table_file(answer["rows"], "clock.csv") if format == "csv" else answer


@router.put("/impressions/clock", dependencies=WRITING, status_code=204)
async def keep_clock(request: Request, q: QueryText, decisions: ClockDecided) -> None:
    """Store decisions about the print clock with its reference, q."""
    (query,) = _parse([q])
    row = await service_of(request).row(query.photo or 0)

    def keep() -> None:
        from retrieval.library.print_clock import clock_key, decisions_of, keep_decisions  # they import OpenCV

        with changing(request, 422) as session:
            keep_decisions(session, clock_key(row.number, query.box), decisions_of(decisions.model_dump()))

    await run_in_threadpool(keep)


@router.post(
    "/match",
    dependencies=SEARCHING,
    response_model=MatchAnswer,
    responses=_FILES,
    openapi_extra=_form(MatchRequest),
)
async def match_upload(request: Request, format: Format = "json") -> Any:
    """Explain why an uploaded photo, or a box in one, matches a photo of the collection."""
    service = service_of(request)
    async with service.forms.receive(request) as form:
        return await _match(request, form.request(MatchRequest), form, format)


def _parse(texts: list[str]) -> list[QueryPhoto]:
    """Read NUMBER[:x0,y0,x1,y1]."""
    queries = []
    for one in texts:
        number, _, corners = one.partition(":")
        try:
            box = [float(corner) for corner in corners.split(",")] if corners else None
        except ValueError:
            raise ProblemError(422, "A box is four numbers x0,y0,x1,y1 with commas between them.") from None
        if box is not None and len(box) != 4:
            raise ProblemError(422, "A box is four numbers x0,y0,x1,y1 with commas between them.")
        queries.append(QueryPhoto.model_validate({"photo": int(number), "box": box}))
    return queries


def _job(wanted: SearchRequest | MatchRequest, form: Uploads | None) -> dict[str, Any]:
    """The request for workers, with the files of the uploads."""
    job: dict[str, Any] = wanted.model_dump(mode="json")
    for query in job["queries"]:
        which = query["upload"]
        if which is not None:
            if form is None or which >= len(form.photos):
                raise ProblemError(
                    422, "There is no upload {which} in the request: they are counted from 0.", which=which
                )
            query["path"], query["name"] = str(form.photos[which]), form.names[which]
    return job


async def _have_done(request: Request, job: str, wanted: dict[str, Any]) -> Answer:
    """Have a worker search: a separate one for uploads, as a photo from anywhere may take long."""
    upload = any(query["upload"] is not None for query in wanted["queries"])
    return await service_of(request).search(request, job, wanted, upload=upload)


async def search_with_photos(
    request: Request, parameters: SearchParameters, job: str, wanted: dict[str, Any]
) -> dict[str, Any]:
    """Have a worker do another job of a search for photos of the collection."""
    answer, _ = await _have_done(request, job, _job(parameters.request(), None) | wanted)
    return answer


async def _search(request: Request, wanted: SearchRequest, form: Uploads | None) -> dict[str, Any]:
    """Have a worker search; the model leaves paths out of its answer."""
    answer, _ = await _have_done(request, "search", _job(wanted, form))
    similarity = answer["similarity"]
    if similarity is not None:
        similarity["file"] = Path(similarity["file"]).name
    if "remarks" in answer:
        answer["remarks"] = say_reasons(answer["remarks"], language_of(request))
    return answer


async def _match(request: Request, wanted: MatchRequest, form: Uploads | None, format: str) -> Any:
    service = service_of(request)
    job = {"expand": "none", **_job(wanted, form)}
    if format == "jpg":
        _, picture = await _have_done(request, "picture", job | {"scratch": str(service.scratch)})
        return attached(picture, "image/jpeg", "match.jpg")
    answer, _ = await _have_done(request, "match", job)
    if format == "csv":
        kinds = ("query", "photo", "query_ellipse", "photo_ellipse")
        rows = ([number for kind in kinds for number in one[kind]] for one in answer["matches"])
        return attached(csv_text([COLUMNS, *rows], end="\r\n").encode(), "text/csv; charset=utf-8", "match.csv")
    row = await service.row(answer.pop("number"))
    (photo,) = await run_in_threadpool(describe_photos, service, [row])
    return {**answer, "photo": photo}
