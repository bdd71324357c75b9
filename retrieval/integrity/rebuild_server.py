"""Rebuild a catalogue in PostgreSQL from its readable rows, and from the notes of segments.

The new one is built as an SQLite file, like any other, and written to the server in one transaction. The old tables are
moved to another schema, so that nothing is deleted.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.arrays import temporary_path
from index.errors import CairnError, DatabaseError
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import CHUNK, Database
from retrieval.catalogue.migrations import make_schema, make_tables
from retrieval.catalogue.readable_rows import is_sound
from retrieval.catalogue.schema import (
    FILE,
    FORMAT_KEY,
    NEXT_NUMBER_KEY,
    REVISION_COPY_KEY,
    REVISION_KEY,
    REVISIONS,
    TABLES,
    AlbumRow,
    Base,
    SavedSearchRow,
    SegmentRow,
    Setting,
    values_of_row,
)
from retrieval.catalogue.sqlite.full_text import WORDS
from retrieval.catalogue.words import make_words
from retrieval.collection.identity import IDENTITY_KEY, read_identity
from retrieval.collection.seal import Seal
from retrieval.collection.segments import is_there
from retrieval.integrity.rebuild_catalogue import (
    NOTHING_LEFT,
    OLDER,
    ONLY_HERE,
    PARTIAL,
    UNPROVEN,
    complete_catalogue,
    rows_fit,
)

_BLOCKS = 1024  # of a table that are read together, if not all of them can be read
_COUNTERS = (NEXT_NUMBER_KEY, REVISION_KEY, REVISION_COPY_KEY)


def what_is_lost(address: str, folder: Path) -> str | None:
    """Damage of a database whose catalogue cannot be opened, if it is the collection's: by settings or a segment, or if
    it has no tables of a catalogue. None for others. Raises DatabaseError if the server does not answer.
    """
    with contextlib.closing(Database(address)) as database:
        if database.address.get_backend_name() != "postgresql":
            return None
        with database.transaction() as session:
            tables = set(sa.inspect(session.connection()).get_table_names())
        ours = [name for name in (*TABLES, REVISIONS.name) if name in tables]
        if not ours:
            return "The database holds no catalogue; check the address."
        settings = {row["key"]: row["value"] for row in _rows(database, Setting.__tablename__, set())}
        known, kept = settings.get(IDENTITY_KEY), read_identity(folder)
        if known is not None and kept is not None and known != kept:
            return None
        segments = (SegmentRow(**row) for row in _rows(database, SegmentRow.__tablename__, set()) if "folder" in row)
        if known != kept and not any(is_there(folder, row) for row in segments):
            return None
        lacking = sorted(set(TABLES) - set(ours))
        return f"It lacks the table {lacking[0]!r}." if lacking else "Not all of its tables can be read."


def rebuild_server_catalogue(folder: Path, address: str, seal: Seal | None) -> tuple[str, list[str], list[str]]:
    """Rebuild the rows of a catalogue in PostgreSQL, and move the old tables to another schema: see
    `rebuild_catalogue`. A process that is killed leaves the old catalogue.
    """
    temporary = temporary_path(folder / FILE)
    with contextlib.closing(Database(address)) as database:
        if database.address.get_backend_name() != "postgresql":
            raise CairnError(
                "The catalogue {database} is in a database that only its server can restore: restore it from a backup, "
                "then run {cairn repair} again.",
                database=database,
            )
        try:
            Catalogue.open(temporary, create=True).close()
            found, partial = _copy_rows(database, temporary / FILE)
            written = max(found or 0, (seal.revision or 0) if seal is not None else 0)
            whole: bool | None = None
            how, lapses, notes = "made again from the segments", [NOTHING_LEFT], []
            if found is not None:
                whole = rows_fit(folder, temporary, by_identity=False) and not partial
                how = "restored from its rows that can be read and the segments"
                lapses = [PARTIAL] if not partial.isdisjoint(ONLY_HERE) else [OLDER] if found < written else []
                notes.append(UNPROVEN)
            notes += complete_catalogue(folder, temporary, seal, whole, written)
            aside = _exchange(database, temporary)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    if aside is not None:
        notes.append(f"The damaged tables were moved to the schema {aside}: drop it when it is no longer needed.")
    return how, notes, lapses


def _copy_rows(database: Database, copy: Path) -> tuple[int | None, set[str]]:
    """Copy the readable rows with valid hashes to a new SQLite catalogue; return its revision, and incomplete tables.

    The revision is 0 if unknown, and None without rows.
    """
    partial: set[str] = set()
    copied = 0
    with contextlib.closing(sqlite3.connect(copy)) as made:
        made.execute("DELETE FROM settings WHERE key <> ?", [FORMAT_KEY])
        for name, kind in TABLES.items():
            rows = (row for row in _rows(database, name, partial) if not (kind is Setting and row["key"] == FORMAT_KEY))
            copied += _insert_sound(made, name, rows, partial)
        settings = dict(made.execute("SELECT key, value FROM settings"))
        revisions = {settings.get(REVISION_KEY), settings.get(REVISION_COPY_KEY)}
        revision = next(iter(revisions)) if len(revisions) == 1 else None
        found = int(revision) if revision is not None and revision.isdecimal() else 0
        (following,) = made.execute("SELECT coalesce(max(number) + 1, 0) FROM images").fetchone()
        number = settings.get(NEXT_NUMBER_KEY, "")
        following = max(following, int(number) if number.isdecimal() else 0)
        counters = dict(zip(_COUNTERS, map(str, (following, found, found)), strict=True))
        made.executemany("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", counters.items())
        made.commit()
    return (found if copied else None), partial


def _insert_sound(made: sqlite3.Connection, name: str, rows: Iterator[dict[str, Any]], partial: set[str]) -> int:
    """Insert the sound rows of a table; return how many there are."""
    kind = TABLES[name]
    given = {one.name for one in fields(kind) if one.init}
    columns = [column.key for column in kind.__table__.columns]
    marks, names = ", ".join("?" * len(columns)), ", ".join(f'"{column}"' for column in columns)
    statement = f'INSERT OR IGNORE INTO "{name}" ({names}) VALUES ({marks})'
    count, before = 0, made.total_changes
    for row in rows:
        if not is_sound(name, row):
            partial.add(name)
            continue
        values = values_of_row(kind(**{key: value for key, value in row.items() if key in given}))
        made.execute(statement, [values[column] for column in columns])
        count += 1
    if made.total_changes - before != count:
        partial.add(name)
    return count


def _rows(database: Database, name: str, partial: set[str]) -> Iterator[dict[str, Any]]:
    """The readable rows of a table; its name is added to `partial` if it may have others."""
    wanted = {column.key for column in TABLES[name].__table__.columns}
    try:
        with database.transaction() as session:
            inspector = sa.inspect(session.connection())
            if not inspector.has_table(name):
                partial.add(name)
                return
            there = {str(column["name"]) for column in inspector.get_columns(name)}
            size, block = "pg_relation_size(CAST(:name AS regclass))", "current_setting('block_size')::int"
            blocks = int(session.scalar(sa.text(f"SELECT {size} / {block}"), {"name": f'"{name}"'}) or 0)
    except DatabaseError:
        partial.add(name)
        return
    columns: list[sa.ColumnClause[Any]] = [sa.column(key) for key in sorted(wanted & there)]
    todo = [(start, min(start + _BLOCKS, blocks)) for start in range(0, blocks, _BLOCKS)][::-1]
    while todo:
        first, end = todo.pop()
        # By the places of the rows: an index may be damaged too, and a block that is hides no other one.
        place = sa.and_(_place(">=", first), _place("<", end))
        try:
            with database.transaction() as session:
                query = sa.select(*columns).select_from(sa.table(name)).where(place)
                found = [dict(row) for row in session.execute(query).mappings()]
        except DatabaseError:
            if end - first > 1:
                middle = (first + end) // 2
                todo += [(middle, end), (first, middle)]
            else:
                partial.add(name)
            continue
        yield from found


def _place(compared: str, block: int) -> sa.TextClause:
    return sa.text(f"ctid {compared} CAST('({block},0)' AS tid)")


def _exchange(database: Database, temporary: Path) -> str | None:
    """Replace the tables by the rows of a new catalogue; return the schema of the old ones, if any."""
    made = Database(sa.URL.create("sqlite", database=str(temporary / FILE)))
    with contextlib.closing(made), made.transaction() as source, database.transaction(write=True) as session:
        make_schema(session, database.schema)
        aside = _set_aside(session)
        connection = session.connection()
        make_tables(connection)
        copy_tables(source, session)
        make_words(session)
        for kind in (SegmentRow, AlbumRow, SavedSearchRow):
            largest = sa.select(sa.func.max(kind.id)).scalar_subquery()
            sequence = sa.func.pg_get_serial_sequence(kind.__tablename__, "id")
            session.execute(sa.select(sa.func.setval(sequence, sa.func.coalesce(largest, 1), largest.is_not(None))))
    return aside


def copy_tables(source: Session, session: Session) -> None:
    """Copy all rows of a catalogue to one whose tables are empty, in whatever databases they are."""
    for table in Base.metadata.sorted_tables:
        rows = source.execute(sa.select(table).execution_options(yield_per=CHUNK)).mappings()
        for part in rows.partitions():
            session.execute(sa.insert(table), [dict(row) for row in part])


def _set_aside(session: Session) -> str | None:
    """Move the tables of a catalogue to a separate schema; return its name, None without tables."""
    inspector = sa.inspect(session.connection())
    tables = sorted({*TABLES, REVISIONS.name, WORDS} & set(inspector.get_table_names()))
    if not tables:
        return None
    here = str(session.scalar(sa.text("SELECT current_schema()")))[:40]
    taken = set(inspector.get_schema_names())
    aside = next(name for i in range(1, len(taken) + 2) if (name := f"{here}_damaged_{i}") not in taken)
    session.execute(sa.schema.CreateSchema(aside))
    for table in tables:
        session.execute(sa.text(f'ALTER TABLE "{table}" SET SCHEMA "{aside}"'))
    return aside
