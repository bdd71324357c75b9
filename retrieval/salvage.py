"""What can still be read of a damaged SQLite catalogue: every row that is not on a damaged page, and is what it was."""

import contextlib
import re
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrieval.names import printable
from retrieval.schema import (
    FAILED,
    FROM_FILE,
    IMPORTED,
    INDEXED,
    REMOVED,
    ImageRow,
    MetadataRow,
    SegmentRow,
    Setting,
    path_hash_of,
    value_hash_of,
)

_HASH = re.compile("[0-9a-f]{64}")
_FOLDER = re.compile(r"\d{6,18}")
_LARGEST = 1 << 63


@dataclass
class Salvaged:
    """Rows of a catalogue, as dictionaries by column."""

    settings: dict[str, str] = field(default_factory=dict)
    segments: list[dict[str, Any]] = field(default_factory=list)
    images: dict[int, dict[str, Any]] = field(default_factory=dict)  # by number
    metadata: list[dict[str, Any]] = field(default_factory=list)
    lost: int = 0  # rows that were read and are not what was written
    complete: bool = True  # no table has a page that cannot be read


def salvage(file: Path) -> Salvaged:
    """Read what can be read of a catalogue; where there is none, that is nothing.

    A copy is read, with its write-ahead log as far as that is sound: the file stays as it is. Rows are taken only where
    they are what was written, as far as their hashes tell.
    """
    saved = Salvaged()
    if not file.is_file():
        saved.complete = False
        return saved
    with tempfile.TemporaryDirectory(prefix="cairn-") as name:
        copy = Path(name) / "copy.sqlite"
        shutil.copyfile(file, copy)
        log = file.with_name(f"{file.name}-wal")
        if log.is_file():
            shutil.copyfile(log, copy.with_name(f"{copy.name}-wal"))
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            for row in _rows(connection, Setting, saved):
                if _is_text(row["key"]) and _is_text(row["value"]):
                    saved.settings[row["key"]] = row["value"]
            saved.segments = [row for row in _rows(connection, SegmentRow, saved) if _is_segment(row)]
            for row in _rows(connection, ImageRow, saved):
                if _is_image(row):
                    saved.images[row["number"]] = row
                else:
                    saved.lost += 1
            for row in _rows(connection, MetadataRow, saved):
                if _is_metadata(row):
                    saved.metadata.append(row)
                else:
                    saved.lost += 1
    return saved


def _rows(connection: sqlite3.Connection, table: Any, saved: Salvaged) -> list[dict[str, Any]]:
    """Rows of a table: from its beginning to the first page that cannot be read, and from its end."""
    name = table.__tablename__
    found: dict[int, dict[str, Any]] = {}
    try:
        there = {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
    except (sqlite3.Error, UnicodeError):
        there = set()
    columns = [column.key for column in table.__table__.columns if column.key in there]
    if not columns:
        saved.complete = False
        return []
    for order in ("ASC", "DESC"):
        query = f"SELECT rowid, {', '.join(columns)} FROM {name} NOT INDEXED ORDER BY rowid {order}"
        try:
            for number, *values in connection.execute(query):
                if number in found:  # met from the other side
                    break
                found[number] = dict(zip(columns, values, strict=True))
            break
        except (sqlite3.Error, UnicodeError):
            saved.complete = False
    return [found[number] for number in sorted(found)]


def _is_segment(row: dict[str, Any]) -> bool:
    texts = (row["folder"], row.get("vocabulary_fingerprint"), row.get("descriptor_fingerprint"))
    return all(map(_is_text, texts)) and _FOLDER.fullmatch(row["folder"]) is not None


def _is_image(row: dict[str, Any]) -> bool:
    """Whether the row of an image is sound; what of it the segments note too is taken from there."""
    return (
        _is_whole(row["number"])
        and _is_text(row["path"])
        and row.get("path_hash") == path_hash_of(row["path"])
        and row["state"] in (INDEXED, FAILED, REMOVED)
        and (row["name"] is None or _is_text(row["name"]))
        and (row["reason"] is None or _is_text(row["reason"]))
        and (row["sha256"] is None or (_is_text(row["sha256"]) and _HASH.fullmatch(row["sha256"]) is not None))
        and all(row[key] is None or _is_whole(row[key]) for key in ("size", "width", "height"))
        and (row["mtime_ns"] is None or type(row["mtime_ns"]) is int)
        and _is_whole(row["features"])
        and (row.get("missing_since") is None or _is_text(row["missing_since"]))
    )


def _is_metadata(row: dict[str, Any]) -> bool:
    return (
        _is_whole(row["number"])
        and _is_whole(row["position"])
        and row["source"] in (FROM_FILE, IMPORTED)
        and _is_text(row["key"])
        and _is_text(row["value"])
        and row["value_hash"] == value_hash_of(row["value"])
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and printable(value) == value


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST
