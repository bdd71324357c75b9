"""The seal of a collection: checksums of files that do not contain their own.

Segments contain their checksums. The seal, `collection.sums`, has those of the options, the descriptor, the vocabulary
and the SQLite file of the catalogue. It is renewed at the end of every command that writes. The checksum of the
catalogue is that of one revision: a process that is killed before sealing leaves a stale seal, which is no damage.
Copies of the small files are stored in the catalogue, so that they can be restored byte by byte, and a snapshot of the
catalogue lies next to it.
"""

import base64
import binascii
import contextlib
import errno
import hashlib
import json
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from index.arrays import hash_file
from index.errors import DISK_FULL, CairnError, DatabaseError
from index.segments.description import META
from retrieval.catalogue.database import connect_for_reading, primary_code
from retrieval.catalogue.schema import FILE
from retrieval.catalogue.segment_rows import segments_in
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.augmentation import augmentation_key
from retrieval.collection.collection import Collection
from retrieval.collection.identity import is_own
from retrieval.collection.layout import DESCRIPTOR, OPTIONS, SEAL, SEAL_LOCK, SEGMENTS, SNAPSHOT, STATISTICS
from retrieval.collection.locking import lock_file
from retrieval.collection.options import read_options
from retrieval.collection.seal import (
    Seal,
    SealedFile,
    hash_database,
    sound_seal,
    write_seal,
)
from retrieval.collection.snapshot import write_snapshot
from retrieval.collection.statistics import read_statistics, statistics_augmentation, statistics_key

COPIES_KEY = "cairn.copies"
"""Setting of the catalogue: copies of the small sealed files, JSON of base64 by path."""
LARGEST_COPY = 1 << 22
"""Bytes of a file that is copied into the catalogue, at most."""

_LOOKS = 5
_WAIT = 5.0  # seconds for readers of the SQLite file to end
_LARGEST_HASHED = 2**31 - 2**10  # bytes of an SQLite file: SQLite cannot serialise a larger one

# A snapshot takes at most a second for this many bytes of a catalogue. For a large catalogue it is made once commands
# have worked ten times as long; for one that is small without its links, always.
_BYTES_PER_SECOND = 50e6
_ALWAYS = 16e6  # bytes
_LONGEST_CHECKED = 256e6  # bytes of a catalogue that is compared with the seal before it is written to
_STARTED = time.monotonic()


def seal(collection: Collection, *, statistics: bool = True) -> Seal:
    """Seal a collection: record the checksums of its files, and store copies of the small ones in the catalogue.

    Call it at the end of every command that writes. Files that never change (those of the vocabulary; and options and
    descriptor, once there is a vocabulary) keep the checksum of their first seal, so that damage is never sealed as
    sound. One process seals at a time, so that neither seal nor snapshot goes back in time. If the disk is too full for
    a snapshot, the earlier one stays, and a note is printed on standard error. `statistics`: also write the statistics
    of all postings; needless if no photo was added or removed.
    """
    with lock_file(collection.folder / SEAL_LOCK):
        for attempts in reversed(range(_LOOKS)):
            vocabulary = collection.vocabulary_folder
            try:
                sealed, is_full = _seal(collection, vocabulary if vocabulary.is_dir() else None)
                break
            except (CairnError, FileNotFoundError):
                # It may have been replaced while it was read.
                if not attempts or collection.vocabulary_folder == vocabulary:
                    raise
        if statistics:
            with contextlib.suppress(CairnError, OSError):  # damage is reported when it is read or checked
                _keep_statistics(collection)
    if is_full:
        print(
            f"cairn: the disk is too full for a new copy of the catalogue, {collection.folder / SNAPSHOT}: make room, "
            "the next command that writes makes it.",
            file=sys.stderr,
            flush=True,
        )
    return sealed


def _keep_statistics(collection: Collection) -> None:
    """Write the statistics of all postings, if missing, so that the next process need not compute them.

    Checksums of segments are not verified, as in a search. So statistics may be computed from damaged postings, and
    stay wrong when the file is restored; `Content.has_right_statistics` detects this. Raises OSError if they cannot be
    written.
    """
    path = collection.folder / STATISTICS
    key = collection.content_key()
    if key is None:
        path.unlink(missing_ok=True)
        return
    lent = augmentation_key(collection.folder, collection.basis)
    is_kept = statistics_key(path) == key and statistics_augmentation(path) == lent
    if not is_kept or read_statistics(path) is None:
        collection.forget()
        collection.content.keep_statistics()


