"""The file of a collection's checksums: what it says, and how it is read."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from index.arrays import check_format, fingerprint, save_bytes
from index.attributes import some_of
from index.errors import CairnError, refuse_unreadable
from index.files.names import is_plain_path
from retrieval.collection.layout import SEAL, is_vocabulary

FORMAT = 1
_LARGEST_SEAL = 1 << 26  # bytes
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class SealedFile:
    """A file as it was when it was sealed."""

    sha256: str
    bytes: int
    mtime_ns: int  # a file of the same size and time is not hashed again for the next seal


@dataclass(frozen=True)
class Seal:
    """What a collection's files were when a command had written to it."""

    revision: int | None  # of the catalogue; None: it was written to while it was sealed
    database: str  # what the catalogue is in: sqlite, postgresql, …
    catalogue: str | None  # SHA-256 of the SQLite file at that revision
    vocabulary: str | None  # folder of the vocabulary; None: there was none
    files: Mapping[str, SealedFile] = field(default_factory=dict)  # by path in the collection, with slashes
    snapshot: int | None = None  # revision of the catalogue in the snapshot; None: there is no snapshot
    work: float = 0.0  # seconds of commands that wrote to the catalogue since the snapshot


class SealDamagedError(CairnError):
    """The seal is not what was written."""


def read_seal(path: Path) -> Seal | None:
    """Read a seal; None if it is missing. Raises SealDamagedError where it is not what was written."""
    if not path.exists():
        return None
    damaged = SealDamagedError("{path} is damaged: run {cairn repair}.", path=path)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_SEAL:
            raise damaged
        contents = path.read_bytes()
        value = json.loads(contents)
        # Every byte counts, such as those between two values.
        if contents != _encoded(value) or value.pop("sha256") != fingerprint({}, value):
            raise damaged
        check_format(path, value["format"], FORMAT)
        files = {name: _entry(name, entry) for name, entry in value["files"].items()}
        kept = Seal(
            value["revision"],
            value["database"],
            value["catalogue"],
            value["vocabulary"],
            files,
            value.get("snapshot"),  # earlier versions kept none
            value.get("work", 0.0),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, OSError):
            refuse_unreadable(path, error)
        raise damaged from error
    fits = (
        all(number is None or type(number) is int for number in (kept.revision, kept.snapshot))
        and isinstance(kept.work, int | float)
        and isinstance(kept.database, str)
        and (kept.catalogue is None or isinstance(kept.catalogue, str))
        and (kept.vocabulary is None or (isinstance(kept.vocabulary, str) and is_vocabulary(kept.vocabulary)))
    )
    if not fits:
        raise damaged
    return kept


def sound_seal(path: Path) -> Seal | None:
    """Read a seal; None if it is missing or damaged. Otherwise as `read_seal`."""
    try:
        return read_seal(path)
    except SealDamagedError:
        return None


def is_as_sealed(folder: Path, part: str) -> bool:
    """Whether the files of a folder in a collection look as they were sealed, by their sizes and times."""
    try:
        kept = sound_seal(folder / SEAL)
        files = {name: one for name, one in kept.files.items() if name.startswith(f"{part}/")} if kept else {}
        states = {f"{part}/{path.name}": path.stat() for path in (folder / part).iterdir()}
    except (CairnError, OSError):
        return False
    return bool(files) and {name: (one.bytes, one.mtime_ns) for name, one in files.items()} == {
        name: (state.st_size, state.st_mtime_ns) for name, state in states.items()
    }


def _entry(name: str, entry: Mapping[str, Any]) -> SealedFile:
    """An entry of a seal; raises ValueError, TypeError or KeyError if it is malformed or its path leads elsewhere."""
    if not is_plain_path(name):
        raise ValueError("a path leads out of the collection")
    made = SealedFile(entry["sha256"], entry["bytes"], entry["mtime_ns"])
    if not _HASH.fullmatch(made.sha256) or type(made.bytes) is not int or type(made.mtime_ns) is not int:
        raise ValueError("an entry is not valid")
    return made


def hash_database(connection: sqlite3.Connection) -> str:
    """SHA-256 of an SQLite file, every page of it, whether anything is in it or not.

    Through SQLite, never by opening the file: to close it again would take the locks from all connections of this
    process (POSIX), and another process, taking itself for the last, would remove the log that they write to.
    """
    return hashlib.sha256(connection.serialize()).hexdigest()


def write_seal(path: Path, made: Seal) -> None:
    """Write a seal, with a checksum of its own."""
    value = {
        "format": FORMAT,
        **some_of(made, "revision", "database", "catalogue", "vocabulary", "snapshot", "work"),
        "files": {name: some_of(one, "sha256", "bytes", "mtime_ns") for name, one in made.files.items()},
    }
    save_bytes(path, _encoded({**value, "sha256": fingerprint({}, value)}))


def _encoded(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
