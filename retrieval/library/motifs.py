"""Motifs: in which books and on which pages a saved search has found something, and the category of each occurrence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from index.reports import Report
from index.text import csv_text
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.curation.saved import StoredSearch, finds_of
from retrieval.catalogue.headers import normal_header
from retrieval.catalogue.photos import numbers_of_names
from retrieval.collection.collection import Collection
from retrieval.groups.tables import write_table
from retrieval.library.photos import Photo, cache_of, photos_there
from retrieval.metadata.columns import ITEM, MANIFEST, PAGE, PLACES
from retrieval.metadata.pages import stem_of


@dataclass(frozen=True)
class PageFacts:
    """The book and page of a photo."""

    key: str  # of the book: its IIIF manifest, its column Item, its file, or its folder; a photo in none is a book
    book: str
    page: str
    date: str | None
    place: str | None


@dataclass(frozen=True)
class Occurrence(Report):
    """A photo that a saved search has found."""

    name: Annotated[str, "Of the photo."]
    number: Annotated[int, "Of the photo."]
    book: Annotated[str, "The book: its IIIF manifest, the column *Item*, its file of several pages, or its folder."]
    page: Annotated[str, "The page in it."]
    date: Annotated[str | None, "Date, if known."]
    place: Annotated[str | None, "Place, if known."]
    probability: Annotated[float | None, "That it shows the same; None if it was added by hand."]
    category: Annotated[str | None, "Category that it was put into."]
    region: Annotated[list[list[float]] | None, "Corners (x, y) of where it is, in pixels of the photo."] = field(
        hash=False
    )


CATEGORIES = ("same block", "copy", "same motif", "not related")
"""Categories that are proposed; any others may be given."""
UNRELATED = CATEGORIES[-1]

OCCURRENCE_COLUMNS = ("book", "page", "date", "place", "probability", "category", "region", "photo")
"""Of a table of occurrences; a region is a box, as x, y, width and height in pixels."""


def occurrences_of(collection: Collection, search: StoredSearch, category: str | None = None) -> list[Occurrence]:
    """Return the results of a saved search, by date: all, or those of a category ("": without one)."""
    finds = {one.number: one for one in collection.catalogue.read(finds_of, search.id)}
    numbers = [number for number, one in finds.items() if category is None or (one.category or "") == category]
    photos = photos_there(collection.catalogue, numbers, cache_of(collection.folder))
    pages = book_pages(collection.catalogue, photos)
    listed = []
    for photo in photos:
        find, page = finds[photo.number], pages[photo.number]
        facts = (page.book, page.page, page.date, page.place, find.probability, find.category, find.region)
        listed.append(Occurrence(photo.name, photo.number, *facts))
    return sorted(listed, key=lambda one: (one.date is None, one.date, one.book, one.number))


def book_pages(catalogue: Catalogue, photos: Sequence[Photo]) -> dict[int, PageFacts]:
    """Return the books and pages of photos, by their numbers."""
    alone = [photo.name for photo in photos if photo.page is None]
    # Of a file of several pages one is called as the file is: it is the first or the second, or one of these is there.
    others = catalogue.read(numbers_of_names, [f"{name}#{page}" for name in alone for page in (1, 2)])
    return {photo.number: _book_page(photo, others) for photo in photos}


def _book_page(photo: Photo, others: Mapping[str, int]) -> PageFacts:
    columns = {normal_header(label): values for label, values in photo.others.items() if values}

    def value(*labels: str) -> str:
        return next((", ".join(columns[one]) for one in map(normal_header, labels) if one in columns), "")

    file = photo.name if photo.page is None else photo.name.rpartition("#")[0]
    item, manifest = value(ITEM), value(MANIFEST)
    has_pages = photo.page is not None or any(f"{file}#{page}" in others for page in (1, 2))
    if item or manifest:
        key, book = manifest or item, item or manifest
    elif has_pages or not photo.folder:
        key, book = file, stem_of(file)
    else:
        key, book = photo.folder, photo.folder
    page = value(PAGE) or (str(photo.page or 1) if has_pages else stem_of(photo.name))
    place = value(*PLACES)
    if not place and photo.latitude is not None:
        place = f"{photo.latitude:.4f}, {photo.longitude:.4f}"
    return PageFacts(key, book, page, photo.taken, place or None)


def table_text(rows: Iterable[Iterable[str]]) -> str:
    """Return rows as CSV, marked as UTF-8, as spreadsheets take it for another encoding otherwise."""
    return "\ufeff" + csv_text(rows)


def save_rows(path: Path, rows: Iterable[Iterable[str]]) -> Path:
    """Write rows as a table (CSV); raises CairnError if it cannot be written there."""
    write_table(path, table_text(rows))
    return path


def occurrence_rows(occurrences: Iterable[Occurrence]) -> list[Sequence[str]]:
    """Return a table of texts, `OCCURRENCE_COLUMNS` first."""
    return [OCCURRENCE_COLUMNS, *map(_row, occurrences)]


def _row(one: Occurrence) -> Sequence[str]:
    region = ""
    if one.region:
        xs, ys = ([round(point[axis]) for point in one.region] for axis in (0, 1))
        region = f"{min(xs)},{min(ys)},{max(xs) - min(xs)},{max(ys) - min(ys)}"
    probability = "" if one.probability is None else f"{one.probability:.4f}"
    return [one.book, one.page, one.date or "", one.place or "", probability, one.category or "", region, one.name]
