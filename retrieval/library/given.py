"""What a caller may mean by a photo: a file, the bytes of one, an image in memory, or a photo of the collection."""

import os
import shutil
import weakref
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.errors import CairnError
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.library.parts.images import encode_image
from retrieval.search.answers import Asked, PhotoNotFound, ask_with_file, ask_with_photo, find_photo
from retrieval.search.query import Box


@runtime_checkable
class InCollection(Protocol):
    """A photo of a collection, by its number: such as a `Photo` or a `Result`."""

    @property
    def number(self) -> int:
        """Number of the photo in the collection."""


Given = str | int | os.PathLike[str] | bytes | NDArray[Any] | Image.Image | InCollection
"""A photo as `Collection.search` takes it."""

NAME = "image"
"""What answers call a photo that came from memory."""


def several(photo: Given | Sequence[Given]) -> list[Given]:
    """Give one photo or several as a list."""
    if isinstance(photo, Sequence) and not isinstance(photo, (str, bytes)):
        return list(photo)
    return [photo]


def ask(collection: Collection, photo: Given, box: Sequence[float] | None = None) -> Asked:
    """Find out which photo is meant.

    Parameters
    ----------
    collection : Collection
        Open.
    photo : str, int, path-like, bytes, ndarray or InCollection
        A name in the collection or a file; a number in the collection; the content of a file; an image (H, W) or
        (H, W, 3), uint8 or float 0..1; or a photo of the collection.
    box : sequence of four floats, optional
        x0, y0, x1, y1 in pixels of the upright photo.

    Raises
    ------
    PhotoNotFound
        There is no such photo.
    CairnError
        It is no photo, or the box is none.
    """
    within = as_box(box)
    if isinstance(photo, bytes):
        return _from_memory(collection, photo, within)
    if isinstance(photo, (np.ndarray, Image.Image)):
        return _from_memory(collection, encode_image(photo), within)
    if isinstance(photo, str):
        return find_photo(collection, photo, within)
    if isinstance(photo, os.PathLike):
        path = Path(photo)
        if os.path.isfile(path):  # noqa: PTH113 (Path.is_file raises where the name is too long)
            return ask_with_file(collection, str(path), path, within)
        return find_photo(collection, str(path), within)
    if isinstance(photo, (int, InCollection)) and not isinstance(photo, bool):
        row = row_of(collection, photo)
        return ask_with_photo(row, row.name or "", within)
    raise CairnError(
        "A photo is a file, its bytes, a NumPy image, or a photo of the collection, and not "
        f"an object of type {type(photo).__name__}."
    )


def row_of(collection: Collection, photo: "str | int | InCollection") -> ImageRow:
    """Find a photo of the collection, by name, number or object.

    Raises
    ------
    PhotoNotFound
        There is none.
    """
    if isinstance(photo, (str, os.PathLike)):
        row = collection.catalogue.image_by_name(os.fspath(photo))
        if row is None:
            asked = find_photo(collection, os.fspath(photo))
            row = asked.row
        if row is None:
            raise PhotoNotFound(f"{os.fspath(photo)!r} is no photo of {collection.folder}.")
        return row
    number = photo if isinstance(photo, (int, np.integer)) else getattr(photo, "number", None)
    if number is None:
        raise CairnError(
            "A photo of a collection is meant by its name, its number, or what a search or a list gave, and not by "
            f"an object of type {type(photo).__name__}."
        )
    try:
        return collection.catalogue.images([int(number)])[0]
    except KeyError:
        raise PhotoNotFound(f"There is no photo {int(number)} in {collection.folder}.") from None


def as_box(box: Sequence[float] | None) -> Box | None:
    """Give a box as four numbers; CairnError where it is something else."""
    if box is None:
        return None
    try:
        x0, y0, x1, y1 = (float(value) for value in box)
    except (TypeError, ValueError):
        raise CairnError(f"A box is four numbers, x0, y0, x1, y1, and not {box!r}.") from None
    return x0, y0, x1, y1


def _from_memory(collection: Collection, content: bytes, box: Box | None) -> Asked:
    """Ask with the content of a file, which is written down for as long as what is returned is in use."""
    folder = mkdtemp(prefix="cairn-")
    path = Path(folder, NAME)
    path.write_bytes(content)
    asked = ask_with_file(collection, NAME, path, box)
    weakref.finalize(asked, shutil.rmtree, folder, ignore_errors=True)
    return asked
