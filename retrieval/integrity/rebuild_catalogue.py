"""Rebuild a catalogue from its snapshot or its readable rows, and from the notes of newer segments."""

import contextlib
import datetime
import re
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.arrays import load_array, load_json, temporary_path
from index.errors import CairnError, DatabaseError, Unreadable
from index.hamming.kinds import NONE, parse_signature
from index.segments.description import NOTES, SIGNATURES, read_description, verify_segment
from index.vocabulary import META_FILE
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import (
    Rewritten,
    correct_photos,
    forget_decisions_on_none,
    forget_photos,
    replace_segments,
    restore_photos,
)
from retrieval.catalogue.database import Database, connect_for_reading
from retrieval.catalogue.metadata_store import store_metadata, tidy_metadata
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.readable_rows import copy_rows, fill_gaps
from retrieval.catalogue.schema import (
    DECIDED,
    FAILED,
    FILE,
    INDEXED,
    NEXT_NUMBER_KEY,
    REVISION_COPY_KEY,
    REVISION_KEY,
    ExcludedRow,
    ImageRow,
    MetadataRow,
    SegmentRow,
    Setting,
    count_writing,
)
from retrieval.catalogue.segment_rows import segments_in
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.identity import IDENTITY_KEY, read_identity
from retrieval.collection.layout import (
    OPTIONS,
    SEGMENTS,
    SIGNATURE_KEY,
    SNAPSHOT,
    VOCABULARY,
    VOCABULARY_KEY,
    is_vocabulary,
)
from retrieval.collection.options import read_options
from retrieval.collection.seal import Seal
from retrieval.collection.sealing import COPIES_KEY
from retrieval.collection.segment_notes import read_notes
from retrieval.collection.segments import is_there, open_segment, segment_row
from retrieval.collection.snapshot import restore_snapshot, write_snapshot
from retrieval.integrity.check_segments import check_segments
from retrieval.integrity.report import Findings
from retrieval.metadata.pages import hash_photo
from retrieval.metadata.photo import read_metadata

_FOLDER = re.compile(r"[0-9]{6,18}")
NOTHING_LEFT = (
    "There is no sound snapshot of the catalogue: photos that were removed after their segment was written are back, "
    "the list of those removed for good, imported metadata, albums, saved searches and reasons of failures are lost; "
    "import the tables again."
)
ONLY_HERE: set[str] = {kind.__tablename__ for kind in (ImageRow, MetadataRow, ExcludedRow)}
ONLY_HERE |= {kind.__tablename__ for kind in DECIDED}
_MAY_LACK = (
    "some photos that had been removed may be back, and some imported metadata, albums and saved searches may be lost; "
    "import the tables again."
)
OLDER = f"What was restored of the catalogue is older than what was last written to it: {_MAY_LACK}"
UNPROVEN = "Of the rows of the damaged catalogue, names, dates and reasons of failures have no checksums."
PARTIAL = f"Not all of the damaged catalogue can be read: {_MAY_LACK}"


@dataclass(frozen=True)
class _Found:
    """Known facts of a segment."""

    row: SegmentRow
    numbers: list[int]  # of its photos by position
    notes: list[ImageRow]  # of its photos by position; empty: not needed, missing or damaged
    sound: bool

    @property
    def is_known(self) -> bool:
        """Whether the catalogue has it."""
        return self.row.id is not None


