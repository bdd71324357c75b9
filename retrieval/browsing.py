"""Pages of a catalogue: its photos by name, filtered by a part of the name and by folder, all decided in SQL.

A photo's name is its path below what was indexed, with slashes; its folder is what comes before the last slash.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.names import printable
from retrieval.schema import ImageRow

LONGEST_FILTER = 1024
"""Characters; no name has more."""


def page_of(
    session: Session, offset: int, limit: int, name: str | None, folder: str | None
) -> tuple[int, Sequence[ImageRow]]:
    """How many photos pass, and those of one page by name: see `Catalogue.page`."""
    passing = _passing(session, name, folder)
    total = session.scalar(sa.select(sa.func.count(ImageRow.name)).where(*passing))
    # Numbers first: to skip the pages before, an index on the names is read, and no row.
    there = sa.select(ImageRow.number).where(*passing).order_by(_name(session)).offset(offset).limit(limit).subquery()
    rows = sa.select(ImageRow).join(there, ImageRow.number == there.c.number).order_by(_name(session))
    return total or 0, session.scalars(rows).all()


def numbers_of(session: Session, name: str | None, folder: str | None) -> np.ndarray:
    """Numbers of the photos that pass, ascending int64: see `Catalogue.numbers`."""
    query = sa.select(ImageRow.number).where(*_passing(session, name, folder))
    # Sorted here: a database would rather read the rows in the order of the numbers than sort what it has found.
    return np.sort(np.array(session.scalars(query).all(), np.int64))


def folders_of(session: Session) -> list[tuple[str, int]]:
    """Folders of the photos' names and how many photos lie in each: see `Catalogue.folders`."""
    # What is left of a name when every character that is not a slash is taken from its end.
    folder = sa.func.rtrim(ImageRow.name, sa.func.replace(ImageRow.name, "/", ""))
    query = sa.select(folder, sa.func.count()).where(ImageRow.name.is_not(None)).group_by(folder)
    return sorted((with_slash.removesuffix("/"), int(count)) for with_slash, count in session.execute(query))


def _passing(session: Session, name: str | None, folder: str | None) -> list[sa.ColumnElement[bool]]:
    """What a photo's row has to fulfil."""
    name, folder = name or "", (folder or "").strip("/")
    if any(len(text) > LONGEST_FILTER or printable(text) != text for text in (name, folder)):
        return [sa.false()]  # no such name is ever stored, and no database takes it
    # Indexed photos alone have names.
    wanted: list[sa.ColumnElement[bool]] = [ImageRow.name.is_not(None)]
    if name:
        wanted.append(_contains(session, name))
    if folder:
        # From "folder/" to the character after the slash: a range of the index, and nothing in it is a wildcard.
        wanted += [_name(session) >= f"{folder}/", _name(session) < f"{folder}0"]
    return wanted


def _contains(session: Session, part: str) -> sa.ColumnElement[bool]:
    if session.get_bind().dialect.name == "sqlite" and not part.isascii():
        # SQLite's own functions know the case of ASCII letters alone: `casefold` is Python's (see the catalogue).
        return sa.func.casefold(ImageRow.name).contains(part.casefold(), autoescape=True)
    return ImageRow.name.icontains(part, autoescape=True)


def _name(session: Session) -> sa.SQLColumnExpression[Any]:
    """The name, compared byte by byte: as SQLite does by itself, and PostgreSQL when it is told."""
    return ImageRow.name.collate("C") if session.get_bind().dialect.name == "postgresql" else ImageRow.name