def _seal(collection: Collection, vocabulary_folder: Path | None) -> tuple[Seal, bool]:
    """Seal a collection; return the seal, and whether the disk is too full for a snapshot."""
    path = collection.folder / SEAL
    earlier = sound_seal(path)
    vocabulary = vocabulary_folder.name if vocabulary_folder is not None else None
    files = {name: _sealed(collection.folder, name, earlier) for name in _names(collection, vocabulary_folder)}
    name = collection.catalogue.address.get_backend_name()
    if earlier is None:
        # First, as copies without a seal would look as if the seal had been lost.
        write_seal(path, Seal(None, name, None, vocabulary, files))
    if vocabulary is not None:
        _keep_copies(collection, files)
    file = collection.catalogue.file
    snapshot, work, is_full = None, 0.0, False
    if file is not None and is_own(collection.folder, collection.catalogue):
        snapshot, work, is_full = _keep_snapshot(collection, file, earlier)
    new = Seal(None, name, None, vocabulary, files, snapshot, work)
    for _ in range(_LOOKS):
        revision = collection.catalogue.revision()
        digest = hash_catalogue(file)
        if collection.catalogue.revision() == revision:
            new = replace(new, revision=revision, catalogue=digest)
            break
    if new != earlier:
        write_seal(path, new)
    return new, is_full


@contextlib.contextmanager
def sealed_afterwards(collection: Collection) -> Iterator[None]:
    """Seal a collection after code that writes to it, even if that fails or is interrupted."""
    refuse_damaged(collection)
    before = collection.catalogue.revision()
    try:
        yield
    except DatabaseError:  # the catalogue may be damaged: do not seal that
        raise
    except BaseException:
        with contextlib.suppress(CairnError, OSError):  # report the first error
            if collection.catalogue.revision() != before:
                seal(collection)
        raise
    seal(collection)


@contextlib.contextmanager
def changed(collection: Collection) -> Iterator[None]:
    """Change an undamaged collection: afterwards it is sealed, and its cached contents are dropped."""
    refuse_damaged(collection)
    yield
    seal(collection)
    collection.forget()


def refuse_damaged(collection: Collection) -> None:
    """Refuse to write to an SQLite catalogue that differs from its seal, as its snapshot is still sound. Call it at the
    beginning of every command that writes. Large catalogues are not checked.
    """
    file = collection.folder / FILE
    earlier = sound_seal(collection.folder / SEAL)
    if earlier is None or earlier.catalogue is None or not is_own(collection.folder, collection.catalogue):
        return
    size = file.stat().st_size
    is_long = size > _LONGEST_CHECKED and size - _bytes_of_links(file) > _LONGEST_CHECKED
    if is_long or collection.catalogue.revision() != earlier.revision:
        return
    try:
        with contextlib.closing(connect_for_reading(file)) as connection:
            same = hash_database(connection) == earlier.catalogue
    except sqlite3.Error:
        same = False
    if not same and collection.catalogue.revision() == earlier.revision:
        raise CairnError("The catalogue {file} is damaged: run {cairn check}, then {cairn repair}.", file=file)


def _keep_snapshot(collection: Collection, file: Path, earlier: Seal | None) -> tuple[int | None, float, bool]:
    """Write a snapshot if one is due; return its revision, the seconds of work since, and if the disk is too full."""
    path = collection.folder / SNAPSHOT
    revision, work = (earlier.snapshot, earlier.work) if earlier is not None else (None, 0.0)
    if revision is not None and path.exists():
        if collection.catalogue.revision() == revision:
            return revision, 0.0, False
        work += _seconds_of_work(collection.folder / SEAL)
        size = file.stat().st_size
        if size > _ALWAYS and size - _bytes_of_links(file) > _ALWAYS and work < 10 * size / _BYTES_PER_SECOND:
            return revision, round(work, 3), False
    try:
        return write_snapshot(file, path), 0.0, False
    except OSError as error:
        # ENOENT: another holder of the lock has removed unfinished files. The next command makes a snapshot.
        if error.errno not in (errno.ENOENT, *DISK_FULL):
            raise
        return revision, round(work, 3), error.errno in DISK_FULL


