"""Models of the API for decisions about photos: rejections, hidden photos, saved searches, duplicates."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints, model_validator

from index.text import one_of
from retrieval.library.motifs import CATEGORIES
from retrieval.web.models import KIND_HELP, Kind, Number, Photo
from retrieval.web.search_models import MAX_QUERIES, Box, HowToSearch

MOST = 10_000
"""Most photos in one decision."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Tag = Annotated[str, StringConstraints(max_length=200)]
Reason = Literal["there", "link", "kind", "said", "copy", "resolution", "date", "name", "format", "folder", "size"]


class Numbers(BaseModel):
    """Some photos of the collection."""

    photos: list[Number] = Field(min_length=1, max_length=MOST, description="Numbers of the photos.")


class Rejection(Numbers):
    """Photos that do not match another photo, which is in the collection or was uploaded."""

    photo: Number | None = Field(None, description="Number of the photo of the query, or else:")
    upload: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = Field(
        None, description="SHA-256 of the file that was uploaded, as the answer says it."
    )

    @model_validator(mode="after")
    def _one_query(self) -> "Rejection":
        if (self.photo is None) == (self.upload is None):
            raise ValueError("give the number of a photo, or the SHA-256 of an upload, and not both")
        return self

    @property
    def query(self) -> int | str:
        """The number, or the SHA-256."""
        return self.photo if self.photo is not None else self.upload or ""


class Hiding(Numbers):
    """Photos to hide."""

    because: Annotated[str, StringConstraints(max_length=200)] = Field("", description="Why, such as duplicate.")


class Done(BaseModel):
    """What was changed."""

    changed: list[int] = Field(description="Numbers of the photos that it changed something for.")


# Saved searches


class SavedQuery(BaseModel):
    """One photo of a saved search: of the collection, or the one that was sent with it."""

    photo: Number | None = Field(None, description="Number of a photo of the collection; left out: what was sent.")
    name: Annotated[str, StringConstraints(max_length=200)] | None = Field(None, description="Of what was sent.")
    box: Box | None = Field(None, description="In pixels of the photo, upright; left out: the whole photo.")


class NewSearch(BaseModel):
    """A search to save."""

    name: Name
    queries: list[SavedQuery] = Field(min_length=1, max_length=MAX_QUERIES)
    options: HowToSearch = Field(default_factory=lambda: HowToSearch.model_validate({}))
    standing: bool = Field(False, description="Also run it on photos that are added from now on.")
    favourite: bool = False
    tag: Tag | None = Field(None, description="Tag added to photos that a standing search finds.")

    @model_validator(mode="after")
    def _one_upload(self) -> "NewSearch":
        if sum(one.photo is None for one in self.queries) > 1:
            raise ValueError("a saved search can have only one photo that is not in the collection")
        return self


class SearchChange(BaseModel):
    """Changes to a saved search; fields that are left out stay the same."""

    name: Name | None = None
    standing: bool | None = None
    favourite: bool | None = None
    tag: Tag | None = Field(None, description="An empty one: none any more.")


class SavedSearch(BaseModel):
    """A saved search."""

    id: int
    name: str
    queries: list[SavedQuery]
    options: dict[str, object] = Field(description="Options of the search, without its photos.")
    uploaded: bool = Field(description="Whether a photo from elsewhere is kept with it.")
    standing: bool
    favourite: bool
    tag: str | None
    created: str = Field(description="ISO 8601, UTC.")
    found: int = Field(description="Photos that it has found, and that were kept.")
    new: int = Field(description="Number of results that were not looked at yet.")
    cover: int | None = Field(description="Number of the photo that stands for it; null: that of its own.")


class FoundPhoto(Photo):
    """A photo that a saved search has found."""

    probability: float | None = Field(description="Null if it was added by hand.")
    region: list[tuple[float, float]] | None = Field(description="Where in the photo: corners in its pixels.")
    found: str = Field(description="When: ISO 8601, UTC.")
    seen: bool = Field(description="Whether it was looked at.")
    category: str | None = Field(description="Category that it was put into.")
    book: str = Field(description="By IIIF manifest, the column Item, a file of several pages, or the folder.")
    page_label: str = Field(description="What the page is called in it.")
    place: str | None = Field(description="Where the book was made, or else the photo was taken.")


