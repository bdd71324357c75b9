"""Salvage the readable rows of a catalogue that is a damaged SQLite file, table by table."""

import contextlib
import dataclasses
import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from index.files.names import is_plain_name
from retrieval.catalogue.database import connect_for_reading
from retrieval.catalogue.schema import (
    NEXT_NUMBER_KEY,
    REVISION_COPY_KEY,
    REVISION_KEY,
    REVISIONS,
    TABLES,
    Base,
    SegmentRow,
)
from retrieval.catalogue.sqlite.objects import is_own


def copy_rows(source: Path, copy: Path, revision: int) -> set[str]:
    """Copy the rows of a damaged SQLite catalogue that are readable and have valid hashes to a new one of the same
    format.

    Returns the names of the tables that may have had more rows. Raises sqlite3.Error or DatabaseError if not even their
    names can be read.
    """
    partial = set()
    with (
        contextlib.closing(connect_for_reading(source, checked=False)) as damaged,
        contextlib.closing(sqlite3.connect(copy)) as target,
    ):
        damaged.text_factory = _text
        wanted = [*TABLES, REVISIONS.name]
        marks = ", ".join("?" * len(wanted))
        query = f"SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE tbl_name IN ({marks}) AND sql NOT NULL"
        for entry in damaged.execute(f"{query} ORDER BY type = 'index'", wanted).fetchall():
            kind, name, table, sql = entry
            if not is_own(entry):
                if name == table:  # it has the name of a table
                    partial.add(name)
                continue
            target.execute(sql)
            if kind != "index" and not _copy_table(damaged, target, name):
                partial.add(name)
        counters = [(NEXT_NUMBER_KEY, "0"), (REVISION_KEY, "0")]
        target.executemany("INSERT OR IGNORE INTO settings (key, value) VALUES (?, ?)", counters)
        change = "UPDATE settings SET value = CAST(? AS TEXT) WHERE key IN (?, ?)"
        target.execute(change, [revision, REVISION_KEY, REVISION_COPY_KEY])
        following = "max(CAST(value AS INTEGER), coalesce((SELECT max(number) + 1 FROM images), 0))"
        target.execute(f"UPDATE settings SET value = CAST({following} AS TEXT) WHERE key = ?", [NEXT_NUMBER_KEY])
        target.commit()
    return partial


def fill_gaps(file: Path, older: Path, tables: Collection[str]) -> None:
    """Copy rows that a catalogue lacks in some tables from an older one; both are of the current format."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("ATTACH ? AS older", [str(older)])
        for table in Base.metadata.sorted_tables:
            if table.name in tables:
                names = ", ".join(f'"{column.key}"' for column in table.columns)
                rows = f"SELECT {names} FROM older.{table.name}"
                connection.execute(f"INSERT OR IGNORE INTO main.{table.name} ({names}) {rows}")
        connection.commit()


def _copy_table(damaged: sqlite3.Connection, target: sqlite3.Connection, name: str) -> bool:
    """Copy the sound rows of a table; return whether these are all."""
    by_id: dict[int, tuple[Any, ...]] = {}
    names: list[str] = []
    whole = True
    for order in ("ASC", "DESC"):  # from both ends up to the unreadable part
        try:
            rows = damaged.execute(f'SELECT rowid, * FROM "{name}" ORDER BY rowid {order}')
            names = [column[0] for column in rows.description[1:]]
            for rowid, *values in rows:
                by_id.setdefault(rowid, tuple(values))
            whole = whole and damaged.execute(f'PRAGMA quick_check("{name}")').fetchone()[0] == "ok"
        except sqlite3.Error:
            whole = False
    sound = [row for row in by_id.values() if name not in TABLES or is_sound(name, dict(zip(names, row, strict=True)))]
    columns, marks = ", ".join(f'"{column}"' for column in names), ", ".join("?" * len(names))
    before = target.total_changes
    if sound:
        target.executemany(f'INSERT OR IGNORE INTO "{name}" ({columns}) VALUES ({marks})', sound)
    return whole and target.total_changes - before == len(by_id)


def is_sound(name: str, row: Mapping[str, Any]) -> bool:
    """Whether the values of a row have the types of its table, and derived values are consistent."""
    kind = TABLES[name]
    values = {column.key: row.get(column.key) for column in kind.__table__.columns}
    for column in kind.__table__.columns:
        value, kind_of_value = values[column.key], column.type.python_type
        if kind_of_value is bool and value in (0, 1):  # SQLite stores booleans as numbers
            continue
        if not (column.nullable if value is None else isinstance(value, kind_of_value)):
            return False
        if column is SegmentRow.__table__.c.folder and not is_plain_name(value):
            return False
    derived = {one.name for one in dataclasses.fields(kind) if not one.init}
    again = kind(**{key: value for key, value in values.items() if key not in derived})
    return all(
        getattr(again, key) == values[key] for key in derived & row.keys()
    )  # an earlier format has fewer columns


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value  # no valid text: its row is not sound
