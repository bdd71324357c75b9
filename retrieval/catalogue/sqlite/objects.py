"""Whether what an SQLite file calls its tables is what Cairn has made: the file may come from anybody.

A trigger runs with every change, a view or a generated column with every question, and a table may be a module's. So a
catalogue has the tables and indexes of this version or an earlier one, each of which says nothing but the words that
Cairn writes, and has nothing else. The one table of a module is that of words, letter by letter as Cairn makes it.
"""

import re
import sqlite3
from functools import cache, lru_cache

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from index.errors import LaterVersion
from retrieval.catalogue.schema import FORMAT, FORMAT_KEY, REVISIONS, Base, Setting
from retrieval.catalogue.sqlite.full_text import ENTRIES

_WORD = re.compile(r"""'(?:[^']|'')*'|\w+|[^\s"]""")
_EARLIER_INDEXES = ("ix_metadata_key_value_hash",)  # of formats 2 to 6
_SEQUENCE = "sqlite_sequence"  # of SQLite itself, where it counts for a table
_AUTOMATIC = "sqlite_autoindex_"  # indexes that SQLite makes, without SQL

_Entry = tuple[object, object, object, object]  # a row of sqlite_schema: type, name, table and SQL


def foreign_object(connection: sqlite3.Connection, name: object) -> str | None:
    """Look for what Cairn has not made in an SQLite file that has tables of Cairn's.

    Nothing that the file holds is evaluated, then or later: to be called before any other question.

    Parameters
    ----------
    connection : sqlite3.Connection
    name : object
        What the catalogue is called in a sentence.

    Returns
    -------
    str or None
        What it is, in a sentence; None if there is no such thing.

    Raises
    ------
    LaterVersion
        There is, and the catalogue says that a later version has made it.
    sqlite3.Error
        It cannot be read.
    """
    connection.execute("PRAGMA trusted_schema = OFF").close()
    entries = tuple(connection.execute("SELECT type, name, tbl_name, sql FROM main.sqlite_schema").fetchall())
    found = _foreign(entries)
    if found is None:
        return None
    settings = [entry for entry in entries if Setting.__tablename__ in entry[1:3]]
    if settings and all(map(is_own, settings)):
        query = f"SELECT value FROM {Setting.__tablename__} WHERE key = ?"
        (text,) = connection.execute(query, [FORMAT_KEY]).fetchone() or ("",)
        if re.fullmatch("[1-9][0-9]{0,8}", str(text)) and int(text) > FORMAT:
            raise LaterVersion(f"{name} was written by a later version of Cairn (format {text}): update Cairn.")
    kind, called = (" ".join(str(part).split())[:60] for part in found[:2])
    return f"It holds the {kind} {called!r}, which Cairn has not made."


@lru_cache(maxsize=16)
def _foreign(entries: tuple[_Entry, ...]) -> _Entry | None:
    """The first object that is not Cairn's, in a file that has tables of Cairn's."""
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
    # With these words alone nothing can be said but columns and their keys: no function, no view, no trigger.
    return isinstance(sql, str) and name.lower() in known and _words_of(sql) <= known


@cache
def _words() -> dict[str, frozenset[str]]:
    """The words that the SQL of each table and of its indexes is made of."""
    found = {_SEQUENCE: _words_of(f"CREATE TABLE {_SEQUENCE}(name,seq)")}
    for table in (*Base.metadata.sorted_tables, REVISIONS):
        statements: list[sa.schema.DDLElement] = [CreateTable(table), *map(CreateIndex, table.indexes)]
        texts = [str(statement.compile(dialect=sqlite.dialect())) for statement in statements]
        found[table.name] = _words_of(" ".join([*texts, *_EARLIER_INDEXES]))
    return found


def _words_of(sql: str) -> frozenset[str]:
    return frozenset(word if word.startswith("'") else word.lower() for word in _WORD.findall(sql))
