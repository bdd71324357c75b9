"""A database at an SQLAlchemy address: its set-up, its transactions and its printable name."""

import logging
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Session

from index.errors import CairnError, DatabaseError
from index.extras import install_command
from index.files.reading import refuse_irregular_database
from retrieval.catalogue.sqlite.objects import foreign_object
from retrieval.metadata.places import great_circle_km

# How long SQLite waits for another process that is writing, in milliseconds.
BUSY_TIMEOUT_MS = 60_000
# Values in one `IN (…)`: below the limit of every database (SQLite 32,766, PostgreSQL 65,535).
CHUNK = 5000
# How long to retry connecting to a server that was reached before, as it may be restarting.
RECONNECT_SECONDS = 10.0
_FIRST_WAIT = 0.1  # seconds, doubled after each try
_SCHEMA = "schema"  # parameter of an address that names the schema of a catalogue
# By default PostgreSQL assumes rotating disks, and reads whole tables rather than indexes; and it compiles statements
# for longer than they take.
_POSTGRESQL = (
    "SELECT set_config('random_page_cost', '1.1', false) WHERE current_setting('random_page_cost') = '4'",
    "SET jit TO off",
)
_SILENT = logging.NullHandler()

T = TypeVar("T")


class ForeignObject(DatabaseError):
    """A catalogue that is an SQLite file has a foreign object, such as a trigger or a view."""


class _WithoutLog(sqlite3.Connection):
    """A connection to an SQLite file in a folder that may not be written; see `connect_for_reading`."""

    seen: tuple[Path, os.stat_result] | None = None  # the file and its status; None: SQLite itself detects changes

    def is_outdated(self) -> bool:
        """Whether another process has changed the file, which this connection treats as immutable."""
        if self.seen is None:
            return False
        path, before = self.seen
        try:
            now = path.stat()
        except OSError:
            return True
        return _has_log(path) or any(
            getattr(now, of) != getattr(before, of) for of in ("st_ino", "st_size", "st_mtime_ns")
        )


