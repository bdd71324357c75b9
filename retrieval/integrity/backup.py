"""Backup of a collection: a copy that is a collection itself, made while others write, and updated incrementally.

Immutable files (segments, vocabularies) are copied under unique names. Then the catalogue of one moment replaces the
earlier one in one transaction, followed by files that depend on it. Files that the collection no longer has are deleted
at the end, when everything was verified. So a killed process leaves either the earlier backup or the new one intact.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import sqlalchemy as sa

from index.arrays import check_format, flush_to_disk, hash_file, load_json, publish_folder, save_json
from index.errors import CairnError
from index.progress import Progress, silent
from index.segments.description import META, read_description, verify_segment
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import BUSY_TIMEOUT_MS, Database, connect_for_reading, primary_code
from retrieval.catalogue.photos import count_indexed
from retrieval.catalogue.schema import FILE, FILES, REVISION_KEY, SegmentRow, Setting
from retrieval.catalogue.segment_rows import segments_in
from retrieval.catalogue.words import make_words
from retrieval.collection.augmentation import MANIFEST, read_manifest
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.collection.identity import is_own, keep_identity, read_identity, write_identity
from retrieval.collection.layout import (
    AUGMENTATION,
    BACKUP,
    INCOMING,
    LOCK,
    OPTIONS,
    REPLACED,
    SEAL,
    SEGMENTS,
    SNAPSHOT,
    UNFINISHED,
    UPLOADS,
    VOCABULARY,
    VOCABULARY_KEY,
    is_vocabulary,
)
from retrieval.collection.locking import lock_folder
from retrieval.collection.seal import Seal, sound_seal, write_seal
from retrieval.collection.sealing import hash_catalogue
from retrieval.collection.segments import is_there
from retrieval.collection.snapshot import copy_database, write_snapshot
from retrieval.integrity.check import check_collection
from retrieval.integrity.rebuild_server import copy_tables
from retrieval.integrity.report import CheckReport, files_below, size_of

STEP = "backup"

_FORMAT = 1
_IDENTITY = re.compile("[0-9a-f]{32}")
_LOOKS = 10  # how often a collection is copied again whose segments are merged meanwhile
_SETTLED = 3  # attempts if the collection changes after its catalogue was copied
_BLOCK = 1 << 26  # bytes
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class BackupReport:
    """Result of a backup."""

    copied: int = 0  # files
    bytes: int = 0  # of them
    kept: int = 0  # files that an earlier run has copied
    removed: int = 0  # files and folders that the collection no longer has
    images: int = 0
    check: CheckReport = field(default_factory=CheckReport)  # of the backup
    seconds: float = 0.0


@dataclass(frozen=True)
class _CopiedState:
    """Contents of the copy of a catalogue."""

    file: Path
    revision: int
    segments: Sequence[SegmentRow]
    vocabulary: str  # name of its folder, which may be missing
    images: int


@dataclass(frozen=True)
class _Earlier:
    """State of the folder of the backup after earlier runs."""

    revisions: Sequence[int] = ()  # which its catalogue may have
    revision: int | None = None  # of its catalogue; None: no backup yet, or it is damaged
    segments: Mapping[str, str | None] = field(default_factory=dict)  # that its catalogue names, and their checksums


def back_up(collection: Collection, target: Path, *, link: bool = False, progress: Progress = silent) -> BackupReport:
    """Copy a collection to a folder, or update the copy there; then verify all of it. The backup is of
    one moment, whatever other processes change meanwhile. It has the catalogue as an SQLite file, wherever the
    collection has it. Thumbnails, jobs, and intermediate files of interrupted runs are left out.
    """
    start = time.perf_counter()
    _refuse_nested(collection.folder, target)
    identity = _identity_of(collection)
    _look(target, collection, identity)
    try:
        _make_folder(target, collection.folder)
        with lock_folder(target):
            backup = _Backup(collection, target, identity, link, progress)
            backup.run()
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise CairnError(
            f"The disk of {target} is full: free some space and run the same command again; an earlier backup there is "
            "still intact."
        ) from error
    backup.report.seconds = time.perf_counter() - start
    return backup.report


class _Backup:
    """One run of `back_up`, with the lock of the target held."""

    def __init__(self, collection: Collection, target: Path, identity: str, link: bool, progress: Progress) -> None:
        self.collection, self.source, self.target = collection, collection.folder, target
        self.identity = identity
        self.link = link
        self.report = BackupReport()
        self._progress = progress
        self._done = self._total = 0
        self._copied: set[str] = set()  # segments and vocabularies, by their names

    def run(self) -> None:
        for path in self.target.iterdir():
            if UNFINISHED.fullmatch(path.name):
                _remove(path)
        if not (self.target / BACKUP).exists():
            self._mark([])  # first: the next run completes the work of a killed one
        damaged: set[str] = set()
        for _ in range(2):
            # Files that the disk of the backup has damaged since are copied again.
            for part in damaged:
                _remove(self.target / part)
            earlier = _look(self.target, self.collection, self.identity)
            state = self._copy_all(earlier)
            try:
                self._commit(state, earlier)
            finally:
                _remove(state.file.parent)
            self.report.check = check_collection(self.target, progress=self._progress)
            damaged = {_part(one.file) for one in self.report.check.damaged}
            if not damaged:
                self._remove_rest(state)
                break
        self.report.images = state.images

    def _copy_all(self, earlier: _Earlier) -> _CopiedState:
        """Copy the catalogue next to the earlier one, and all that never changes once it is written."""
        for look in range(1, _LOOKS + 1):
            with contextlib.ExitStack() as leaving:
                state = self._copy_catalogue(self._temporary(FILE, leaving))
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
            name = copy.setting(VOCABULARY_KEY) or VOCABULARY
            state = _CopiedState(file, copy.revision(), copy.read(segments_in), name, copy.read(count_indexed))
        if not is_vocabulary(name):
            raise CairnError(
                "The catalogue of {source} is damaged: run {cairn check}, then {cairn repair}.", source=self.source
            )
        return state

    def _copy_static(self, state: _CopiedState, earlier: _Earlier) -> None:
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
        vocabulary = [path for path in files_below(self.source / state.vocabulary) if _is_file(path)]
        place = self.target / state.vocabulary
        has_vocabulary = place.is_dir() and all(_is_same(path, self._place(path)) for path in vocabulary)
        if state.segments and not vocabulary and not has_vocabulary:
            raise CairnError("{vocabulary} is missing: run {cairn check}.", vocabulary=self.source / state.vocabulary)
        uploaded = list(self._uploads())
        uploads = [path for path in uploaded if not _is_same(path, self._place(path))]
        kept = [self.target / SEGMENTS / row.folder for row in state.segments if row not in rows]
        kept += [place] if has_vocabulary else []
        self.report.kept = sum(len(list(one.iterdir())) for one in kept if one.name not in self._copied)
        self.report.kept += len(uploaded) - len(uploads)
        self._done = 0
        self._total = sum(row.bytes for row in rows) + sum(map(size_of, uploads))
        self._total += 0 if has_vocabulary else sum(map(size_of, vocabulary))
        self._tell(0)
        (self.target / SEGMENTS).mkdir(exist_ok=True)
        if vocabulary and not has_vocabulary:
            self._copy_vocabulary(state.vocabulary, vocabulary)
        for row in rows:
            self._copy_segment(row)
        for path in uploads:
            with contextlib.suppress(FileNotFoundError):  # it may be deleted at any time
                self._copy_upload(path)
        self._done = self._total
        self._tell(0)

    def _copy_segment(self, row: SegmentRow) -> None:
        folder = self.source / SEGMENTS / row.folder
        names = [META, *(f"{name}.npy" for name in read_description(folder)["files"])]

        def is_sound(copy: Path) -> bool:
            return row.sha256 in (None, hash_file(copy / META)) and not verify_segment(copy)

        self._copy_folder([folder / name for name in names], self.target / SEGMENTS / row.folder, is_sound)

    def _copy_vocabulary(self, name: str, files: Sequence[Path]) -> None:
        kept = sound_seal(self.source / SEAL)
        sealed = kept.files if kept is not None else {}
        wanted = {path: one.sha256 for path, one in sealed.items() if path.startswith(f"{name}/")}

        def is_sound(copy: Path) -> bool:
            there = {f"{name}/{path.name}": hash_file(path) for path in copy.iterdir()}
            return there.items() >= wanted.items()

        self._copy_folder(files, self.target / name, is_sound)

    def _copy_folder(self, files: Sequence[Path], place: Path, is_sound: Callable[[Path], bool]) -> None:
        """Copy the files of a folder that never changes, or link them; it has its name when it is whole."""
        with contextlib.ExitStack() as leaving:
            temporary = self._temporary(place.name, leaving)
            temporary.mkdir()
            for path in files:
                if self.link:
                    self._link(path, temporary / path.name)
                else:
                    self._copy(path, temporary / path.name)
            if not is_sound(temporary):
                raise CairnError("{parent} is damaged: run {cairn check}, then {cairn repair}.", parent=files[0].parent)
            _remove(place)
            publish_folder(temporary, place)
        self._copied.add(place.name)

    def _copy_upload(self, path: Path) -> None:
        place = self._place(path)
        for folder in reversed(path.relative_to(self.source).parents[:-1]):
            _make_folder(self.target / folder, self.source / folder)
        self._replace(path, place)

    def _commit(self, state: _CopiedState, earlier: _Earlier) -> None:
        """Replace the catalogue by the copy, and then the files that depend on it."""
        self._mark(
            sorted({state.revision, *([earlier.revision] if earlier.revision is not None else earlier.revisions)})
        )
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
                _remove(self.target / AUGMENTATION)
                publish_folder(loans, self.target / AUGMENTATION)
        for name in REPLACED:
            if _is_file(self.source / name):
                self._replace(self.source / name, self.target / name)
        self._seal(state, kept)
        self._mark([state.revision])

    def _seal(self, state: _CopiedState, kept: Seal | None) -> None:
        """Seal the backup like a collection, and store a snapshot of its catalogue."""
        write_snapshot(self.target / FILE, self.target / SNAPSHOT)
        if kept is not None:
            digest = hash_catalogue(self.target / FILE)
            sealed = replace(kept, revision=state.revision, database="sqlite", catalogue=digest)
            write_seal(self.target / SEAL, replace(sealed, snapshot=state.revision, work=0.0))

    def _mark(self, revisions: Sequence[int]) -> None:
        """Make the folder a backup, whose catalogue has one of some revisions."""
        marks = {"format": _FORMAT, "collection": self.identity, "revisions": list(revisions)}
        save_json(self.target / BACKUP, marks)

    def _stage_augmentation(self, leaving: contextlib.ExitStack) -> Path | None:
        """Copy borrowed features; None if the backup has them, or there is nothing sound to copy."""
        ours, theirs = self.source / AUGMENTATION / MANIFEST, self.target / AUGMENTATION / MANIFEST
        temporary = self._temporary(AUGMENTATION, leaving)
        try:
            kept = read_manifest(self.source)
            if kept is None or (theirs.is_file() and theirs.read_bytes() == ours.read_bytes()):
                return None
            temporary.mkdir()
            for name in kept["segments"]:
                (temporary / name).mkdir()
                for path in (self.source / AUGMENTATION / name).iterdir():
                    self._copy(path, temporary / name / path.name)
            save_json(temporary / MANIFEST, kept)
        except (CairnError, FileNotFoundError):
            return None  # damaged or changing: it can be made again
        return temporary

    def _remove_rest(self, state: _CopiedState) -> None:
        segments = {row.folder for row in state.segments}
        for path in (self.target / SEGMENTS).iterdir():
            if path.name not in segments:
                self._remove(path)
        for path in self.target.iterdir():
            replaced = is_vocabulary(path.name) and path.name != state.vocabulary
            gone = path.name in (*REPLACED, AUGMENTATION) and not (self.source / path.name).exists()
            if replaced or gone:
                self._remove(path)
        for path in files_below(self.target / UPLOADS):
            if not os.path.lexists(self.source / path.relative_to(self.target)):
                self._remove(path)
        for folder, _, _ in os.walk(self.target / UPLOADS, topdown=False):
            with contextlib.suppress(OSError):  # it is not empty
                Path(folder).rmdir()

    def _remove(self, path: Path) -> None:
        _remove(path)
        self.report.removed += 1

    def _uploads(self) -> Iterator[Path]:
        """Uploaded files, without those being received."""
        for path in files_below(self.source / UPLOADS):
            if not path.relative_to(self.source / UPLOADS).parts[0].startswith(INCOMING) and _is_file(path):
                yield path

    def _place(self, path: Path) -> Path:
        return self.target / path.relative_to(self.source)

    def _temporary(self, name: str, leaving: contextlib.ExitStack) -> Path:
        """A path in the backup for an unfinished file, which is deleted at the end."""
        path = self.target / f".{name}.{secrets.token_hex(4)}.tmp"
        leaving.callback(_remove, path)
        return path

    def _replace(self, path: Path, place: Path) -> None:
        """Copy a file, unless the backup has it, and replace the earlier one."""
        if _is_same(path, place):
            self.report.kept += 1
            return
        with contextlib.ExitStack() as leaving:
            temporary = self._temporary(path.name[:40], leaving)
            self._copy(path, temporary)
            flush_to_disk(temporary)
            temporary.replace(place)
            flush_to_disk(place.parent)

    def _copy(self, path: Path, copy: Path) -> None:
        """Copy a file, with its rights and times."""
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CairnError("{path} is not a regular file: run {cairn check}.", path=path)
        _copy_contents(path, copy, self._tell)
        with contextlib.suppress(OSError):  # not every file system supports these
            shutil.copystat(path, copy)
        self.report.copied += 1
        self.report.bytes += copy.stat().st_size

    def _link(self, path: Path, link: Path) -> None:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CairnError("{path} is not a regular file: run {cairn check}.", path=path)
        try:
            os.link(path, link)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CairnError(
                "{path} cannot be linked to from {target} ({value}): leave out {--link}, so that files are copied.",
                path=path,
                target=self.target,
                value=error.strerror,
            ) from error
        self._tell(size_of(link))
        self.report.copied += 1

    def _tell(self, size: int) -> None:
        self._done += size
        done, total = (int(number / 1e6) + 1 for number in (min(self._done, self._total), self._total))
        self._progress(STEP, done, total)


def _look(target: Path, collection: Collection, identity: str) -> _Earlier:
    """State of a folder after earlier runs."""
    if not target.exists():
        return _Earlier()
    if not target.is_dir():
        raise CairnError(f"{target} is not a folder: name a new folder for the backup.")
    names = {path.name for path in target.iterdir() if not UNFINISHED.fullmatch(path.name)} - {LOCK}
    if not names:
        return _Earlier()
    if BACKUP not in names:
        what = "a collection of its own" if OPTIONS in names else "not empty"
        raise CairnError(
            f"{target} is {what}, and not a backup of {collection.folder}: name a new folder, or an earlier backup."
        )
    for name in names & {SEGMENTS, AUGMENTATION, UPLOADS, FILE, BACKUP} | set(filter(is_vocabulary, names)):
        if (target / name).is_symlink():
            raise CairnError(f"{target / name} is a link, which no backup has: name a new folder.")
    revisions = _read_mark(target, collection, identity)
    revision, segments = _read_catalogue(target / FILE)
    if revision is not None and revision not in revisions:
        raise CairnError(
            f"{target} was changed since it was made: it is a collection of its own now; name a new folder for the "
            "backup."
        )
    return _Earlier(revisions, revision, segments)


def _read_mark(target: Path, collection: Collection, identity: str) -> Sequence[int]:
    """Which revisions the catalogue of a backup may have; raises CairnError if it is not of this collection."""
    path = target / BACKUP
    kept = load_json(path)
    try:
        check_format(path, kept["format"], _FORMAT)
        revisions = [int(one) for one in kept["revisions"]]
        found = str(kept["collection"])
        if not _IDENTITY.fullmatch(found):
            raise ValueError
    except (KeyError, TypeError, ValueError) as error:
        raise CairnError(f"{path} is not what was written: name a new folder for the backup.") from error
    if found != identity:
        raise CairnError(f"{target} is the backup of another collection than {collection.folder}: name a new folder.")
    return revisions


def _read_catalogue(file: Path) -> tuple[int | None, dict[str, str | None]]:
    """The revision of a backup's catalogue, and its segments; None and empty if it is missing or damaged."""
    if not file.is_file():
        return None, {}
    try:
        # Writable, so that SQLite rolls back the unfinished transaction of a killed process.
        with contextlib.closing(sqlite3.connect(file, timeout=BUSY_TIMEOUT_MS / 1000)) as connection:
            query = "SELECT value FROM settings WHERE key = ?"
            (revision,) = connection.execute(query, [REVISION_KEY]).fetchone()
            return int(revision), dict(connection.execute("SELECT folder, sha256 FROM segments").fetchall())
    except (sqlite3.Error, TypeError, ValueError):
        return None, {}


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


