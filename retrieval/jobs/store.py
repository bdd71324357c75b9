"""The rows of a queue of jobs: one SQLite file, in which every change is one transaction."""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from index.errors import CairnError
from index.messages import Message

MOST_ENDED = 200
"""Jobs that have ended and are remembered, of each collection."""

_BUSY = {
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM),
}
"""Codes of errors that say nothing against a file."""

_MOST_JOBS = 1 << 53  # integers that a page (JavaScript) can represent exactly

LARGEST = 32 << 20
"""Bytes of a text in a row that are read."""

MOST_LEVELS = 50
"""Levels of what a command has printed that are read; what commands print has fewer than ten."""

QUEUED, RUNNING, PAUSED = "queued", "running", "paused"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"
STATES = (QUEUED, RUNNING, PAUSED, DONE, FAILED, CANCELLED)
ENDED = (DONE, FAILED, CANCELLED)

T = TypeVar("T")

_METADATA = sa.MetaData()
_JOBS = sa.Table(
    "jobs",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("collection", sa.Text, nullable=False, index=True),  # its name in the queue
    sa.Column("told", sa.Text, key="arguments", nullable=False),  # JSON, by its kind
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("result", sa.Text),  # JSON
    sa.Column("error", sa.Text),  # JSON: a message; a sentence in files of earlier versions
    sa.Column("added", sa.Text, nullable=False),  # ISO 8601, UTC
    sa.Column("started", sa.Text),
    sa.Column("ended", sa.Text),
    sqlite_autoincrement=True,  # numbers are never reused
)
_OPEN = sa.func.coalesce(_JOBS.c.state, "").not_in(ENDED)  # whatever the state is


def _read_text(column: sa.Column[Any]) -> sa.Label[Any]:
    """A column if it is a text of limited size, NULL otherwise."""
    size = sa.func.length(sa.cast(column, sa.LargeBinary))
    return sa.case((sa.and_(sa.func.typeof(column) == "text", size <= LARGEST), column)).label(column.key)


_READ = (_JOBS.c.id, *(_read_text(column) for column in _JOBS.c if column.key != "id"))

_REFUSED = "The list of jobs {file} cannot be used ({reason}): check the disk, its free space and its permissions."


@dataclass(frozen=True)
class JobRow:
    """A job as the file has it."""

    id: int
    kind: str
    collection: str
    arguments: str
    state: str
    result: dict[str, Any] | None
    error: Message | None
    added: str
    started: str | None
    ended: str | None
    is_sound: bool = True  # whether it is of the shape that was written


class Store:
    """Rows of jobs in an SQLite file, shared and created with the first row; without any if it is an error."""

    def __init__(self, file: Path | CairnError) -> None:
        self.file = file
        self._engine = sa.create_engine(sa.URL.create("sqlite", database=str(file)))
        sa.event.listen(self._engine, "connect", _set_up)

    def exists(self) -> bool:
        """Whether there ever was a job."""
        return isinstance(self.file, Path) and os.path.isfile(self.file)  # noqa: PTH113 (hides errors)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def add(self, **values: Any) -> int:
        """Add a job; return its number. The oldest ended ones are deleted if there are too many."""
        with self._transaction() as connection:
            _METADATA.create_all(connection)
            kept = sa.select(_JOBS.c.id).where(_of(values["collection"]), _JOBS.c.state.in_(ENDED))
            kept = kept.order_by(_JOBS.c.id.desc()).limit(MOST_ENDED)
            connection.execute(
                sa.delete(_JOBS).where(
                    _of(values["collection"]), _JOBS.c.state.in_(ENDED), _JOBS.c.id.not_in(kept.scalar_subquery())
                )
            )
            made = connection.execute(sa.insert(_JOBS), _written(values)).inserted_primary_key
            assert made is not None
            return int(made[0])

    def rows(self, collection: str | None = None, ended: int | None = None) -> list[JobRow]:
        """List jobs in the order in which they were added, of one collection or of all; of ended ones the last few."""
        wanted = sa.select(*_READ).order_by(_JOBS.c.id)
        last = sa.select(_JOBS.c.id).where(sa.not_(_OPEN)).order_by(_JOBS.c.id.desc()).limit(ended)
        if collection is not None:
            wanted, last = wanted.where(_of(collection)), last.where(_of(collection))
        if ended is not None:
            wanted = wanted.where(sa.or_(_OPEN, _JOBS.c.id.in_(last.scalar_subquery())))
        return self._read(lambda connection: [_read_row(row) for row in connection.execute(wanted).mappings()], [])

    def row(self, number: int) -> JobRow | None:
        """Return one job, or None."""
        wanted = sa.select(*_READ).where(_JOBS.c.id == number)

        def read(connection: sa.Connection) -> JobRow | None:
            row = connection.execute(wanted).mappings().first()
            return None if row is None else _read_row(row)

        return self._read(read, None)

    def change(self, number: int, states: Iterable[str], **values: Any) -> bool:
        """Change a job if it is in one of some states; return whether it was."""
        changed = sa.update(_JOBS).where(_JOBS.c.id == number, _JOBS.c.state.in_(list(states)))
        return self._write(changed.values(_written(values)))

    def fail(self, number: int, error: Message, ended: str) -> None:
        """Have a job that has not ended fail, whatever its state is."""
        changed = sa.update(_JOBS).where(_JOBS.c.id == number, _OPEN)
        self._write(changed.values(_written({"state": FAILED, "error": error, "ended": ended})))

    def queue_again(self, but: Iterable[int]) -> None:
        """Queue jobs of ended processes again: all running ones except some."""
        changed = sa.update(_JOBS).where(_JOBS.c.state == RUNNING, _JOBS.c.id.not_in(list(but)))
        self._write(changed.values(state=QUEUED))

    def delete(self, number: int) -> bool:
        """Delete an ended job; return whether it existed."""
        return self._write(sa.delete(_JOBS).where(_JOBS.c.id == number, _JOBS.c.state.in_(ENDED)))

    def set_aside(self) -> None:
        """Rename a damaged or foreign file, and continue with an empty list."""
        if not isinstance(self.file, Path) or not self.exists():
            return
        try:
            with self._engine.connect() as connection:
                _examine(connection)
        except (sa.exc.DBAPIError, ValueError) as error:
            if getattr(getattr(error, "orig", None), "sqlite_errorcode", 0) & 0xFF in _BUSY:
                return
            self.close()
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            with contextlib.suppress(OSError):
                self.file.rename(self.file.with_name(f"{self.file.name}.damaged-{stamp}"))
                for end in ("-wal", "-shm"):
                    self.file.with_name(self.file.name + end).unlink(missing_ok=True)

    def _read(self, act: Callable[[sa.Connection], T], nothing: T) -> T:
        if not self.exists():
            return nothing
        try:
            with self._engine.connect() as connection:
                return act(connection)
        except sa.exc.DBAPIError:
            return nothing

    def _write(self, change: sa.Update | sa.Delete) -> bool:
        """Change rows; return whether there were any."""
        with self._transaction() as connection:
            return connection.execute(change).rowcount > 0

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        if isinstance(self.file, CairnError):
            raise CairnError(str(self.file))
        try:
            with self._engine.begin() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            raise CairnError(_REFUSED.format(file=self.file, reason=error.orig)) from None


