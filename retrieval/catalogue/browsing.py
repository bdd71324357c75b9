"""Pages of a catalogue: its photos by name, filtered (see `retrieval.catalogue.filters`), in SQL.

A photo's name is its path below the indexed folder, with slashes; its folder is the part before the last slash. Also a
quick summary of a catalogue without opening it.
"""

import bisect
import contextlib
import sqlite3
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from index.errors import CairnError
from index.text import printable
from retrieval.catalogue.database import chunks, connect_for_reading
from retrieval.catalogue.filters import EVERY, SHOWN, PhotoFilter
from retrieval.catalogue.metadata_store import (
    COLUMNS,
    TAG,
    column_key,
    counts_of_values,
    folded_key,
    has_any_tag,
    has_such,
    has_value,
    lacks_tags,
)
from retrieval.catalogue.photos import count_indexed
from retrieval.catalogue.schema import IMPORTED, INDEXED, AlbumPhotoRow, HiddenRow, ImageRow, MetadataRow
from retrieval.catalogue.settings import revision_of
from retrieval.catalogue.words import have_words, numbers_with_words
from retrieval.metadata.columns import ORDER
from retrieval.metadata.dates import after, beginnings
from retrieval.metadata.fields import FIELDS, Field
from retrieval.metadata.kinds import MOST_STARS
from retrieval.metadata.pages import read_pages
from retrieval.metadata.places import EARTH_RADIUS, Near

NAME, NEWEST, OLDEST, ADDED, ALBUM = "name", "newest", "oldest", "added", "album"
"""Orders of photos: by name; by when they were taken, undated ones last; by when they were added, the last first; as in
the album that they are of."""
LONGEST_FILTER = 1024
"""Characters; no name has more."""
_MOST_FILTERS = 64  # filters whose pages are cached
_MOST_ENDS = 256  # ends of pages cached for each


@dataclass
class _Passing:
    """Cached facts on the photos that pass a filter, at one revision."""

    total: int
    ends: list[tuple[int, str]] = field(default_factory=lambda: [(0, "")])  # photos up to a name, and that name

    def nearest(self, offset: int) -> tuple[int, str]:
        """The last known end at or before an offset."""
        return self.ends[bisect.bisect_right(self.ends, offset, key=lambda end: end[0]) - 1]

    def add(self, offset: int, name: str) -> None:
        """Store the end of a page."""
        place = bisect.bisect_left(self.ends, offset, key=lambda end: end[0])
        if place == len(self.ends) or self.ends[place][0] != offset:
            self.ends.insert(place, (offset, name))
        if len(self.ends) > _MOST_ENDS:
            del self.ends[1::2]


