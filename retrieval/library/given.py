"""Arguments that denote a photo: a file, its bytes, an image in memory, or a photo of the collection."""

import io
import os
import shutil
import weakref
from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.errors import CairnError
from retrieval.catalogue.photo_lookup import PhotoNotFound
from retrieval.catalogue.photos import photo_of_name, rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.library.parts.images import encode_image
from retrieval.metadata.pages import file_of
from retrieval.search.answers import QueryImage, ask_with_file, ask_with_photo, find_photo
from retrieval.search.query import Box


@runtime_checkable
class InCollection(Protocol):
    """A photo of a collection, such as a `Photo`, a `Result` or a `Match`."""

    @property
    def number(self) -> int:
        """Number of the photo in the collection."""

    @property
    def name(self) -> str:
        """Name of the photo in the collection."""

    @property
    def path(self) -> str:
        """Its file."""


Given = (
    str
    | int
    | np.integer
    | os.PathLike[str]
    | bytes
    | bytearray
    | memoryview
    | NDArray[Any]
    | Image.Image
    | InCollection
)
"""A photo as `Collection.search` takes it."""

NAME = "image"
"""What answers call a photo that came from memory."""


def is_one(photo: object) -> bool:
    """Whether an argument is one photo, or a file object, and not several."""
    one = (str, bytes, bytearray, memoryview, np.ndarray, Image.Image, os.PathLike, io.IOBase)
    return isinstance(photo, one) or not isinstance(photo, Iterable)


def several(photo: Given | Iterable[Given]) -> list[Given]:
    """Return one photo or several as a list."""
    return [photo] if is_one(photo) else list(photo)  # type: ignore[list-item, arg-type]


def ask(collection: Collection, photo: Given, box: Iterable[float] | None = None) -> QueryImage:
    """Resolve an argument to a query photo, with a box in pixels of the upright photo.

    A str or path is a name in the collection or a file; an int a number in the collection; bytes the content of a file;
    others an image, as for `as_image`, or a photo of the collection. Raises PhotoNotFound, or CairnError if it is not a
    photo.
    """
    within = as_box(box)
    if isinstance(photo, (bytes, bytearray, memoryview)):
        return _from_memory(collection, photo, within)
    if isinstance(photo, (np.ndarray, Image.Image)):
        return _from_memory(collection, encode_image(photo), within)
    if isinstance(photo, str):
        return find_photo(collection, str(photo), within)
    if isinstance(photo, os.PathLike):
        path = Path(photo)
        if os.path.isfile(file_of(path)):  # noqa: PTH113 (Path.is_file raises where the name is too long)
            return ask_with_file(collection, str(path), path, within)
        return find_photo(collection, str(path), within)
    if isinstance(photo, (int, np.integer, InCollection)) and not isinstance(photo, bool):
        row = row_of(collection, photo)
        return ask_with_photo(row, row.name or "", within)
    raise CairnError(
        "A photo is a file, its bytes, a NumPy image, or a photo of the collection, and not "
        f"an object of type {type(photo).__name__}."
    )


def row_of(collection: Collection, photo: "str | int | np.integer | os.PathLike[str] | InCollection") -> ImageRow:
    """Find a photo of the collection, by name, number or object; raises PhotoNotFound."""
    if isinstance(photo, (str, os.PathLike)):
        name = str(os.fspath(photo))
        row = collection.catalogue.read(photo_of_name, name)
        if row is None:
            row = find_photo(collection, name).row
        if row is None:
            raise PhotoNotFound(f"There is no photo {name!r} in {collection.folder}.")
        return row
    if isinstance(photo, bool) or not isinstance(photo, (int, np.integer, InCollection)):
        raise CairnError(
            "A photo of a collection is meant by its name, its number, or what a search or a list gave, and not by "
            f"an object of type {type(photo).__name__}."
        )
    number = int(photo.number if isinstance(photo, InCollection) else photo)
    try:
        # No database has a larger one.
        (row,) = collection.catalogue.read(rows_of, [number if abs(number) < 2**63 else -1])
    except KeyError:
        raise PhotoNotFound(f"There is no photo {number} in {collection.folder}.") from None
    # Numbers are not unique across collections; a photo that was moved may have another name or path, but not both.
    if isinstance(photo, InCollection) and row.name != photo.name and str(file_of(row.path)) != photo.path:
        raise PhotoNotFound(f"{photo.name!r}, number {number}, is no photo of {collection.folder}, but of another one.")
    return row


def as_box(box: Iterable[float] | None) -> Box | None:
    """Return a box as four numbers; raises CairnError if it has another form."""
    if box is None:
        return None
    try:
        x0, y0, x1, y1 = (float(value) for value in box)
    except (TypeError, ValueError):
        raise CairnError(f"A box is four numbers, x0, y0, x1, y1, and not {box!r}.") from None
    return x0, y0, x1, y1


def queries_of(photo: Given | Iterable[Given], box: Iterable[float] | None) -> tuple[list[Given], Box | None]:
    """Return the photos of a query, and the box in the only one; raises CairnError if they do not go together."""
    queries, within = several(photo), as_box(box)
    if not queries:
        raise CairnError("A query needs at least one photo.")
    if within is not None and len(queries) > 1:
        raise CairnError("A box can only be used with one photo: give one photo, or leave the box out.")
    return queries, within


def _from_memory(collection: Collection, content: bytes | bytearray | memoryview, box: Box | None) -> QueryImage:
    """Query with the content of a file, which is written to disk while the returned object is in use."""
    folder = mkdtemp(prefix="cairn-")
    try:
        path = Path(folder, NAME)
        path.write_bytes(content)
        query_image = ask_with_file(collection, NAME, path, box)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(query_image, _remove, folder, os.getpid())
    return query_image


def _remove(folder: str, process: int) -> None:
    """Remove a folder, unless in a process that was forked from the one that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
