"""Check the database of a catalogue for damage, without the segments."""

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from index.errors import Unreadable
from retrieval.catalogue.database import Database, ForeignObject, connect_for_reading, primary_code
from retrieval.catalogue.schema import REVISION_COPY_KEY, REVISION_KEY, Setting
from retrieval.collection.layout import SNAPSHOT
from retrieval.collection.seal import Seal, hash_database, sound_seal
from retrieval.collection.sealing import COPIES_KEY
from retrieval.collection.snapshot import read_snapshot
from retrieval.integrity.report import Findings, size_of

_LOOKS = 5
# Errors of the system or the disk, not of the contents.
_REFUSALS = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY)
_STALE = (
    "is older than the catalogue: a process that wrote to it was killed, or is still running. The catalogue was "
    "checked without it; cairn index renews it."
)


@dataclass(frozen=True)
class Finding:
    """Result of checking a catalogue's database."""

    seal: Seal | None = None  # the newest that could be read
    damage: str | None = None  # damage of the database
    note: str | None = None  # on the seal, after its name
    seal_is_lost: bool = False  # there was one, and it is missing


def check_sqlite(file: Path, seal_file: Path, tell: Callable[[int], None]) -> Finding:
    """Check an SQLite file by the seal or, if that is of another moment, by SQLite's own check. It is opened for
    reading only, so that damage in it is not made worse, or hidden.
    """
    for left in reversed(range(_LOOKS)):
        kept = sound_seal(seal_file)
        settings: dict[str, str] = {}
        note: str | None = None
        try:
            with contextlib.closing(connect_for_reading(file)) as connection:
                connection.execute("BEGIN")  # read a consistent state, despite other writers
                settings = _settings(connection)
                finding = _compare(kept, settings.get(REVISION_KEY), settings.get(REVISION_COPY_KEY))
                what, note = finding.damage, finding.note
                if what is None and note is None and kept is not None and kept.catalogue is not None:
                    pages, size = connection.execute("PRAGMA page_count").fetchone()[0], file.stat().st_size
                    tell(size)
                    if size != pages * connection.execute("PRAGMA page_size").fetchone()[0]:
                        what = "It is not as long as what was written."
                    elif hash_database(connection) != kept.catalogue:
                        what = "It is not what was written."
                elif what is None:
                    what = _examine(connection)
                    tell(file.stat().st_size)
        except ForeignObject as error:
            what = error.cause
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if primary_code(error) in _REFUSALS:
                raise Unreadable(
                    f"The catalogue {file} cannot be read ({' '.join(str(error).split())}): check the disk and its "
                    "rights, then run the command again."
                ) from error
            what = f"It cannot be read ({' '.join(str(error).split())[:200]})."
        if not left or sound_seal(seal_file) == kept:  # otherwise it was sealed during the check: try again
            break
    return Finding(kept, what, None if what else note, what is None and kept is None and COPIES_KEY in settings)


def check_snapshot(findings: Findings, seal: Seal | None) -> None:
    """Check the snapshot of a catalogue, which may be missing in a collection of an earlier version."""
    path = findings.folder / SNAPSHOT
    if path.exists():
        findings.was_read(1, size_of(path))
        revision = read_snapshot(path, findings.tell)
        if revision is None:
            findings.damage(SNAPSHOT, "The copy of the catalogue is not what was written.")
        elif seal is not None and seal.snapshot is not None and revision < seal.snapshot:
            findings.damage(SNAPSHOT, "The copy of the catalogue is older than what was written.")
    elif seal is not None and seal.snapshot is not None:
        findings.damage(SNAPSHOT, "The copy of the catalogue is missing.")


def check_server(database: Database, seal_file: Path) -> Finding:
    """Compare the revision of a database, which is no file of ours, with the seal; raises DatabaseError if it fails."""
    kept = sound_seal(seal_file)
    with database.transaction() as session:
        wanted = (REVISION_KEY, REVISION_COPY_KEY)
        found = {row.key: row.value for row in session.scalars(sa.select(Setting).where(Setting.key.in_(wanted)))}
        copies = session.get(Setting, COPIES_KEY) is not None
    finding = _compare(kept, found.get(REVISION_KEY), found.get(REVISION_COPY_KEY))
    return Finding(finding.seal, finding.damage, finding.note, kept is None and copies)


def _compare(kept: Seal | None, revision: str | None, copy: str | None) -> Finding:
    """Compare the revision of a catalogue with its copy, and with the seal."""
    if kept is None:
        note = "is missing: an earlier version made the collection, or its first run was stopped."
        if revision is None:  # of an earlier format
            return Finding(None, None, note)
    else:
        note = _STALE
    if revision is None or not re.fullmatch("[0-9]{1,18}", str(revision)):
        return Finding(kept, "It does not say at which revision it is.")
    if copy is not None and copy != revision:
        return Finding(kept, "It says twice at which revision it is, and not the same.")
    if kept is not None and kept.revision is not None and int(revision) < kept.revision:
        return Finding(
            kept,
            f"It has lost what was last written to it: it is at revision {revision}, and should be at {kept.revision} "
            "or later.",
        )
    if kept is not None and kept.revision == int(revision):
        return Finding(kept)
    return Finding(kept, None, note)


def _settings(connection: sqlite3.Connection) -> dict[str, str]:
    return dict(_rows(connection))


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    for key, value in connection.execute("SELECT key, value FROM settings").fetchall():
        if isinstance(key, str) and isinstance(value, str):
            yield key, value


def _examine(connection: sqlite3.Connection) -> str | None:
    report = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    if report != "ok":
        return f"It is damaged ({' '.join(report.split())[:200]})."
    broken = connection.execute("PRAGMA foreign_key_check").fetchone()
    return None if broken is None else f"A row of its table {broken[0]!r} belongs to one that is not there."