class Pages:
    """Cache of the numbers of photos that pass recent filters, and of the ends of their pages, of one revision.

    Turning a page then reads only the photos of the next one, and counts none. The cache is bounded and thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._revision = -1
        self._passing: OrderedDict[PhotoFilter, _Passing] = OrderedDict()

    def find(self, revision: int, wanted: PhotoFilter, offset: int) -> tuple[int, tuple[int, str]] | None:
        """Number of photos that pass, and the last known end of a page at or before an offset; None if unknown."""
        with self._lock:
            known = self._passing.get(wanted) if revision == self._revision else None
            return None if known is None else (known.total, known.nearest(offset))

    def keep(self, revision: int, wanted: PhotoFilter, total: int, end: tuple[int, str] | None) -> None:
        """Store the number of photos that pass and the end of a page; drops entries of earlier revisions."""
        with self._lock:
            if revision < self._revision:
                return
            if revision > self._revision:
                self._revision = revision
                self._passing.clear()
            known = self._passing.setdefault(wanted, _Passing(total))
            self._passing.move_to_end(wanted)
            if end is not None:
                known.add(*end)
            if len(self._passing) > _MOST_FILTERS:
                self._passing.popitem(last=False)


def page_of(session: Session, offset: int, limit: int, wanted: PhotoFilter, pages: Pages) -> tuple[int, list[ImageRow]]:
    """One page of indexed photos, by name in byte order.

    Earlier pages are skipped by an index on the names, without reading rows: from the last known end of a page, or from
    the end of all names if that is nearer.

    Parameters
    ----------
    session : Session
    offset : int
        Number of photos before the page.
    limit : int
        Photos on the page, at most.
    wanted : PhotoFilter
    pages : Pages
        Cache.

    Returns
    -------
    total : int
        Photos that pass, on all pages.
    rows : list of ImageRow

    Raises
    ------
    ValueError
        `offset` or `limit` is negative.
    """
    if offset < 0 or limit < 0:
        raise ValueError(f"no page has {limit} images from {offset} on")
    revision = revision_of(session)
    known = pages.find(revision, wanted, offset)
    if known is None:
        known = _count(session, wanted), (0, "")
    total, (start, last) = known
    remaining = total - offset
    rows: list[ImageRow] = []
    if remaining > 0 and limit:
        # If many pass, scanning the names finds a page sooner than finding all.
        by_name = bool(wanted.words) and total**2 > (offset - start + limit) * count_indexed(session)
        passing = passing_conditions(session, wanted, by_name)
        there = sa.select(ImageRow.name).where(ImageRow.name.is_not(None), *passing)
        after_page = remaining - min(limit, remaining)
        if after_page < offset - start:
            there = there.order_by(ImageRow.name.desc()).offset(after_page).limit(remaining - after_page)
        else:
            if start:
                there = there.where(ImageRow.name > last)
            there = there.order_by(ImageRow.name).offset(offset - start).limit(limit)
        names = there.subquery()
        query = sa.select(ImageRow).join(names, ImageRow.name == names.c.name).order_by(ImageRow.name)
        rows = list(session.scalars(query))
    pages.keep(revision, wanted, total, (offset + len(rows), str(rows[-1].name)) if rows else None)
    return total, rows


def page_after(session: Session, name: str, limit: int, wanted: PhotoFilter = SHOWN) -> list[ImageRow]:
    """The first photos after a name ("": from the beginning) that pass a filter, by name.

    Successive pages neither miss nor repeat a photo, even if photos are added and removed meanwhile.
    """
    query = sa.select(ImageRow).where(ImageRow.name > name, *passing_conditions(session, wanted))
    return list(session.scalars(query.order_by(ImageRow.name).limit(limit)))


def numbers_of(session: Session, wanted: PhotoFilter = EVERY) -> NDArray[np.int64]:
    """Numbers of the indexed photos that pass a filter, ascending int64."""
    if (with_words := _with_words_alone(session, wanted)) is not None:
        return np.sort(_columns(session, with_words, np.int64)[0])
    others, having = _without_tags(wanted)
    passing = [_is_indexed(others), *passing_conditions(session, others)]
    numbers = _numbers(session, passing)
    return np.setdiff1d(numbers, _numbers(session, [*passing, *having]), assume_unique=True) if having else numbers


def _numbers(session: Session, passing: list[sa.ColumnElement[bool]]) -> NDArray[np.int64]:
    # Sorted here: with ORDER BY a database would read all rows by number rather than sort the few results.
    (numbers,) = _columns(session, sa.select(ImageRow.number).where(*passing), np.int64)
    return np.sort(numbers)


def _columns(session: Session, query: sa.Select[*tuple[Any, ...]], *kinds: type[np.generic]) -> list[NDArray[Any]]:
    """Results of a query of numbers: an array of the given kind for each column, in the query's order.

    The database concatenates each column to one text: for a hundred thousand rows this takes a third of the time.
    """
    rows = query.subquery()
    columns = [sa.func.aggregate_strings(sa.cast(column, sa.Text), ",") for column in rows.c]
    texts = session.execute(sa.select(*columns)).one()
    return [np.fromstring(text or "", kind, sep=",") for text, kind in zip(texts, kinds, strict=True)]


def shapes_of(session: Session, wanted: PhotoFilter = SHOWN, order: str = NAME) -> NDArray[np.int64]:
    """Number, width and height (pixels; 0: unknown) of the indexed photos that pass a filter, in an order.

    Returns
    -------
    array (N, 3) int64
    """
    query = sa.select(
        ImageRow.number, *(sa.func.coalesce(side, 0).label(side.key) for side in (ImageRow.width, ImageRow.height))
    ).where(ImageRow.name.is_not(None), *passing_conditions(session, wanted))
    return np.stack(_columns(session, query.order_by(*_order(order, wanted)), *3 * [np.int64]), axis=1)


def _order(order: str, wanted: PhotoFilter) -> Sequence[Any]:
    """Columns to order photos by."""
    if order != ALBUM or wanted.album is None:
        return _ORDER_BY[NAME if order == ALBUM else order]()  # type: ignore[no-any-return]
    place = sa.select(AlbumPhotoRow.position).where(AlbumPhotoRow.album == wanted.album)
    return place.where(AlbumPhotoRow.number == ImageRow.number).scalar_subquery(), ImageRow.number


_ORDER_BY: dict[str, Any] = {
    NAME: lambda: (ImageRow.name,),
    NEWEST: lambda: (ImageRow.taken.is_(None), ImageRow.taken.desc(), ImageRow.name),
    OLDEST: lambda: (ImageRow.taken.is_(None), ImageRow.taken, ImageRow.name),
    ADDED: lambda: (ImageRow.date_added.is_(None), ImageRow.date_added.desc(), ImageRow.number.desc()),
}


def months_of(session: Session, wanted: PhotoFilter = SHOWN) -> list[tuple[str, int]]:
    """Months (YYYY-MM, or YYYY; "": no date) of the photos that pass, and their numbers of photos, in order."""
    month = sa.func.substr(ImageRow.taken, 1, 7)
    query = sa.select(month, sa.func.count()).where(ImageRow.name.is_not(None), *passing_conditions(session, wanted))
    return sorted((text or "", int(count)) for text, count in session.execute(query.group_by(month)))


def positions_of(session: Session, wanted: PhotoFilter = SHOWN) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers (N,) and degrees north and east (N, 2) of the photos that pass and have a place, by number."""
    query = sa.select(ImageRow.number, ImageRow.latitude, ImageRow.longitude).where(
        ImageRow.name.is_not(None), ImageRow.latitude.is_not(None), *passing_conditions(session, wanted)
    )
    numbers, *at = _columns(session, query, np.int64, np.float64, np.float64)
    order = np.argsort(numbers)
    return numbers[order], np.stack(at, axis=1)[order]


