"""Routes that change metadata of photos, and remove photos from the collection."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, StringConstraints, model_validator

from retrieval.curation import editing as curation
from retrieval.curation.discarding import take_out
from retrieval.curation.editing import Edit, PhotosSummary
from retrieval.metadata.kinds import MOST_STARS
from retrieval.web.access.rights import WRITING
from retrieval.web.models import Number
from retrieval.web.routes.albums import MOST, SomePhotos
from retrieval.web.service import changing, service_of

router = APIRouter(prefix="/api/photos", tags=["photos"])

LongText = Annotated[str, StringConstraints(max_length=10_000)]
EditedTags = Annotated[list[Annotated[str, StringConstraints(max_length=1000)]], Field(max_length=100)]


class Before(BaseModel):
    """Imported and typed-in values of a photo before an edit."""

    number: Number
    values: dict[str, Annotated[list[LongText], Field(max_length=1000)]] = Field(
        description="Of title, caption, taken, rating, favourite and tag, what was changed; an empty list: what the "
        "file says counted."
    )


class PhotoEdit(BaseModel):
    """Changes to some photos; fields that are left out stay the same."""

    photos: Annotated[list[Number], Field(max_length=MOST)] = []
    title: LongText | None = Field(None, description='"": what the file says.')
    caption: LongText | None = Field(None, description='"": what the file says.')
    taken: Annotated[str, StringConstraints(max_length=100)] | None = Field(
        None, description='1923, 1923-05, 1923-05-17 or 1923-05-17T12:00:00; "": what the file says.'
    )
    rating: Annotated[int, Field(ge=0, le=MOST_STARS)] | None = Field(
        None, description="Stars, 1 to 5; 0: what the file says."
    )
    favourite: bool | None = Field(None, description="Mark them as favourites, or no longer.")
    tags_add: EditedTags = []
    tags_remove: EditedTags = Field([], description="In upper or lower case; those that a photo's file says stay.")
    restore: Annotated[list[Before], Field(max_length=MOST)] = Field(
        [], description="In place of all others: what an edit gave as `before`, which undoes it."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "PhotoEdit":
        single = (self.title, self.caption, self.taken, self.rating, self.favourite)
        edits = any(one is not None for one in single) or self.tags_add or self.tags_remove
        if bool(self.restore) == bool(edits) or (self.photos != [] and bool(self.restore)):
            raise ValueError("give the photos and the changes, or what to restore")
        if edits and not self.photos:
            raise ValueError("give the photos")
        return self


class PhotosEdited(BaseModel):
    """Result of an edit."""

    changed: int = Field(description="Number of changed photos.")
    kept: int = Field(description="Photos that keep a tag that was to be removed, as their files say it.")
    before: list[Before] = Field(description="What they had: send it as `restore` to undo the edit.")


class Removal(SomePhotos):
    """Photos to remove from the collection."""

    for_good: bool = Field(False, description="Leave them out, also when their folders are indexed again.")


class RemovedPhotos(BaseModel):
    """What was removed."""

    removed: int


@router.patch("", dependencies=WRITING)
def edit_photos(request: Request, wanted: PhotoEdit) -> PhotosEdited:
    """Change titles, captions, dates, ratings, favourites and tags of photos, or undo such a change."""
    with changing(request, 422) as session:
        if wanted.restore:
            restored = curation.restore_photos(session, {one.number: one.values for one in wanted.restore})
            return PhotosEdited(changed=restored, kept=0, before=[])
        tags = tuple(wanted.tags_add), tuple(wanted.tags_remove)
        edit = Edit(wanted.title, wanted.caption, wanted.taken, *tags, wanted.rating, wanted.favourite)
        edited = curation.edit_photos(session, wanted.photos, edit)
    before = [
        Before(number=number, values={key: list(some) for key, some in values.items()})
        for number, values in edited.before.items()
    ]
    return PhotosEdited(changed=len(before), kept=edited.kept, before=before)


@router.post("/summary")
def summarise_photos(request: Request, wanted: SomePhotos) -> PhotosSummary:
    """Return the tags, titles, captions and dates of some photos."""
    return service_of(request).collection.catalogue.read(curation.summarise, wanted.photos)


@router.post("/remove", dependencies=WRITING)
def remove_photos(request: Request, wanted: Removal) -> RemovedPhotos:
    """Remove photos from the collection; their files stay where they are."""
    with changing(request) as session:
        return RemovedPhotos(removed=take_out(session, wanted.photos, for_good=wanted.for_good))
