"""Collections from untrusted senders: manual changes, and checks that nothing else was touched."""

import contextlib
import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint, hash_file, load_array, save_array, save_json
from index.errors import CairnError
from index.segments.description import META

CATALOGUE = "catalogue.sqlite"


def write_sql(folder: Path, *statements: str, values: Sequence[Sequence[object]] = ()) -> None:
    """Execute any SQL on the catalogue of a collection, bypassing its checksum."""
    with closing(sqlite3.connect(folder / CATALOGUE)) as connection:
        for number, statement in enumerate(statements):
            connection.execute(statement, values[number] if values else ())
        if connection.execute("SELECT type FROM sqlite_schema WHERE name = 'settings'").fetchone() == ("table",):
            counters = "key IN ('cairn.revision', 'cairn.revision_copy')"
            connection.execute(f"UPDATE settings SET value = CAST(value + 1 AS TEXT) WHERE {counters}")
        connection.commit()


def digest_tree(folder: Path) -> dict[str, tuple[int, str]]:
    """Kind, permissions and contents of each entry below a folder, by path; links are not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = str(path.readlink()) if stat.S_ISLNK(mode) else ""
        if stat.S_ISREG(mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[os.fspath(path.relative_to(folder))] = mode, content
    return found


def reshape(folder: Path, name: str, change: Callable[[NDArray[Any]], NDArray[Any]], segment: str = "000001") -> None:
    """Replace an array of a segment, updating all checksums."""
    where = folder / "segments" / segment
    save_array(where / f"{name}.npy", change(np.array(load_array(where / f"{name}.npy"))))
    describe(folder, segment)


def describe(folder: Path, segment: str = "000001", change: Callable[[dict[str, Any]], None] | None = None) -> None:
    """Rewrite the description of a segment with checksums of its files, and update the catalogue."""
    where = folder / "segments" / segment
    meta = json.loads((where / META).read_bytes())
    del meta["sha256"]
    for name, entry in meta["files"].items():
        with contextlib.suppress(CairnError, OSError):
            array = load_array(where / f"{name}.npy", mmap=True)
            entry |= {"dtype": array.dtype.str, "shape": list(array.shape)}
        with contextlib.suppress(OSError):
            entry["sha256"] = hash_file(where / f"{name}.npy")
    if change is not None:
        change(meta)
    save_json(where / META, {**meta, "sha256": fingerprint({}, meta)})
    write_sql(folder, "UPDATE segments SET sha256 = ? WHERE folder = ?", values=[(hash_file(where / META), segment)])
