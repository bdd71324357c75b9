"""Folders that photos were indexed with: which there are, where they are now, and what photos are called by them."""

import os
from collections.abc import Iterable
from pathlib import Path

from index.errors import CairnError
from index.progress import Progress
from index.text import check_path, printable, readable
from retrieval.catalogue.changes import PhotoMove, move_photos, rename_photos
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.collection.sealing import changed
from retrieval.metadata.pages import file_of, hash_photo
from retrieval.photos.listing import count_by_root, is_away


def list_roots(collection: Collection) -> list[tuple[str, int, bool]]:
    """Folders that photos were indexed with, in order, the number of photos, and whether each is there with anything in
    it: its drive may not be connected.
    """
    return [(folder, photos, not is_away(folder)) for folder, photos in count_by_root(collection.catalogue.places())]


def move_root(
    collection: Collection, old: Path, new: Path, progress: Progress | None = None
) -> tuple[list[str], list[str]]:
    """Say that the photos below a folder, or one above or below it, are in another one now, in the same order of
    folders. A file of the size and time that were noted is taken for the photo; another is read, and taken where its
    content is the same. Gives names of photos found there, and of those left, which stay as they are.
    """
    tell = progress or (lambda step, done, of: None)
    before, after = Path(os.path.realpath(old)), Path(os.path.realpath(new))
    if not after.is_dir():
        raise CairnError(f"There is no folder {printable(str(new))}: nothing was changed.")
    places = [(number, path) for number, _, path in collection.catalogue.places()]
    rows, known = _rows_below(collection, places, before), {path for _, path in places}
    moves, moved, left = [], [], []
    for number, row in enumerate(rows):
        path = after / Path(row.path).relative_to(before)
        status = None if str(path) in known else _found(row, path)
        if status is None:
            left.append(row.name or "")
        else:
            moves.append(PhotoMove(row.number, str(path), None, status.st_size, status.st_mtime_ns))
            moved.append(row.name or "")
        tell("look", number + 1, len(rows))
    if not moves:
        raise CairnError(
            f"None of the {len(rows)} photos below {printable(str(old))} is in {printable(str(new))} as it was "
            "indexed: nothing was changed."
        )
    with changed(collection):
        collection.catalogue.write(move_photos, moves)
    return moved, left


def name_from(collection: Collection, folder: Path) -> dict[str, str]:
    """Call the photos below a folder by their paths from there; give the new names by those that they had."""
    top = Path(os.path.realpath(folder))
    places = ((number, path) for number, _, path in collection.catalogue.places())
    rows = _rows_below(collection, places, top)
    wishes = {row.number: readable(Path(row.path).relative_to(top).as_posix()) for row in rows}
    with changed(collection):
        return collection.catalogue.write(rename_photos, wishes)


def _rows_below(collection: Collection, places: Iterable[tuple[int, str]], folder: Path) -> list[ImageRow]:
    """Rows of photos, of which numbers and paths are given, that lie below a folder."""
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
    """Return the state of the file at a path if that is the photo of a row."""
    try:
        status = file_of(path).stat()
        if (status.st_size, status.st_mtime_ns) != (row.size, row.mtime_ns) and hash_photo(path) != row.sha256:
            return None
    except (OSError, ValueError):
        return None
    return status
