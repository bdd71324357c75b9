"""Routes of near duplicates that are decided about, and of the bin."""

import itertools
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request

from retrieval.curation.bin import binned
from retrieval.curation.discarding import Discarded, discard, restore
from retrieval.curation.duplicates import ask_again, duplicate_sets, format_of, judge_set, keep_all, kept_sets
from retrieval.groups.groups import NotGrouped, read_groups
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
)
from retrieval.web.models import MAX_NUMBER
from retrieval.web.problems import ProblemError
from retrieval.web.service import Service, changing, describe_photos, service_of

router = APIRouter(prefix="/api", tags=["duplicates"])


@router.get("/duplicates")
def duplicates(
    request: Request,
    offset: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0,
    limit: Annotated[int, Query(ge=0, le=100)] = 20,
) -> DuplicatePage:
    """List sets of near duplicates that nobody has decided about, each with the best photo first."""
    service = service_of(request)
    catalogue = service.collection.catalogue
    try:
        groups = read_groups(service.collection)
    except NotGrouped as error:
        raise ProblemError(404, str(error)) from None
    found = duplicate_sets(groups.groups, kept_sets(catalogue))
    sets = []
    try:
        for numbers in found[offset : offset + limit]:
            rows = {row.number: row for row in catalogue.images(numbers)}
            judged = judge_set(list(rows.values()))
            photos = describe_photos(service, [rows[number] for number in judged.photos])
            described = [
                DuplicatePhoto(**photo.model_dump(), size=rows[photo.number].size, format=format_of(rows[photo.number]))
                for photo in photos
            ]
            sets.append(DuplicateSet.model_validate({"photos": described, "reasons": judged.reasons}))
    except KeyError:
        raise ProblemError(503, "The collection has just changed: try again.") from None
    is_there = service.options.bin is not None
    return DuplicatePage(total=len(found), out_of_date=groups.out_of_date, bin=is_there, sets=sets)


@router.post("/duplicates/kept", dependencies=WRITING)
def keep_duplicates(request: Request, asked: Numbers) -> Done:
    """Keep all photos of a set of near duplicates: it is not asked about again."""
    with changing(request) as catalogue:
        keep_all(catalogue, asked.photos)
    return Done(changed=asked.photos)


@router.post("/duplicates/ask", dependencies=WRITING)
def ask_again_about_duplicates(request: Request, asked: Numbers) -> Done:
    """Forget that all photos of a set of near duplicates are kept."""
    with changing(request) as catalogue:
        ask_again(catalogue, asked.photos)
    return Done(changed=asked.photos)


@router.get("/bin", dependencies=WRITING)
def list_bin(request: Request, limit: Annotated[int, Query(ge=0, le=1000)] = 100) -> list[Binned]:
    """List the files of photos of this collection that were moved to the bin, the last first."""
    service = service_of(request)
    mine = itertools.islice((one for one in binned(_bin(service)) if one.collection == _place(service)), limit)
    return [Binned(id=one.id, number=one.number, name=one.name, moved=one.moved) for one in mine]


@router.post("/bin", dependencies=WRITING)
def move_photos_to_bin(request: Request, asked: Numbers) -> Moved:
    """Move the files of photos to the bin, and take the photos out of the collection."""
    service = service_of(request)
    folder = _bin(service)
    with changing(request) as catalogue:
        return _moved(discard(catalogue, asked.photos, folder, Path(_place(service))))


@router.post("/bin/back", dependencies=WRITING)
def put_photos_back(request: Request, asked: Entries) -> Moved:
    """Put files of the bin back where they came from, and their photos into the collection."""
    service = service_of(request)
    folder, place = _bin(service), _place(service)
    mine = {one.id for one in binned(folder) if one.collection == place}
    with changing(request) as catalogue:
        return _moved(restore(catalogue, [one for one in asked.entries if one in mine], folder))


def _bin(service: Service) -> Path:
    if service.options.bin is None:
        raise ProblemError(403, "This server moves no files: start it with --bin FOLDER.")
    return service.options.bin


def _place(service: Service) -> str:
    """How the bin says which collection a file was of."""
    return str(service.collection.folder.resolve())


def _moved(told: Discarded) -> Moved:
    return Moved(
        moved=[Binned(id=one.id, number=one.number, name=one.name, moved=one.moved) for one in told.moved],
        failed=[NotMoved(number=number, reason=reason) for number, reason in told.failed.items()],
    )
