"""Changes to photos of a catalogue: they move, go missing, come back, and their segments are rewritten."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from index.errors import CairnError
from index.text import check_path, check_storable
from retrieval.catalogue.database import chunks
from retrieval.catalogue.exclusions import exclude_photos
from retrieval.catalogue.names import free_names
from retrieval.catalogue.photos import indexed_among
from retrieval.catalogue.schema import (
    BULK,
    FAILED,
    INDEXED,
    REMOVED,
    AlbumPhotoRow,
    AlbumRow,
    Base,
    ExcludedRow,
    HiddenRow,
    ImageRow,
    LinkRow,
    QueryRejectionRow,
    RejectionRow,
    SavedFindRow,
    SavedSearchRow,
    SegmentRow,
    now,
    path_hash_of,
)
from retrieval.catalogue.settings import keep_setting
from retrieval.catalogue.words import write_words

# Tables of decisions on single photos.
_OF_ONE: tuple[type[Any], ...] = (AlbumPhotoRow, HiddenRow, QueryRejectionRow, SavedFindRow)


class PhotoMove(NamedTuple):
    """An unchanged photo that was found at its path or at another one."""

    number: int
    path: str
    name: str | None  # desired name; None: no change
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Rewritten:
    """A published segment that replaces others, and its images."""

    row: SegmentRow  # without `id`
    numbers: NDArray[np.integer]  # (n,) of its images, by position
    errors: NDArray[np.float64] | None = None  # (n,) their new quantisation errors; None: unchanged


def move_photos(session: Session, moves: Sequence[PhotoMove]) -> list[str]:
    """Store new paths of indexed photos, and mark them as not missing; return the names of those with a desired name.

    Photos may swap places: all old names are freed before new ones are given. A photo whose path another photo takes,
    and that is not among the moves, becomes a tombstone: its file was overwritten.
    """
    for move in moves:
        check_path(move.path)
        check_storable(move.name or "")
    there = set(indexed_among(session, [move.number for move in moves]))
    moves = [move for move in moves if move.number in there]  # others were removed since the run began
    for paths in chunks([move.path for move in moves]):
        older = rows_of_paths(session, paths)
        bury(session, [number for number, state in older if state == INDEXED and number not in there])
    renamed = {move.number: (move.path, move.name) for move in moves if move.name is not None}
    names = _give_names(session, renamed)
    for move in moves:
        row = session.get_one(ImageRow, move.number)
        row.path, row.size, row.mtime_ns, row.missing_since = move.path, move.size, move.mtime_ns, None
        row.name = names.get(move.number, row.name)
        row.derive()
    write_words(session, [*names])
    return [*names.values()]


def rename_photos(session: Session, wishes: Mapping[int, str]) -> dict[str, str]:
    """Rename indexed photos, as far as names are free; return the new names by the old ones."""
    before: dict[int, tuple[str, str]] = {}
    for chunk in chunks([*wishes]):
        query = sa.select(ImageRow.number, ImageRow.path, ImageRow.name)
        rows = session.execute(query.where(ImageRow.number.in_(chunk), ImageRow.state == INDEXED))
        before.update((number, (path, name or "")) for number, path, name in rows if name != wishes[number])
    names = _give_names(session, {number: (path, wishes[number]) for number, (path, _) in before.items()})
    for number, name in names.items():
        row = session.get_one(ImageRow, number)
        row.name = name
        row.derive()
    write_words(session, [*names])
    return {before[number][1]: name for number, name in names.items() if name != before[number][1]}


def _give_names(session: Session, photos: Mapping[int, tuple[str, str]]) -> dict[int, str]:
    """Choose names for photos, by their paths and desired names, after freeing their old names."""
    for chunk in chunks([*photos]):
        session.execute(
            sa.update(ImageRow).where(ImageRow.number.in_(chunk)).values(name=None, folder=None),
            execution_options=BULK,
        )
    return dict(zip(photos, free_names(session, [*photos.values()]), strict=True))


def rows_of_paths(session: Session, paths: Sequence[str]) -> list[tuple[int, str]]:
    """Number and state of the images of these paths that are not removed."""
    hashes = [path_hash_of(path) for path in paths]
    query = sa.select(ImageRow.number, ImageRow.state, ImageRow.path).where(
        ImageRow.path_hash.in_(hashes), ImageRow.state != REMOVED
    )
    wanted = set(paths)
    return [(number, state) for number, state, path in session.execute(query) if path in wanted]


def paths_of_pages(session: Session, file: str) -> list[str]:
    """Paths of the images that are pages of a file and not removed, except the one that has the name of the file."""
    is_page = ImageRow.path.startswith(f"{file}#", autoescape=True)
    paths = session.scalars(sa.select(ImageRow.path).where(is_page, ImageRow.state != REMOVED))
    return [path for path in paths if path.startswith(f"{file}#")]  # LIKE of SQLite ignores case


def make_tombstones(session: Session, numbers: Iterable[int], for_good: bool = False) -> None:
    """Turn indexed photos into tombstones, which frees their names, and exclude them if `for_good`."""
    numbers = list(numbers)
    if for_good:
        exclude_photos(session, numbers)
    bury(session, numbers)


def bury(session: Session, numbers: Iterable[int]) -> dict[str, int]:
    """Turn indexed images into tombstones; return their numbers by their paths."""
    buried: dict[str, int] = {}
    for chunk in chunks([int(number) for number in numbers]):
        wanted = (ImageRow.number.in_(chunk), ImageRow.state == INDEXED)
        rows = session.execute(sa.select(ImageRow.path, ImageRow.number).where(*wanted))
        buried.update((path, number) for path, number in rows)
        tombstone = {"state": REMOVED, "name": None, "folder": None}
        session.execute(sa.update(ImageRow).where(*wanted).values(tombstone), execution_options=BULK)
    write_words(session, [*buried.values()])
    return buried


def unbury(session: Session, names: Mapping[int, str]) -> list[int]:
    """Restore tombstones in segments, by number and desired name, unless their path is taken; return the numbers."""
    back = []
    for chunk in chunks(sorted(names)):
        wanted = (ImageRow.number.in_(chunk), ImageRow.state == REMOVED, ImageRow.segment_id.is_not(None))
        rows = list(session.scalars(sa.select(ImageRow).where(*wanted).order_by(ImageRow.number)))
        rows = [row for row in rows if not rows_of_paths(session, [row.path])]
        new_names = free_names(session, [(row.path, names.get(row.number)) for row in rows])
        for row, name in zip(rows, new_names, strict=True):
            row.state, row.name, row.missing_since = INDEXED, name, None
            row.derive()
            session.flush()
            back.append(row.number)
    write_words(session, back)
    return back


def mark_missing(session: Session, numbers: Sequence[int], missing: bool = True) -> None:
    """Mark indexed photos as missing since now, or as no longer missing."""
    since = now() if missing else None
    for chunk in chunks(list(numbers)):
        session.execute(
            sa.update(ImageRow)
            .where(ImageRow.number.in_(chunk), ImageRow.state == INDEXED)
            .values(missing_since=since),
            execution_options=BULK,
        )


def forget_photos(session: Session, numbers: Sequence[int]) -> None:
    """Delete photos with all data on them."""
    for some in chunks(numbers):
        session.execute(sa.delete(LinkRow).where(LinkRow.number.in_(some)), execution_options=BULK)
        session.execute(sa.delete(ImageRow).where(ImageRow.number.in_(some)), execution_options=BULK)
    write_words(session, numbers)


def decided_numbers() -> sa.Select[Any]:
    """Numbers of the photos with decisions, as a query."""
    columns = [*(kind.number for kind in _OF_ONE), RejectionRow.one, RejectionRow.other]
    return sa.select(sa.union_all(*(sa.select(column.label("number")) for column in columns)).subquery().c.number)


def inherit_decisions(session: Session, origins: Mapping[int, int]) -> None:
    """Copy decisions (albums, hidden, no match) to new photos, the keys, from those that they replace."""
    heirs: dict[int, list[int]] = {}
    for new, old in origins.items():
        heirs.setdefault(old, []).append(new)
    pairs: dict[tuple[int, int], str] = {}
    for some in chunks(list(heirs)):
        for kind in _OF_ONE:
            decisions = session.execute(sa.select(kind.__table__).where(kind.number.in_(some))).mappings().all()
            if decisions:
                rows = [{**row, "number": new} for row in decisions for new in heirs[row["number"]]]
                session.execute(sa.insert(kind), rows)
        either = sa.or_(RejectionRow.one.in_(some), RejectionRow.other.in_(some))
        query = sa.select(RejectionRow.one, RejectionRow.other, RejectionRow.since).where(either)
        pairs.update(((one, other), since) for one, other, since in session.execute(query))
        for row in session.scalars(sa.select(AlbumRow).where(AlbumRow.cover.in_(some))):
            row.cover = heirs[row.cover][0] if row.cover is not None else None
    inherited = {
        (min(a, b), max(a, b)): since
        for (one, other), since in pairs.items()
        for a in (one, *heirs.get(one, ()))
        for b in (other, *heirs.get(other, ()))
    }
    rows = [
        {"one": one, "other": other, "since": inherited[one, other]} for one, other in inherited.keys() - pairs.keys()
    ]
    if rows:
        session.execute(sa.insert(RejectionRow), rows)
    session.flush()


def forget_decisions_on_none(session: Session) -> None:
    """Delete decisions on photos, albums and searches that do not exist."""
    images = sa.select(ImageRow.number)
    columns: list[tuple[type[Any], Any, Any]] = [(kind, kind.number, images) for kind in _OF_ONE]
    columns += [(RejectionRow, column, images) for column in (RejectionRow.one, RejectionRow.other)]
    columns += [
        (AlbumPhotoRow, AlbumPhotoRow.album, sa.select(AlbumRow.id)),
        (SavedFindRow, SavedFindRow.search, sa.select(SavedSearchRow.id)),
    ]
    for kind, column, there in columns:
        session.execute(sa.delete(kind).where(column.not_in(there)), execution_options=BULK)


def correct_photos(session: Session, photos: Sequence[ImageRow]) -> None:
    """Correct the constant values of photos in the catalogue from the notes of segments."""
    for photo in photos:
        values = {key: getattr(photo, key) for key in ("features", "sha256", "width", "height")}
        session.execute(
            sa.update(ImageRow).where(ImageRow.number == photo.number).values(values), execution_options=BULK
        )


def restore_photos(session: Session, photos: Sequence[ImageRow]) -> None:
    """Add photos that are in the notes of segments but missing in the catalogue, as indexing does."""
    gone = set(session.scalars(sa.select(ExcludedRow.number)))
    there = list(session.execute(sa.select(ImageRow.number, ImageRow.path).where(ImageRow.state == INDEXED)))
    # If two photos have one path, the later one counts: the earlier is the file before it changed.
    numbers = sorted([(number, path) for number, path in there] + [(photo.number, photo.path) for photo in photos])
    latest = {path: number for number, path in numbers}
    bury(session, [number for number, path in there if latest[path] != number])
    indexed = [photo for photo in photos if latest[photo.path] == photo.number and photo.number not in gone]
    for some in chunks([photo.path for photo in indexed]):
        older = rows_of_paths(session, some)
        failed = [number for number, state in older if state == FAILED]
        session.execute(sa.delete(ImageRow).where(ImageRow.number.in_(failed)))
    names = dict(
        zip(
            (photo.number for photo in indexed),
            free_names(session, [(photo.path, photo.name) for photo in indexed]),
            strict=True,
        )
    )
    for photo in photos:
        photo.position = None  # until its segment exists
        photo.name = names.get(photo.number)
        photo.state = INDEXED if photo.number in names else REMOVED
        photo.derive()
    session.add_all(photos)
    write_words(session, [photo.number for photo in photos])


def replace_segments(
    session: Session,
    old: Sequence[int | None],
    new: Iterable[Rewritten],
    settings: Mapping[str, str] | None = None,
    leave_out: Sequence[int] = (),
) -> list[int]:
    """Replace segments by rewritten ones, and return the numbers of the tombstones that are deleted, as no new segment
    has them.

    The new segments together have every indexed image of the old ones, except those to `leave_out`, which are removed
    at the same time. An image that was removed meanwhile stays a tombstone. Raises CairnError if an old segment no
    longer exists, or has an indexed image that is in no new one.
    """
    there = set(session.scalars(sa.select(SegmentRow.id).where(SegmentRow.id.in_(old))))
    if there != set(old):
        raise CairnError("The collection's segments were changed by another process meanwhile: run the command again.")
    bury(session, leave_out)
    images = Base.metadata.tables[ImageRow.__tablename__]
    for one in new:
        values = {column.key: getattr(one.row, column.key) for column in SegmentRow.__table__.columns}
        del values["id"]
        (segment_id,) = session.execute(sa.insert(SegmentRow).values(values).returning(SegmentRow.id)).one()
        changes: dict[str, Any] = {"segment_id": segment_id, "position": sa.bindparam("at")}
        rows: list[dict[str, Any]] = [{"of": int(number), "at": at} for at, number in enumerate(one.numbers)]
        if one.errors is not None:
            changes["quantisation_error"] = sa.bindparam("error")
            rows = [{**row, "error": float(error)} for row, error in zip(rows, one.errors, strict=True)]
        if rows:
            session.execute(sa.update(images).where(images.c.number == sa.bindparam("of")).values(changes), rows)
    remaining = sa.select(ImageRow.number, ImageRow.state).where(ImageRow.segment_id.in_(old))
    dropped = {number: state for number, state in session.execute(remaining)}
    if any(state != REMOVED for state in dropped.values()):
        raise CairnError("Some photos of the old segments are in none of the new ones: run {cairn check}.")
    for numbers in chunks(list(dropped)):
        session.execute(sa.delete(LinkRow).where(LinkRow.number.in_(numbers)), execution_options=BULK)
    session.execute(sa.delete(ImageRow).where(ImageRow.segment_id.in_(old)), execution_options=BULK)
    session.execute(sa.delete(SegmentRow).where(SegmentRow.id.in_(old)), execution_options=BULK)
    for key, value in (settings or {}).items():
        keep_setting(session, key, value)
    return sorted(dropped)


def quantisation_errors(session: Session, since: int) -> tuple[tuple[int, float], tuple[int, float]]:
    """Images, and mean squared distance of their features to their words: before a number, and from it on.

    Only images with features and a known error count; without any, the distance is 0.0.
    """
    measured = (ImageRow.state == INDEXED, ImageRow.features > 0, ImageRow.quantisation_error.is_not(None))
    sums = (sa.func.sum(ImageRow.features * ImageRow.quantisation_error), sa.func.sum(ImageRow.features))
    errors = []
    for part in (ImageRow.number < since, ImageRow.number >= since):
        count, total, features = session.execute(sa.select(sa.func.count(), *sums).where(*measured, part)).one()
        errors.append((int(count), float(total) / int(features) if count else 0.0))
    return errors[0], errors[1]
