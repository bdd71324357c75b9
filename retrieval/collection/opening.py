"""Open the catalogue of a collection: one of an earlier version is checked, migrated and sealed."""

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

from index.errors import CairnError
from index.messages import Message, said
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import connect_for_reading
from retrieval.catalogue.schema import FILE
from retrieval.catalogue.settings import stated_revision
from retrieval.collection.identity import check_identity, is_own, sealed_database
from retrieval.collection.layout import OPTIONS, SEAL, SEGMENTS, SNAPSHOT, VOCABULARY, VOCABULARY_KEY
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


def named_vocabulary(catalogue: Catalogue) -> str:
    """Name of the folder of a catalogue's vocabulary, which may be missing, and is no valid one if it is damaged."""
    return catalogue.setting(VOCABULARY_KEY) or VOCABULARY


def refuse_damaged(folder: Path) -> None:
    """Refuse a folder without options that has files which are written after the options."""
    has_vocabulary = (folder / SEGMENTS).is_dir() and (folder / VOCABULARY).is_dir()
    if (folder / SEAL).exists() or has_vocabulary or published(folder):
        raise CairnError(
            "The options {options} are missing: run {cairn check}, then {cairn repair}.", options=folder / OPTIONS
        )


def refuse_without_catalogue(folder: Path) -> None:
    """Refuse a collection whose catalogue is not the SQLite file in its folder, or is empty."""
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
        else_=Message(said("empty") if is_empty else said("missing")),
    )


def open_catalogue(folder: Path, where: Path | str) -> Catalogue:
    """Open the catalogue of a collection.

    An SQLite file of an earlier version is migrated unless it is damaged. Then a snapshot is made and the seal renewed,
    if the folder is writable and its lock is free.
    """
    seals: list[Seal | None] = []
    is_file = where == folder
    opened = Catalogue.open(where, before_migration=(lambda: seals.append(_look(folder))) if is_file else None)
    try:
        check_identity(folder, opened)
        if seals and is_own(folder, opened):
            # If this fails, the next command that writes does it.
            with contextlib.suppress(CairnError, OSError), lock_folder(folder):
                _seal_migrated(folder, seals[0])
    except BaseException:
        opened.close()
        raise
    return opened


def _look(folder: Path) -> Seal | None:
    """Refuse a damaged SQLite file; return its seal if it is of the file's revision."""
    file = folder / FILE
    sealed = sound_seal(folder / SEAL)
    try:
        with contextlib.closing(connect_for_reading(file)) as connection:
            connection.execute("BEGIN")
            if sealed is None or sealed.catalogue is None or stated_revision(connection) != sealed.revision:
                sealed = None
                is_sound = connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
            else:
                is_sound = hash_database(connection) == sealed.catalogue
    except (sqlite3.Error, UnicodeDecodeError):
        is_sound = False
    if not is_sound:
        raise CairnError("The catalogue {file} is damaged: run {cairn check}, then {cairn repair}.", file=file)
    return sealed


def _seal_migrated(folder: Path, sealed: Seal | None) -> None:
    """Make a snapshot of a migrated catalogue, and renew the seal that it was compared with before."""
    revision = write_snapshot(folder / FILE, folder / SNAPSHOT)
    with contextlib.closing(connect_for_reading(folder / FILE)) as connection:
        connection.execute("BEGIN")
        if sealed is not None and stated_revision(connection) == revision:
            digest = hash_database(connection)
            write_seal(folder / SEAL, replace(sealed, revision=revision, catalogue=digest, snapshot=revision, work=0.0))