def _examine(connection: sa.Connection) -> None:
    """Read the whole file; raises a database error, or ValueError, if it is damaged or has another schema."""
    if _objects(connection) != _own_objects():  # first: a view may have no end
        raise ValueError("there is something else in it")
    report = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if report != "ok":
        raise ValueError(report)
    if (connection.scalar(sa.select(sa.func.max(_JOBS.c.id))) or 0) >= _MOST_JOBS:
        raise ValueError("it has no more numbers to give")


def _objects(connection: sa.Connection) -> set[str]:
    rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return {" ".join(" ".join(map(str, one)).split()) for one in rows}


@cache
def _own_objects() -> set[str]:
    with sa.create_engine("sqlite://").begin() as connection:
        _METADATA.create_all(connection)
        return _objects(connection)


def _of(collection: str) -> sa.ColumnElement[bool]:
    return _JOBS.c.collection == collection


def _set_up(connection: Any, _: object) -> None:
    connection.text_factory = lambda written: written.decode("utf-8", "replace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA busy_timeout = 5000")
    # Read-only folders are only read.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: json.dumps(value.to_dict() if isinstance(value, Message) else value)
        if name in ("result", "error") and value is not None
        else value
        for name, value in values.items()
    }


def _read_row(row: Mapping[Any, Any]) -> JobRow:
    values = dict(row)
    is_sound = values["id"] > 0 and values["state"] in STATES
    for name in ("kind", "collection", "arguments", "state", "added"):
        is_sound = is_sound and values[name] is not None
        values[name] = values[name] or ""
    values["result"] = read_result(values["result"] or "")
    values["error"] = None if values["error"] is None else read_message(read_result(values["error"]), values["error"])
    return JobRow(**values, is_sound=is_sound)


def read_message(message: object, sentence: str) -> Message:
    """Read what `Message.to_dict` has made; a sentence in its place if it is nothing of the kind."""
    with contextlib.suppress(TypeError, KeyError, AttributeError):
        if isinstance(message, dict) and isinstance(message["text"], str):
            return Message.from_dict(message)
    return Message(sentence)


def read_result(text: str) -> dict[str, Any] | None:
    """Parse the output of a command with ``--json``; None if that is no object, or cannot be written as JSON.

    The nesting depth has a fixed limit, as programs and versions of Python differ in theirs.
    """
    try:
        result = json.loads(text, parse_constant=lambda name: None)
        json.dumps(result, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return result if isinstance(result, dict) and _is_flat(result, MOST_LEVELS) else None


def _is_flat(value: object, levels: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_flat(one, levels - 1) for one in inside)
