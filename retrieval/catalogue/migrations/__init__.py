"""Create catalogues, and migrate those of earlier versions to the current format.

Every change of the tables is a revision of Alembic in `versions/`: revision 0002 leads to format 2, and so on. A
catalogue is migrated when it is opened, in one transaction: a killed process leaves either the old or the new one.
"""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.errors import CairnError, DatabaseError, LaterVersion
from retrieval.catalogue.database import Database, dialect_of
from retrieval.catalogue.schema import (
    FORMAT,
    FORMAT_KEY,
    NEXT_NUMBER_KEY,
    REVISION_COPY_KEY,
    REVISION_KEY,
    REVISIONS,
    Base,
    ImageRow,
    SegmentRow,
    Setting,
    count_writing,
)
from retrieval.catalogue.settings import setting_of

# Tables of every catalogue since the first format.
FIRST_TABLES = {row.__tablename__ for row in (ImageRow, SegmentRow, Setting)}
_COUNTERS = (NEXT_NUMBER_KEY, REVISION_KEY, REVISION_COPY_KEY)
# PostgreSQL's advisory lock while a catalogue is created or migrated: a number that no other program uses.
LOCK = int.from_bytes(b"cairn", "big")

# Alembic keeps the running migration in global variables.
_one_at_a_time = threading.Lock()


def prepare(database: Database, create: bool, before_migration: Callable[[], None] | None = None) -> None:
    """Make sure that a database has a catalogue of the current format: migrate an older one, or create one.

    `before_migration` is called before a catalogue of an earlier format is migrated; if it raises, nothing is changed.
    Raises CairnError if the catalogue is missing, damaged, another program's, or of a later version.
    """
    # In one transaction, as another process may be migrating it.
    with database.transaction() as session:
        version = format_of(database, session)
    if version == FORMAT:
        return
    if version is None and not create:
        raise CairnError(
            "{database} holds no collection: create one with {cairn index|cairn.create}.", database=database
        )
    if version is not None and before_migration is not None:
        before_migration()
    try:
        with database.transaction(write=True) as session:
            if dialect_of(session) == "postgresql":
                session.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
                if create:
                    make_schema(session, database.schema)
            version = format_of(database, session)  # another process may have come first
            if version is None:
                _make(session)
            elif version < FORMAT:
                _migrate(session, version)
    except DatabaseError as error:
        if version is None:
            raise
        raise CairnError(
            "{database} was written by an earlier version of Cairn (format {version}) and cannot be brought to format "
            "{format} ({reason}): open it once where it is writable.",
            database=str(database),
            version=version,
            format=FORMAT,
            reason=error.cause,
        ) from error


def format_of(database: Database, session: Session) -> int | None:
    """The format of the catalogue in a database, or None without one."""
    tables = set(sa.inspect(session.connection()).get_table_names())
    if not tables & {*Base.metadata.tables, REVISIONS.name}:
        return None
    text = None
    if tables >= FIRST_TABLES:
        text = setting_of(session, FORMAT_KEY)
    # SQLite stores values of any type in any column.
    if not isinstance(text, str) or not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise CairnError(
            "{database} holds the tables of another program: choose another place for the collection.",
            database=str(database),
        )
    version = int(text)
    if version > FORMAT:
        raise LaterVersion(
            "{database} was written by a later version of Cairn (format {version}): update Cairn.",
            database=str(database),
            version=version,
        )
    revisions = list(session.scalars(sa.select(REVISIONS.c.version_num))) if REVISIONS.name in tables else []
    if revisions != [revision_of(version)] and (revisions or version > 1):
        names = ", ".join(repr(str(name)[:40]) for name in revisions[:5]) or "none"
        raise CairnError(
            "{database} has format {version} but a revision that is not of it ({names}): update Cairn.",
            database=str(database),
            version=version,
            names=names,
        )
    return version


def revision_of(number: int) -> str:
    """The revision that leads to a format."""
    return f"{number:04d}"


def upgrade(connection: sa.Connection, found: int | None) -> None:
    """Run the revisions from a format (None: an empty database) to the current one, in the open transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _one_at_a_time:
        if found == 1:
            command.stamp(config, revision_of(1))  # format 1 is older than the use of Alembic
        command.upgrade(config, revision_of(FORMAT))


def make_tables(connection: sa.Connection) -> None:
    """Create the empty tables of the current format."""
    Base.metadata.create_all(connection)
    REVISIONS.create(connection)
    connection.execute(sa.insert(REVISIONS).values(version_num=revision_of(FORMAT)))


def make_schema(session: Session, name: str | None) -> None:
    """Create the schema that the address of a catalogue names, if it is missing."""
    connection = session.connection()
    if name is not None and not sa.inspect(connection).has_schema(name):
        connection.execute(sa.schema.CreateSchema(name))


def _make(session: Session) -> None:
    make_tables(session.connection())
    for key, value in ((FORMAT_KEY, str(FORMAT)), *((key, "0") for key in _COUNTERS)):
        session.add(Setting(key=key, value=value))
    session.flush()
    count_writing(session)


def _migrate(session: Session, found: int) -> None:
    # A writer of the earlier format locks one of these rows for its whole transaction, and locks them in this order.
    for key in (REVISION_KEY, NEXT_NUMBER_KEY):
        session.execute(sa.select(Setting.value).where(Setting.key == key).with_for_update())
    upgrade(session.connection(), found)
    count_writing(session)
