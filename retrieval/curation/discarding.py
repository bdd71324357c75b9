"""Photos that are taken out of the collection, to the bin or without their files, and that come back from there."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from retrieval.catalogue.browsing import rows_there
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones, unbury
from retrieval.catalogue.photos import names_of, rows_of_content
from retrieval.catalogue.schema import ImageRow
from retrieval.curation.bin import BinEntry, FileNotMoved, find_binned, forget, move_to_bin, put_back
from retrieval.photos.listing import is_one_file


@dataclass(frozen=True)
class BinReport:
    """What came of moving photos to a bin."""

    moved: tuple[BinEntry, ...]
    failed: dict[int, str]  # by number: why a file stays where it is, and its photo in the collection
    forgotten: tuple[Path, ...] = ()  # of those that are back: files that have to be indexed again


def take_out(session: Session, numbers: Sequence[int], *, for_good: bool = False) -> int:
    """Take photos out of the collection; their files stay where they are.

    Parameters
    ----------
    session : Session
    numbers : sequence of int
        Of the photos; those that are not in the collection are left out.
    for_good : bool
        Keep them out when their folders are indexed again.

    Returns
    -------
    int
        How many were there.
    """
    there = sorted(names_of(session, numbers))
    make_tombstones(session, there, for_good=for_good)
    return len(there)


def discard(catalogue: Catalogue, numbers: Sequence[int], folder: Path, collection: Path) -> BinReport:
    """Move the files of photos to a bin, then take the photos out of the collection.

    A photo is taken out when its file is in the bin: one that is killed between leaves the photo in the collection,
    and is gone on with when it is asked for again.

    Parameters
    ----------
    catalogue : Catalogue
    numbers : sequence of int
        Of the photos; those that are not in the collection are left out.
    folder : Path
        The bin.
    collection : Path
        Folder of the collection, for the records.

    Returns
    -------
    BinReport
    """
    moved: list[BinEntry] = []
    failed: dict[int, str] = {}
    for row in catalogue.read(rows_there, sorted(set(numbers))):
        try:
            _refuse_kept(catalogue, row, set(numbers))
            moved.append(move_to_bin(row, folder, collection))
        except FileNotMoved as error:
            failed[row.number] = str(error)
            continue
        catalogue.write(make_tombstones, [row.number])
    return BinReport(tuple(moved), failed)


def _refuse_kept(catalogue: Catalogue, row: ImageRow, going: Collection[int]) -> None:
    """Raise FileNotMoved if the file of a photo is also that of one that stays: a link leads to it."""
    for other in catalogue.read(rows_of_content, row.sha256) if row.sha256 else ():
        if other.number not in going and is_one_file(other.path, row.path):
            raise FileNotMoved(
                "The file of {name} is that of {other} too, which stays: one of the two is a link.",
                name=row.name,
                other=other.name,
            )


def restore(catalogue: Catalogue, entries: Sequence[str], folder: Path) -> BinReport:
    """Put files of a bin back where they came from, and their photos back into the collection.

    A photo that the collection has forgotten, as it was compacted since, comes back when its folder is indexed again.

    Parameters
    ----------
    catalogue : Catalogue
    entries : sequence of str
        Those of the bin, by `BinEntry.id`; others are left out.
    folder : Path
        The bin.

    Returns
    -------
    BinReport
        `moved` are those that are back; `failed` those that are in the bin still.
    """
    moved: list[BinEntry] = []
    failed: dict[int, str] = {}
    forgotten: list[Path] = []
    for entry in entries:
        one = find_binned(folder, entry)
        if one is None:
            continue
        try:
            put_back(one, folder)
        except FileNotMoved as error:
            failed[one.number] = str(error)
            continue
        with catalogue.writing() as session:
            unbury(session, {one.number: one.name})
            if one.number not in names_of(session, [one.number]):
                forgotten.append(Path(one.path))
        forget(one, folder)  # last: what is killed before is in the bin still, and can be put back again
        moved.append(one)
    return BinReport(tuple(moved), failed, tuple(forgotten))
