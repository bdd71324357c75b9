"""What can still be read of a damaged SQLite catalogue: every row that is not on a damaged page, and is what it was."""

import contextlib
import re
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from index.text import printable
from retrieval.catalogue.schema import (
    FAILED,
    FORMAT_KEY,
    FROM_FILE,
    IMPORTED,
    INDEXED,
    REMOVED,
    ExcludedRow,
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
_OLDER = ("1", "2")  # formats
_MAGIC = b"SQLite format 3\0"
_HEADER, _LARGEST_PAGE = 100, 1 << 16  # bytes
_TABLES: tuple[Any, ...] = (Setting, SegmentRow, ImageRow, MetadataRow, ExcludedRow)


@dataclass
class Salvaged:
    """Rows of a catalogue, as dictionaries by column."""

    settings: dict[str, str] = field(default_factory=dict)
    segments: list[dict[str, Any]] = field(default_factory=list)
    images: dict[int, dict[str, Any]] = field(default_factory=dict)  # by number
    metadata: list[dict[str, Any]] = field(default_factory=list)
    excluded: list[dict[str, Any]] = field(default_factory=list)  # photos that were removed for good
    lost: int = 0  # rows that were read and are not what was written
    torn: set[str] = field(default_factory=set)  # tables that have a page, or a column, that cannot be read

    @property
    def complete(self) -> bool:
        """Whether every row was read."""
        return not self.torn

    @property
    def rows(self) -> int:
        """How many rows are what was written."""
        return sum(map(len, (self.settings, self.segments, self.images, self.metadata, self.excluded)))


def salvage(file: Path, head: bytes | None = None) -> Salvaged:
    """Read what can be read of a catalogue; where there is none, that is nothing.

    Copies are read, with the write-ahead log as far as that is sound: the file stays as it is. Rows are taken only
    where they are what was written, as far as their hashes tell. Without the first page no row can be read: where
    something is damaged, the file is also read with another first page, and what gives most is taken.

    Parameters
    ----------
    file : Path
        The SQLite file.
    head : bytes, optional
        Its first page, as it was at some time.
    """
    if not file.is_file():
        return Salvaged(torn={table.__tablename__ for table in _TABLES})
    saved = _read(file, None)
    if not saved.complete or saved.lost:
        with file.open("rb") as opened:
            first = opened.read(_LARGEST_PAGE)
        for other in (head, _MAGIC + first[len(_MAGIC) :]):
            if other is not None and len(other) >= _HEADER:
                saved = max(saved, _read(file, other), key=lambda one: (one.complete, one.rows))
    return saved


def _read(file: Path, head: bytes | None) -> Salvaged:
    """Read a copy of a catalogue, which begins with other bytes where these are given."""
    saved = Salvaged()
    with tempfile.TemporaryDirectory(prefix="cairn-") as name:
        copy = Path(name) / "copy.sqlite"
        shutil.copyfile(file, copy)
        _complete(copy, head)
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
            # Catalogues of formats 1 and 2 have no such table.
            for row in _rows(connection, ExcludedRow, saved) if saved.settings.get(FORMAT_KEY) not in _OLDER else []:
                if _is_excluded(row):
                    saved.excluded.append(row)
                else:
                    saved.lost += 1
    return saved


def _complete(file: Path, head: bytes | None) -> None:
    """Give a file of SQLite's as many pages as it says, and another head that says how many there are."""
    size = file.stat().st_size
    with file.open("r+b") as opened:
        start = head or opened.read(_HEADER)
        # https://www.sqlite.org/fileformat.html#the_database_header
        page = int.from_bytes(start[16:18], "big")
        page = _LARGEST_PAGE if page == 1 else page
        if len(start) < _HEADER or page < 512 or page & (page - 1):
            return
        pages = int.from_bytes(start[28:32], "big")
        if head is not None:
            pages = -(-size // page)
            opened.seek(0)
            # That count holds where the counters of changes before and after it are the same.
            opened.write(start[:28] + pages.to_bytes(4, "big") + start[32:92] + start[24:28] + start[96:page])
        if size < pages * page <= max(1 << 30, 4 * size):
            opened.truncate(pages * page)  # of a file that is shorter than it says, SQLite reads nothing


def _rows(connection: sqlite3.Connection, table: Any, saved: Salvaged) -> list[dict[str, Any]]:
    """Rows of a table: from its beginning to the first page that cannot be read, and from its end."""
    name = table.__tablename__
    found: dict[int, dict[str, Any]] = {}
    wanted = [column.key for column in table.__table__.columns]
    try:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
    except (sqlite3.Error, UnicodeError):
        columns = []
    strange, absent = [key for key in columns if key not in wanted], [key for key in wanted if key not in columns]
    if len(strange) == len(absent) == 1:  # the name itself is damaged
        columns[columns.index(strange[0])] = absent[0]
    elif strange or not columns:
        saved.torn.add(name)
    blank = dict.fromkeys(wanted)  # earlier versions had fewer columns
    if not columns:
        return []
    for order in ("ASC", "DESC"):
        query = f"SELECT rowid, * FROM {name} NOT INDEXED ORDER BY rowid {order}"
        try:
            for number, *values in connection.execute(query):
                if number in found:  # met from the other side
                    break
                found[number] = blank | dict(zip(columns, values, strict=True))
            break
        except (sqlite3.Error, UnicodeError):
            saved.torn.add(name)
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


def _is_excluded(row: dict[str, Any]) -> bool:
    return (
        _is_whole(row["number"])
        and all(_is_text(row[key]) for key in ("path", "name", "removed"))
        and row["path_hash"] == path_hash_of(row["path"])
        and (row["sha256"] is None or (_is_text(row["sha256"]) and _HASH.fullmatch(row["sha256"]) is not None))
        and (row["size"] is None or _is_whole(row["size"]))
        and (row["mtime_ns"] is None or type(row["mtime_ns"]) is int)
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and printable(value) == value


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST
