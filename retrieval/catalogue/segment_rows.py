"""Segments of a catalogue: commit and list them."""

import re
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.text import check_path, check_storable
from retrieval.catalogue.changes import bury, decided_numbers, inherit_decisions, rows_of_paths
from retrieval.catalogue.database import CHUNK, chunks
from retrieval.catalogue.exclusions import include_photos
from retrieval.catalogue.failures import forget_failed_rows
from retrieval.catalogue.metadata_store import copy_imported, counting_columns, find_tombstones, insert_metadata
from retrieval.catalogue.names import free_names
from retrieval.catalogue.schema import (
    INDEXED,
    NEXT_FOLDER_KEY,
    REMOVED,
    Base,
    ImageRow,
    SegmentRow,
    Setting,
    folder_of,
    values_of_row,
)
from retrieval.catalogue.settings import keep_setting, next_number
from retrieval.catalogue.words import write_words
from retrieval.metadata.fields import Metadata


def commit_segment(
    session: Session,
    segment: SegmentRow,
    images: Sequence[ImageRow],
    metadata: Sequence[Metadata] = (),
    included: Sequence[int] = (),
) -> list[str]:
    """Add a published segment and its photos, with reserved numbers, to the collection, or nothing; return their names.

    Names are the desired name or the file's, or the result of `unique_name` for the path. An earlier photo of the same
    path becomes a tombstone. Imported values of that photo, or of a removed photo of the same content or path, pass to
    the new one. An earlier failure of the path is deleted. Photos of `included` leave the list of exclusions.
    """
    for image in images:
        check_path(image.path)
        check_storable(image.name or "")
    if (names := _committed(session, segment, images)) is not None:
        return names
    unreserved = next_number(session)
    if any(not 0 <= image.number < unreserved for image in images):
        raise ValueError(f"an image number was never reserved: the next free one is {unreserved}")
    values = values_of_row(segment)
    del values["id"]
    (segment_id,) = session.execute(sa.insert(SegmentRow).values(values).returning(SegmentRow.id)).one()
    replaced: dict[str, int] = {}
    for paths in chunks([image.path for image in images]):
        older = rows_of_paths(session, paths)
        replaced.update(bury(session, [number for number, state in older if state == INDEXED]))
        forget_failed_rows(session, older)
    names = free_names(session, [(image.path, image.name) for image in images])
    rows = [
        values_of_row(image)
        | {"name": name, "folder": folder_of(name), "segment_id": segment_id, "state": INDEXED, "reason": None}
        for image, name in zip(images, names, strict=True)
    ]
    if metadata:
        # New photos have only the metadata of their files.
        rows = [row | counting_columns(one) for row, one in zip(rows, metadata, strict=True)]
    if rows:
        session.execute(sa.insert(Base.metadata.tables[ImageRow.__tablename__]), rows)
    if metadata:
        insert_metadata(session, [(image.number, one) for image, one in zip(images, metadata, strict=True)])
    unseen = [image for image in images if image.path not in replaced]
    earlier = find_tombstones(session, unseen, decided_numbers())
    earlier.update({image.number: replaced[image.path] for image in images if image.path in replaced})
    for number, tombstone in earlier.items():
        copy_imported(session, tombstone, number)
    write_words(session, [image.number for image in images])
    inherit_decisions(session, earlier)
    include_photos(session, included)
    return names


def _committed(session: Session, segment: SegmentRow, images: Sequence[ImageRow]) -> list[str] | None:
    """The names of the images of a segment that was committed before; None if it was not.

    A writer that lost its connection during a commit does not know whether it succeeded, and repeats it.
    """
    there = session.scalars(sa.select(SegmentRow).where(SegmentRow.folder == segment.folder)).one_or_none()
    if there is None or values_of_row(there) | {"id": None} != values_of_row(segment) | {"id": None}:
        return None
    columns = (ImageRow.number, ImageRow.sha256, ImageRow.name, ImageRow.path)
    rows = session.execute(sa.select(*columns).where(ImageRow.segment_id == there.id).order_by(ImageRow.number)).all()
    wanted = sorted((image.number, image.sha256) for image in images)
    if [(number, sha256) for number, sha256, *_ in rows] != wanted:
        return None
    # A photo that was removed since has no name.
    names = {number: name or Path(path).name for number, _, name, path in rows}
    return [names[image.number] for image in images]


def segments_in(session: Session) -> list[SegmentRow]:
    """All segments, in the order in which they were committed."""
    return list(session.scalars(sa.select(SegmentRow).order_by(SegmentRow.id)))


def tombstones_in(session: Session) -> frozenset[int]:
    """Numbers of photos that are in a segment but were removed."""
    query = sa.select(ImageRow.number).where(ImageRow.state == REMOVED, ImageRow.name.is_(None))
    return frozenset(session.scalars(query.execution_options(yield_per=CHUNK)))


def segments_and_tombstones(session: Session) -> tuple[list[SegmentRow], frozenset[int]]:
    """Results of `segments_in` and `tombstones_in`."""
    return segments_in(session), tombstones_in(session)


def orphans_in(session: Session, parent: Path) -> list[Path]:
    """Folders of uncommitted segments: from a killed process, or from one that still writes."""
    known = {segment.folder for segment in segments_in(session)}
    return [path for path in _folders(parent) if path.name not in known]


def reserve_folder(session: Session, parent: Path) -> str:
    """Reserve a unique name for a segment's folder, above all existing ones."""
    counter = session.get(Setting, NEXT_FOLDER_KEY, with_for_update=True)
    reserved = int(counter.value) if counter is not None and re.fullmatch("[0-9]{1,18}", counter.value) else 0
    name = f"{max(int(next_folder_in(parent, segments_in(session))), reserved):06d}"
    keep_setting(session, NEXT_FOLDER_KEY, str(int(name) + 1))
    return name


def next_folder_in(parent: Path, segments: Sequence[SegmentRow]) -> str:
    """A name for the next segment's folder, above every number that a segment or an orphan has."""
    taken = {segment.folder for segment in segments} | {path.name for path in _folders(parent)}
    numbers = [int(match[0]) for name in taken if (match := re.match(r"\d+", name))]
    return f"{max(numbers, default=0) + 1:06d}"


def _folders(parent: Path) -> list[Path]:
    parent = Path(parent)
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []
