"""A catalogue made anew: from what its segments note of their photos, and what the damaged one still tells."""

import re
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from index.arrays import load_array, load_json
from index.errors import CairnError, Unreadable
from index.segment import NOTES, Segment, verify_segment
from index.vocabulary import META_FILE
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import Database, chunks
from retrieval.catalogue.exclusions import Exclusion, write_exclusions
from retrieval.catalogue.metadata_store import SINGLE, TAG
from retrieval.catalogue.names import unique_name
from retrieval.catalogue.schema import (
    COUNT_WRITING,
    FAILED,
    FILE,
    FROM_FILE,
    INDEXED,
    NEXT_NUMBER_KEY,
    REMOVED,
    REVISION_COPY_KEY,
    REVISION_KEY,
    ExcludedRow,
    ImageRow,
    MetadataRow,
    SegmentRow,
    Setting,
)
from retrieval.collection.layout import SEGMENTS, TRAINED_KEY, VOCABULARY, VOCABULARY_KEY
from retrieval.collection.seal import Seal
from retrieval.collection.sealing import COPIES_KEY, read_copies
from retrieval.collection.segment_notes import read_notes
from retrieval.collection.segments import segment_row
from retrieval.integrity.salvage_catalogue import Salvaged, salvage
from retrieval.metadata.photo import Metadata, read_metadata

_MOVED = ("path", "name", "size", "mtime_ns", "missing_since", "state")  # what the catalogue knows better than a note
_FOLDER = re.compile(r"\d{6,18}")


@dataclass(frozen=True)
class _Found:
    """A segment's folder, as far as it can be read."""

    row: SegmentRow
    notes: list[ImageRow]  # of its photos by position; empty: an earlier version wrote none, or they are damaged
    numbers: list[int]  # of its photos by position
    sound: bool


def rebuild_catalogue(folder: Path, seal: Seal | None) -> tuple[list[str], list[str]]:
    """Set the catalogue of a collection aside, where there is one, and make another.

    A process that is killed leaves the old catalogue, or none, which is then made from the one that was set aside.

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
    saved = salvage(file if file.is_file() else _newest_set_aside(folder), seal.head if seal is not None else None)
    revision = int(saved.settings[REVISION_KEY]) if saved.settings.get(REVISION_KEY, "").isdecimal() else 0
    # What the seal has seen and the file has not, its damaged log held.
    whole = saved.complete and (seal is None or seal.revision is None or revision >= seal.revision)
    whole = whole and not file.with_name(f"{FILE}-wal").is_file()
    vocabulary = _vocabulary(folder, saved, seal)
    segments = _choose(list(_read_segments(folder, saved)), saved, _fingerprint_of(folder / vocabulary), whole)
    temporary = folder / f".{FILE}.{secrets.token_hex(4)}.tmp"
    rows, unknown = _images(segments, saved)
    with Catalogue.open(temporary, create=True) as catalogue:
        settings = {key: value for key, value in saved.settings.items() if not key.startswith("cairn.")}
        settings[VOCABULARY_KEY] = vocabulary
        if saved.settings.get(TRAINED_KEY, "").isdecimal():
            settings[TRAINED_KEY] = saved.settings[TRAINED_KEY]
        if read_copies(saved.settings.get(COPIES_KEY)):
            settings[COPIES_KEY] = saved.settings[COPIES_KEY]
        known = [row["number"] for row in rows] + [row["number"] for row in saved.excluded]
        known += [number for one in segments for number in one.numbers]
        following = saved.settings.get(NEXT_NUMBER_KEY, "")
        first = max([int(following) if following.isdecimal() else 0, *(number + 1 for number in known)])
        settings[NEXT_NUMBER_KEY] = str(first)
        revision = max(revision, (seal.revision or 0) if seal is not None else 0) + 1
        settings[REVISION_KEY] = settings[REVISION_COPY_KEY] = str(revision)
        _fill(catalogue, settings, segments, rows, saved.excluded)
        read = _fill_metadata(catalogue, saved)
    notes, lapses = _told(file, saved, unknown, read), _lapses(saved)
    _exchange(folder, temporary)
    return notes, lapses


def _newest_set_aside(folder: Path) -> Path:
    """The catalogue that was set aside last, where a repair was killed; `catalogue.sqlite`, which is missing, else."""
    aside = [path for path in folder.glob(f"{FILE}.damaged-*") if path.name.rpartition("-")[2].isdecimal()]
    return max(aside, key=lambda path: int(path.name.rpartition("-")[2]), default=folder / FILE)


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
        file.with_name(f"{FILE}-shm").unlink(missing_ok=True)
        file.rename(aside)
    (temporary / FILE).rename(file)
    temporary.rmdir()


def _vocabulary(folder: Path, saved: Salvaged, seal: Seal | None) -> str:
    """Name of the vocabulary's folder: what the catalogue said, else the seal, else the newest."""
    names = sorted(path.name for path in folder.glob(f"{VOCABULARY}*") if path.is_dir())
    wanted = [saved.settings.get(VOCABULARY_KEY), seal.vocabulary if seal is not None else None, *reversed(names)]
    return next((name for name in wanted if name is not None and name in names), VOCABULARY)


