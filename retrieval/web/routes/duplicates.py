"""Routes of decisions about near duplicates, and of the bin."""

import itertools
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool

from retrieval.curation.bin import FILE_FOLDER, FileNotMoved, binned, find_binned
from retrieval.curation.bin import BinEntry as InBin
from retrieval.curation.choosing import under_known_names
from retrieval.curation.discarding import BinReport, discard, restore
from retrieval.curation.duplicates import ask_again, format_of, keep_all, undecided_sets
from retrieval.groups.groups import read_groups
from retrieval.jobs.kinds import index_of, outside
from retrieval.photos.thumbnails import kept_thumbnail
from retrieval.web.access.rights import WRITING
from retrieval.web.curation_models import (
    Binned,
    Done,
    DuplicatePage,
    DuplicatePhoto,
    DuplicateSet,
    Entries,
    Moved,
    NotMoved,
    Numbers,
    PutBack,
)
from retrieval.web.models import MAX_NUMBER
from retrieval.web.problems import ProblemError, refusing
from retrieval.web.reasons import in_language
from retrieval.web.rendering import language_of
from retrieval.web.service import Service, changing, describe_photos, service_of

router = APIRouter(prefix="/api", tags=["duplicates"])

PICTURE = 256
"""Longer side of pictures of what is in the bin, pixels."""


@router.get("/duplicates")
def duplicates(
    request: Request,
    offset: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0,
    limit: Annotated[int, Query(ge=0, le=100)] = 20,
    similar: Annotated[
        bool, Query(description="Similar shots, which are different photos of one view, in place of near duplicates.")
    ] = False,
) -> DuplicatePage:
    """List undecided sets of near duplicates, those of equal files first, or of similar shots."""
    service = service_of(request)
    groups = read_groups(service.collection)
    found = service.collection.catalogue.read(undecided_sets, groups.groups, offset, limit, similar=similar)
    sets = []
    for judged, rows in found.page:
        photos = [
            DuplicatePhoto.model_validate(
                {
                    **photo.model_dump(),
                    "size": row.size,
                    "format": format_of(row),
                    "kind": judged.kinds.get(row.number),
                    "stays": judged.stays.get(row.number),
                }
            )
            for photo, row in zip(describe_photos(service, rows), rows, strict=True)
        ]
        proposed = "hide" if judged.is_sure and not similar else "keep"
        sets.append(DuplicateSet.model_validate({"photos": photos, "reasons": judged.reasons, "proposed": proposed}))
    return DuplicatePage(
        total=found.similar if similar else found.copies,
        copies=found.copies,
        similar=found.similar,
        out_of_date=groups.out_of_date,
        bin=service.options.bin is not None,
        sets=sets,
    )


@router.post("/duplicates/kept", dependencies=WRITING)
def keep_duplicates(request: Request, wanted: Numbers) -> Done:
    """Keep all photos of a set of near duplicates: the set is not proposed again."""
    with changing(request) as session:
        keep_all(session, wanted.photos)
    return Done(changed=wanted.photos)


@router.post("/duplicates/ask", dependencies=WRITING)
def ask_again_about_duplicates(request: Request, wanted: Numbers) -> Done:
    """Undo the decision to keep all photos of a set of near duplicates."""
    with changing(request) as session:
        ask_again(session, wanted.photos)
    return Done(changed=wanted.photos)


@router.get("/bin", dependencies=WRITING)
def list_bin(request: Request, limit: Annotated[int, Query(ge=0, le=1000)] = 100) -> list[Binned]:
    """List the photo files of this collection in the bin, the last moved first."""
    service = service_of(request)
    mine = itertools.islice((one for one in binned(_bin(service)) if one.collection == _place(service)), limit)
    return [Binned(id=one.id, number=one.number, name=one.name, moved=one.moved) for one in mine]


@router.get(
    "/bin/{entry}/picture",
    dependencies=WRITING,
    responses={200: {"content": {"image/jpeg": {}}}},
    response_class=Response,
)
async def picture_of_binned(request: Request, entry: Annotated[str, InPath(max_length=64)]) -> Response:
    """Return a thumbnail of a photo in the bin."""
    service = service_of(request)
    one = await run_in_threadpool(_find, service, entry)
    picture = await run_in_threadpool(kept_thumbnail, one.sha256, PICTURE, service.cache)
    if picture is None:
        file = _bin(service) / one.id / FILE_FOLDER / Path(one.path).name
        wanted = {"path": str(file), "name": one.name, "sha256": None, "size": PICTURE, "cache": str(service.cache)}
        _, picture = await service.decode(request, "thumbnail", wanted)
    return Response(picture, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=3600"})


@router.post("/bin", dependencies=WRITING)
def move_photos_to_bin(request: Request, wanted: Numbers) -> Moved:
    """Move the files of photos to the bin, and remove the photos from the collection."""
    service = service_of(request)
    folder = _bin(service)
    with refusing():
        report = discard(service.collection.catalogue, wanted.photos, folder, Path(_place(service)))
    service.wrote()
    return _moved(request, report)


@router.post("/bin/back", dependencies=WRITING)
def put_photos_back(request: Request, wanted: Entries) -> PutBack:
    """Move files from the bin back to where they were, and their photos into the collection. If the collection was
    compacted since, a job indexes them again; files from folders that this server does not take photos from stay in the
    bin.
    """
    service = service_of(request)
    folder, place = _bin(service), _place(service)
    mine = {one.id for one in binned(folder) if one.collection == place}

    def check(path: Path) -> None:
        if not service.takes_from(path):
            raise FileNotMoved(outside().message)

    with refusing():
        report = restore(service.collection.catalogue, [one for one in wanted.entries if one in mine], folder, check)
    service.wrote()
    job = None
    if report.forgotten:
        folders = [*filter(service.takes_from, service.indexed_folders())]
        job = service.begin(index_of(under_known_names(report.forgotten, folders))).id
    return PutBack(**_moved(request, report).model_dump(), job=job)


def _bin(service: Service) -> Path:
    if service.options.bin is None:
        raise ProblemError(
            403,
            "This server has no bin, so no photo's file is ever moved. Hide copies instead, or ask whoever runs this "
            "server to name a folder for the bin with {--bin}.",
        )
    return service.options.bin


def _find(service: Service, entry: str) -> InBin:
    one = find_binned(_bin(service), entry)
    if one is None or one.collection != _place(service):
        raise ProblemError(404, "This photo is no longer in the bin.")
    return one


def _place(service: Service) -> str:
    """Name of this collection in the bin."""
    return str(service.collection.folder.resolve())


def _moved(request: Request, report: BinReport) -> Moved:
    language = language_of(request)
    return Moved(
        moved=[
            Binned(id=one.id, number=number, name=name, moved=one.moved)
            for one in report.moved
            for number, name in one.photos.items()
        ],
        failed=[
            NotMoved(number=number, reason=in_language(error.message, language))
            for number, error in report.failed.items()
        ],
    )
