"""Collections as a stranger may send them: what is written into them by hand, and whether anything else was touched."""

import hashlib
import os
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

CATALOGUE = "catalogue.sqlite"


def write_sql(folder: Path, *statements: str, values: Sequence[Sequence[object]] = ()) -> None:
    """Have SQL executed on the catalogue of a collection, whatever it says, which its checksum does not tell."""
    with closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        for number, statement in enumerate(statements):
            connection.execute(statement, values[number] if values else ())
        if connection.execute("SELECT type FROM sqlite_schema WHERE name = 'settings'").fetchone() == ("table",):
            counters = "key IN ('cairn.revision', 'cairn.revision_copy')"
            connection.execute(f"UPDATE settings SET value = CAST(value + 1 AS TEXT) WHERE {counters}")
        connection.commit()


def digest_tree(folder: Path) -> dict[str, tuple[int, str]]:
    """What lies below a folder: the kind, rights and content of each entry, by its path; links are not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = str(path.readlink()) if stat.S_ISLNK(mode) else ""
        if stat.S_ISREG(mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[os.fspath(path.relative_to(folder))] = mode, content
    return found
