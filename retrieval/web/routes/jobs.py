"""Routes of jobs: long work in the background, and its results."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Request, Response
from fastapi import Path as InPath
from pydantic import BaseModel, Field, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from retrieval.collection.layout import UPLOADS
from retrieval.curation.choosing import folder_below, under_known_names
from retrieval.jobs import kinds
from retrieval.jobs.job import JobNotFound, QueuedJob
from retrieval.jobs.store import ENDED, QUEUED, read_message
from retrieval.library.browsing import failed_files
from retrieval.photos.listing import first_photos
from retrieval.photos.thumbnails import SIZES
from retrieval.web.access.limits import CLIENT, ConnectionSlot
from retrieval.web.access.passwords import may_see
from retrieval.web.access.rights import STILL, WRITING, caller_of
from retrieval.web.discretion import failures_by_name, without_paths
from retrieval.web.languages import translate
from retrieval.web.models import MAX_NUMBER, Number
from retrieval.web.pool.workers import Refused
from retrieval.web.problems import ProblemError, refusing
from retrieval.web.reasons import in_language, say_reasons
from retrieval.web.rendering import language_of
from retrieval.web.routes.photos import PREVIEW_SIDE
from retrieval.web.running import STOPPING
from retrieval.web.service import Service, folder_id, service_of

router = APIRouter(prefix="/api/jobs", tags=["jobs"])

MOST = 50
"""Jobs that have ended and are listed."""

MOST_AGAIN = 1000
"""Most failed photos that are tried again at once."""

LISTED = 20
"""Most entries of a list in a result, when many jobs are listed."""

GLIMPSES = 60
"""Number of photos shown while they are being added."""

OUSTED = 60_000
"""Milliseconds after which a page reconnects that lost its place to newer pages of its client."""

LOOK, BEAT = 0.25, 10.0  # seconds between two looks at the queue, and between signs of life
OTHERS = 2.0  # seconds between two looks at what another server over the same list does
LONGEST = 3600.0  # seconds of a connection; the browser opens it again
UNTOLD = 20.0  # the same, if the server's end is not announced

JobNumber = Annotated[int, InPath(ge=1, le=MAX_NUMBER, description="Number of the job.")]


class JobAhead(BaseModel):
    """Work that other work waits for."""

    title: str = Field(description="What it does, in the language of Accept-Language.")
    about: str = Field(description="With what; empty where that is of a collection that one may not see.")
    collection: str | None = Field(
        description="Which other collection it is done to; null: this one, or one that one may not see."
    )
    here: bool = Field(description="Whether it is done to this collection.")


class Job(BaseModel):
    """A job."""

    id: int
    kind: str = Field(description=f"{', '.join(kinds.KINDS)}.")
    title: str = Field(description="What it does, in the language of Accept-Language.")
    about: str = Field(description="With what, such as the name of a folder; may be empty.")
    needs_nothing: bool = Field(description="Whether such work can be begun by its kind alone.")
    changes_photos: bool = Field(description="Whether photos are listed otherwise when it has ended.")
    state: Literal["queued", "running", "paused", "done", "failed", "cancelled"]
    step: str = Field(description="What it is at; empty where it has not said so.")
    title_of_step: str = Field(description="The same for people.")
    done: int = Field(description="How much of the step is done.")
    of: int = Field(description="How much there is; 0: not known.")
    unit: str
    share: float | None = Field(description="How much of all its steps is done, 0 to 1; null if they are not known.")
    seconds_left: float | None = Field(
        description="By how fast it got on lately: until all is done, or the step if not all steps are known."
    )
    result: dict[str, Any] | None = Field(description="What the command reports with --json, without paths.")
    error: str | None = Field(description="Why it failed: one sentence.")
    note: str | None = Field(description="What it waits for: one sentence.")
    waits_for: JobAhead | None = Field(description="Of queued work: the job before it.")
    added: str = Field(description="ISO 8601, UTC.")
    started: str | None
    ended: str | None


class Jobs(BaseModel):
    """All waiting and running jobs of the collection, and the last that ended, in the order of their numbers."""

    jobs: list[Job]


class Index(BaseModel):
    """Add photos."""

    kind: Literal["index"]
    source: Literal["folder", "known", "uploads", "failed", "manifest"] = Field(
        "folder",
        description="folder: one below a root; known: those that were indexed before; uploads: what was uploaded; "
        "failed: photos that could not be indexed; manifest: the pages of an IIIF manifest, which the job fetches.",
    )
    root: int | None = Field(None, ge=0, le=10_000, description="Of a folder: which root, as /api/roots lists them.")
    path: str = Field("", max_length=4096, description="Of a folder: its path below the root; empty: the root itself.")
    films: bool | None = Field(
        None, description="Also index films in folders, now and later; if left out, this stays as it was."
    )
    address: str = Field("", max_length=4096, description="Of a manifest, on the public Internet: https://….")

    @model_validator(mode="after")
    def _one_place(self) -> "Index":
        if (self.source == "folder") != (self.root is not None):
            raise ValueError("a folder needs a root, and nothing else has one")
        if (self.source == "manifest") != bool(self.address):
            raise ValueError("a manifest needs an address, and nothing else has one")
        return self


class GroupPhotos(BaseModel):
    """Find groups of photos that show the same thing."""

    kind: Literal["group"]
    augment: bool | None = Field(
        None, description="Let photos borrow features from linked ones; if left out, this stays as it was."
    )


class Retrain(BaseModel):
    """Make a new vocabulary."""

    kind: Literal["retrain"]
    drop_missing: bool = Field(False, description="Remove photos that can no longer be read.")


class Remove(BaseModel):
    """Take photos out of the collection; their files stay."""

    kind: Literal["remove"]
    missing: bool = Field(False, description="All whose files have gone, or else:")
    photos: list[Number] = Field([], max_length=1000, description="Numbers of photos.")
    for_good: bool = Field(False, description="Keep them out when their folders are indexed again.")

    @model_validator(mode="after")
    def _one_choice(self) -> "Remove":
        if self.missing == bool(self.photos):
            raise ValueError("give photos, or missing, and not both")
        return self


class MoveRoot(BaseModel):
    """Say where the photos of a missing folder are now."""

    kind: Literal["move"]
    folder: str = Field(max_length=64, description="Which one: its id, as /api/away tells it.")
    root: int = Field(ge=0, le=10_000, description="Where it is now: below which root, as /api/roots lists them.")
    path: str = Field("", max_length=4096, description="Its path below the root; empty: the root itself.")


class Plain(BaseModel):
    """A job without options."""

    kind: Literal[*kinds.PLAIN]  # type: ignore[valid-type]


Work = Index | GroupPhotos | Retrain | Remove | MoveRoot | Plain


@router.get("")
def jobs(request: Request) -> Jobs:
    """List the jobs of the collection: running, waiting, and recently ended."""
    return list_jobs(request)


@router.post("", status_code=201, dependencies=WRITING)
def begin_job(request: Request, work: Annotated[Work, Body(discriminator="kind")]) -> Job:
    """Queue a job; if the same job is waiting already, that one is returned."""
    service = service_of(request)
    return describe_job(request, service, service.begin(_work(service, work)))


@router.get("/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def job_events(request: Request) -> Response:
    """Send changes of jobs as server-sent events named `jobs`, each with the answer of /api/jobs."""
    service = service_of(request)
    place = service.listeners.enter(request.scope.get(CLIENT, ""))
    if place is None:
        raise ProblemError(503, "Too many pages listen to this server: close some.")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(request, service, place), media_type="text/event-stream", headers=headers)


@router.get("/{number}")
def job(request: Request, number: JobNumber) -> Job:
    """Return one job with its whole result."""
    service = service_of(request)
    return describe_job(request, service, _own(service, number))


@router.get(
    "/{number}/photos/{place}",
    responses={200: {"content": {"image/jpeg": {}}}, 204: {"description": "There are fewer, or it cannot be shown."}},
    response_class=Response,
)
async def glimpse(
    request: Request, number: JobNumber, place: Annotated[int, InPath(ge=0, lt=GLIMPSES)], large: bool = False
) -> Response:
    """Return a small or large picture of one of the first photos of a job, while none can be searched yet."""
    service = service_of(request)
    path = await run_in_threadpool(_being_added, service, number, place)
    if path is None:
        return Response(status_code=204)
    wanted: dict[str, Any] = {"path": str(path), "name": path.name, "size": PREVIEW_SIDE if large else SIZES[1]}
    wanted |= {} if large else {"sha256": None, "cache": str(service.cache)}
    try:
        _, picture = await service.decode(request, "preview" if large else "thumbnail", wanted, upload=True)
    except (ProblemError, Refused):  # the job says what is wrong with it
        return Response(status_code=204)
    return Response(picture, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=600"})


@router.post("/{number}/pause", dependencies=WRITING)
def pause_job(request: Request, number: JobNumber) -> Job:
    """Pause a job."""
    return _act(request, number, "pause")


@router.post("/{number}/resume", dependencies=WRITING)
def resume_job(request: Request, number: JobNumber) -> Job:
    """Resume a paused job."""
    return _act(request, number, "resume")


@router.post("/{number}/cancel", dependencies=WRITING)
def cancel_job(request: Request, number: JobNumber) -> Job:
    """Cancel a job; what it has done stays."""
    return _act(request, number, "cancel")


@router.delete("/{number}", status_code=204, response_class=Response, dependencies=WRITING)
def forget_job(request: Request, number: JobNumber) -> Response:
    """Remove an ended job from the list."""
    service = service_of(request)
    _own(service, number)
    with refusing():
        service.queue.forget(number)
    return Response(status_code=204)


def _work(service: Service, work: Work) -> kinds.JobKind:
    """Make a job of a request; raises ProblemError if that is not possible."""
    match work:
        case Index(source="manifest"):
            with refusing(400):
                return kinds.index_of_manifest(work.address)
        case Index():
            return kinds.index_of(_places(service, work), work.films)
        case Remove(missing=True):
            return kinds.RemoveJob(missing=True)
        case Remove():
            names = service.names(work.photos)
            if not names:
                raise ProblemError(404, "None of these photos is in the collection any more.")
            return kinds.RemoveJob(names=names, for_good=work.for_good)
        case MoveRoot():
            old = next((folder for folder, _ in service.away() if folder_id(folder) == work.folder), None)
            if old is None:
                raise ProblemError(409, "This folder is there again, or has no photos any more.")
            return kinds.MoveJob(old=old, new=str(folder_below(service.options.roots, work.root, work.path)))
    return kinds.KINDS[work.kind](**work.model_dump(exclude={"kind"}))


def list_jobs(request: Request) -> Jobs:
    """All waiting and running jobs, and the last that ended, in the visitor's language."""
    service = service_of(request)
    jobs_listed = service.queue.jobs(service.in_queue, ended=MOST)
    before = service.queue.before_each() if any(one.state == QUEUED for one in jobs_listed) else {}
    return Jobs(jobs=[_described(request, service, one, before, LISTED) for one in jobs_listed])


