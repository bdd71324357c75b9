"""A catalogue made anew: from its snapshot, and from what the segments that are newer note of their photos."""

import contextlib
import datetime
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.arrays import load_array, load_json
from index.errors import CairnError, Unreadable
from index.segment import NOTES, Segment, verify_segment
from index.vocabulary import META_FILE
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import Rewritten, bury, replace_segments, rows_of_paths
from retrieval.catalogue.database import Database, DatabaseError, chunks, connect_for_reading
from retrieval.catalogue.names import free_names
from retrieval.catalogue.schema import (
    COUNT_WRITING,
    FAILED,
    FILE,
    INDEXED,
    NEXT_NUMBER_KEY,
    REMOVED,
    REVISION_COPY_KEY,
    REVISION_KEY,
    ExcludedRow,
    ImageRow,
    SegmentRow,
    Setting,
)
from retrieval.collection.layout import SEGMENTS, SNAPSHOT, VOCABULARY, VOCABULARY_KEY
from retrieval.collection.seal import Seal
from retrieval.collection.segment_notes import read_notes
from retrieval.collection.segments import is_there, segment_row
from retrieval.collection.snapshot import restore_snapshot
from retrieval.integrity.check_segments import check_segments
from retrieval.integrity.report import Findings
from retrieval.metadata.photo import read_metadata

_FOLDER = re.compile(r"\d{6,18}")
_NOTHING = (
    "There is no sound snapshot of the catalogue: photos that were removed after their segment was written are back, "
    "the list of those removed for good, imported metadata and reasons of failures are lost; import the tables again."
)
_OLDER = (
    "The snapshot is older than what was last written to the catalogue: some photos that had been removed may be back, "
    "and some imported metadata may be lost; import the tables again."
)


@dataclass(frozen=True)
class _Found:
    """A segment, as far as it is known."""

    row: SegmentRow
    numbers: list[int]  # of its photos by position
    notes: list[ImageRow]  # of its photos by position; empty: they are not needed, not there, or damaged
    sound: bool

    @property
    def is_known(self) -> bool:
        """Whether the catalogue has it."""
        return self.row.id is not None


def rebuild_catalogue(folder: Path, seal: Seal | None) -> tuple[list[str], list[str]]:
    """Set the catalogue of a collection aside, where there is one, and make another.

    A process that is killed leaves the old catalogue, or none.

    Parameters
    ----------
    folder : Path
        The collection, with its lock held.
    seal : Seal, optional
        What is known of its files.

    Returns
    -------
    notes : list of str
        What is to be known of it, in sentences.
    lapses : list of str
        What is lost, of removals and imported metadata, in sentences.
    """
    file = folder / FILE
    written = max(_revision_of(file), (seal.revision or 0) if seal is not None else 0)
    temporary = folder / f".{FILE}.{secrets.token_hex(4)}.tmp"
    notes = []
    if file.exists():
        notes.append(f"The damaged catalogue was set aside as {FILE}.damaged-N: delete it when it is no longer needed.")
    revision = _restore(folder, temporary)
    if revision is not None:
        when = datetime.datetime.fromtimestamp((folder / SNAPSHOT).stat().st_mtime).isoformat(" ", "seconds")
        notes.append(f"The catalogue is what it was at {when}, with the photos that were added since.")
    with Catalogue.open(temporary, create=True) as catalogue:
        database = Database(catalogue.address)
        vocabulary = _choose_vocabulary(folder, catalogue, seal)
        unknown, added = _bring_up_to_date(database, folder, catalogue, _fingerprint_of(folder / vocabulary))
        if unknown:
            notes.append(f"Nothing is known of {unknown} photos: run cairn index with their folders.")
        paths = [(row.number, Path(row.path)) for row in catalogue.rows(added) if row.state == INDEXED]
        read = [(number, read_metadata(path)) for number, path in paths if path.is_file()]
        if read:
            catalogue.store_metadata(read)
            notes.append(f"The metadata of {len(read)} photos were read from their files.")
        later = str(max(written, catalogue.revision()) + 1)
        with database.transaction(write=True) as session:
            for key in (REVISION_KEY, REVISION_COPY_KEY):
                session.merge(Setting(key=key, value=later))
        database.close()
    _exchange(folder, temporary)
    if revision is None:
        return notes, [_NOTHING]
    return notes, [_OLDER] if revision < written else []


