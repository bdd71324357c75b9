"""Routes of albums."""

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field, StringConstraints, model_validator
from starlette.concurrency import run_in_threadpool

from retrieval.catalogue.curation.albums import AlbumFacts
from retrieval.curation import albums as curation
from retrieval.web.access.rights import WRITING
from retrieval.web.models import MAX_ALBUM, MAX_NUMBER, Number, PhotoPage
from retrieval.web.routes.groups import group_of
from retrieval.web.routes.photos import Number as PhotoNumber
from retrieval.web.service import changing, describe_photos, service_of

router = APIRouter(prefix="/api", tags=["albums"])

MOST = 10_000
"""Photos of one request."""

Numbers = Annotated[list[Number], Field(max_length=MOST, description="Numbers of photos.")]
AlbumId = Annotated[int, Path(ge=0, le=MAX_ALBUM, description="Id of the album.")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class Albums(BaseModel):
    """All albums, the newest first."""

    albums: list[AlbumFacts]


class NewAlbum(BaseModel):
    """An album to be made."""

    name: Name
    photos: Numbers = []
    group: int | None = Field(None, ge=1, le=MAX_NUMBER, description="Number of a group, whose photos it gets as well.")
    cover: Number | None = Field(None, description="The photo that stands for it; left out: the first.")


class AlbumChange(BaseModel):
    """What is to be changed of an album."""

    name: Name | None = None
    cover: Number | None = Field(None, description="One of its photos.")
    order: Literal["name", "taken"] | None = Field(None, description="By what its photos are put in order.")

    @model_validator(mode="after")
    def _anything(self) -> "AlbumChange":
        if self.name is None and self.cover is None and self.order is None:
            raise ValueError("say what to change: name, cover or order")
        return self


class SomePhotos(BaseModel):
    """Photos."""

    photos: Annotated[Numbers, Field(min_length=1)]


class Move(SomePhotos):
    """Photos of an album to move to another place in it."""

    before: Number | None = Field(None, description="A photo of the album; left out: its end.")


class Split(SomePhotos):
    """Photos of an album to move to a new album."""

    name: Name


class Merge(BaseModel):
    """Albums to merge."""

    albums: list[Annotated[int, Field(ge=0, le=MAX_ALBUM)]] = Field(min_length=1, max_length=1000)


class ChangedPhotos(BaseModel):
    """Photos that were added or removed."""

    changed: list[int] = Field(description="Their numbers: those that were not there, or were.")


@dataclass(frozen=True)
class DeletedAlbum(AlbumFacts):
    """An album before a change."""

    numbers: Annotated[list[int], Field(description="Its photos, in order: to make it again.")]


@router.get("/albums")
def albums(request: Request) -> Albums:
    """List the albums, the newest first."""
    return Albums(albums=service_of(request).collection.catalogue.read(curation.list_albums))


@router.post("/albums", status_code=201, dependencies=WRITING)
def make_album(request: Request, wanted: NewAlbum) -> AlbumFacts:
    """Make an album of some photos, of a group, or of none."""
    photos = list(wanted.photos)
    if wanted.group is not None:
        photos += group_of(service_of(request), wanted.group).photos
    with changing(request) as session:
        return curation.make_album(session, wanted.name, photos, wanted.cover)


@router.get("/albums/{album}")
def album(request: Request, album: AlbumId) -> AlbumFacts:
    """Return one album."""
    return service_of(request).collection.catalogue.read(curation.read_album, album)


@router.get("/albums/{album}/photos")
def album_photos(
    request: Request,
    album: AlbumId,
    offset: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0,
    limit: Annotated[int, Query(ge=0, le=500)] = 60,
) -> PhotoPage:
    """List the photos of an album in its order, a page at a time."""
    service = service_of(request)
    total, numbers = service.collection.catalogue.read(curation.album_page, album, offset, limit)
    service.recent.remember(numbers)
    return PhotoPage(total=total, offset=offset, photos=describe_photos(service, numbers))


@router.get("/photos/{number}/albums")
async def albums_of_photo(request: Request, number: PhotoNumber) -> Albums:
    """List the albums that a photo is in."""
    service = service_of(request)
    await service.row(number)
    albums = await run_in_threadpool(service.collection.catalogue.read, curation.albums_of_photo, number)
    return Albums(albums=albums)


@router.patch("/albums/{album}", dependencies=WRITING)
def change_album(request: Request, album: AlbumId, wanted: AlbumChange) -> AlbumFacts:
    """Rename an album, choose its cover, or put it in order."""
    with changing(request) as session:
        return curation.change_album(session, album, name=wanted.name, cover=wanted.cover, order=wanted.order)


@router.delete("/albums/{album}", dependencies=WRITING)
def delete_album(request: Request, album: AlbumId) -> DeletedAlbum:
    """Delete an album; its photos stay in the collection."""
    with changing(request) as session:
        before, numbers = curation.delete_album(session, album)
    return DeletedAlbum(**asdict(before), numbers=numbers)


@router.post("/albums/{album}/photos", dependencies=WRITING)
def add_to_album(request: Request, album: AlbumId, wanted: SomePhotos) -> ChangedPhotos:
    """Add photos to the end of an album."""
    with changing(request) as session:
        return ChangedPhotos(changed=curation.add_to_album(session, album, wanted.photos))


@router.post("/albums/{album}/remove", dependencies=WRITING)
def remove_from_album(request: Request, album: AlbumId, wanted: SomePhotos) -> ChangedPhotos:
    """Remove photos from an album; they stay in the collection."""
    with changing(request) as session:
        return ChangedPhotos(changed=curation.remove_from_album(session, album, wanted.photos))


@router.post("/albums/{album}/move", dependencies=WRITING)
def move_in_album(request: Request, album: AlbumId, wanted: Move) -> AlbumFacts:
    """Move photos of an album to another place in it."""
    with changing(request) as session:
        curation.move_in_album(session, album, wanted.photos, wanted.before)
        return curation.read_album(session, album)


@router.post("/albums/{album}/split", status_code=201, dependencies=WRITING)
def split_album(request: Request, album: AlbumId, wanted: Split) -> AlbumFacts:
    """Move photos of an album to a new one."""
    with changing(request) as session:
        return curation.split_album(session, album, wanted.photos, wanted.name)


@router.post("/albums/{album}/merge", dependencies=WRITING)
def merge_albums(request: Request, album: AlbumId, wanted: Merge) -> AlbumFacts:
    """Add the photos of other albums to the end of this one, and delete those albums."""
    with changing(request) as session:
        return curation.merge_albums(session, album, wanted.albums)