def _fingerprint_of(vocabulary: Path) -> str | None:
    try:
        meta = load_json(vocabulary / META_FILE)
    except CairnError:
        return None
    return str(meta.get("fingerprint")) if isinstance(meta, dict) else None


def _read_segments(folder: Path, saved: Salvaged) -> Iterator[_Found]:
    """Read what the segments' folders hold; those that are damaged too, of which the photos must be known."""
    rows = {row["folder"]: row for row in saved.segments}
    ids = {row["id"]: row["folder"] for row in saved.segments}
    placed: dict[str, list[tuple[int, int]]] = {}
    for image in saved.images.values():
        if image.get("segment_id") in ids and image.get("position") is not None:
            placed.setdefault(ids[image["segment_id"]], []).append((image["position"], image["number"]))
    there = folder / SEGMENTS
    names = [path.name for path in there.iterdir() if path.is_dir()] if there.is_dir() else []
    for name in sorted({*(name for name in names if _FOLDER.fullmatch(name)), *rows}):
        where = there / name
        if where.is_dir() and not verify_segment(where):
            segment = Segment.open(where)
            notes = read_notes(segment.notes) if segment.notes else []
            yield _Found(segment_row(segment), notes, segment.image_numbers.tolist(), sound=True)
            continue
        notes = _damaged_notes(where)
        numbers = [row.number for row in notes] or [number for _, number in sorted(placed.get(name, []))]
        if numbers:
            known = rows.get(name, {})
            yield _Found(
                SegmentRow(
                    folder=name,
                    images=len(numbers),
                    features=sum(row.features for row in notes),
                    bytes=0,
                    vocabulary_fingerprint=known.get("vocabulary_fingerprint", ""),
                    descriptor_fingerprint=known.get("descriptor_fingerprint", ""),
                    sha256=known.get("sha256"),
                ),
                notes,
                numbers,
                sound=False,
            )


def _damaged_notes(where: Path) -> list[ImageRow]:
    """Notes of a segment that is damaged, where they are what was written, or the description of the segment is not."""
    try:
        bad = verify_segment(where)
        if f"{NOTES}.npy" in bad:
            return []
        return read_notes(np.asarray(load_array(where / f"{NOTES}.npy")).tobytes())
    except Unreadable:
        raise
    except (CairnError, OSError):
        return []


def _choose(found: list[_Found], saved: Salvaged, vocabulary: str | None, whole: bool) -> list[_Found]:
    """Choose the segments that are the collection's, in which no photo is twice.

    Those that the damaged catalogue had come first; then, where it may have had others, the newest, as a segment that
    others were merged into is newer than these; then those that are damaged.
    """
    committed = {row["folder"] for row in saved.segments}
    known = {row["id"] for row in saved.segments}
    whole = whole and all(row["segment_id"] in known for row in saved.images.values() if row["state"] == INDEXED)
    whole = whole and all(one.sound for one in found if one.row.folder in committed)
    candidates = [one for one in found if one.row.folder in committed or not whole]
    # Stable: of the damaged ones too, those that the catalogue had come first.
    candidates.sort(key=lambda one: int(one.row.folder), reverse=True)
    candidates.sort(key=lambda one: one.row.folder not in committed)
    candidates.sort(key=lambda one: not one.sound)
    chosen: list[_Found] = []
    taken: set[int] = set()
    for one in candidates:
        fits = vocabulary is None or one.row.vocabulary_fingerprint in ("", vocabulary)
        if fits and taken.isdisjoint(one.numbers):
            chosen.append(one)
            taken.update(one.numbers)
    return sorted(chosen, key=lambda one: int(one.row.folder))


def _images(segments: list[_Found], saved: Salvaged) -> tuple[list[dict[str, Any]], int]:
    """Rows of the photos, without ids of segments, but with their folders; and how many photos nothing is known of."""
    rows: list[dict[str, Any]] = []
    excluded = {row["number"] for row in saved.excluded}
    unknown = 0
    for one in segments:
        noted = {row.number: row for row in one.notes}
        for position, number in enumerate(one.numbers):
            kept = saved.images.get(number)
            note = noted.get(number)
            if note is None and kept is None:
                unknown += 1
                continue
            row = {column.key: getattr(note, column.key) for column in ImageRow.__table__.columns} if note else {}
            if note is None or kept is not None:
                assert kept is not None
                row |= kept if note is None else {key: kept.get(key) for key in _MOVED}
            row |= {"number": number, "position": position, "folder": one.row.folder}
            if number in excluded:  # also where its tombstone is lost
                row["state"] = REMOVED
            rows.append(row)
    rows += [{**row, "folder": None} for row in saved.images.values() if row["state"] == FAILED]
    # Of two photos of one path the later one counts: the earlier is as it was before the file changed.
    latest: dict[str, int] = {}
    for row in rows:
        if row["state"] == INDEXED:
            latest[row["path"]] = max(row["number"], latest.get(row["path"], -1))
    taken = Counter(row["name"] for row in rows if row["state"] == INDEXED and row["name"])
    names: set[str] = {name for name, count in taken.items() if count == 1}
    for row in sorted(rows, key=lambda row: row["number"]):
        if row["state"] == INDEXED and latest[row["path"]] != row["number"]:
            row["state"] = REMOVED
        if row["state"] != INDEXED:
            row["name"] = None
        elif not row["name"] or taken[row["name"]] > 1:
            row["name"] = unique_name(row["path"], names) if not row["name"] or row["name"] in names else row["name"]
            names.add(row["name"])
    return rows, unknown