class Database:
    """The connections to one database. Threads may share it; each process makes its own.

    The address is any of SQLAlchemy, and not used before the first transaction. With `?schema=NAME`, PostgreSQL uses
    only tables in that schema. Raises CairnError if it is invalid, or its driver is not installed.
    """

    def __init__(self, address: str | sa.URL) -> None:
        try:
            self.address = sa.make_url(address)
            self.schema = _schema_of(self.address)
            self._is_sqlite = self.address.get_backend_name() == "sqlite"
            # Replace connections that the server has dropped since their last use.
            address = self.address.difference_update_query([_SCHEMA])
            self._engine = sa.create_engine(address, pool_pre_ping=not self._is_sqlite)
        except (sa.exc.ArgumentError, ModuleNotFoundError) as error:
            raise CairnError(
                "{address} cannot be used as the address of a catalogue ({reason}): check it, and install its driver "
                "(for PostgreSQL: postgresql+psycopg://HOST/DATABASE and {command}).",
                address=printable_address(address),
                reason=str(error),
                command=install_command("postgresql"),
            ) from error
        self._was_reached = False
        # Failures raise a `DatabaseError`; Psycopg would log them a second time.
        logging.getLogger("psycopg").addHandler(_SILENT)
        if self._is_sqlite:
            sa.event.listen(self._engine, "do_connect", self._connect_sqlite)
            sa.event.listen(self._engine, "connect", self._set_up_sqlite)
            sa.event.listen(self._engine, "checkout", _renew_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)
        elif self.address.get_backend_name() == "postgresql":
            # First, so that SQLAlchemy learns the schema as the default one.
            sa.event.listen(self._engine, "connect", self._set_up_postgresql, insert=True)

    @property
    def file(self) -> Path | None:
        """The path of an SQLite database; None for any other."""
        name = self.address.database
        if not self._is_sqlite or name in (None, "", ":memory:") or name.startswith("file:"):
            return None
        return Path(name)

    @contextmanager
    def transaction(self, write: bool = False) -> Iterator[Session]:
        """A session that is committed at the end, or rolled back on an error; raises DatabaseError if the database
        fails.

        One that writes takes SQLite's lock at once. In others, all statements see the state of the database at the
        first one.
        """
        # `cairn_write` reaches `_begin_sqlite`; other databases ignore it.
        engine = self._engine.execution_options(cairn_write=write)
        if not write and not self._is_sqlite:  # in SQLite they always do
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with self._telling():
            with Session(engine, expire_on_commit=False) as session, session.begin():
                if not self._is_sqlite:
                    self._connect(session)
                yield session
            if write:
                self._empty_log()

    def value_of(self, statement: str) -> Any:
        """The single value that a statement without parameters selects; with SQLite without a slow session."""
        if not self._is_sqlite:
            with self.transaction() as session:
                return session.connection().exec_driver_sql(statement).scalar_one()
        with self._telling():
            connection = self._engine.raw_connection()
            try:
                row = connection.cursor().execute(statement).fetchone()
            finally:
                connection.close()
            if row is None:
                raise sa.exc.NoResultFound("no row was found")
            return row[0]

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Convert errors to `DatabaseError`."""
        try:
            yield
        # The names of tables in a damaged file may be invalid text, which SQLite passes on.
        except (sa.exc.SQLAlchemyError, sqlite3.Error, UnicodeDecodeError) as error:
            original = getattr(error, "orig", None) or error
            cause = " ".join(str(original).split())
            if primary_code(original) == sqlite3.SQLITE_READONLY:
                raise DatabaseError(
                    "The catalogue {catalogue} is read-only here: make its folder writable, or copy the collection to "
                    "where it is.",
                    cause,
                    catalogue=str(self),
                ) from error
            if getattr(error, "connection_invalidated", False):
                raise DatabaseError(
                    "The connection to the catalogue {catalogue} was lost ({reason}): run the command again, it goes "
                    "on from there.",
                    cause,
                    catalogue=str(self),
                    reason=cause,
                ) from error
            raise DatabaseError(
                "The catalogue {catalogue} cannot be used ({reason}): check that it exists, is undamaged and writable.",
                cause,
                catalogue=str(self),
                reason=cause,
            ) from error

    def _connect(self, session: Session) -> None:
        """Connect to the server; retry if it was reached before, as it may be restarting."""
        wait, end = _FIRST_WAIT, time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                session.connection()
                self._was_reached = True
                return
            except sa.exc.OperationalError:
                if not self._was_reached or time.monotonic() + wait > end:
                    raise
                time.sleep(wait)
                wait *= 2

    def shrink(self) -> None:
        """Rewrite an SQLite file without unused space; readers go on meanwhile."""
        self._outside("VACUUM")  # failure, as the file is in use or the disk full, does no harm

    def _empty_log(self) -> None:
        """Write all commits to the SQLite file itself (checkpoint).

        Otherwise they would depend on the log that a killed process leaves, which SQLite silently reads only up to the
        first damaged byte. If others read, or the disk is full, they stay in the log.
        """
        self._outside("PRAGMA wal_checkpoint(TRUNCATE)", patience_ms=0)

    def _outside(self, statement: str, patience_ms: int = BUSY_TIMEOUT_MS) -> None:
        """Execute a statement of SQLite's outside of transactions, ignoring errors."""
        if self.file is None:
            return
        try:
            connection = self._engine.raw_connection()  # a transaction, which SQLAlchemy would begin, must not be open
            try:
                connection.cursor().execute(f"PRAGMA busy_timeout = {patience_ms}")
                connection.cursor().execute(statement)
            finally:
                connection.cursor().execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")  # others use it afterwards
                connection.close()
        except (sa.exc.SQLAlchemyError, sqlite3.Error):
            return

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _set_up_postgresql(self, connection: Any, _record: object) -> None:
        """Let a new connection see only the catalogue's schema, and prefer indexes."""
        earlier, connection.autocommit = connection.autocommit, True  # or a rollback would undo it
        for statement in _POSTGRESQL:
            connection.execute(statement)
        if self.schema is not None:
            connection.execute(f'SET search_path TO "{self.schema}"')  # its name was checked
        connection.autocommit = earlier

    def _set_up_sqlite(self, connection: sqlite3.Connection, _record: object) -> None:
        try:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}").close()
            refuse_foreign_objects(connection, str(self))
            _set_up_sqlite(connection)
        except BaseException:
            connection.close()
            raise

    def _connect_sqlite(
        self, _dialect: object, _record: object, _arguments: Sequence[Any], options: dict[str, Any]
    ) -> sqlite3.Connection | None:
        """Open a read-only file; None: SQLAlchemy opens it as usual."""
        if self.file is None or not self.file.exists():
            return None
        refuse_irregular_database(self.file)
        if os.access(self.file.parent, os.W_OK):
            return None
        return connect_for_reading(self.file, **options)

    def __str__(self) -> str:
        return printable_address(self.address)