def _restore(folder: Path, temporary: Path) -> int | None:
    """Restore the snapshot in a folder of its own; give its revision, or None where it is not sound: nothing is there.

    A snapshot may be whole and yet hold damage that was in the catalogue: then its rows and the segments differ.
    """
    temporary.mkdir()
    revision = restore_snapshot(folder / SNAPSHOT, temporary / FILE)
    if revision is None:
        return None
    try:
        with Catalogue.open(temporary) as catalogue, contextlib.closing(Database(catalogue.address)) as database:
            wrong = check_segments(Findings(folder), database, {"vocabulary": None, "descriptor": None})
    except DatabaseError as error:
        wrong = str(error)
    if wrong is None:
        return revision
    shutil.rmtree(temporary)
    temporary.mkdir()
    return None


def _revision_of(file: Path) -> int:
    """The revision of a damaged catalogue, where it says one, and the same twice; else 0."""
    if not file.is_file():
        return 0
    try:
        with contextlib.closing(connect_for_reading(file)) as connection:
            query = "SELECT value FROM settings WHERE key IN (?, ?)"
            found = {value for (value,) in connection.execute(query, [REVISION_KEY, REVISION_COPY_KEY])}
        (value,) = found
        return int(value) if re.fullmatch("[0-9]{1,18}", str(value)) else 0
    except (sqlite3.Error, CairnError, UnicodeDecodeError, ValueError):
        return 0


def _exchange(folder: Path, temporary: Path) -> None:
    """Put the new catalogue, in a folder of its own, in the place of the old one, which is set aside."""
    file = folder / FILE
    if file.exists():
        taken = [path.name for path in folder.glob(f"{FILE}.damaged-*")]
        number = next(i for i in range(1, len(taken) + 2) if f"{FILE}.damaged-{i}" not in taken)
        aside = folder / f"{FILE}.damaged-{number}"
        log = file.with_name(f"{FILE}-wal")
        if log.exists():  # first: with another file, SQLite would read it into that
            log.rename(aside.with_name(f"{aside.name}-wal"))
        file.rename(aside)
    for suffix in ("-wal", "-shm"):
        file.with_name(f"{FILE}{suffix}").unlink(missing_ok=True)
    (temporary / FILE).rename(file)
    temporary.rmdir()


def _choose_vocabulary(folder: Path, catalogue: Catalogue, seal: Seal | None) -> str:
    """Name of the vocabulary's folder, which the catalogue is told: what it said, else the seal, else the newest."""
    names = sorted(path.name for path in folder.glob(f"{VOCABULARY}*") if path.is_dir())
    known = catalogue.setting(VOCABULARY_KEY)
    wanted = [known, seal.vocabulary if seal is not None else None, *reversed(names)]
    name = next((name for name in wanted if name is not None and name in names), VOCABULARY)
    if name != (known or VOCABULARY):
        catalogue.set_setting(VOCABULARY_KEY, name)
    return name


def _fingerprint_of(vocabulary: Path) -> str | None:
    try:
        meta = load_json(vocabulary / META_FILE)
    except CairnError:
        return None
    return str(meta.get("fingerprint")) if isinstance(meta, dict) else None