def rebuild_catalogue(folder: Path, seal: Seal | None) -> tuple[str, list[str], list[str]]:
    """Set the catalogue of a collection aside, if there is one, and build another, with a snapshot. Returns the source
    of the new one, and notes and losses in sentences. A killed process leaves the old catalogue, or none.
    """
    file = folder / FILE
    found = _revision_of(file)
    written = max(found, (seal.revision or 0) if seal is not None else 0)
    temporary = temporary_path(folder / FILE)
    notes = []
    if file.exists():
        notes.append(f"The damaged catalogue was set aside as {FILE}.damaged-N: delete it when it is no longer needed.")
    revision = _restore(folder, temporary)
    how, lapses = "made again from the segments", [NOTHING_LEFT]
    if revision is not None:
        when = datetime.datetime.fromtimestamp((folder / SNAPSHOT).stat().st_mtime).isoformat(" ", "seconds")
        how, lapses = "restored from its snapshot and the segments", [OLDER] if revision < written else []
    whole, lapsed = None, False
    if revision is None or (revision < written and not 0 < found <= revision):
        whole, lapsed = _read_rows(folder, temporary, found)
    if whole is not None:
        more = ", its older snapshot" if revision is not None and not whole else ""
        how = f"restored from its rows that can be read{more} and the segments"
        lapses = [PARTIAL] if lapsed else [OLDER] if found < written else []
        notes.append(UNPROVEN)
    elif revision is not None:
        notes.append(f"The catalogue is what it was at {when}, with the photos that were added since.")
    notes += complete_catalogue(folder, temporary, seal, whole, written)
    _exchange(folder, temporary)
    write_snapshot(file, folder / SNAPSHOT)
    return how, notes, lapses


def complete_catalogue(folder: Path, temporary: Path, seal: Seal | None, whole: bool | None, written: int) -> list[str]:
    """Complete a catalogue in a separate folder with all other facts of a collection; return notes in sentences.
    `whole`: whether it has all rows, and they fit the segments; None: it is a copy that was whole.
    """
    notes = []
    with Catalogue.open(temporary, create=True) as catalogue:
        database = Database(catalogue.address)
        if seal is None and whole is not None:
            catalogue.write(keep_setting, COPIES_KEY, "{}")  # nothing proves them
        vocabulary = _choose_vocabulary(folder, catalogue, seal)
        fingerprint = _fingerprint_of(folder / vocabulary)
        unknown, added = _bring_up_to_date(database, folder, fingerprint, is_sound=whole is not False)
        guessed = _choose_signature(folder, catalogue)
        if guessed:
            notes.append(
                f"Signatures of features are taken to be {guessed}: set them again with cairn retrain."
                if guessed != NONE
                else "Features have no signatures: give them some with cairn retrain --signature."
            )
        if unknown:
            notes.append(f"Nothing is known of {unknown} photos: run cairn index with their folders.")
        rows = [row for row in catalogue.read(rows_of, added, indexed=False) if row.state == INDEXED]
        read = [(row.number, read_metadata(Path(row.path))) for row in rows if _is_as_indexed(row)]
        if read:
            catalogue.write(store_metadata, read)
            notes.append(f"The metadata of {len(read)} photos were read from their files.")
        later = str(max(written, catalogue.revision()) + 1)
        identity = read_identity(folder)
        with database.transaction(write=True) as session:
            for key in (REVISION_KEY, REVISION_COPY_KEY):
                keep_setting(session, key, later)
            if whole is not None:
                if identity is not None:
                    keep_setting(session, IDENTITY_KEY, identity)
                tidy_metadata(session)
                forget_decisions_on_none(session)
        database.close()
    return notes


def _is_as_indexed(row: ImageRow) -> bool:
    """Whether the file of a photo is unchanged: its path may be that of any file on this machine."""
    with contextlib.suppress(OSError):
        return hash_photo(row.path) == row.sha256
    return False


def _restore(folder: Path, temporary: Path) -> int | None:
    """Restore the snapshot to a separate folder; return its revision, or None if it is not sound.

    A snapshot may still have damage of the catalogue, so that rows and segments differ, or be another collection's.
    """
    temporary.mkdir()
    revision = restore_snapshot(folder / SNAPSHOT, temporary / FILE)
    if revision is not None and not rows_fit(folder, temporary, by_identity=True):
        shutil.rmtree(temporary)
        temporary.mkdir()
        return None
    return revision


