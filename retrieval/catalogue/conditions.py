"""Conditions of SQL that photos pass a filter (see `retrieval.catalogue.filters`)."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.text import printable
from retrieval.catalogue.database import dialect_of
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import (
    COLUMNS,
    TAG,
    column_key,
    folded_key,
    has_such,
    has_value,
    lacks_tags,
)
from retrieval.catalogue.schema import IMPORTED, INDEXED, AlbumPhotoRow, HiddenRow, ImageRow, MetadataRow
from retrieval.catalogue.words import have_words
from retrieval.metadata.columns import ORDER
from retrieval.metadata.dates import after, beginnings
from retrieval.metadata.fields import FIELDS, Field
from retrieval.metadata.kinds import MOST_STARS
from retrieval.metadata.pages import read_pages
from retrieval.metadata.places import EARTH_RADIUS, Near

LONGEST_FILTER = 1024
"""Characters; no name has more."""


def is_indexed(wanted: PhotoFilter) -> sa.ColumnElement[bool]:
    """Condition that a photo is indexed, in a form that an index can answer: only indexed photos have names.

    The index of numbers includes the states; those of names, dates, cameras and places are limited to photos with
    names.
    """
    by_number = replace(wanted, words="", tags=(), without_tags=(), where=(), album=None)
    return ImageRow.name.is_not(None) if by_number else ImageRow.state == INDEXED


def passing_conditions(session: Session, wanted: PhotoFilter, by_name: bool = False) -> list[sa.ColumnElement[bool]]:
    """Conditions on the row of an indexed photo; `by_name`: see `have_words`."""
    name, folder = wanted.name, wanted.folder.strip("/")
    if any(len(text) > LONGEST_FILTER or printable(text) != text for text in (name, folder)):
        return [sa.false()]  # no such name is stored, and databases reject it
    passing: list[sa.ColumnElement[bool]] = []
    if folder:
        # From "folder/" to the character after the slash: a range of the index, without wildcards.
        passing += [ImageRow.name >= f"{folder}/", ImageRow.name < f"{folder}0"]
    if name:
        passing += [ImageRow.name.is_not(None), _contains(session, ImageRow.name, name)]
    for row in FIELDS.values():
        if row.key != TAG and (chosen := getattr(wanted, row.name, None)):
            passing += _of_field(session, row, chosen)
    if wanted.words:
        passing += have_words(session, wanted.words, by_name)
    if wanted.pages:
        passing.append(_page_number().between(*read_pages(wanted.pages)))
    passing += _taken(wanted.taken_from, wanted.taken_to)
    passing += [has_value(TAG, tag) for tag in wanted.tags]
    if wanted.without_tags:
        passing.append(lacks_tags(session, wanted.without_tags))
    # A column with the name of a field may be stored as text, if another column was for the field.
    for called, value in wanted.where:
        passing.append(sa.or_(*(has_value(key, value) for key in sorted({called, column_key(called)}))))
    if wanted.near is not None:
        passing += _near(session, wanted.near)
    if wanted.within is not None:
        passing.append(ImageRow.latitude.between(wanted.within.south, wanted.within.north))
        passing.append(ImageRow.longitude.between(wanted.within.west, wanted.within.east))
    if wanted.album is not None:
        passing.append(ImageRow.number.in_(sa.select(AlbumPhotoRow.number).where(AlbumPhotoRow.album == wanted.album)))
    hidden = sa.select(HiddenRow.number)
    if wanted.hidden:
        passing.append(ImageRow.number.in_(hidden))
    elif wanted.hidden is False and session.scalar(hidden.limit(1)) is not None:
        passing.append(ImageRow.number.not_in(hidden))
    return passing


def _page_number() -> sa.ColumnElement[int]:
    """The number of a page in its book: by its column, else by its path (see `retrieval.metadata.pages`), else 1."""
    one = sa.orm.aliased(MetadataRow)
    own = sa.select(_number_at_end(one.value, "")).where(
        one.number == ImageRow.number, one.source == IMPORTED, one.key == folded_key(ORDER), one.position == 0
    )
    return sa.func.coalesce(own.scalar_subquery(), _number_at_end(ImageRow.path, "%#"), 1)


def _number_at_end(text: sa.SQLColumnExpression[str], before: str) -> sa.ColumnElement[int]:
    """The whole number at the end of a text, after a part that is like `before`; NULL without one."""
    head = sa.func.rtrim(text, "0123456789")
    digits = sa.func.substr(text, sa.func.length(head) + 1)
    return sa.case((head.like(before) & sa.func.length(digits).between(1, 7), sa.cast(digits, sa.Integer)))


def _of_field(session: Session, row: Field, wanted: Any) -> list[sa.ColumnElement[bool]]:
    """Condition on a field: a part of a text, the least number of stars, or a mark that is set."""
    if isinstance(wanted, str) and row.key in COLUMNS:
        column = getattr(ImageRow, row.key)
        return [column.is_not(None), _contains(session, column, wanted)]
    if isinstance(wanted, str):
        return [has_such(row.key, lambda value: _contains(session, value, wanted))]
    values = [wanted] if isinstance(wanted, bool) else range(wanted, MOST_STARS + 1)
    return [has_value(row.key, *(text for value in values for text in row.kind.write(value)))]


def _contains(session: Session, column: sa.SQLColumnExpression[Any], part: str) -> sa.ColumnElement[bool]:
    if dialect_of(session) == "sqlite" and not part.isascii():
        # SQLite's own functions fold only ASCII letters: `casefold` is Python's (see `database`).
        return sa.func.casefold(column).contains(part.casefold(), autoescape=True)
    if dialect_of(session) == "postgresql":
        column = column.collate("default")  # in byte order only ASCII letters would have a lower case
    return column.icontains(part, autoescape=True)


def _taken(first: str, last: str) -> list[sa.ColumnElement[bool]]:
    """Condition that a photo may have been taken in a period, which contains its date or overlaps an incomplete one."""
    passing: list[sa.ColumnElement[bool]] = []
    if first:
        begun = beginnings(first)
        # All of them are in one range of an index.
        passing += [ImageRow.taken >= min([first, *begun]), sa.or_(ImageRow.taken >= first, ImageRow.taken.in_(begun))]
    if last:
        passing.append(ImageRow.taken < after(last))
    return passing


def _near(session: Session, near: Near) -> list[sa.ColumnElement[bool]]:
    """Condition that a photo was taken near a place: in a box, for the index, and within the distance."""
    ranges = [ImageRow.longitude.between(*one) for one in near.longitudes]
    return [
        ImageRow.latitude.between(*near.latitudes),
        sa.or_(*ranges),
        _distance(session, near) <= near.kilometres,
    ]


def _distance(session: Session, near: Near) -> sa.ColumnElement[float]:
    """Kilometres from a place to a photo's."""
    if dialect_of(session) == "sqlite":
        # Python's, as SQLite may be built without sines (see `database`).
        return sa.func.great_circle_km(near.latitude, near.longitude, ImageRow.latitude, ImageRow.longitude)
    here, there = sa.func.radians(near.latitude), sa.func.radians(ImageRow.latitude)
    across = sa.func.sin(sa.func.radians(ImageRow.longitude - near.longitude) / 2)
    along = sa.func.sin((there - here) / 2)
    haversine = along * along + sa.func.cos(here) * sa.func.cos(there) * across * across
    return 2 * EARTH_RADIUS * sa.func.asin(sa.func.sqrt(sa.func.least(1.0, haversine)))