def connect_for_reading(file: Path, *, checked: bool = True, **options: Any) -> sqlite3.Connection:
    """Open an SQLite file for reading only, even if its folder is not writable, and refuse foreign objects if
    `checked`.

    Raises DatabaseError if its log has commits that cannot be read there, or it has foreign objects; CairnError if it
    is not a regular file, or of a later version.
    """
    refuse_irregular_database(file)
    connection = _connect_for_reading(file, **options)
    try:
        if checked:
            refuse_foreign_objects(connection, file)
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_foreign_objects(connection: sqlite3.Connection, name: object) -> None:
    """Raise ForeignObject, or LaterVersion, if an SQLite file has foreign objects. Call it before any other query."""
    foreign = foreign_object(connection, name)
    if foreign is not None:
        raise ForeignObject(
            "The catalogue {name} is not used. {found} Run {cairn check}, then {cairn repair}.",
            str(foreign),
            name=name,
            found=foreign,
        )


def _connect_for_reading(file: Path, **options: Any) -> sqlite3.Connection:
    address = f"{file.resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, factory=_WithoutLog, **options)
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
        return connection
    except sqlite3.OperationalError as error:
        connection.close()
        # In a read-only folder SQLite cannot create its files for locking.
        if primary_code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        if not os.access(file, os.R_OK):
            raise
    if _has_log(file):
        raise DatabaseError(
            "The catalogue {file} is read-only here, and its last changes are still in its write-ahead log: open "
            "the collection once where it is writable, with {cairn info}.",
            "its log cannot be read",
            file=file,
        )
    before = file.stat()
    connection = sqlite3.connect(f"{address}&immutable=1", uri=True, factory=_WithoutLog, **options)
    connection.seen = file, before
    return connection


def primary_code(error: BaseException | None) -> int | None:
    """SQLite's primary error code, without the higher bits; None for another error."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF


def _has_log(file: Path) -> bool:
    """Whether an SQLite file has a log, of either kind, that is not empty."""
    for suffix in ("-wal", "-journal"):
        try:
            if file.with_name(file.name + suffix).stat().st_size:
                return True
        except OSError:
            continue
    return False


def chunks(values: Sequence[T]) -> Iterator[list[T]]:
    """Split values into lists that fit into one statement."""
    return (list(values[start : start + CHUNK]) for start in range(0, len(values), CHUNK))


def dialect_of(session: Session) -> str:
    """Name of the kind of a session's database, such as sqlite."""
    return session.get_bind().dialect.name


def write_alone(session: Session, table: type[DeclarativeBase]) -> None:
    """Keep other transactions from writing a table until this one ends, as SQLite does anyway."""
    if dialect_of(session) == "postgresql":
        name = session.get_bind().dialect.identifier_preparer.format_table(sa.inspect(table).local_table)
        session.execute(sa.text(f"LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE"))


def _schema_of(address: sa.URL) -> str | None:
    """The schema in an address, or None; raises CairnError if it is invalid."""
    named = address.query.get(_SCHEMA)
    if named is None:
        return None
    if address.get_backend_name() != "postgresql":
        raise CairnError(
            f"{printable_address(address)} names a schema, which only PostgreSQL has: leave out ?{_SCHEMA}=."
        )
    if not isinstance(named, str) or not re.fullmatch("[a-z_][a-z0-9_]{0,62}", named) or named.startswith("pg_"):
        text = named if isinstance(named, str) else " and ".join(named)
        raise CairnError(
            f"{text[:80]!r} is no name for the schema of a catalogue: give one of small letters, digits and "
            "underscores that begins with a letter, and not with pg_, such as ?schema=holiday."
        )
    return named


def printable_address(address: str | sa.URL) -> str:
    """An address for display: the file of an SQLite database, else without its password."""
    if isinstance(address, str):
        return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", address)
    if address.get_backend_name() == "sqlite" and address.database:
        return address.database
    return address.render_as_string(hide_password=True)


def _set_up_sqlite(connection: sqlite3.Connection) -> None:
    # None: SQLAlchemy begins transactions (`_begin_sqlite`), not Python's module.
    connection.isolation_level = None
    connection.create_function("casefold", 1, _casefold, deterministic=True)
    connection.create_function("great_circle_km", 4, great_circle_km, deterministic=True)
    for pragma in ("journal_mode = WAL", "foreign_keys = ON"):
        try:
            connection.execute(f"PRAGMA {pragma}").close()
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_READONLY:
                raise
            # A read-only file keeps its journal mode.


def _renew_sqlite(connection: sqlite3.Connection, _record: object, _proxy: object) -> None:
    if isinstance(connection, _WithoutLog) and connection.is_outdated():
        raise sa.exc.DisconnectionError  # SQLAlchemy opens it again


def _casefold(text: str | None) -> str | None:
    return None if text is None else text.casefold()


def _begin_sqlite(connection: sa.Connection) -> None:
    # A writer takes its lock at once: upgrading a reader's lock fails, without waiting, if another has written.
    writing = connection.get_execution_options().get("cairn_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