def describe_job(request: Request, service: Service, job: QueuedJob) -> Job:
    """A job as the API shows it, without paths."""
    return _described(request, service, job, service.queue.before_each() if job.state == QUEUED else {})


def _described(
    request: Request, service: Service, job: QueuedJob, before: Mapping[int, QueuedJob], most: int | None = None
) -> Job:
    """`before`: what each queued job waits for; `most`: entries of lists in its result."""
    language = language_of(request)
    facts = {name: getattr(job, name) for name in Job.model_fields if name not in ("result", "waits_for")}
    facts["waits_for"] = _ahead(request, service, before[job.id]) if job.id in before else None
    facts["title"] = translate(job.title, language)
    facts["title_of_step"] = translate(kinds.STEPS.get(job.title_of_step, job.title_of_step), language)
    facts["note"] = translate(job.note, language) if job.note is not None else None
    if job.error is not None:
        facts["error"] = without_paths(" ".join(in_language(job.error, language).split()), service.places)
    try:
        result = None if job.result is None else _discreet(service, job.result, most, language)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):  # nothing that a command has printed
        result = None
    return Job(**facts, result=result)


def _ahead(request: Request, service: Service, job: QueuedJob) -> JobAhead:
    """A job that another one waits for."""
    here = job.collection == service.in_queue
    is_visible = here or may_see(caller_of(request.scope).collections, job.collection)
    return JobAhead(
        title=translate(job.title, language_of(request)),
        about=without_paths(job.about, service.places) if is_visible else "",
        collection=PurePath(job.collection).stem if is_visible and not here else None,
        here=here,
    )


