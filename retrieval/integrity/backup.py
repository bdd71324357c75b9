"""Backup of a collection: a copy that is a collection itself, made while others write, and updated incrementally.

Immutable files (segments, vocabularies) are copied under unique names. Then the catalogue of one moment replaces the
earlier one in one transaction, followed by files that depend on it. Files that the collection no longer has are deleted
at the end, when everything was verified. So a killed process leaves either the earlier backup or the new one intact.
"""

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from index.arrays import hash_file, publish_folder, save_json
from index.attributes import some_of
from index.errors import DISK_FULL, CairnError
from index.progress import Progress, silent
from index.segments.description import META, read_description, verify_segment
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import BUSY_TIMEOUT_MS, Database, connect_for_reading, primary_code
from retrieval.catalogue.photos import count_indexed
from retrieval.catalogue.schema import FILE, FILES, SegmentRow, Setting
from retrieval.catalogue.segment_rows import segments_in
from retrieval.catalogue.words import make_words
from retrieval.collection.augmentation import MANIFEST, read_manifest
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.collection.identity import is_own, keep_identity, read_identity, write_identity
from retrieval.collection.layout import (
    AUGMENTATION,
    BACKUP,
    INCOMING,
    REPLACED,
    SEAL,
    SEGMENTS,
    SNAPSHOT,
    UNFINISHED,
    UPLOADS,
    is_vocabulary,
)
from retrieval.collection.locking import lock_folder
from retrieval.collection.opening import named_vocabulary
from retrieval.collection.seal import Seal, sound_seal, write_seal
from retrieval.collection.sealing import hash_catalogue
from retrieval.collection.segments import is_there
from retrieval.collection.snapshot import copy_database, write_snapshot
from retrieval.integrity.backup_files import BackedUp, BackupFiles, is_plain_file, make_folder, remove
from retrieval.integrity.check import check_collection
from retrieval.integrity.earlier_backup import EarlierBackup, look_at_backup, mark_backup, refuse_nested
from retrieval.integrity.rebuild_server import copy_tables
from retrieval.integrity.report import files_below, size_of

_LOOKS = 10  # how often a collection is copied again whose segments are merged meanwhile
_SETTLED = 3  # attempts if the collection changes after its catalogue was copied


@dataclass(frozen=True)
class _CopiedState:
    """Contents of the copy of a catalogue."""

    file: Path
    revision: int
    segments: Sequence[SegmentRow]
    vocabulary: str  # name of its folder, which may be missing
    images: int


def back_up(collection: Collection, target: Path, *, link: bool = False, progress: Progress = silent) -> BackedUp:
    """Copy a collection to a folder, or update the copy there; then verify all of it. The backup is of
    one moment, whatever other processes change meanwhile. It has the catalogue as an SQLite file, wherever the
    collection has it. Thumbnails, jobs, and intermediate files of interrupted runs are left out.
    """
    start = time.perf_counter()
    refuse_nested(collection.folder, target)
    identity = _identity_of(collection)
    look_at_backup(target, collection.folder, identity)
    try:
        make_folder(target, collection.folder)
        with lock_folder(target):
            report = _Backup(collection, target, identity, link, progress).run()
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise CairnError(
            f"The disk of {target} is full: free some space and run the same command again; an earlier backup there is "
            "still intact."
        ) from error
    return replace(report, seconds=round(time.perf_counter() - start, 3))


