"""What is seen of a catalogue without opening it, as a list of many collections shows it."""

import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from index.errors import CairnError
from retrieval.catalogue.database import connect_for_reading


@dataclass(frozen=True)
class Cover:
    """A photo that stands for a collection."""

    number: int
    name: str
    path: str
    sha256: str | None
    width: int | None  # pixels of the upright original
    height: int | None


@dataclass(frozen=True)
class Glance:
    """What is seen of a catalogue at a glance."""

    photos: int
    cover: Cover | None  # None where there is no photo


def glance(file: Path, chosen: int | None = None) -> Glance:
    """Look at a catalogue that is an SQLite file, of any version, without opening it: nothing is migrated or checked.

    The cover is the photo whose number was chosen, where it is there. Else it is one of the first photos, and wide
    where one of them is.

    Raises
    ------
    CairnError
        It cannot be read.
    """
    columns = "number, name, path, sha256, width, height"
    first = f"SELECT {columns} FROM images WHERE name IS NOT NULL AND missing_since IS NULL ORDER BY number LIMIT 24"
    try:
        with contextlib.closing(connect_for_reading(file, timeout=2.0)) as connection:
            (photos,) = connection.execute("SELECT count(*) FROM images WHERE name IS NOT NULL").fetchone()
            wanted = f"SELECT {columns} FROM images WHERE name IS NOT NULL AND number = ?"
            row = connection.execute(wanted, (chosen,)).fetchone()
            if row is None:
                row = connection.execute(f"SELECT * FROM ({first}) ORDER BY width < height, number LIMIT 1").fetchone()
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise CairnError(f"The catalogue {file} cannot be read ({error}): run cairn check.") from None
    return Glance(photos, Cover(*row) if row else None)