def rows_fit(folder: Path, where: Path, *, by_identity: bool) -> bool:
    """Whether a catalogue, in a separate folder, is the collection's, and agrees with the segments."""
    kept = read_identity(folder)
    try:
        with Catalogue.open(where) as catalogue, contextlib.closing(Database(catalogue.address)) as database:
            if by_identity and kept is not None and catalogue.setting(IDENTITY_KEY) not in (None, kept):
                return False
            return check_segments(Findings(folder), database, {"vocabulary": None, "descriptor": None}) is None
    except DatabaseError:
        return False


def _read_rows(folder: Path, temporary: Path, revision: int) -> tuple[bool | None, bool]:
    """Replace a restored snapshot, if any, by the readable rows of the damaged catalogue, with gaps filled from it.

    Returns whether these are all rows, and fit the segments; None if nothing can be read, without a change. Also
    returns whether anything may be missing that is not in the notes of segments.
    """
    where = temporary / "rows"
    where.mkdir()
    try:
        partial = copy_rows(folder / FILE, where / FILE, revision)
        whole = rows_fit(folder, where, by_identity=False) and not partial
        Catalogue.open(where).close()
    except (sqlite3.Error, CairnError):
        shutil.rmtree(where)
        return None, False
    if (temporary / FILE).exists() and not whole:
        fill_gaps(where / FILE, temporary / FILE, partial)
    (where / FILE).replace(temporary / FILE)
    shutil.rmtree(where)
    return whole, not partial.isdisjoint(ONLY_HERE)


def _revision_of(file: Path) -> int:
    """The revision of a damaged catalogue, if it and its copy are equal; else 0."""
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
    """Replace the old catalogue, which is set aside, by the new one in a separate folder."""
    file = folder / FILE
    if file.exists():
        taken = [path.name for path in folder.glob(f"{FILE}.damaged-*")]
        number = next(i for i in range(1, len(taken) + 2) if f"{FILE}.damaged-{i}" not in taken)
        aside = folder / f"{FILE}.damaged-{number}"
        log = file.with_name(f"{FILE}-wal")
        if log.exists():  # first: SQLite would apply it to another file
            log.rename(aside.with_name(f"{aside.name}-wal"))
        file.rename(aside)
    for suffix in ("-wal", "-shm"):
        file.with_name(f"{FILE}{suffix}").unlink(missing_ok=True)
    (temporary / FILE).rename(file)
    temporary.rmdir()


def _choose_vocabulary(folder: Path, catalogue: Catalogue, seal: Seal | None) -> str:
    """Name of the vocabulary's folder, by the old catalogue, else the seal, else the newest folder."""
    names = sorted(path.name for path in folder.iterdir() if is_vocabulary(path.name) and path.is_dir())
    known = catalogue.setting(VOCABULARY_KEY)
    wanted = [known, seal.vocabulary if seal is not None else None, *reversed(names)]
    name = next((name for name in wanted if name is not None and name in names), VOCABULARY)
    if name != (known or VOCABULARY):
        catalogue.write(keep_setting, VOCABULARY_KEY, name)
    return name


def _choose_signature(folder: Path, catalogue: Catalogue) -> str:
    """Store the kind of signature, if lost, if the options name one of another length; return its name, or ""."""
    if catalogue.setting(SIGNATURE_KEY) is not None:
        return ""
    bits = set()
    for row in catalogue.read(segments_in):
        with contextlib.suppress(CairnError):
            entry = read_description(folder / SEGMENTS / row.folder)["files"].get(SIGNATURES)
            bits.add(8 * entry["shape"][1] if entry is not None else 0)
    try:
        kind = parse_signature(read_options(folder / OPTIONS).signature)
    except CairnError:
        kind = None
    if len(bits) != 1 or (found := bits.pop()) == (kind.bits if kind is not None else 0):
        return ""
    name = str(parse_signature(str(found))) if found else NONE
    catalogue.write(keep_setting, SIGNATURE_KEY, name)
    return name