class _Backup:
    """One run of `back_up`, with the lock of the target held."""

    def __init__(self, collection: Collection, target: Path, identity: str, link: bool, progress: Progress) -> None:
        self.collection, self.source, self.target = collection, collection.folder, target
        self.identity, self.progress = identity, progress
        self.files = BackupFiles(collection.folder, target, link, progress)

    def run(self) -> BackedUp:
        for path in self.target.iterdir():
            if UNFINISHED.fullmatch(path.name):
                remove(path)
        if not (self.target / BACKUP).exists():
            mark_backup(self.target, self.identity, [])  # first: the next run completes the work of a killed one
        damaged: set[str] = set()
        for _ in range(2):
            # Files that the disk of the backup has damaged since are copied again.
            for part in damaged:
                remove(self.target / part)
            earlier = look_at_backup(self.target, self.source, self.identity)
            state = self._copy_all(earlier)
            try:
                self._commit(state, earlier)
            finally:
                remove(state.file.parent)
            check = check_collection(self.target, progress=self.progress)
            damaged = {_part(one.file) for one in check.damaged}
            if not damaged:
                self._remove_rest(state)
                break
        found = some_of(check, "ok", "damaged", "notes", "seconds") | self.files.counts
        return BackedUp(images=state.images, **found)

    def _copy_all(self, earlier: EarlierBackup) -> _CopiedState:
        """Copy the catalogue next to the earlier one, and all that never changes once it is written."""
        for look in range(1, _LOOKS + 1):
            with contextlib.ExitStack() as leaving:
                state = self._copy_catalogue(self.files.temporary(FILE, leaving))
                if earlier.revision is not None and state.revision < earlier.revision:
                    raise CairnError(
                        f"{self.target} is a backup of a later state of {self.source}: restore that, or name a new "
                        "folder."
                    )
                try:
                    self._copy_static(state, earlier)
                    unchanged = self.collection.catalogue.revision() == state.revision
                    if unchanged or look >= _SETTLED:
                        leaving.pop_all()
                        return state
                except (CairnError, FileNotFoundError) as error:
                    # Segments were merged, or the vocabulary was replaced: the earlier ones are gone.
                    if self.collection.catalogue.revision() != state.revision:
                        continue
                    if isinstance(error, FileNotFoundError):
                        raise CairnError(
                            "{filename} is missing: run {cairn check}, then {cairn repair}.", filename=error.filename
                        ) from error
                    raise
        raise CollectionChanged(f"{self.source} changes faster than it can be copied: run the same command again.")

    def _copy_catalogue(self, folder: Path) -> _CopiedState:
        """Copy the catalogue to a file in a new folder."""
        folder.mkdir()
        file = folder / FILE
        catalogue = self.collection.catalogue
        if is_own(self.source, catalogue):
            copy_database(self.source / FILE, file)
        else:
            Catalogue.open(folder, create=True).close()
            with (
                contextlib.closing(Database(catalogue.address)) as server,
                contextlib.closing(Database(sa.URL.create("sqlite", database=str(file)))) as made,
                server.transaction() as rows,
                made.transaction(write=True) as session,
            ):
                session.execute(sa.delete(Setting))
                copy_tables(rows, session)
                make_words(session)
        with Catalogue.open(folder) as copy:
            name = named_vocabulary(copy)
            state = _CopiedState(file, copy.revision(), copy.read(segments_in), name, copy.read(count_indexed))
        if not is_vocabulary(name):
            raise CairnError(
                "The catalogue of {source} is damaged: run {cairn check}, then {cairn repair}.", source=self.source
            )
        return state

    def _copy_static(self, state: _CopiedState, earlier: EarlierBackup) -> None:
        """Copy missing segments, vocabulary and uploads."""
        rows = [row for row in state.segments if not is_there(self.target, row)]
        for row in rows:
            if row.folder in earlier.segments and earlier.segments[row.folder] != row.sha256:
                raise CairnError(
                    f"{self.source} was restored after its backup {self.target} was made, and has changed in another "
                    "way since: name a new folder for its backup."
                )
        for name in (UPLOADS, SEGMENTS, state.vocabulary, AUGMENTATION):
            if (self.source / name).is_symlink():
                raise CairnError(
                    f"{self.source / name} is a link, which no collection has: put the folder there itself."
                )
        vocabulary = [path for path in files_below(self.source / state.vocabulary) if is_plain_file(path)]
        place = self.target / state.vocabulary
        has_vocabulary = place.is_dir() and all(map(self.files.has, vocabulary))
        if state.segments and not vocabulary and not has_vocabulary:
            raise CairnError("{vocabulary} is missing: run {cairn check}.", vocabulary=self.source / state.vocabulary)
        uploaded = list(self._uploads())
        uploads = [path for path in uploaded if not self.files.has(path)]
        kept = [self.target / SEGMENTS / row.folder for row in state.segments if row not in rows]
        kept += [place] if has_vocabulary else []
        self.files.counts["kept"] = sum(len(list(one.iterdir())) for one in kept if one.name not in self.files.copied)
        self.files.counts["kept"] += len(uploaded) - len(uploads)
        size = sum(row.bytes for row in rows) + sum(map(size_of, uploads))
        self.files.begin(size if has_vocabulary else size + sum(map(size_of, vocabulary)))
        (self.target / SEGMENTS).mkdir(exist_ok=True)
        if vocabulary and not has_vocabulary:
            self._copy_vocabulary(state.vocabulary, vocabulary)
        for row in rows:
            self._copy_segment(row)
        for path in uploads:
            with contextlib.suppress(FileNotFoundError):  # it may be deleted at any time
                self.files.copy_upload(path)
        self.files.end()

    def _copy_segment(self, row: SegmentRow) -> None:
        folder = self.source / SEGMENTS / row.folder
        names = [META, *(f"{name}.npy" for name in read_description(folder)["files"])]

        def is_sound(copy: Path) -> bool:
            return row.sha256 in (None, hash_file(copy / META)) and not verify_segment(copy)

        self.files.copy_folder([folder / name for name in names], self.target / SEGMENTS / row.folder, is_sound)

    def _copy_vocabulary(self, name: str, files: Sequence[Path]) -> None:
        kept = sound_seal(self.source / SEAL)
        sealed = kept.files if kept is not None else {}
        wanted = {path: one.sha256 for path, one in sealed.items() if path.startswith(f"{name}/")}

        def is_sound(copy: Path) -> bool:
            there = {f"{name}/{path.name}": hash_file(path) for path in copy.iterdir()}
            return there.items() >= wanted.items()

        self.files.copy_folder(files, self.target / name, is_sound)

    def _commit(self, state: _CopiedState, earlier: EarlierBackup) -> None:
        """Replace the catalogue by the copy, and then the files that depend on it."""
        before = earlier.revisions if earlier.revision is None else [earlier.revision]
        mark_backup(self.target, self.identity, sorted({state.revision, *before}))
        if read_identity(self.target) != self.identity:
            write_identity(self.target, self.identity)
        kept = sound_seal(self.source / SEAL)
        with contextlib.ExitStack() as leaving:
            loans = self._stage_augmentation(leaving)
            if earlier.revision is None:
                for name in FILES:
                    (self.target / name).unlink(missing_ok=True)
            _overwrite_database(state.file, self.target / FILE)
            if loans is not None:
                remove(self.target / AUGMENTATION)
                publish_folder(loans, self.target / AUGMENTATION)
        for name in REPLACED:
            if is_plain_file(self.source / name):
                self.files.replace(self.source / name)
        self._seal(state, kept)
        mark_backup(self.target, self.identity, [state.revision])

    def _seal(self, state: _CopiedState, kept: Seal | None) -> None:
        """Seal the backup like a collection, and store a snapshot of its catalogue."""
        write_snapshot(self.target / FILE, self.target / SNAPSHOT)
        if kept is not None:
            digest = hash_catalogue(self.target / FILE)
            sealed = replace(kept, revision=state.revision, database="sqlite", catalogue=digest)
            write_seal(self.target / SEAL, replace(sealed, snapshot=state.revision, work=0.0))

    def _stage_augmentation(self, leaving: contextlib.ExitStack) -> Path | None:
        """Copy borrowed features; None if the backup has them, or there is nothing sound to copy."""
        ours, theirs = self.source / AUGMENTATION / MANIFEST, self.target / AUGMENTATION / MANIFEST
        temporary = self.files.temporary(AUGMENTATION, leaving)
        try:
            kept = read_manifest(self.source)
            if kept is None or (theirs.is_file() and theirs.read_bytes() == ours.read_bytes()):
                return None
            temporary.mkdir()
            for name in kept["segments"]:
                (temporary / name).mkdir()
                for path in (self.source / AUGMENTATION / name).iterdir():
                    self.files.copy(path, temporary / name / path.name)
            save_json(temporary / MANIFEST, kept)
        except (CairnError, FileNotFoundError):
            return None  # damaged or changing: it can be made again
        return temporary

    def _remove_rest(self, state: _CopiedState) -> None:
        segments = {row.folder for row in state.segments}
        for path in (self.target / SEGMENTS).iterdir():
            if path.name not in segments:
                self.files.remove(path)
        for path in self.target.iterdir():
            replaced = is_vocabulary(path.name) and path.name != state.vocabulary
            gone = path.name in (*REPLACED, AUGMENTATION) and not (self.source / path.name).exists()
            if replaced or gone:
                self.files.remove(path)
        for path in files_below(self.target / UPLOADS):
            if not os.path.lexists(self.source / path.relative_to(self.target)):
                self.files.remove(path)
        for folder, _, _ in os.walk(self.target / UPLOADS, topdown=False):
            with contextlib.suppress(OSError):  # it is not empty
                Path(folder).rmdir()

    def _uploads(self) -> Iterator[Path]:
        """Uploaded files, without those being received."""
        for path in files_below(self.source / UPLOADS):
            if not path.relative_to(self.source / UPLOADS).parts[0].startswith(INCOMING) and is_plain_file(path):
                yield path


def _overwrite_database(copy: Path, file: Path) -> None:
    """Overwrite an SQLite file with another, in one transaction."""
    try:
        with (
            contextlib.closing(connect_for_reading(copy)) as made,
            contextlib.closing(sqlite3.connect(file, timeout=BUSY_TIMEOUT_MS / 1000)) as place,
        ):
            made.backup(place)
            place.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        if primary_code(error) == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file) from error
        raise CairnError(f"The catalogue {file} cannot be written ({error}): check the disk and its rights.") from error


def _identity_of(collection: Collection) -> str:
    """The identity of a collection; one of an earlier version may get its first here."""
    identity = read_identity(collection.folder)
    if identity is None:
        with collection.locked():
            keep_identity(collection.folder, collection.catalogue)
        identity = read_identity(collection.folder)
    if identity is None:
        raise CairnError("{folder} does not say which collection it is: run {cairn check}.", folder=collection.folder)
    return identity


def _part(file: str) -> str:
    """The part to copy again if a file is damaged: its segment, or the folder of the vocabulary."""
    parts = file.split("/")
    return "/".join(parts[:2] if parts[0] == SEGMENTS else parts[:1])