class Categorised(Numbers):
    """Photos to put into a category of a saved search's results."""

    category: Tag = Field(description=f"{one_of(CATEGORIES)}, or any other; empty: none.")


class Seen(BaseModel):
    """Photos that were looked at."""

    photos: list[Number] | None = Field(None, max_length=MOST, description="Left out: all that were found.")


# Books


class SharedPages(BaseModel):
    """A page of one book and one of another that show the same picture."""

    first_page: str
    second_page: str
    numbers: tuple[int, int] = Field(description="Of the two photos.")
    searches: list[str] = Field(description="Names of saved searches that found something on both; else a group did.")
    box: Box | None = Field(description="What the first of these found on the first page, in its pixels.")


class SharingBooks(BaseModel):
    """Two books that share pictures."""

    first: str
    second: str
    pictures: int = Field(description="Pages that match each other count once.")
    pages: list[SharedPages] = Field(description="100 at most.")


class BooksMatrix(BaseModel):
    """Which books share pictures."""

    books: list[str] = Field(description="By date.")
    pairs: list[SharingBooks] = Field(description="Those of most pictures first; 2,000 at most.")
    total: int = Field(description="How many pairs there are.")
    grouped: bool = Field(description="Whether groups were looked for: else saved searches alone tell.")


# Duplicates


class DuplicatePhoto(Photo):
    """A photo of a set of near duplicates, or of similar shots."""

    size: int | None = Field(description="Bytes of its file.")
    format: str = Field(description="By the ending of its file's name.")
    kind: Kind | None = Field(description=f"{KIND_HELP} Null for that photo, and for similar shots.")
    stays: Literal["said", "kind"] | None = Field(
        description="Why it is not proposed to be cleared away: a title, a caption or tags were typed in or imported, "
        "or its file has some that the best photo lacks, or it is in an album (said); it is a part or has a frame, or "
        "is the upright whole where the best is not (kind). Null: it may go."
    )


class DuplicateSet(BaseModel):
    """A set of near duplicates, or of similar shots."""

    photos: list[DuplicatePhoto] = Field(description="The best first.")
    reasons: list[Reason] = Field(description="Why the first is the best: what tells it from the others.")
    proposed: Literal["hide", "keep"] = Field(
        description="What is proposed: to hide the others, but for those that stay; or to keep all, of similar shots, "
        "where all others stay, and where one is turned and nothing tells whether it or the first is upright."
    )


class DuplicatePage(BaseModel):
    """Some sets of near duplicates, or of similar shots."""

    total: int = Field(description="Undecided sets of the requested kind.")
    copies: int = Field(description="Undecided sets of near duplicates.")
    similar: int = Field(description="Undecided sets of similar shots.")
    out_of_date: bool = Field(description="Whether photos changed since groups were found.")
    bin: bool = Field(description="Whether photos may be moved to a bin.")
    sets: list[DuplicateSet]


class Binned(BaseModel):
    """A photo whose file is in the bin."""

    id: str = Field(description="Of the file: pages of one file have the same.")
    number: int = Field(description="Number that the photo had.")
    name: str
    moved: str = Field(description="When: ISO 8601, UTC.")


class NotMoved(BaseModel):
    """A file that could not be moved."""

    number: int
    reason: str = Field(description="In the visitor's language.")


class Moved(BaseModel):
    """What was moved to the bin, or back."""

    moved: list[Binned]
    failed: list[NotMoved]


class PutBack(Moved):
    """What was put back from the bin."""

    job: int | None = Field(
        description="Number of the job that indexes again what the collection had forgotten; null: nothing."
    )


class Entries(BaseModel):
    """Files in the bin."""

    entries: list[Annotated[str, StringConstraints(max_length=64)]] = Field(min_length=1, max_length=MOST)
