"""Photos of a collection with their metadata."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, NoReturn, overload

from index.attributes import some_of
from index.docstrings import documented
from retrieval.catalogue.browsing import page_after, rows_there
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import metadata_of
from retrieval.catalogue.photos import photo_of_name
from retrieval.catalogue.schema import ImageRow
from retrieval.metadata.fields import FIELDS, Metadata
from retrieval.metadata.pages import page_path, split_page

PhotoRow = ImageRow
"""A photo as the catalogue has it."""
PageNumber = Annotated[
    int | None,
    "Page of a multi-page file, from 1, or time in a film, milliseconds; None for the page that has the name of the "
    "file.",
]

_PAGE = 500  # photos that are read at a time
_LOOKS = 5  # attempts to find a photo while others are removed


class _ThumbnailSource:
    """Source of a photo's thumbnails: not a field, as it does not describe the photo."""

    _content: str | None = None  # SHA-256
    _cache: Path = Path()


@dataclass(frozen=True)
class _IndexedFacts:
    """Facts of a photo from indexing."""

    number: Annotated[int, "Unique and permanent."]
    name: Annotated[str, "Path within the indexed folder, with slashes."]
    path: Annotated[str, "Its file."]
    width: Annotated[int | None, "Pixels of the upright original."]
    height: Annotated[int | None, "Pixels of the upright original."]
    features: Annotated[int, "Number of indexed regions."]


@documented
@dataclass(frozen=True)
class Photo(_ThumbnailSource, Metadata, _IndexedFacts):
    """A photo of a collection."""

    others: Annotated[Mapping[str, tuple[str, ...]], "Other imported values, by the names of their columns."] = field(
        default_factory=dict, hash=False
    )
    date_added: Annotated[str | None, "When it was added to the collection: ISO 8601, UTC."] = None
    page: PageNumber = None

    @property
    def folder(self) -> str:
        """The part of the name before the last slash."""
        return self.name.rpartition("/")[0]

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes, as plain values."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**plain, "tags": list(self.tags), "others": {key: list(some) for key, some in self.others.items()}}

    def thumbnail(self, size: int = 256) -> bytes:
        """Return a small picture of the photo.

        Parameters
        ----------
        size : {128, 256, 512}
            Longer side, pixels.

        Returns
        -------
        bytes
            A JPEG file, upright; it is cached in the collection.

        Raises
        ------
        CairnError
            The file is missing or damaged.
        """
        from retrieval.photos.thumbnails import thumbnail

        return thumbnail(page_path(self.path, self.page), self._content, size, self._cache)

    def _repr_html_(self) -> str:
        from retrieval.library.display.markup import photos_html

        return photos_html([self], self.name)


class Photos(Sequence[Photo]):
    """Photos of a collection, ordered by name; read some at a time.

    ``pandas.DataFrame(photos)`` has a row for each.
    """

    def __init__(self, catalogue: Catalogue, cache: Path, wanted: PhotoFilter) -> None:
        """Take the catalogue, the folder of thumbnails, and a filter."""
        self._catalogue = catalogue
        self._cache = cache
        self._wanted = wanted

    def __len__(self) -> int:
        return self._catalogue.page(0, 0, wanted=self._wanted)[0]

    @overload
    def __getitem__(self, place: int) -> Photo: ...
    @overload
    def __getitem__(self, place: slice) -> list[Photo]: ...
    def __getitem__(self, place: int | slice) -> Photo | list[Photo]:
        if isinstance(place, slice):
            chosen = range(len(self))[place]
            if not chosen:
                return []
            first = min(chosen)
            some = self._some(first, max(chosen) + 1 - first)
            return [some[one - first] for one in chosen if one - first < len(some)]
        for _ in range(_LOOKS):
            if found := self._some(range(len(self))[place], 1):  # otherwise some were removed since they were counted
                return found[0]
        raise IndexError(place)

    def __iter__(self) -> Iterator[Photo]:
        last = ""
        while rows := self._catalogue.read(page_after, last, _PAGE, wanted=self._wanted):
            yield from photos_of(self._catalogue, rows, self._cache)
            last = rows[-1].name or ""

    def __reduce__(self) -> NoReturn:
        raise TypeError("Photos are read from an open collection and cannot be pickled or copied: give list(photos).")

    def __repr__(self) -> str:
        total = len(self)
        return f"<{total} photo{'' if total == 1 else 's'}>"

    def _some(self, offset: int, limit: int) -> list[Photo]:
        _, rows = self._catalogue.page(offset, limit, wanted=self._wanted)
        return photos_of(self._catalogue, rows, self._cache)

    def _repr_html_(self) -> str:
        from retrieval.library.display.markup import photos_html

        return photos_html(self)


def photos_of(catalogue: Catalogue, rows: Sequence[ImageRow], cache: Path) -> list[Photo]:
    """Photos of some rows of a catalogue, with their metadata."""
    known = catalogue.read(metadata_of, [row.number for row in rows])
    photos = [
        Photo(
            name=row.name or "",
            path=str(file),
            **some_of(row, "number", "width", "height", "features", "date_added"),
            **some_of(known[row.number], *(one.name for one in FIELDS.values())),
            others=dict(known[row.number].others),
            page=page,
        )
        for row, (file, page) in ((row, split_page(row.path)) for row in rows)
    ]
    for photo, row in zip(photos, rows, strict=True):
        vars(photo).update(_content=row.sha256, _cache=cache)
    return photos


def photos_there(catalogue: Catalogue, numbers: Sequence[int], cache: Path) -> list[Photo]:
    """Those of some photos that are in the collection, in the order of `numbers`."""
    return photos_of(catalogue, catalogue.read(rows_there, numbers), cache)


def photo_named(catalogue: Catalogue, name: str, cache: Path) -> Photo | None:
    """The photo of a name, or None."""
    row = catalogue.read(photo_of_name, name)
    return None if row is None else photos_of(catalogue, [row], cache)[0]


def cache_of(folder: Path) -> Path:
    """Thumbnails of a collection."""
    from retrieval.photos.listing import CACHE

    return folder / CACHE