def _refuse_nested(folder: Path, target: Path) -> None:
    """Refuse a backup inside the collection, and a collection inside the backup."""
    source, place = folder.resolve(), target.resolve()
    pairs = [(source, one) for one in (place, *place.parents)] + [(place, one) for one in source.parents]
    # By the files themselves: different names may be the same for a file system.
    if any(one == other or (one.exists() and other.exists() and one.samefile(other)) for one, other in pairs):
        raise CairnError(f"{folder} and {target} must not be inside each other: name a folder elsewhere.")


def _make_folder(folder: Path, like: Path) -> None:
    """Create a folder with the permissions of another one."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        with contextlib.suppress(OSError):
            folder.chmod(stat.S_IMODE(like.stat().st_mode) | stat.S_IRWXU)


def _copy_contents(path: Path, copy: Path, tell: Callable[[int], None]) -> None:
    """Copy the contents of a file; some file systems share the space until one of the two is changed."""
    with path.open("rb") as ours, copy.open("xb") as theirs:
        try:
            if hasattr(os, "copy_file_range"):
                with contextlib.suppress(OSError):  # not between any two file systems
                    while size := os.copy_file_range(ours.fileno(), theirs.fileno(), _BLOCK):
                        tell(size)
            while block := ours.read(_BLOCK):
                theirs.write(block)
                tell(len(block))
        except OSError as error:
            error.filename = str(copy)
            raise


def _is_same(path: Path, copy: Path) -> bool:
    """Whether a file was copied before, by size and time, or by content, as not every file system keeps times."""
    try:
        ours, theirs = path.stat(), copy.lstat()
        if not stat.S_ISREG(theirs.st_mode) or ours.st_size != theirs.st_size:
            return False
        return ours.st_mtime_ns == theirs.st_mtime_ns or hash_file(path) == hash_file(copy)
    except FileNotFoundError:
        return False


def _is_file(path: Path) -> bool:
    """Whether there is a plain file, and no link to one."""
    return path.is_file() and not path.is_symlink()


def _part(file: str) -> str:
    """The part to copy again if a file is damaged: its segment, or the folder of the vocabulary."""
    parts = file.split("/")
    return "/".join(parts[:2] if parts[0] == SEGMENTS else parts[:1])


def _remove(path: Path) -> None:
    """Remove a file or a folder, or a link to one, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
