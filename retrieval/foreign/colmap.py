"""Features in COLMAP's database."""

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.files.reading import refuse_irregular_database
from retrieval.foreign.arrays import MOST, entry_of
from retrieval.foreign.contract import Entry, missing, stored_name

MAGIC = b"SQLite format 3\0"
_TABLES = ("images", "cameras", "keypoints", "descriptors")
# SQL of virtual tables or generated columns, which COLMAP's tables do not have.
_COMPUTED = re.compile(r"\b(VIRTUAL|AS)\b", re.IGNORECASE)
_WIDEST = 4 * 4096  # columns of an array
_FLOATS = np.dtype("<f4")
_SIFT = 0
_ORIGIN = 0.5  # coordinate of the centre of the top-left pixel


@dataclass(frozen=True)
class ColmapDatabase:
    """A database of COLMAP's: keypoints with 2, 4 (and scale, orientation) or 6 columns (an affine frame).

    Descriptors are bytes (SIFT) or float32: COLMAP 4 has a type for that, and stores a float as four bytes; other
    programs write floats without a type. It is opened read-only. COLMAP uses photos as stored, ignoring the orientation
    in EXIF.
    """

    path: Path

    def entry(self, photo: Path, names: Sequence[str]) -> Entry:
        """Read the features of a photo: see `FeatureSource.entry`."""
        try:
            with _opened(self.path) as database:
                row = next((row for name in names if (row := _image(database, name)) is not None), None)
                if row is None and (name := stored_name(self.path, names, photo, _names)) is not None:
                    row = _image(database, name)
                if row is None:
                    raise missing(self.path)
                keypoints = _array(database, "keypoints", row[0], _FLOATS)
                arrays = {"keypoints": keypoints, "descriptors": _descriptors(database, row[0])}
            if keypoints.shape[1] == 6:
                arrays["frames"] = arrays.pop("keypoints")
            entry = entry_of(arrays, origin=_ORIGIN)
            size = (row[1], row[2]) if isinstance(row[1], int) and isinstance(row[2], int) else None
            return replace(entry, size=size, is_as_stored=True)
        except sqlite3.Error as error:
            raise CairnError(f"its features in {self.path} cannot be read: the database is damaged") from error
        except (ValueError, TypeError) as error:
            raise CairnError(f"its features in {self.path} are damaged") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes nothing, to a database in which the tables that are read are tables of values."""
    refuse_irregular_database(path)
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        database.execute("PRAGMA trusted_schema = OFF")
        made = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
        if any(not isinstance(made.get(name), str) or _COMPUTED.search(made[name]) for name in _TABLES):
            raise CairnError(f"{path} is no database of COLMAP's: it has no tables {', '.join(_TABLES)}")
        yield database


def _image(database: sqlite3.Connection, name: str) -> tuple[int, object, object] | None:
    row = database.execute(
        "SELECT image_id, width, height FROM images LEFT JOIN cameras USING (camera_id) WHERE name = ?", (name,)
    ).fetchone()
    return tuple(row) if row is not None else None


def _names(path: Path) -> list[str]:
    with _opened(path) as database:
        return [name for (name,) in database.execute("SELECT name FROM images") if isinstance(name, str)]


def _array(database: sqlite3.Connection, table: str, number: int, dtype: np.typing.DTypeLike) -> NDArray[Any]:
    """An array (rows, cols) of an image; CairnError or ValueError if it is missing or damaged."""
    rows, columns, length = _shape(database, table, number)
    if length != rows * columns * np.dtype(dtype).itemsize:
        raise ValueError("the array is not as long as it says")
    if not length:
        return np.zeros((rows, columns), dtype)
    (data,) = database.execute(f"SELECT data FROM {table} WHERE image_id = ?", (number,)).fetchone()
    return np.frombuffer(data, dtype).reshape(rows, columns)


def _shape(database: sqlite3.Connection, table: str, number: int) -> tuple[int, int, int]:
    """Rows, columns and bytes of an array."""
    row = database.execute(f"SELECT rows, cols, length(data) FROM {table} WHERE image_id = ?", (number,)).fetchone()
    if row is None:
        raise CairnError(f"it has no {table} in the database")
    rows, columns, length = row
    if not all(type(one) is int for one in (rows, columns)) or not 0 <= rows <= MOST or not 0 <= columns <= _WIDEST:
        raise ValueError("the array is of no size that makes sense")
    return rows, columns, length or 0


def _descriptors(database: sqlite3.Connection, number: int) -> NDArray[Any]:
    """Descriptors of an image, bytes or floats."""
    rows, columns, length = _shape(database, "descriptors", number)
    if length and length == 4 * rows * columns:
        return _array(database, "descriptors", number, _FLOATS)
    stored = _array(database, "descriptors", number, np.uint8)
    return stored.view(_FLOATS) if _type(database, number) > _SIFT else stored


def _type(database: sqlite3.Connection, number: int) -> int:
    """COLMAP's extractor of descriptors: -1 unknown, 0 SIFT; those of all others are floats."""
    columns = {name for _, name, *_ in database.execute("PRAGMA table_info(descriptors)")}
    if "type" not in columns:
        return _SIFT
    (found,) = database.execute("SELECT type FROM descriptors WHERE image_id = ?", (number,)).fetchone()
    return int(found)
