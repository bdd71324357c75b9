"""Makes catalogues, and brings those of earlier versions to the present format.

Every change of the tables is a revision of Alembic in `versions/`: revision 0002 leads to format 2, and so on. A
catalogue is migrated when it is opened, in one transaction: a killed process leaves the old one or the new one.
"""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.errors import CairnError, DatabaseError, LaterVersion
from retrieval.catalogue.database import Database
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

# What every catalogue has had from the first format on.
FIRST_TABLES = {row.__tablename__ for row in (ImageRow, SegmentRow, Setting)}
_COUNTERS = (NEXT_NUMBER_KEY, REVISION_KEY, REVISION_COPY_KEY)
# PostgreSQL's advisory lock while a catalogue is made or migrated: any number that no other program takes.
LOCK = int.from_bytes(b"cairn", "big")

# Alembic keeps the running migration in global variables.
_one_at_a_time = threading.Lock()


def prepare(database: Database, create: bool, before_migration: Callable[[], None] | None = None) -> None:
    """Make a database hold a catalogue of the present format: look whether it does, else migrate it, or make one.

    Parameters
    ----------
    database : Database
    create : bool
        Make a catalogue if there is none.
    before_migration : callable, optional
        Called before a catalogue of an earlier format is migrated; what it raises leaves that as it is.

    Raises
    ------
    CairnError
        There is no catalogue, it is damaged or may not be migrated, is another program's, or of a later version.
    """
    # Of one moment: another process may be migrating it.
    with database.transaction() as session:
        found = format_of(database, session)
    if found == FORMAT:
        return
    if found is None and not create:
        raise CairnError("{database} holds no collection: make one with {cairn index|cairn.create}.", database=database)
    if found is not None and before_migration is not None:
        before_migration()
    try:
        with database.transaction(write=True) as session:
            if session.get_bind().dialect.name == "postgresql":
                session.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
                if create:
                    make_schema(session, database.schema)
            found = format_of(database, session)  # another process may have come first
            if found is None:
                _make(session)
            elif found < FORMAT:
                _migrate(session, found)
    except DatabaseError as error:
        if found is None:
            raise
        raise CairnError(
            f"{database} was written by an earlier version of Cairn (format {found}) and cannot be brought to format "
            f"{FORMAT} ({error.cause}): open it once where it is writable."
        ) from error


def format_of(database: Database, session: Session) -> int | None:
    """The format of the catalogue that a database holds, or None if it holds nothing of the kind.

    Raises
    ------
    CairnError
        The tables are another program's, or of a later version.
    """
    tables = set(sa.inspect(session.connection()).get_table_names())
    if not tables & {*Base.metadata.tables, REVISIONS.name}:
        return None
    text = None
    if tables >= FIRST_TABLES:
        text = session.scalars(sa.select(Setting.value).where(Setting.key == FORMAT_KEY)).one_or_none()
    # SQLite keeps values of any type in any column.
    if not isinstance(text, str) or not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise CairnError(f"{database} holds the tables of another program: choose another place for the collection.")
    found = int(text)
    if found > FORMAT:
        raise LaterVersion(f"{database} was written by a later version of Cairn (format {found}): update Cairn.")
    revisions = list(session.scalars(sa.select(REVISIONS.c.version_num))) if REVISIONS.name in tables else []
    if revisions != [revision_of(found)] and (revisions or found > 1):
        names = ", ".join(repr(str(name)[:40]) for name in revisions[:5]) or "none"
        raise CairnError(f"{database} has format {found} but a revision that is not of it ({names}): update Cairn.")
    return found


def revision_of(number: int) -> str:
    """The revision that leads to a format."""
    return f"{number:04d}"


def upgrade(connection: sa.Connection, found: int | None) -> None:
    """Run the revisions that lead to the present format, in the transaction that is open.

    Parameters
    ----------
    connection : sqlalchemy.Connection
    found : int or None
        The format at present; None for an empty database.
    """
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
    """Make the tables of the present format, with nothing in them."""
    Base.metadata.create_all(connection)
    REVISIONS.create(connection)
    connection.execute(sa.insert(REVISIONS).values(version_num=revision_of(FORMAT)))


def make_schema(session: Session, name: str | None) -> None:
    """Make the schema that the address of a catalogue names, if it is not there."""
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
    # A writer of the earlier format holds one of these rows from beginning to end, and takes them in this order.
    for key in (REVISION_KEY, NEXT_NUMBER_KEY):
        session.execute(sa.select(Setting.value).where(Setting.key == key).with_for_update())
    upgrade(session.connection(), found)
    count_writing(session)
