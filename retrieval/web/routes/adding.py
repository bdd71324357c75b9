"""Routes for adding photos: folders of this machine that may be chosen, and uploads that are stored."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from index.text import readable
from retrieval.collection.layout import UPLOADS
from retrieval.curation.choosing import RootFolder, list_folder
from retrieval.curation.uploads import check_room, incoming_folder, keep_uploads, safe_folder, safe_name
from retrieval.jobs.kinds import index_of
from retrieval.library.browsing import takes_films
from retrieval.web.access.rights import WRITING
from retrieval.web.problems import ProblemError
from retrieval.web.service import Service, folder_id, service_of
from retrieval.web.uploads import Receiver, form_of

router = APIRouter(prefix="/api", tags=["adding photos"])


class AllowedFolder(BaseModel):
    """A folder below which photos may be chosen."""

    root: int
    name: str


class KnownFolder(BaseModel):
    """A folder that was indexed."""

    name: str
    there: bool = Field(description="Whether it is there, and photos may be taken from it.")


class Roots(BaseModel):
    """Where photos may be taken from."""

    roots: list[AllowedFolder]
    known: list[KnownFolder] = Field(description="Folders whose photos are in the collection.")
    films: bool = Field(description="Whether films of folders are taken, too.")


class AwayFolder(BaseModel):
    """A folder with photos of the collection that does not exist now."""

    id: str
    name: str
    photos: int


class Away(BaseModel):
    """Folders that are gone, or whose drive is not connected."""

    folders: list[AwayFolder]


class StoredUploads(BaseModel):
    """Uploads that were stored."""

    photos: list[str] = Field(description="Names of the photos, in the order of the form.")
    job: int | None = Field(description="Number of the job that indexes them.")


@router.get("/roots", dependencies=WRITING)
def roots(request: Request) -> Roots:
    """List the folders from which photos may be chosen."""
    service = service_of(request)
    known = [
        KnownFolder(
            name="" if one == service.folder / UPLOADS else one.name, there=service.takes_from(one) and one.is_dir()
        )
        for one in service.indexed_folders()
    ]
    films = takes_films(service.collection.catalogue)
    return Roots(roots=named_roots(service.options.roots), known=known, films=films)


@router.get("/away")
def away_folders(request: Request) -> Away:
    """List the folders with photos of the collection that do not exist now, or are empty."""
    folders = service_of(request).away()
    return Away(
        folders=[
            AwayFolder(id=folder_id(folder), name=readable(Path(folder).name or folder), photos=photos)
            for folder, photos in folders
        ]
    )


@router.get("/roots/{root}/folders", dependencies=WRITING)
def root_folder(
    request: Request,
    root: Annotated[int, InPath(ge=0, le=10_000, description="As /api/roots lists it.")],
    path: Annotated[str, Query(max_length=4096, description="Of a folder below the root; empty: the root.")] = "",
) -> RootFolder:
    """List the contents of a folder below a root: folders, and the number of photos."""
    return list_folder(request.app.state.service.options.roots, root, path)


def named_roots(roots: Sequence[Path]) -> list[AllowedFolder]:
    """Folders below which photos may be chosen, without where they lie."""
    return [AllowedFolder(root=place, name=root.name or str(root)) for place, root in enumerate(roots)]


_FORM = form_of(
    {
        "photos": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "index": {
            "type": "string",
            "enum": ["yes", "no"],
            "description": "no: only keep them, as more are to come; a job of the kind index with the "
            "source uploads then indexes them all.",
        },
        "folder": {
            "type": "string",
            "description": "Folder that the photos were in, such as Summer/Castle: it becomes part of their names.",
        },
    },
    required=["photos"],
)


@router.post("/photos", status_code=201, dependencies=WRITING, openapi_extra=_FORM)
async def add_photos(request: Request) -> StoredUploads:
    """Store photos and films with the collection, and index them; films only if an earlier index job did."""
    service = service_of(request)
    receiver = await run_in_threadpool(_receiver, service, request.headers.get("content-length", ""))
    async with receiver.receive(request) as form:
        if not form.photos:
            raise ProblemError(400, "Send photos, as the field photos of the form.")
        names = [safe_name(name, films=True) for name in form.names]
        within = safe_folder(form.fields.get("folder", ""))
        stored = await run_in_threadpool(keep_uploads, service.folder, form.photos, names, within)
        index = form.fields.get("index") != "no"
    number = None
    if index:
        job = await run_in_threadpool(service.begin, index_of([service.folder / UPLOADS]))
        number = job.id
    return StoredUploads(photos=stored, job=number)


def _receiver(service: Service, length: str) -> Receiver:
    """Make the receiver of uploads on the disk where they stay; raises NoRoomError if it is full or not writable."""
    with service.keeping_lock:
        if service.keeping is None:
            incoming = incoming_folder(service.folder)
            service.keeping = incoming, Receiver(incoming, service.options.kept)
        incoming, receiver = service.keeping
    check_room(incoming, int(length) if length.isdecimal() and len(length) < 16 else 0)
    return receiver