def values_of(session: Session, field: str) -> list[tuple[str, int]]:
    """Values of a field, by its key, and their numbers of photos that are not hidden, the most frequent first."""
    if field in COLUMNS:
        counted = _counted(session, getattr(ImageRow, field), ImageRow.name.is_not(None))
    else:
        hidden = sa.select(HiddenRow.number)
        shown = sa.and_(ImageRow.name.is_not(None), ImageRow.number.not_in(hidden))
        counted = Counter(dict(counts_of_values(session, field, shown)))
    values = [one for one in counted.items() if FIELDS[field].kind.read(one[0]) is not None]
    return sorted(values, key=lambda one: (-one[1], one[0]))


def _counted(session: Session, column: sa.SQLColumnExpression[Any], *which: sa.ColumnElement[bool]) -> Counter[str]:
    """Number of photos of each value of a column, without hidden ones."""
    query = sa.select(column, sa.func.count()).where(column.is_not(None), *which).group_by(column)
    counted = Counter({str(value): int(count) for value, count in session.execute(query)})
    # All are counted in an index; the few hidden ones are subtracted.
    hidden = session.execute(query.where(ImageRow.number.in_(sa.select(HiddenRow.number))))
    return counted - Counter({str(value): int(count) for value, count in hidden})


def rows_there(session: Session, numbers: Sequence[int]) -> list[ImageRow]:
    """Those of some photos that are indexed, in the order of the numbers."""
    query = sa.select(ImageRow).where(ImageRow.name.is_not(None))
    rows = {
        row.number: row
        for chunk in chunks(sorted(set(numbers)))
        for row in session.scalars(query.where(ImageRow.number.in_(chunk)))
    }
    return [rows[number] for number in numbers if number in rows]


