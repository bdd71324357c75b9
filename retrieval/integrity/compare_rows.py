"""Compare the rows of a catalogue with the segments of its collection."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from retrieval.catalogue.database import Database
from retrieval.catalogue.schema import (
    FAILED,
    INDEXED,
    NEXT_NUMBER_KEY,
    ExcludedRow,
    ImageRow,
    LinkRow,
    MetadataRow,
    SegmentRow,
    Setting,
    folder_of,
    path_hash_of,
    value_hash_of,
)
from retrieval.collection.segment_notes import read_notes
from retrieval.collection.segments import open_segment

_AT_ONCE = 10_000  # rows


class SegmentImage(NamedTuple):
    """The row of an image in a segment."""

    number: int
    position: int | None
    features: int
    sha256: str | None
    width: int | None
    height: int | None
    state: str
    name: str | None
    path: str
    path_hash: int
    folder: str | None


def segment_ids(database: Database) -> list[int]:
    """Ids of the segments of a catalogue."""
    with database.transaction() as session:
        return list(session.scalars(sa.select(SegmentRow.id).order_by(SegmentRow.id)))


def read_segment_rows(database: Database, segment: int) -> tuple[SegmentRow, list[SegmentImage]] | None:
    """The row of a segment and those of its images by number, read consistently; None if it is gone."""
    columns = [getattr(ImageRow, name) for name in SegmentImage._fields]
    query = sa.select(*columns).where(ImageRow.segment_id == segment).order_by(ImageRow.number)
    with database.transaction() as session:
        row = session.get(SegmentRow, segment)
        return None if row is None else (row, [SegmentImage(*image) for image in session.execute(query)])


def compare_segment(
    folder: Path, row: SegmentRow, images: Sequence[SegmentImage], fingerprints: Mapping[str, str | None]
) -> str | None:
    """Compare a segment, whose files are sound, with the catalogue: the first mismatch, in one sentence."""
    segment = open_segment(folder)
    name = f"segments/{row.folder}"
    for thing in ("vocabulary", "descriptor"):
        recorded = getattr(row, f"{thing}_fingerprint")
        found = getattr(segment, f"{thing}_fingerprint")
        if recorded != found or fingerprints[thing] not in (None, found):
            return f"{name} is of another {thing} than the collection."
    if (row.images, row.features, row.bytes) != (segment.images, segment.features, sum(segment.bytes.values())):
        return f"{name} holds another number of photos, features or bytes than the catalogue says."
    if [image.number for image in images] != segment.image_numbers.tolist():
        return f"{name} holds other photos than the catalogue says."
    if [image.position for image in images] != list(range(len(images))):
        return f"The positions of the photos in {name} are not those that the catalogue says."
    if [image.features for image in images] != np.diff(segment.offsets.astype(np.int64)).tolist():
        return f"The photos of {name} have other numbers of features than the catalogue says."
    if (what := check_images(images)) is not None:
        return what
    if segment.notes:
        kept: list[Any] = ["number", "features", "sha256", "width", "height"]
        noted = [[getattr(one, key) for key in kept] for one in read_notes(segment.notes)]
        if noted != [[getattr(image, key) for key in kept] for image in images]:
            return f"The photos of {name} are noted there with other contents than the catalogue says."
    return None


def check_images(images: Sequence[SegmentImage]) -> str | None:
    """Check only the rows of images in a segment; return the damage in one sentence."""
    for image in images:
        if path_hash_of(image.path) != image.path_hash:
            return f"The path of photo {image.number} is not what was written."
        if (image.name is None) == (image.state == INDEXED) or image.state == FAILED:
            return f"Photo {image.number} has no name, or one that it should not have."
        if folder_of(image.name) != image.folder:
            return f"The folder of photo {image.number} is not that of its name."
    return None


def check_rows(database: Database) -> Iterator[str]:
    """Check the rows that belong to no segment, and those of the metadata; yield damage in sentences."""
    placed = sa.select(SegmentRow.id)
    lost = sa.select(ImageRow.number).where(
        sa.or_(
            sa.and_(ImageRow.state != FAILED, ImageRow.segment_id.is_(None)),
            ImageRow.segment_id.is_not(None) & ImageRow.segment_id.not_in(placed),
        )
    )
    with database.transaction() as session:
        number = session.scalars(lost.limit(1)).first()
        if number is not None:
            yield f"Photo {number} is in no segment that the collection has."
        following = session.scalars(sa.select(Setting.value).where(Setting.key == NEXT_NUMBER_KEY)).one()
        largest = session.scalars(sa.select(sa.func.max(ImageRow.number))).one()
        if largest is not None and not (following.isdecimal() and int(following) > largest):
            yield f"The next photo would get the number {following[:20]!r}, which is not above all that were given."
        failed = sa.select(ImageRow.number, ImageRow.path, ImageRow.path_hash).where(ImageRow.state == FAILED)
        excluded = sa.select(ExcludedRow.number, ExcludedRow.path, ExcludedRow.path_hash)
        values = sa.select(MetadataRow.number, MetadataRow.value, MetadataRow.value_hash)
        for query, hash_of, sentence in (
            (failed, path_hash_of, "The path of photo {} is not what was written."),
            (excluded, path_hash_of, "The path of photo {}, which was removed for good, is not what was written."),
            (values, value_hash_of, "The metadata of photo {} are not what was written."),
        ):
            rows = session.execute(query.execution_options(yield_per=_AT_ONCE))
            wrong = next((number for number, value, known in rows if hash_of(value) != known), None)
            if wrong is not None:
                yield sentence.format(wrong)
        for row in session.scalars(sa.select(LinkRow).execution_options(yield_per=_AT_ONCE)):
            if not row.is_whole:
                yield f"The links of photo {row.number} are not what was written."
                break