def _discreet(service: Service, result: dict[str, Any], most: int | None, language: str) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return without_paths(value, service.places)
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items() if key != "path"}
        return [plain(one) for one in value] if isinstance(value, list) else value

    result = {**{key: value for key, value in result.items() if key != "sidecars"}, **result.get("sidecars", {})}
    summary: dict[str, Any] = {"lengths": dict(result.get("shortened", {}))}
    for key, value in result.items():
        if key in ("collection", "out", "shortened", "kept_out_reasons", "places"):
            continue
        if isinstance(value, list):
            summary["lengths"].setdefault(key, len(value))
            value = value[:most]
        if key == "kept_out":
            value = summary["lengths"][key]
        elif key in ("failed", "remarks") and isinstance(value, list) and value:
            value = say_reasons(failures_by_name(value, service.indexed_folders()), language)
        elif key == "manifests":
            value = [
                {**_said(one, language), "failed": [_said(page, language) for page in one["failed"]]} for one in value
            ]
        elif key == "damaged" and isinstance(value, list):
            value = say_reasons(value, language, "what")
        summary[key] = plain(value)
    return summary


def _said(entry: dict[str, Any], language: str) -> dict[str, Any]:
    """Put the message of an entry into words, beside its reason in English."""
    said = in_language(read_message(entry.get("message"), entry["reason"]), language)
    return {**{key: value for key, value in entry.items() if key != "message"}, "said": said}


def _places(service: Service, index: Index) -> list[Path]:
    """What is to be indexed."""
    if index.source == "folder" and index.root is not None:
        return [folder_below(service.options.roots, index.root, index.path)]
    if index.source == "uploads":
        uploads = service.folder / UPLOADS
        if not uploads.is_dir():
            raise ProblemError(404, "No photo was uploaded to this collection yet.")
        return [uploads]
    folders = service.indexed_folders()
    if index.source == "known":
        folders_there = [folder for folder in _taken_from(service, folders) if folder.is_dir()]
        if not folders_there:
            raise ProblemError(404, "None of the folders of this collection is there: connect the drive they are on.")
        return folders_there
    paths = _taken_from(service, failed_files(service.collection.catalogue))
    failed = [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 (hides errors)
    if not failed:
        raise ProblemError(404, "The photos that could not be read are no longer where they were.")
    return under_known_names(failed, [*filter(service.takes_from, folders)])[:MOST_AGAIN]


def _taken_from(service: Service, places: list[Path]) -> list[Path]:
    """Those of some places from which the catalogue takes photos; raises ProblemError if there are none."""
    allowed = [place for place in places if service.takes_from(place)]
    if places and not allowed:
        raise kinds.outside()
    return allowed


def _act(request: Request, number: int, act: str) -> Job:
    service = service_of(request)
    _own(service, number)
    with refusing():
        getattr(service.queue, act)(number)
        return describe_job(request, service, service.queue.job(number))


def _being_added(service: Service, number: int, place: int) -> Path | None:
    job = _own(service, number)
    places = map(Path, job.work.places) if isinstance(job.work, kinds.IndexJob) and job.state not in ENDED else ()
    photos = first_photos([*places], GLIMPSES, kinds.allowed(service.folder, service.options.roots))
    return photos[place] if place < len(photos) else None


def _own(service: Service, number: int) -> QueuedJob:
    """A job on this collection: the queue may be of several."""
    with contextlib.suppress(JobNotFound):
        job = service.queue.job(number)
        if job.collection == service.in_queue:
            return job
    raise ProblemError(404, "There is no such job: it may have been forgotten.")


async def _events(request: Request, service: Service, place: ConnectionSlot) -> AsyncIterator[str]:
    stopping: Callable[[], bool] | None = request.scope.get(STOPPING)
    still: Callable[[], bool] = request.scope.get(STILL, lambda: True)
    began = looked = sent = time.monotonic()
    version, before = -1, ""
    try:
        yield "retry: 2000\n\n"
        while not (stopping and stopping()) and time.monotonic() - began < (LONGEST if stopping else UNTOLD):
            if place not in service.listeners:  # others of the client took its places
                yield f"retry: {OUSTED}\n\n"
                return
            if not still():  # signed out meanwhile, or with other rights
                return
            now = time.monotonic()
            if service.queue.version != version or now - looked >= OTHERS:
                version, looked = service.queue.version, now
                text = (await run_in_threadpool(list_jobs, request)).model_dump_json()
                if text != before:
                    before, sent = text, now
                    yield f"event: jobs\ndata: {text}\n\n"
            if now - sent >= BEAT:
                sent = now
                yield ": still there\n\n"
            await asyncio.sleep(LOOK)
    finally:
        service.listeners.leave(place)
