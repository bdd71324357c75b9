"""Check that an SQLite file, which may come from anyone, has only schema objects that Cairn made.

Triggers run at every change, views and generated columns at every query, and a virtual table runs the code of a module.
So a catalogue may have only tables and indexes of this version or an earlier one, whose SQL has only words that Cairn
writes. The only virtual table is that of words, whose SQL must be exactly Cairn's.
"""

import re
import sqlite3
from functools import cache, lru_cache

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from index.errors import LaterVersion
from index.messages import Message
from retrieval.catalogue.schema import FORMAT, FORMAT_KEY, REVISIONS, Base, Setting
from retrieval.catalogue.sqlite.full_text import ENTRIES

_WORD = re.compile(r"""'(?:[^']|'')*'|\w+|[^\s"]""")
_EARLIER_INDEXES = ("ix_metadata_key_value_hash",)  # of formats 2 to 6
_SEQUENCE = "sqlite_sequence"  # of SQLite itself, for tables with AUTOINCREMENT
_AUTOMATIC = "sqlite_autoindex_"  # indexes that SQLite makes, without SQL

_Entry = tuple[object, object, object, object]  # a row of sqlite_schema: type, name, table and SQL


def foreign_object(connection: sqlite3.Connection, name: object) -> Message | None:
    """Return a sentence on the first foreign schema object in an SQLite file that has tables of Cairn, or None.

    Call it before any other query, so that nothing in the file is ever evaluated. Raises LaterVersion if there is such
    an object, and the catalogue states that a later version made it.
    """
    connection.execute("PRAGMA trusted_schema = OFF").close()
    entries = tuple(connection.execute("SELECT type, name, tbl_name, sql FROM main.sqlite_schema").fetchall())
    foreign = _foreign(entries)
    if foreign is None:
        return None
    settings = [entry for entry in entries if Setting.__tablename__ in entry[1:3]]
    if settings and all(map(is_own, settings)):
        query = f"SELECT value FROM {Setting.__tablename__} WHERE key = ?"
        (text,) = connection.execute(query, [FORMAT_KEY]).fetchone() or ("",)
        if re.fullmatch("[1-9][0-9]{0,8}", str(text)) and int(text) > FORMAT:
            raise LaterVersion(
                "{database} was written by a later version of Cairn (format {version}): update Cairn.",
                database=name,
                version=text,
            )
    kind, called = (" ".join(str(part).split())[:60] for part in foreign[:2])
    return Message("It holds the {what} {called}, which Cairn has not made.", what=kind, called=repr(called))


@lru_cache(maxsize=16)
def _foreign(entries: tuple[_Entry, ...]) -> _Entry | None:
    """The first foreign object in a file that has tables of Cairn."""
    if not any(table in _words() for _, _, table, _ in entries):
        return None
    return next((entry for entry in entries if not is_own(entry)), None)


def is_own(entry: _Entry) -> bool:
    """Whether a row of `sqlite_schema` is that of a table or index of this version or an earlier one."""
    if entry in ENTRIES:
        return True
    _, name, table, sql = entry
    known = _words().get(str(table))
    if known is None or not isinstance(name, str):
        return False
    if sql is None:
        return name.startswith(_AUTOMATIC)
    # These words can only define columns and keys: no function, no view, no trigger.
    return isinstance(sql, str) and name.lower() in known and _words_of(sql) <= known


@cache
def _words() -> dict[str, frozenset[str]]:
    """The words in the SQL of each table and its indexes."""
    words = {_SEQUENCE: _words_of(f"CREATE TABLE {_SEQUENCE}(name,seq)")}
    for table in (*Base.metadata.sorted_tables, REVISIONS):
        statements: list[sa.schema.DDLElement] = [CreateTable(table), *map(CreateIndex, table.indexes)]
        texts = [str(statement.compile(dialect=sqlite.dialect())) for statement in statements]
        words[table.name] = _words_of(" ".join([*texts, *_EARLIER_INDEXES]))
    return words


def _words_of(sql: str) -> frozenset[str]:
    return frozenset(word if word.startswith("'") else word.lower() for word in _WORD.findall(sql))
