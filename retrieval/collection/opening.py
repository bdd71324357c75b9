"""Opening the catalogue of a collection: one of an earlier version is checked first, and sealed when it is migrated.

What lacks a part that a collection has from the beginning is refused before.
"""

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

from index.errors import CairnError
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import connect_for_reading
from retrieval.catalogue.schema import FILE, REVISION_KEY
from retrieval.collection.identity import check_identity, is_own, sealed_database
from retrieval.collection.layout import OPTIONS, SEAL, SEGMENTS, SNAPSHOT, VOCABULARY
from retrieval.collection.locking import lock_folder
from retrieval.collection.seal import Seal, hash_database, sound_seal, write_seal
from retrieval.collection.segments import published
from retrieval.collection.snapshot import write_snapshot


def catalogue_place(folder: Path, catalogue: str | None) -> Path | str:
    """Place of a catalogue: its address, or the folder."""
    if catalogue is not None and "://" not in catalogue:
        raise CairnError(
            f"{catalogue!r} is not the address of a catalogue: give one such as postgresql+psycopg://HOST/DATABASE."
        )
    return catalogue or folder


def refuse_damaged(folder: Path) -> None:
    """Refuse a folder without options that holds what a collection only has after these."""
    has_vocabulary = (folder / SEGMENTS).is_dir() and (folder / VOCABULARY).is_dir()
    if (folder / SEAL).exists() or has_vocabulary or published(folder):
        raise CairnError(
            "The options {options} are missing: run {cairn check}, then {cairn repair}.", options=folder / OPTIONS
        )


def refuse_without_catalogue(folder: Path) -> None:
    """Refuse a collection whose catalogue is not the SQLite file in its folder, or is one with nothing in it."""
    file = folder / FILE
    is_empty = file.is_file() and not file.stat().st_size
    if file.is_file() and not is_empty:
        return
    database = sealed_database(folder)
    if database not in (None, "sqlite"):
        raise CairnError(
            "The catalogue of {folder} is in a database ({database}): give the address that it was made with, with "
            "{--catalogue}.",
            folder=folder,
            database=database,
        )
    raise CairnError(
        "The catalogue {file} is {else_}: run {cairn check}, then {cairn repair}, or give the address of the "
        "collection's catalogue with {--catalogue}.",
        file=file,
        else_="empty" if is_empty else "missing",
    )


def open_catalogue(folder: Path, where: Path | str) -> Catalogue:
    """Open the catalogue of a collection.

    An SQLite file of an earlier version is migrated unless it is damaged; then a snapshot is made and the seal renewed,
    where the folder may be written and its lock is free.
    """
    kept: list[Seal | None] = []
    is_file = where == folder
    opened = Catalogue.open(where, before_migration=(lambda: kept.append(_look(folder))) if is_file else None)
    try:
        check_identity(folder, opened)
        if kept and is_own(folder, opened):
            # Where it cannot be done, the next command that writes does it.
            with contextlib.suppress(CairnError, OSError), lock_folder(folder):
                _seal_migrated(folder, kept[0])
    except BaseException:
        opened.close()
        raise
    return opened


def _look(folder: Path) -> Seal | None:
    """Refuse an SQLite file that is damaged; return the seal, where it is of the revision that the file is of."""
    file = folder / FILE
    kept = sound_seal(folder / SEAL)
    try:
        with contextlib.closing(connect_for_reading(file)) as connection:
            connection.execute("BEGIN")
            if kept is None or kept.catalogue is None or _revision(connection) != kept.revision:
                kept = None
                is_sound = connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
            else:
                is_sound = hash_database(connection) == kept.catalogue
    except (sqlite3.Error, UnicodeDecodeError):
        is_sound = False
    if not is_sound:
        raise CairnError("The catalogue {file} is damaged: run {cairn check}, then {cairn repair}.", file=file)
    return kept


def _seal_migrated(folder: Path, kept: Seal | None) -> None:
    """Make a snapshot of a catalogue, and renew the seal that it was compared with before it was migrated."""
    revision = write_snapshot(folder / FILE, folder / SNAPSHOT)
    with contextlib.closing(connect_for_reading(folder / FILE)) as connection:
        connection.execute("BEGIN")
        if kept is not None and _revision(connection) == revision:
            digest = hash_database(connection)
            write_seal(folder / SEAL, replace(kept, revision=revision, catalogue=digest, snapshot=revision, work=0.0))


def _revision(connection: sqlite3.Connection) -> int | None:
    """What a catalogue says that its revision is; None if it has none, as in the first format."""
    found = connection.execute("SELECT value FROM settings WHERE key = ?", [REVISION_KEY]).fetchone()
    return int(found[0]) if found is not None and str(found[0]).isdecimal() else None
