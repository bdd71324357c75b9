"""The rows of a queue of jobs: one SQLite file, in which every change is one transaction."""

import contextlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from index.errors import CairnError

MOST_ENDED = 200
"""Jobs that have ended and are remembered, of each collection."""

QUEUED, RUNNING, PAUSED = "queued", "running", "paused"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"
STATES = (QUEUED, RUNNING, PAUSED, DONE, FAILED, CANCELLED)
ENDED = (DONE, FAILED, CANCELLED)

T = TypeVar("T")

_DAMAGED = (sa.exc.DatabaseError, ValueError, TypeError)  # the last two: what is no JSON

_METADATA = sa.MetaData()
_JOBS = sa.Table(
    "jobs",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("collection", sa.Text, nullable=False, index=True),
    sa.Column("command", sa.Text, nullable=False),  # JSON: list of str
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("about", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("result", sa.Text),  # JSON
    sa.Column("error", sa.Text),
    sa.Column("added", sa.Text, nullable=False),  # ISO 8601, UTC
    sa.Column("started", sa.Text),
    sa.Column("ended", sa.Text),
    sqlite_autoincrement=True,  # a number is never given twice
)

_REFUSED = "The list of jobs {file} cannot be used ({reason}): check the disk, its free space and its permissions."


class Store:
    """Rows of jobs. Threads and processes may share its file; it is made with the first row.

    Parameters
    ----------
    file : Path
        The SQLite file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._engine = sa.create_engine(sa.URL.create("sqlite", database=str(file)))
        sa.event.listen(self._engine, "connect", _set_up)

    def exists(self) -> bool:
        """Whether there ever was a job."""
        return os.path.isfile(self.file)  # noqa: PTH113 (hides errors)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def add(self, **values: Any) -> int:
        """Add a job; give its number. The oldest ones that have ended are forgotten where there are too many.

        Raises
        ------
        CairnError
            The file cannot be written.
        """
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

    def rows(
        self, collection: str | None = None, states: Iterable[str] = STATES, ended: int | None = None
    ) -> list[dict[str, Any]]:
        """List jobs in the order in which they were added, of one collection or of all; of ended ones the last few."""
        wanted = sa.select(_JOBS).where(_JOBS.c.state.in_(list(states))).order_by(_JOBS.c.id)
        last = sa.select(_JOBS.c.id).where(_JOBS.c.state.in_(ENDED)).order_by(_JOBS.c.id.desc()).limit(ended)
        if collection is not None:
            wanted, last = wanted.where(_of(collection)), last.where(_of(collection))
        if ended is not None:
            wanted = wanted.where(sa.or_(_JOBS.c.state.not_in(ENDED), _JOBS.c.id.in_(last.scalar_subquery())))
        return self._read(lambda connection: [_read_row(row) for row in connection.execute(wanted).mappings()], [])

    def row(self, number: int) -> dict[str, Any] | None:
        """Give one job; None where there is none."""
        wanted = sa.select(_JOBS).where(_JOBS.c.id == number)

        def read(connection: sa.Connection) -> dict[str, Any] | None:
            found = connection.execute(wanted).mappings().first()
            return None if found is None else _read_row(found)

        return self._read(read, None)

    def change(self, number: int, states: Iterable[str], **values: Any) -> bool:
        """Change a job that is in one of some states; say whether it was."""
        changed = sa.update(_JOBS).where(_JOBS.c.id == number, _JOBS.c.state.in_(list(states)))
        with self._transaction() as connection:
            return connection.execute(changed.values(_written(values))).rowcount > 0

    def queue_again(self, but: Iterable[int]) -> None:
        """Queue jobs again that a process ran which is no longer there: all that run but for some."""
        changed = sa.update(_JOBS).where(_JOBS.c.state == RUNNING, _JOBS.c.id.not_in(list(but)))
        with self._transaction() as connection:
            connection.execute(changed.values(state=QUEUED))

    def delete(self, number: int) -> bool:
        """Forget a job that has ended; say whether it was there."""
        gone = sa.delete(_JOBS).where(_JOBS.c.id == number, _JOBS.c.state.in_(ENDED))
        with self._transaction() as connection:
            return connection.execute(gone).rowcount > 0

    def set_aside(self) -> None:
        """Move a file away that is no list of jobs, or a damaged one: work goes on with an empty list."""
        if not self.exists():
            return
        try:
            self._read(_examine, None, quiet=False)
        except _DAMAGED as error:
            said = error.orig if isinstance(error, sa.exc.DatabaseError) else None
            if isinstance(said, sqlite3.OperationalError) and not re.search("no such|Could not decode", str(said)):
                return  # busy, or not to be written: not damaged
            self.close()
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            with contextlib.suppress(OSError):
                self.file.rename(self.file.with_name(f"{self.file.name}.damaged-{stamp}"))
                for end in ("-wal", "-shm"):
                    self.file.with_name(self.file.name + end).unlink(missing_ok=True)

    def _read(self, act: Callable[[sa.Connection], T], nothing: T, *, quiet: bool = True) -> T:
        if not self.exists():
            return nothing
        try:
            with self._engine.connect() as connection:
                return act(connection)
        except _DAMAGED:
            if not quiet:
                raise
            return nothing

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except sa.exc.DatabaseError as error:
            raise CairnError(_REFUSED.format(file=self.file, reason=error.orig)) from None


def _examine(connection: sa.Connection) -> None:
    """Read all that there is; one of `_DAMAGED` where that cannot be."""
    told = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if told != "ok":
        raise ValueError(told)
    for row in connection.execute(sa.select(_JOBS)).mappings():
        _read_row(row)


def _of(collection: str) -> sa.ColumnElement[bool]:
    return _JOBS.c.collection == collection


def _set_up(connection: Any, _: object) -> None:
    connection.execute("PRAGMA busy_timeout = 5000")
    # A folder that may not be written is read as it is.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: json.dumps(value) if name in ("command", "result") and value is not None else value
        for name, value in values.items()
    }


def _read_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    values = dict(row)
    for name in ("command", "result"):
        values[name] = json.loads(values[name]) if values[name] is not None else None
    return values
