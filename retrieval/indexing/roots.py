"""Folders that photos were indexed from: list, move, and naming of photos by them."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from index.errors import CairnError
from index.progress import Progress, silent
from index.reports import Report
from index.text import check_path, printable, readable
from retrieval.catalogue.changes import PhotoMove, move_photos, rename_photos
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.collection.sealing import changed
from retrieval.metadata.pages import file_of, hash_photo
from retrieval.photos.listing import count_by_root, is_away


@dataclass(frozen=True)
class Root(Report):
    """A folder that photos were indexed with."""

    folder: Annotated[str, "Its path."]
    photos: Annotated[int, "Photos of the collection in it."]
    there: Annotated[bool, "False if it is missing or empty: its drive may not be connected."]


@dataclass(frozen=True)
class MovedRoot(Report):
    """Result of `Collection.move_root`."""

    moved: Annotated[list[str], "Names of photos found in the new folder."]
    left: Annotated[list[str], "Names of photos that are not there, or have changed: their paths are not updated."]


def list_roots(collection: Collection) -> list[Root]:
    """List the folders that photos were indexed from, in order."""
    counts = count_by_root(collection.catalogue.places())
    return [Root(folder, photos, not is_away(folder)) for folder, photos in counts]


def move_root(collection: Collection, old: Path, new: Path, progress: Progress = silent) -> MovedRoot:
    """Record that the photos below a folder, or one above or below it, are in another folder now, with the same
    subfolders. A file of the recorded size and time is taken for the photo; any other file is read, and must have the
    same content. Other photos do not change.
    """
    before, after = Path(os.path.realpath(old)), Path(os.path.realpath(new))
    if not after.is_dir():
        raise CairnError("There is no folder {folder}: nothing was changed.", folder=printable(str(new)))
    places = [(number, path) for number, _, path in collection.catalogue.places()]
    rows, known = _rows_below(collection, places, before), {path for _, path in places}
    moves, moved, missing = [], [], []
    for number, row in enumerate(rows):
        path = after / Path(row.path).relative_to(before)
        status = None if str(path) in known else _found(row, path)
        if status is None:
            missing.append(row.name or "")
        else:
            moves.append(PhotoMove(row.number, str(path), None, status.st_size, status.st_mtime_ns))
            moved.append(row.name or "")
        progress("look", number + 1, len(rows))
    if not moves:
        raise CairnError(
            "None of the {count} photos below {old} is in {new} as it was indexed: nothing was changed.",
            count=len(rows),
            old=printable(str(old)),
            new=printable(str(new)),
        )
    with changed(collection):
        collection.catalogue.write(move_photos, moves)
    return MovedRoot(moved, missing)


def name_from(collection: Collection, folder: Path) -> dict[str, str]:
    """Name the photos below a folder by their paths relative to it; return the new names by the old ones."""
    top = Path(os.path.realpath(folder))
    places = ((number, path) for number, _, path in collection.catalogue.places())
    rows = _rows_below(collection, places, top)
    wishes = {row.number: readable(Path(row.path).relative_to(top).as_posix()) for row in rows}
    with changed(collection):
        return collection.catalogue.write(rename_photos, wishes)


def _rows_below(collection: Collection, places: Iterable[tuple[int, str]], folder: Path) -> list[ImageRow]:
    """Rows of those of some photos, pairs of number and path, that lie below a folder."""
    check_path(str(folder))
    start = os.path.join(folder, "")  # noqa: PTH118 (ends in a slash)
    numbers = [number for number, path in places if path.startswith(start)]
    if not numbers:
        raise CairnError(
            "No photo of {collection} lies below {folder}: {cairn roots} lists the folders.",
            collection=collection.folder,
            folder=printable(str(folder)),
        )
    return list(collection.catalogue.read(rows_of, numbers))


def _found(row: ImageRow, path: Path) -> os.stat_result | None:
    """Return the status of the file at a path if it is the photo of a row."""
    try:
        status = file_of(path).stat()
        if (status.st_size, status.st_mtime_ns) != (row.size, row.mtime_ns) and hash_photo(path) != row.sha256:
            return None
    except (OSError, ValueError):
        return None
    return status
