"""Remove photos from the collection, with or without moving their files to the bin, and restore them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from index.errors import CairnError
from retrieval.catalogue.browsing import rows_there
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones, paths_of_pages, rows_of_paths, unbury
from retrieval.catalogue.database import chunks
from retrieval.catalogue.photos import kept_in_segments, names_of, rows_of_content
from retrieval.catalogue.schema import INDEXED, ImageRow
from retrieval.curation.bin import BinEntry, FileNotMoved, find_binned, forget, move_to_bin, put_back
from retrieval.metadata.pages import file_of, is_film, page_path, split_page
from retrieval.photos.decoding import other_pages
from retrieval.photos.listing import PAGED_SUFFIXES, is_one_file


@dataclass(frozen=True)
class BinReport:
    """Result of moving photos to a bin or back."""

    moved: tuple[BinEntry, ...]
    failed: dict[int, FileNotMoved]  # by number: reason why a file was not moved; its photo stays in the collection
    forgotten: tuple[Path, ...] = ()  # restored files that have to be indexed again


def take_out(session: Session, numbers: Sequence[int], *, for_good: bool = False) -> int:
    """Remove photos, return how many; `for_good` excludes them when their folders are indexed again."""
    present = sorted(names_of(session, numbers))
    make_tombstones(session, present, for_good=for_good)
    return len(present)


def discard(catalogue: Catalogue, numbers: Sequence[int], folder: Path, collection: Path) -> BinReport:
    """Move the files of photos to a bin, then remove the photos from the collection.

    A photo is removed once its file is in the bin: a process killed in between leaves the photo in the collection, and
    the next call completes it. A multi-page file is moved only if all of its pages in the collection are removed.
    """
    moved: list[BinEntry] = []
    failed: dict[int, FileNotMoved] = {}
    files: dict[Path, list[ImageRow]] = {}
    for row in catalogue.read(rows_there, sorted(set(numbers))):
        files.setdefault(file_of(row.path), []).append(row)
    for file, rows in files.items():
        rows.sort(key=lambda row: split_page(row.path)[1] or 0)
        try:
            _refuse_part(catalogue, file, rows)
            for row in rows:
                _refuse_kept(catalogue, row, set(numbers))
            moved.append(move_to_bin(rows[0], folder, collection, rows[1:]))
        except FileNotMoved as error:
            failed |= dict.fromkeys((row.number for row in rows), error)
            continue
        catalogue.write(make_tombstones, [row.number for row in rows])
    return BinReport(tuple(moved), failed)


def _refuse_part(catalogue: Catalogue, file: Path, going: Sequence[ImageRow]) -> None:
    """Raise FileNotMoved if a file has pages in the collection that are not removed, or its pages are unknown."""
    paths = {row.path for row in going}
    if (file.suffix.lower() not in PAGED_SUFFIXES and paths == {str(file)}) or not file.is_file():
        return
    try:
        if is_film(file):  # frames at any time may be in the collection
            paths |= {str(file), *catalogue.read(paths_of_pages, str(file))}
        else:
            paths |= {str(file), *(str(page_path(file, page)) for page in other_pages(file))}
    except CairnError as error:
        if paths != {str(file)}:  # a damaged file of one photo may go
            raise FileNotMoved(
                "The pages of the file of {name} cannot be read ({value}): it is where it was.",
                name=going[0].name,
                value=error,
            ) from error
    rows = [one for some in chunks(sorted(paths)) for one in catalogue.read(rows_of_paths, some)]
    indexed = sum(state == INDEXED for _, state in rows)
    if indexed > len(going):
        raise FileNotMoved(
            "{name} is a page of a file that can only be moved with all of its pages: choose all {n} pages.",
            name=going[0].name,
            n=indexed,
        )


def _refuse_kept(catalogue: Catalogue, row: ImageRow, going: Collection[int]) -> None:
    """Raise FileNotMoved if the file of a photo is also that of one that stays: a link leads to it."""
    for other in catalogue.read(rows_of_content, row.sha256) if row.sha256 else ():
        if other.number not in going and is_one_file(other.path, row.path):
            raise FileNotMoved(
                "The file of {name} is that of {other} too, which stays: one of the two is a link.",
                name=row.name,
                other=other.name,
            )


def restore(
    catalogue: Catalogue, entries: Sequence[str], folder: Path, check: Callable[[Path], None] | None = None
) -> BinReport:
    """Restore files from a bin, by `BinEntry.id`, to their old paths, and their photos to the collection.

    A photo that was deleted by compaction since comes back when its folder is indexed again; its file stays in the bin
    if `check` raises FileNotMoved, as it may not be indexed.
    """
    moved: list[BinEntry] = []
    failed: dict[int, FileNotMoved] = {}
    forgotten: list[Path] = []
    for entry in entries:
        one = find_binned(folder, entry)
        if one is None:
            continue
        try:
            if check and len(catalogue.read(kept_in_segments, list(one.photos))) < len(one.photos):
                check(Path(one.path))
            put_back(one, folder)
        except FileNotMoved as error:
            failed |= dict.fromkeys(one.photos, error)
            continue
        with catalogue.writing() as session:
            unbury(session, one.photos)
            if len(names_of(session, list(one.photos))) < len(one.photos):
                forgotten.append(Path(one.path))
        forget(one, folder)  # last: after a kill the file is still in the bin, and can be restored again
        moved.append(one)
    return BinReport(tuple(moved), failed, tuple(forgotten))
