"""Pages of a catalogue: its photos by name, filtered (see `retrieval.catalogue.filters`), all decided in SQL.

A photo's name is its path below what was indexed, with slashes; its folder is what comes before the last slash.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from index.text import printable
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import TAG, column_key, has_value
from retrieval.catalogue.photos import count_indexed
from retrieval.catalogue.schema import ImageRow
from retrieval.metadata.dates import after, beginnings
from retrieval.metadata.places import EARTH_RADIUS, Near

LONGEST_FILTER = 1024
"""Characters; no name has more."""


def page_of(session: Session, offset: int, limit: int, wanted: PhotoFilter) -> tuple[int, Sequence[ImageRow]]:
    """How many photos pass, and those of one page by name: see `Catalogue.page`."""
    passing = _passing(session, wanted)
    total = (
        session.scalar(sa.select(sa.func.count(ImageRow.name)).where(*passing)) if wanted else count_indexed(session)
    )
    # Numbers first: to skip the pages before, an index on the names is read, and no row.
    there = sa.select(ImageRow.number).where(*passing).order_by(_name(session)).offset(offset).limit(limit).subquery()
    rows = sa.select(ImageRow).join(there, ImageRow.number == there.c.number).order_by(_name(session))
    return total or 0, session.scalars(rows).all()


def numbers_of(session: Session, wanted: PhotoFilter) -> NDArray[np.int64]:
    """Numbers of the photos that pass, ascending int64: see `Catalogue.numbers`."""
    query = sa.select(ImageRow.number).where(*_passing(session, wanted))
    # Sorted here: a database would rather read the rows in the order of the numbers than sort what it has found.
    return np.sort(np.array(session.scalars(query).all(), np.int64))


def folders_of(session: Session) -> list[tuple[str, int]]:
    """Folders of the photos' names and how many photos lie in each: see `Catalogue.folders`."""
    query = sa.select(ImageRow.folder, sa.func.count()).where(ImageRow.folder.is_not(None)).group_by(ImageRow.folder)
    return sorted((folder or "", int(count)) for folder, count in session.execute(query))


def _passing(session: Session, wanted: PhotoFilter) -> list[sa.ColumnElement[bool]]:
    """What a photo's row has to fulfil."""
    name, folder = wanted.name, wanted.folder.strip("/")
    if any(len(text) > LONGEST_FILTER or printable(text) != text for text in (name, folder)):
        return [sa.false()]  # no such name is ever stored, and no database takes it
    # Indexed photos alone have names.
    passing: list[sa.ColumnElement[bool]] = [ImageRow.name.is_not(None)]
    if folder:
        # From "folder/" to the character after the slash: a range of the index, and nothing in it is a wildcard.
        passing += [_name(session) >= f"{folder}/", _name(session) < f"{folder}0"]
    for column, part in ((ImageRow.name, name), (ImageRow.camera, wanted.camera), (ImageRow.title, wanted.title)):
        if part:
            passing.append(_contains(session, column, part))
    passing += _taken(session, wanted.taken_from, wanted.taken_to)
    passing += [has_value(TAG, tag) for tag in wanted.tags]
    passing += [~has_value(TAG, tag) for tag in wanted.without_tags]
    # A column that is called as a field is may be kept as it is, where another column was for the field.
    for called, value in wanted.where:
        passing.append(sa.or_(*(has_value(key, value) for key in sorted({called, column_key(called)}))))
    if wanted.near is not None:
        passing += _near(session, wanted.near)
    return passing


def _contains(session: Session, column: sa.SQLColumnExpression[Any], part: str) -> sa.ColumnElement[bool]:
    if _is_sqlite(session) and not part.isascii():
        # SQLite's own functions know the case of ASCII letters alone: `casefold` is Python's (see `database`).
        return sa.func.casefold(column).contains(part.casefold(), autoescape=True)
    return column.icontains(part, autoescape=True)


def _taken(session: Session, first: str, last: str) -> list[sa.ColumnElement[bool]]:
    """That a photo may have been taken in a time: its date, or the time that its date leaves open, is in it."""
    passing: list[sa.ColumnElement[bool]] = []
    taken = _bytewise(session, ImageRow.taken)
    if first:
        passing.append(sa.or_(taken >= first, ImageRow.taken.in_(beginnings(first))))
    if last:
        passing.append(taken < after(last))
    return passing


def _near(session: Session, near: Near) -> list[sa.ColumnElement[bool]]:
    """That a photo was taken near a place: in a box, which an index may help with, and then within the distance."""
    ranges = [ImageRow.longitude.between(*one) for one in near.longitudes]
    return [
        ImageRow.latitude.between(*near.latitudes),
        sa.or_(*ranges),
        _distance(session, near) <= near.kilometres,
    ]


def _distance(session: Session, near: Near) -> sa.ColumnElement[float]:
    """Kilometres from a place to a photo's."""
    if _is_sqlite(session):
        # Python's, for SQLite may be built without sines (see `database`).
        return sa.func.great_circle_km(near.latitude, near.longitude, ImageRow.latitude, ImageRow.longitude)
    here, there = sa.func.radians(near.latitude), sa.func.radians(ImageRow.latitude)
    across = sa.func.sin(sa.func.radians(ImageRow.longitude - near.longitude) / 2)
    along = sa.func.sin((there - here) / 2)
    haversine = along * along + sa.func.cos(here) * sa.func.cos(there) * across * across
    return 2 * EARTH_RADIUS * sa.func.asin(sa.func.sqrt(sa.func.least(1.0, haversine)))


def _name(session: Session) -> sa.SQLColumnExpression[Any]:
    return _bytewise(session, ImageRow.name)


def _bytewise(session: Session, column: Any) -> sa.SQLColumnExpression[Any]:
    """A column, compared byte by byte: as SQLite does by itself, and PostgreSQL when it is told."""
    compared: sa.SQLColumnExpression[Any] = column
    return compared.collate("C") if session.get_bind().dialect.name == "postgresql" else compared


def _is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"