def rows_of_content(session: Session, beginning: str) -> list[ImageRow]:
    """Indexed photos whose SHA-256 begins with these hexadecimal digits, by number."""
    begins = (ImageRow.sha256 >= beginning, ImageRow.sha256 < f"{beginning}g")  # g follows f
    query = sa.select(ImageRow).where(ImageRow.name.is_not(None), *begins)
    return list(session.scalars(query.order_by(ImageRow.number)))


def _count(session: Session, wanted: PhotoFilter) -> int:
    """How many photos pass."""
    if (with_words := _with_words_alone(session, wanted)) is not None:
        return int(session.scalar(sa.select(sa.func.count()).select_from(with_words.subquery())) or 0)
    others, having = _without_tags(wanted)
    passing = [_is_indexed(others), *passing_conditions(session, others)]
    query = sa.select(sa.func.count()).select_from(ImageRow).where(*passing)
    count = int(session.scalar(query) or 0) if len(passing) > 1 else count_indexed(session)
    return count - int(session.scalar(query.where(*having)) or 0) if having else count


def _with_words_alone(session: Session, wanted: PhotoFilter) -> sa.Select[Any] | None:
    """Numbers of the photos that pass a filter with only words, as a query; None for another filter."""
    if not wanted.words or replace(wanted, words="") not in (SHOWN, EVERY):
        return None
    numbers = numbers_with_words(session, wanted.words)
    hidden = sa.select(HiddenRow.number)
    if numbers is None or wanted.hidden is None or session.scalar(hidden.limit(1)) is None:
        return numbers
    (number,) = numbers.selected_columns
    return numbers.where(number.not_in(hidden))


def _without_tags(wanted: PhotoFilter) -> tuple[PhotoFilter, list[sa.ColumnElement[bool]]]:
    """A filter without its excluded tags, and conditions for photos that have one of these.

    An index finds those photos, which are subtracted from the others; checking all photos for a tag is slow.
    """
    having = [has_any_tag(wanted.without_tags)] if wanted.without_tags else []
    return replace(wanted, without_tags=()), having


def folders_of(session: Session) -> list[tuple[str, int]]:
    """Folders of the names of indexed photos ("" for names without one), in order, and their numbers of photos.

    Photos in subfolders and hidden photos do not count.
    """
    return sorted(_counted(session, ImageRow.folder).items())


def _is_indexed(wanted: PhotoFilter) -> sa.ColumnElement[bool]:
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
        if row.key != TAG and (asked := getattr(wanted, row.name, None)):
            passing += _of_field(session, row, asked)
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
    if _is_sqlite(session) and not part.isascii():
        # SQLite's own functions fold only ASCII letters: `casefold` is Python's (see `database`).
        return sa.func.casefold(column).contains(part.casefold(), autoescape=True)
    if session.get_bind().dialect.name == "postgresql":
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
    if _is_sqlite(session):
        # Python's, as SQLite may be built without sines (see `database`).
        return sa.func.great_circle_km(near.latitude, near.longitude, ImageRow.latitude, ImageRow.longitude)
    here, there = sa.func.radians(near.latitude), sa.func.radians(ImageRow.latitude)
    across = sa.func.sin(sa.func.radians(ImageRow.longitude - near.longitude) / 2)
    along = sa.func.sin((there - here) / 2)
    haversine = along * along + sa.func.cos(here) * sa.func.cos(there) * across * across
    return 2 * EARTH_RADIUS * sa.func.asin(sa.func.sqrt(sa.func.least(1.0, haversine)))


def _is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"


@dataclass(frozen=True)
class CoverPhoto:
    """The cover photo of a collection."""

    number: int
    name: str
    path: str
    sha256: str | None
    width: int | None  # pixels of the upright original
    height: int | None


@dataclass(frozen=True)
class Glance:
    """Quick summary of a catalogue."""

    photos: int
    cover: CoverPhoto | None  # None without photos


def glance(file: Path, chosen: int | None = None) -> Glance:
    """Summarise a catalogue that is an SQLite file, of any version, without opening it: no migration, no checks.

    The cover is the chosen photo, if it exists. Otherwise it is one of the first photos, preferably a wide one.

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
        raise CairnError(
            "The catalogue {file} cannot be read ({error}): run {cairn check}.", file=file, error=error
        ) from None
    return Glance(photos, CoverPhoto(*row) if row else None)
