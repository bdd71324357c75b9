"""Motifs: in which books and on which pages a saved search has found something, and the category of each occurrence."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from sqlalchemy.orm import Session

from index.errors import CairnError
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.curation.saved import StoredSearch, finds_of, saved_searches
from retrieval.catalogue.headers import normal_header
from retrieval.catalogue.photos import numbers_of_names
from retrieval.collection.collection import Collection
from retrieval.groups.groups import write_table
from retrieval.library.photos import Photo, cache_of, photos_there
from retrieval.library.reports import Report
from retrieval.metadata.columns import ITEM, MANIFEST, PAGE, PLACES
from retrieval.metadata.pages import stem_of


@dataclass(frozen=True)
class PageFacts:
    """Which page of which book a photo is.

    Attributes
    ----------
    key : str
        Tells the book from others: its IIIF manifest, its name in the column *Item*, its file, or its folder. A photo
        that is in no folder is a book by itself.
    book : str
        What the book is called.
    page : str
        What the page is called.
    date, place : str or None
        Of the photo or the book, where they are known.
    """

    key: str
    book: str
    page: str
    date: str | None
    place: str | None


@dataclass(frozen=True)
class Occurrence(Report):
    """A photo in which a saved search has found something.

    Attributes
    ----------
    name : str
        Of the photo.
    number : int
        Of the photo.
    book, page : str
        The book, by its IIIF manifest, the column *Item*, its file of several pages, or its folder; and the page in it.
    date, place : str or None
        Where they are known.
    probability : float or None
        That it shows the same; None: somebody added it.
    category : str or None
        That somebody put it into.
    region : list of [x, y] or None
        Corners of where it is, in pixels of the photo.
    """

    name: str
    number: int
    book: str
    page: str
    date: str | None
    place: str | None
    probability: float | None
    category: str | None
    region: list[list[float]] | None = field(hash=False)


@dataclass(frozen=True, eq=False)
class Occurrences(Sequence[Occurrence]):
    """What a saved search has found: a sequence of `Occurrence`, by date.

    Attributes
    ----------
    search : str
        Name of the saved search.
    occurrences : tuple of Occurrence
    """

    search: str
    occurrences: tuple[Occurrence, ...]

    def __len__(self) -> int:
        return len(self.occurrences)

    @overload
    def __getitem__(self, place: int) -> Occurrence: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Occurrence, ...]: ...
    def __getitem__(self, place: int | slice) -> Occurrence | tuple[Occurrence, ...]:
        return self.occurrences[place]

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the search and the occurrences, as plain values."""
        return {"search": self.search, "occurrences": [one.to_dict() for one in self]}

    def to_rows(self) -> list[list[str]]:
        """Return a table of texts, its header first: regions are boxes, as x, y, width and height in pixels."""
        header = ["book", "page", "date", "place", "probability", "category", "region", "photo"]
        return [header, *map(_row, self)]

    def save_table(self, path: str | Path) -> Path:
        """Write a table (CSV): book, page, date, place, probability, category, region, photo.

        Parameters
        ----------
        path : path-like
            Output file.

        Returns
        -------
        Path
            The table.

        Raises
        ------
        CairnError
            It cannot be written there.
        """
        return save_rows(Path(path), self.to_rows())


def occurrences_of(collection: Collection, search: StoredSearch, category: str | None = None) -> Occurrences:
    """Return what a saved search has found.

    Parameters
    ----------
    collection : Collection
    search : StoredSearch
    category : str, optional
        Those of a category alone; "": those that have none.
    """
    found = {one.number: one for one in collection.catalogue.read(finds_of, search.id)}
    kept = [number for number, one in found.items() if category is None or (one.category or "") == category]
    photos = photos_there(collection.catalogue, kept, cache_of(collection.folder))
    pages = book_pages(collection.catalogue, photos)
    listed = []
    for photo in photos:
        find, page = found[photo.number], pages[photo.number]
        facts = (page.book, page.page, page.date, page.place, find.probability, find.category, find.region)
        listed.append(Occurrence(photo.name, photo.number, *facts))
    listed.sort(key=lambda one: (one.date is None, one.date, one.book, one.number))
    return Occurrences(search.name, tuple(listed))


def named_search(session: Session, search: int | str) -> StoredSearch:
    """Return a saved search of an id, or of a name that one search alone has; raises CairnError otherwise."""
    meant = [one for one in saved_searches(session) if search in (one.id, one.name)]
    if len(meant) != 1:
        raise CairnError(
            "{count} saved searches are called {search}: give the id of one.",
            count=len(meant) or "No",
            search=repr(search),
        )
    return meant[0]


def book_pages(catalogue: Catalogue, photos: Sequence[Photo]) -> dict[int, PageFacts]:
    """Return which page of which book photos are, by their numbers."""
    alone = [photo.name for photo in photos if photo.page is None]
    # Of a file of several pages one is called as the file is: it is the first or the second, or one of these is there.
    others = catalogue.read(numbers_of_names, [f"{name}#{page}" for name in alone for page in (1, 2)])
    return {photo.number: _book_page(photo, others) for photo in photos}


def _book_page(photo: Photo, others: Mapping[str, int]) -> PageFacts:
    said = {normal_header(label): values for label, values in photo.others.items() if values}

    def value(*labels: str) -> str:
        return next((", ".join(said[one]) for one in map(normal_header, labels) if one in said), "")

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
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return "\ufeff" + text.getvalue()


def save_rows(path: Path, rows: Iterable[Iterable[str]]) -> Path:
    """Write rows as a table (CSV); raises CairnError if it cannot be written there."""
    write_table(path, table_text(rows))
    return path


def _row(one: Occurrence) -> list[str]:
    region = ""
    if one.region:
        xs, ys = ([round(point[axis]) for point in one.region] for axis in (0, 1))
        region = f"{min(xs)},{min(ys)},{max(xs) - min(xs)},{max(ys) - min(ys)}"
    probability = "" if one.probability is None else f"{one.probability:.4f}"
    return [one.book, one.page, one.date or "", one.place or "", probability, one.category or "", region, one.name]