def _fill(
    catalogue: Catalogue,
    settings: dict[str, str],
    segments: list[_Found],
    rows: list[dict[str, Any]],
    excluded: list[dict[str, Any]],
) -> None:
    """Write settings, segments, photos and those that were removed for good into a new catalogue."""
    database = Database(catalogue.address)
    ids: dict[str | None, int | None] = {None: None}
    blank = {"taken": None, "latitude": None, "longitude": None, "camera": None, "title": None}
    with database.transaction(write=True) as session:
        session.execute(COUNT_WRITING)
        for one in segments:
            values = {c.key: getattr(one.row, c.key) for c in SegmentRow.__table__.columns if c.key != "id"}
            (ids[one.row.folder],) = session.execute(
                sa.insert(SegmentRow).values(values).returning(SegmentRow.id)
            ).one()
        columns = [column.key for column in ImageRow.__table__.columns]
        for chunk in chunks(rows):
            complete = [
                {key: row.get(key) for key in columns}
                | blank
                | {
                    "segment_id": ids[row["folder"]],
                    "path_hash": ImageRow(number=row["number"], path=row["path"]).path_hash,
                }
                for row in chunk
            ]
            session.execute(sa.insert(ImageRow.__table__), complete)  # type: ignore[arg-type]
        write_exclusions(session, [Exclusion(*(row[key] for key in Exclusion._fields)) for row in excluded])
        for key, value in settings.items():
            session.merge(Setting(key=key, value=value))
    database.close()


def _fill_metadata(catalogue: Catalogue, saved: Salvaged) -> int:
    """Write metadata into a new catalogue; give the number of photos whose files were read for it."""
    indexed = {number: path for number, _, path in catalogue.places()}
    values: dict[str, dict[int, dict[str, list[str]]]] = {}
    for row in sorted(saved.metadata, key=lambda row: row["position"]):
        if row["number"] in indexed:
            of_photo = values.setdefault(row["source"], {}).setdefault(row["number"], {})
            of_photo.setdefault(row["key"], []).append(row["value"])
    imported = {number: one for source, found in values.items() if source != FROM_FILE for number, one in found.items()}
    told = [(number, _metadata(one)) for number, one in values.get(FROM_FILE, {}).items()]
    read = 0
    if not saved.complete:
        known = {number for number, _ in told}
        for number, path in indexed.items():
            if number not in known and Path(path).is_file():
                told.append((number, read_metadata(Path(path))))
                read += 1
    catalogue.store_metadata(told)
    catalogue.import_values(imported)
    return read


def _metadata(values: dict[str, list[str]]) -> Metadata:
    """What a photo's file said, from the rows of it."""
    single: dict[str, Any] = {key: values[key][0] for key in SINGLE if values.get(key)}
    try:
        for key in ("latitude", "longitude"):
            if key in single:
                single[key] = float(single[key])
    except ValueError:
        single = {key: value for key, value in single.items() if key not in ("latitude", "longitude")}
    return Metadata(**single, tags=tuple(values.get(TAG, ())))


def _told(file: Path, saved: Salvaged, unknown: int, read: int) -> list[str]:
    """What is to be known of a catalogue that was made anew."""
    notes = []
    if file.exists():
        notes.append(f"The damaged catalogue was set aside as {FILE}.damaged-N: delete it when it is no longer needed.")
    if unknown:
        notes.append(f"Nothing is known of {unknown} photos: run cairn index with their folders.")
    if read:
        notes.append(f"The metadata of {read} photos were read from their files.")
    return notes


def _lapses(saved: Salvaged) -> list[str]:
    """What is lost with rows that could not be read."""
    if not saved.images:
        return [
            "Nothing could be read of the old catalogue: photos that were removed after their segment was written are "
            "back, the list of those removed for good, imported metadata and reasons of failures are lost; import the "
            "tables again."
        ]
    if saved.lost or saved.torn & {ImageRow.__tablename__, MetadataRow.__tablename__, ExcludedRow.__tablename__}:
        return [
            "Not all could be read of the old catalogue: some photos that had been removed may be back, and some "
            "imported metadata may be lost; import the tables again."
        ]
    return []