def _fingerprint_of(vocabulary: Path) -> str | None:
    try:
        meta = load_json(vocabulary / META_FILE)
    except CairnError:
        return None
    return str(meta.get("fingerprint")) if isinstance(meta, dict) else None


def _bring_up_to_date(
    database: Database, folder: Path, vocabulary: str | None, *, is_sound: bool
) -> tuple[int, list[int]]:
    """Add existing segments to a catalogue; return the number of unknown photos, and the numbers of new ones.

    Its own segments stay if they exist. Of others the newest count, as a merged segment is newer than its parts; and
    only those newer than all that it names, as others were replaced before. If the catalogue is not sound, the facts of
    the segments themselves take precedence.
    """
    with database.transaction() as session:
        there = list(session.scalars(sa.select(SegmentRow)))
        known = [
            _Found(row, _numbers_in(session, row), [], is_sound and is_there(folder, row))
            for row in there
            if _FOLDER.fullmatch(row.folder)
        ]
    newest = max((int(one.row.folder) for one in known if is_sound), default=0)
    candidates = [*known, *(one for one in _read_segments(folder) if int(one.row.folder) > newest)]
    candidates.sort(key=lambda one: (not one.sound, not one.is_known, -int(one.row.folder)))
    chosen: list[_Found] = []
    taken: set[int] = set()
    for one in candidates:
        fits = vocabulary is None or one.row.vocabulary_fingerprint in ("", vocabulary)
        # If the catalogue has lost all photos of a segment, only its folder identifies it.
        is_there_already = any(one.row.folder == other.row.folder for other in chosen)
        if fits and not is_there_already and taken.isdisjoint(one.numbers):
            chosen.append(one)
            taken.update(one.numbers)
    new = sorted((one for one in chosen if not one.is_known), key=lambda one: int(one.row.folder))
    if not new:
        return 0, []
    kept = {one.row.id for one in chosen}
    old = [row.id for row in there if row.id not in kept]
    with database.transaction(write=True) as session:
        count_writing(session)
        # A new one may have the name of one that it replaces.
        free = sa.update(SegmentRow).where(SegmentRow.id.in_(old)).values(folder=sa.cast(-SegmentRow.id, sa.Text))
        session.execute(free)
        placed = {number: state for number, state in session.execute(sa.select(ImageRow.number, ImageRow.state))}
        # They are in no existing segment.
        forget_photos(session, [one for one, state in placed.items() if state != FAILED and one not in taken])
        notes = [note for one in new for note in one.notes]
        added = [note for note in notes if note.number not in placed]
        correct_photos(session, [note for note in notes if note.number in placed])
        restore_photos(session, added)
        following = session.get_one(Setting, NEXT_NUMBER_KEY)
        following.value = str(max(int(following.value), *(number + 1 for one in new for number in one.numbers)))
        rows = [Rewritten(one.row, np.array(one.numbers, np.int64)) for one in new]
        replace_segments(session, old, rows)
    noted = [note.number for note in added]
    return len(taken - set(placed) - set(noted)), noted


def _numbers_in(session: Session, row: SegmentRow) -> list[int]:
    """Numbers of the photos of a segment, by their positions, as a catalogue knows them."""
    query = sa.select(ImageRow.number).where(ImageRow.segment_id == row.id)
    return list(session.scalars(query.order_by(ImageRow.position)))


def _read_segments(folder: Path) -> Iterator[_Found]:
    """Read the folders of segments, damaged ones included, as the catalogue needs the photos of these too."""
    parent = folder / SEGMENTS
    names = [path.name for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    for name in sorted(name for name in names if _FOLDER.fullmatch(name)):
        where = parent / name
        if not verify_segment(where):
            segment = open_segment(where)
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
    """Notes of a damaged segment, if they are undamaged, or the description of the segment is damaged."""
    try:
        if f"{NOTES}.npy" in verify_segment(where):
            return []
        return read_notes(np.asarray(load_array(where / f"{NOTES}.npy")).tobytes())
    except Unreadable:
        raise
    except (CairnError, OSError):
        return []