def _bring_up_to_date(
    database: Database, folder: Path, catalogue: Catalogue, vocabulary: str | None
) -> tuple[int, list[int]]:
    """Let a catalogue have the segments that are there; give how many photos are unknown, and the numbers of new ones.

    Segments that it names and that are there stay. Of others the newest count, as a segment that others were merged
    into is newer than these; and only such as are newer than all that it names, as others were replaced before.
    """
    with database.transaction() as session:
        known = [
            _Found(row, _numbers_in(session, row), [], is_there(folder, row))
            for row in session.scalars(sa.select(SegmentRow))
        ]
    newest = max((int(one.row.folder) for one in known), default=0)
    candidates = [*known, *(one for one in _read_segments(folder) if int(one.row.folder) > newest)]
    candidates.sort(key=lambda one: (not one.sound, not one.is_known, -int(one.row.folder)))
    chosen: list[_Found] = []
    taken: set[int] = set()
    for one in candidates:
        fits = vocabulary is None or one.row.vocabulary_fingerprint in ("", vocabulary)
        if fits and taken.isdisjoint(one.numbers):
            chosen.append(one)
            taken.update(one.numbers)
    new = sorted((one for one in chosen if not one.is_known), key=lambda one: int(one.row.folder))
    if not new:
        return 0, []
    kept = {one.row.id for one in chosen}
    old = [one.row.id for one in known if one.row.id not in kept]
    with database.transaction(write=True) as session:
        session.execute(COUNT_WRITING)
        there = set(session.scalars(sa.select(ImageRow.number)))
        added = [note for one in new for note in one.notes if note.number not in there]
        _add_photos(session, added)
        following = session.get_one(Setting, NEXT_NUMBER_KEY)
        following.value = str(max(int(following.value), *(number + 1 for one in new for number in one.numbers)))
        rows = [Rewritten(one.row, np.array(one.numbers, np.int64)) for one in new]
        left = sa.select(ImageRow.number).where(ImageRow.segment_id.in_(old))
        replace_segments(session, old, rows, [number for number in session.scalars(left) if number not in taken])
    noted = [note.number for note in added]
    return len(taken - there - set(noted)), noted


def _numbers_in(session: Session, row: SegmentRow) -> list[int]:
    """Numbers of the photos of a segment, by their positions, as a catalogue knows them."""
    query = sa.select(ImageRow.number).where(ImageRow.segment_id == row.id)
    return list(session.scalars(query.order_by(ImageRow.position)))


def _read_segments(folder: Path) -> Iterator[_Found]:
    """Read what the segments' folders hold; those that are damaged too, of which the photos must be known."""
    parent = folder / SEGMENTS
    names = [path.name for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    for name in sorted(name for name in names if _FOLDER.fullmatch(name)):
        where = parent / name
        if not verify_segment(where):
            segment = Segment.open(where)
            notes = read_notes(segment.notes) if segment.notes else []
            yield _Found(segment_row(segment), segment.image_numbers.tolist(), notes, sound=True)
            continue
        notes = _damaged_notes(where)
        if notes:
            row = SegmentRow(
                folder=name,
                images=len(notes),
                features=sum(note.features for note in notes),
                bytes=0,
                vocabulary_fingerprint="",
                descriptor_fingerprint="",
            )
            yield _Found(row, [note.number for note in notes], notes, sound=False)


def _damaged_notes(where: Path) -> list[ImageRow]:
    """Notes of a segment that is damaged, where they are what was written, or the description of the segment is not."""
    try:
        if f"{NOTES}.npy" in verify_segment(where):
            return []
        return read_notes(np.asarray(load_array(where / f"{NOTES}.npy")).tobytes())
    except Unreadable:
        raise
    except (CairnError, OSError):
        return []


def _add_photos(session: Session, photos: Sequence[ImageRow]) -> None:
    """Add photos that segments note, none of which is in the catalogue, as indexing did."""
    gone = set(session.scalars(sa.select(ExcludedRow.number)))
    # Of two photos of one path the later one counts: the earlier is as it was before the file changed.
    latest = {photo.path: photo.number for photo in sorted(photos, key=lambda photo: photo.number)}
    indexed = [photo for photo in photos if latest[photo.path] == photo.number and photo.number not in gone]
    for some in chunks([photo.path for photo in indexed]):
        older = rows_of_paths(session, some)
        bury(session, [number for number, state in older if state == INDEXED])
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
        photo.position = None  # until its segment is there
        photo.name = names.get(photo.number)
        photo.state = INDEXED if photo.number in names else REMOVED
    session.add_all(photos)
    session.flush()
