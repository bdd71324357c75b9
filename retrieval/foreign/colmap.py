"""Features in COLMAP's database."""

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.files.reading import refuse_irregular_database
from retrieval.foreign.arrays import MOST, entry_of
from retrieval.foreign.contract import Entry, missing

MAGIC = b"SQLite format 3\0"
_TABLES = ("images", "cameras", "keypoints", "descriptors")
# What a module, or a formula, would stand behind in place of values; columns of COLMAP's have no such names.
_COMPUTED = re.compile(r"\b(VIRTUAL|AS)\b", re.IGNORECASE)
_ORIGIN = 0.5  # coordinate of the centre of the top-left pixel


@dataclass(frozen=True)
class ColmapDatabase:
    """A database of COLMAP's: keypoints with 2, 4 (and scale, orientation) or 6 columns (an affine frame), and SIFT.

    It is opened read-only. COLMAP takes photos as they are stored, whatever their EXIF says of turns.
    """

    path: Path

    def entry(self, photo: Path, names: Sequence[str]) -> Entry:
        """Read the features of a photo: see `FeatureSource.entry`."""
        try:
            with _opened(self.path) as database:
                row = next((row for name in names if (row := _image(database, name)) is not None), None)
                if row is None:
                    raise missing(self.path)
                keypoints = _array(database, "keypoints", row[0], np.dtype("<f4"))
                arrays = {"keypoints": keypoints, "descriptors": _array(database, "descriptors", row[0], np.uint8)}
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
    found = database.execute(
        "SELECT image_id, width, height FROM images LEFT JOIN cameras USING (camera_id) WHERE name = ?", (name,)
    ).fetchone()
    return tuple(found) if found is not None else None


def _array(database: sqlite3.Connection, table: str, number: int, dtype: np.typing.DTypeLike) -> NDArray[np.generic]:
    """An array (rows, cols) of an image; CairnError or ValueError if it is missing or damaged."""
    row = database.execute(f"SELECT rows, cols, length(data) FROM {table} WHERE image_id = ?", (number,)).fetchone()
    if row is None:
        raise CairnError(f"it has no {table} in the database")
    rows, columns, length = row
    width = np.dtype(dtype).itemsize
    if not all(type(one) is int for one in (rows, columns)) or not 0 <= rows <= MOST or not 0 <= columns <= 4096:
        raise ValueError("the array is of no size that makes sense")
    if (length or 0) != rows * columns * width:
        raise ValueError("the array is not as long as it says")
    if not length:
        return np.zeros((rows, columns), dtype)
    (data,) = database.execute(f"SELECT data FROM {table} WHERE image_id = ?", (number,)).fetchone()
    return np.frombuffer(data, dtype).reshape(rows, columns)
