"""The snapshot: a copy of an SQLite catalogue, from which a damaged or lost one is restored.

SQLite's backup API makes it, so that it is consistent despite other writers. The revision of the catalogue and a
checksum of all are appended, so that a snapshot can be verified by itself.
"""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from index.arrays import flush_to_disk, temporary_path
from index.errors import DatabaseError, refuse_unreadable
from index.progress import silent
from retrieval.catalogue.database import (
    BUSY_TIMEOUT_MS,
    connect_for_reading,
    primary_code,
    refuse_foreign_objects,
)
from retrieval.catalogue.settings import stated_revision

_END = re.compile(rb"\n([0-9]{18}) ([0-9a-f]{64})\n")
_LENGTH = 85  # bytes of the appended line
_BLOCK = 1 << 20  # bytes


def write_snapshot(file: Path, path: Path) -> int:
    """Copy a catalogue, replacing an earlier snapshot atomically; return its revision. Raises as `copy_database`."""
    temporary = temporary_path(path)
    try:
        revision = copy_database(file, temporary)
        with temporary.open("r+b") as opened:
            digest = hashlib.file_digest(opened, "sha256")
            end = f"\n{revision:018d} ".encode()
            digest.update(end)
            opened.write(end + digest.hexdigest().encode() + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(path)
        flush_to_disk(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
    return revision


def copy_database(file: Path, copy: Path) -> int:
    """Copy the SQLite file of a catalogue consistently, despite other writers; return its revision.

    Raises DatabaseError if the catalogue is damaged or cannot be copied, OSError if the disk is full (ENOSPC) or
    another process has removed the unfinished copy (ENOENT).
    """
    try:
        with (
            contextlib.closing(connect_for_reading(file, timeout=BUSY_TIMEOUT_MS / 1000)) as catalogue,
            contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection,
        ):
            for pragma in ("journal_mode = OFF", "synchronous = OFF"):
                connection.execute(f"PRAGMA {pragma}")
            catalogue.backup(connection)
        if not copy.exists():
            raise FileNotFoundError(copy)
        return _examine(copy)
    except (sqlite3.Error, UnicodeDecodeError, ValueError) as error:
        if primary_code(error) == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), copy) from error
        raise DatabaseError(
            "No copy of the catalogue {file} can be made ({error}): run {cairn check}.", file=file, error=error
        ) from error


def read_snapshot(path: Path, tell: Callable[[int], None] = silent) -> int | None:
    """Read a whole snapshot; return the revision of its catalogue, None if it is missing or damaged."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:  # first, as it may be replaced at any time
            digest, remaining = hashlib.sha256(), os.fstat(file.fileno()).st_size - 65
            if remaining < _LENGTH - 65:
                return None
            while remaining:
                block = file.read(min(remaining, _BLOCK))
                if not block:
                    return None
                digest.update(block)
                remaining -= len(block)
                tell(len(block))
            file.seek(-_LENGTH, os.SEEK_END)
            end = _END.fullmatch(file.read())
    except OSError as error:
        refuse_unreadable(path, error)
        return None
    return int(end[1]) if end and end[2].decode() == digest.hexdigest() else None


def restore_snapshot(path: Path, file: Path) -> int | None:
    """Write the catalogue of a snapshot to a new file; return its revision, or None if the snapshot is not sound."""
    revision = read_snapshot(path)
    if revision is not None:
        shutil.copyfile(path, file)
        os.truncate(file, path.stat().st_size - _LENGTH)
        flush_to_disk(file)
    return revision


def _examine(copy: Path) -> int:
    """The revision of a copied catalogue; raises ValueError or sqlite3.Error if it is damaged."""
    # Read-only, so that SQLite makes no files next to it.
    with contextlib.closing(sqlite3.connect(f"{copy.resolve().as_uri()}?immutable=1", uri=True)) as connection:
        refuse_foreign_objects(connection, copy)
        (report,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if report != "ok":
            raise ValueError(" ".join(str(report).split())[:200])
        revision = stated_revision(connection)
        if revision is None:
            raise ValueError("it does not say at which revision it is")
        return revision