def _bytes_of_links(file: Path) -> int:
    """Bytes of links in an SQLite file, which `cairn group` can make again; 0 if it cannot be read."""
    try:
        with contextlib.closing(connect_for_reading(file)) as connection:
            return int(connection.execute("SELECT coalesce(sum(length(found)), 0) FROM links").fetchone()[0])
    except (sqlite3.Error, UnicodeDecodeError):
        return 0


def _seconds_of_work(sealed: Path) -> float:
    """Seconds that this process has worked since its start, or since it last sealed."""
    return max(0.0, min(time.monotonic() - _STARTED, time.time() - sealed.stat().st_mtime))


def read_copies(text: str | None) -> dict[str, bytes]:
    """Copies of small files, by path, from the catalogue's setting `COPIES_KEY`; without damaged ones."""
    try:
        return {str(name): base64.b64decode(one, validate=True) for name, one in json.loads(text or "{}").items()}
    except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error):
        return {}


def _names(collection: Collection, vocabulary: Path | None) -> Iterator[str]:
    """Paths, in the collection, of the files to seal."""
    yield OPTIONS
    if collection.options.descriptor == DESCRIPTOR:
        yield DESCRIPTOR
    if vocabulary is not None:
        yield from (f"{vocabulary.name}/{file.name}" for file in sorted(vocabulary.iterdir()) if file.is_file())
    # Segments of earlier versions: the catalogue has no checksums of their descriptions.
    yield from (
        f"{SEGMENTS}/{row.folder}/{META}" for row in collection.catalogue.read(segments_in) if row.sha256 is None
    )


def _sealed(folder: Path, name: str, earlier: Seal | None) -> SealedFile:
    """The seal of a file; the earlier one if the file cannot have changed since."""
    before = earlier.files.get(name) if earlier is not None else None
    # Options may change only before there is a vocabulary; after that none of these files is written again.
    if earlier is not None and earlier.vocabulary is not None and before is not None:
        return _seen_again(folder / name, before)
    try:
        state = (folder / name).stat()
        if before is not None and (before.bytes, before.mtime_ns) == (state.st_size, state.st_mtime_ns):
            return before
        return SealedFile(hash_file(folder / name), state.st_size, state.st_mtime_ns)
    except OSError as error:
        raise CairnError(
            "{folder} cannot be read ({reason}): run {cairn check}.",
            folder=folder / name,
            reason=error.strerror or error,
        ) from error


def _seen_again(path: Path, before: SealedFile) -> SealedFile:
    """The earlier seal of a file, with its current time if that is new and the contents are the same, as of a copy."""
    try:
        state = path.stat()
        if (state.st_size, state.st_mtime_ns) == (before.bytes, before.mtime_ns) or hash_file(path) != before.sha256:
            return before
    except OSError:  # missing or unreadable, which `cairn check` finds
        return before
    return replace(before, mtime_ns=state.st_mtime_ns)


def _keep_copies(collection: Collection, files: Mapping[str, SealedFile]) -> None:
    """Store copies of those small files in the catalogue that match their seals."""
    known = read_copies(collection.catalogue.setting(COPIES_KEY))
    copies = {}
    for name, sealed in files.items():
        copy = known.get(name)
        if copy is None or hashlib.sha256(copy).hexdigest() != sealed.sha256:
            if sealed.bytes > LARGEST_COPY or name.startswith(SEGMENTS):
                continue
            copy = (collection.folder / name).read_bytes()
            if hashlib.sha256(copy).hexdigest() != sealed.sha256:
                continue
        copies[name] = copy
    if copies.get(OPTIONS) is not None:
        read_options(collection.folder / OPTIONS)
    if copies != known:
        text = json.dumps({name: base64.b64encode(copy).decode() for name, copy in sorted(copies.items())})
        collection.catalogue.write(keep_setting, COPIES_KEY, text)


def hash_catalogue(file: Path | None) -> str | None:
    """SHA-256 of an SQLite file with all commits; None if it is too large, or the log cannot be emptied."""
    if file is None or not file.is_file() or file.stat().st_size > _LARGEST_HASHED:
        return None
    try:
        with contextlib.closing(sqlite3.connect(file, timeout=_WAIT)) as connection:
            _, log, written = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return hash_database(connection) if log == written else None
    except (sqlite3.Error, OSError) as error:
        if primary_code(error) == sqlite3.SQLITE_FULL:
            return None
        raise DatabaseError(
            "The catalogue {file} cannot be sealed ({error}): run {cairn check}.", str(error), file=file, error=error
        ) from error
