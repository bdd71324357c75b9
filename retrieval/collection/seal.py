"""The file of a collection's checksums: contents and reader."""

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
    """State of a file when it was sealed."""

    sha256: str
    bytes: int
    mtime_ns: int  # a file of the same size and time is not hashed again for the next seal


@dataclass(frozen=True)
class Seal:
    """State of a collection's files at the end of a command that wrote to it."""

    revision: int | None  # of the catalogue; None: it was written to while it was sealed
    database: str  # of the catalogue: sqlite, postgresql, …
    catalogue: str | None  # SHA-256 of the SQLite file at that revision
    vocabulary: str | None  # folder of the vocabulary; None: no vocabulary yet
    files: Mapping[str, SealedFile] = field(default_factory=dict)  # by path in the collection, with slashes
    snapshot: int | None = None  # revision of the catalogue in the snapshot; None: no snapshot
    work: float = 0.0  # seconds of commands that wrote to the catalogue since the snapshot


class SealDamagedError(CairnError):
    """The seal is damaged."""


def read_seal(path: Path) -> Seal | None:
    """Read a seal; None if it is missing. Raises SealDamagedError if it is damaged."""
    if not path.exists():
        return None
    damaged = SealDamagedError("{path} is damaged: run {cairn repair}.", path=path)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_SEAL:
            raise damaged
        contents = path.read_bytes()
        value = json.loads(contents)
        # Compare every byte, even white space between values.
        if contents != _encoded(value) or value.pop("sha256") != fingerprint({}, value):
            raise damaged
        check_format(path, value["format"], FORMAT)
        files = {name: _entry(name, entry) for name, entry in value["files"].items()}
        seal = Seal(
            value["revision"],
            value["database"],
            value["catalogue"],
            value["vocabulary"],
            files,
            value.get("snapshot"),  # missing in earlier versions
            value.get("work", 0.0),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, OSError):
            refuse_unreadable(path, error)
        raise damaged from error
    fits = (
        all(number is None or type(number) is int for number in (seal.revision, seal.snapshot))
        and isinstance(seal.work, int | float)
        and isinstance(seal.database, str)
        and (seal.catalogue is None or isinstance(seal.catalogue, str))
        and (seal.vocabulary is None or (isinstance(seal.vocabulary, str) and is_vocabulary(seal.vocabulary)))
    )
    if not fits:
        raise damaged
    return seal


def sound_seal(path: Path) -> Seal | None:
    """Read a seal like `read_seal`; None if it is missing or damaged."""
    try:
        return read_seal(path)
    except SealDamagedError:
        return None


def is_as_sealed(folder: Path, part: str) -> bool:
    """Whether the files of a folder in a collection match their seals in size and time."""
    try:
        seal = sound_seal(folder / SEAL)
        files = {name: one for name, one in seal.files.items() if name.startswith(f"{part}/")} if seal else {}
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
    entry_file = SealedFile(entry["sha256"], entry["bytes"], entry["mtime_ns"])
    if (
        not _HASH.fullmatch(entry_file.sha256)
        or type(entry_file.bytes) is not int
        or type(entry_file.mtime_ns) is not int
    ):
        raise ValueError("an entry is not valid")
    return entry_file


def hash_database(connection: sqlite3.Connection) -> str:
    """SHA-256 of an SQLite file, every page of it, whether anything is in it or not.

    It is read through SQLite, never by opening the file: closing that would release the locks of all connections of
    this process (POSIX), and another process that thinks it is the last would delete the log that they write to.
    """
    return hashlib.sha256(connection.serialize()).hexdigest()


def write_seal(path: Path, made: Seal) -> None:
    """Write a seal, with its own checksum."""
    value = {
        "format": FORMAT,
        **some_of(made, "revision", "database", "catalogue", "vocabulary", "snapshot", "work"),
        "files": {name: some_of(one, "sha256", "bytes", "mtime_ns") for name, one in made.files.items()},
    }
    save_bytes(path, _encoded({**value, "sha256": fingerprint({}, value)}))


def _encoded(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
