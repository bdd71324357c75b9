"""Settings of the catalogue, texts by key, such as the next free number and the number of writes (the revision)."""

import re
import sqlite3

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.errors import CairnError
from retrieval.catalogue.database import Database
from retrieval.catalogue.schema import NEXT_NUMBER_KEY, REVISION_KEY, Setting


def setting_of(session: Session, key: str) -> str | None:
    """The text stored under a key, or None."""
    return session.scalars(sa.select(Setting.value).where(Setting.key == key)).one_or_none()


def keep_setting(session: Session, key: str, value: str) -> None:
    """Store a text under a key."""
    session.merge(Setting(key=key, value=value))


def revision_of(session: Session) -> int:
    """Number of writes to the catalogue."""
    return _number(REVISION_KEY, session.get_one(Setting, REVISION_KEY).value)


def read_setting(database: Database, key: str) -> str | None:
    """The text stored under one of the keys of the schema, or None; without a session, as it is read very often."""
    value: str | None = database.value_of(f"SELECT (SELECT value FROM settings WHERE key = '{key}')")
    return value


def read_revision(database: Database) -> int:
    """Number of writes to a catalogue, without a session."""
    return _number(REVISION_KEY, database.value_of(f"SELECT value FROM settings WHERE key = '{REVISION_KEY}'"))


def stated_revision(connection: sqlite3.Connection) -> int | None:
    """Number of writes that an SQLite file states; None without one, as in the first format."""
    row = connection.execute("SELECT value FROM settings WHERE key = ?", [REVISION_KEY]).fetchone()
    return int(row[0]) if row is not None and str(row[0]).isdecimal() else None


def next_number(session: Session) -> int:
    """The next free image number, which no other writer can take before the transaction ends."""
    return _number(NEXT_NUMBER_KEY, _counter(session).value)


def reserve_numbers(session: Session, count: int) -> int:
    """Reserve consecutive new image numbers, which are never given again, and return the first."""
    if count < 0:
        raise ValueError(f"{count} numbers cannot be reserved")
    counter = _counter(session)
    first = _number(NEXT_NUMBER_KEY, counter.value)
    counter.value = str(first + count)
    session.flush()
    return first


def _counter(session: Session) -> Setting:
    """The next free number. Its row is locked, so that of two writers one waits, and names stay unique."""
    return session.get_one(Setting, NEXT_NUMBER_KEY, with_for_update=True)


def _number(key: str, value: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", value):
        raise CairnError(
            "The catalogue's {key} is {value}, which is not a number: restore it from a copy.",
            key=key,
            value=repr(value[:40]),
        )
    return int(value)
