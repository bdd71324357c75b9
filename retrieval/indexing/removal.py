"""Removal of photos from a collection."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from index.errors import CairnError
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.passing import exclude_folder
from retrieval.catalogue.photo_lookup import PhotoNotFound
from retrieval.catalogue.photos import missing_photos, names_of, numbers_of_names, rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.collection.sealing import changed
from retrieval.metadata.pages import hash_photo, is_film, split_page
from retrieval.photos.decoding import other_pages
from retrieval.photos.listing import away


def remove_photos(
    collection: Collection,
    names: Sequence[str],
    *,
    missing: bool = False,
    gone: Sequence[Path] = (),
    folder: str | None = None,
    for_good: bool = False,
    dry_run: bool = False,
) -> list[str]:
    """Remove photos from a collection, all of them or none, in one transaction; return their names, in order. They stay
    in their segments, as tombstones, until these are merged. Raises PhotoNotFound.

    `missing`: also photos whose files were missing at the last run, and still are. `gone`: folders that are gone for
    good; `missing` is refused for any other absent folder, as its drive may not be connected. `for_good`: exclude the
    photos when their folders are indexed again, wherever their files are then; see `exclusions`. A `folder` is excluded
    with all files that are added to it later.
    """
    if not names and not missing and folder is None:
        raise CairnError("Say which photos to remove: give names, {--folder} or {--missing}.")
    catalogue = collection.catalogue
    numbers = catalogue.read(numbers_of_names, names)
    unknown = [name for name in dict.fromkeys(names) if name not in numbers]
    if unknown:
        name, others = repr(unknown[0]), len(unknown) - 1
        if others:
            raise PhotoNotFound(
                "There is no photo {name} in {folder}, and {others} others that were named are not there either: "
                "nothing was removed.",
                name=name,
                folder=collection.folder,
                others=others,
            )
        raise PhotoNotFound(
            "There is no photo {name} in {folder}: nothing was removed.", name=name, folder=collection.folder
        )
    chosen = set(numbers.values())
    within: list[int] = []
    if folder is not None:
        if folder.strip("/"):
            within = catalogue.read(numbers_of, PhotoFilter(folder=folder, hidden=None)).tolist()
        if not within:
            raise CairnError(f"There is no folder {folder!r} with photos in {collection.folder}: nothing was removed.")
        chosen.update(within)
    if missing:
        lost = [row for row in catalogue.read(missing_photos) if _is_gone(row)]
        _refuse_away(lost, gone)
        chosen.update(row.number for row in lost)
    removed = sorted(catalogue.read(names_of, sorted(chosen)).values())
    if dry_run:
        return removed
    with changed(collection), catalogue.writing() as session:
        if folder is not None and for_good:
            exclude_folder(session, folder, rows_of(session, within))
        make_tombstones(session, sorted(chosen), for_good=for_good)
    return removed


def _refuse_away(rows: Sequence[ImageRow], gone: Sequence[Path]) -> None:
    """Raise CairnError if a folder of missing photos is absent, unless it is gone for good."""
    said = [os.path.realpath(folder) for folder in gone]
    counted = Counter(folder for row in rows if (folder := away(row.path, row.name or "")) is not None)
    for folder, count in counted.items():
        if not any(Path(folder).is_relative_to(one) for one in said):
            raise CairnError(
                "The folder {folder} is not there, or empty, with {count} missing photos: connect its drive, or name "
                "it with {--gone} if it is gone for good. Nothing was removed.",
                folder=repr(folder),
                count=count,
            )


def _is_gone(row: ImageRow) -> bool:
    """Whether a photo is certainly not at its path; False if the path cannot be examined."""
    try:
        file, page = split_page(row.path)
        file.stat()
        if is_film(file):  # a film has a frame at any time
            return page is not None and hash_photo(row.path) != row.sha256
        return page is not None and page not in other_pages(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, CairnError):
        return False
