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
from retrieval.catalogue.conditions import is_indexed, passing_conditions
from retrieval.catalogue.database import chunks, connect_for_reading
from retrieval.catalogue.filters import EVERY, SHOWN, PhotoFilter
from retrieval.catalogue.metadata_store import (
    COLUMNS,
    counts_of_values,
    has_any_tag,
)
from retrieval.catalogue.photos import count_indexed
from retrieval.catalogue.schema import AlbumPhotoRow, HiddenRow, ImageRow
from retrieval.catalogue.settings import revision_of
from retrieval.catalogue.words import numbers_with_words
from retrieval.metadata.fields import FIELDS

NAME, NEWEST, OLDEST, ADDED, ALBUM = "name", "newest", "oldest", "added", "album"
"""Orders of photos: by name; by when they were taken, undated ones last; by when they were added, the last first; as in
the album that they are of."""
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
    """Return the number of photos that pass on all pages, and the rows of one page, by name in byte order.

    Earlier pages are skipped by an index on the names: from the last known end of a page, or from the end of all names.
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
    """The first photos after a name ("": all) that pass a filter, by name: pages never repeat or miss a photo."""
    query = sa.select(ImageRow).where(ImageRow.name > name, *passing_conditions(session, wanted))
    return list(session.scalars(query.order_by(ImageRow.name).limit(limit)))


def numbers_of(session: Session, wanted: PhotoFilter = EVERY) -> NDArray[np.int64]:
    """Numbers of the indexed photos that pass a filter, ascending int64."""
    if (with_words := _with_words_alone(session, wanted)) is not None:
        return np.sort(_columns(session, with_words, np.int64)[0])
    others, having = _without_tags(wanted)
    passing = [is_indexed(others), *passing_conditions(session, others)]
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
    """Return number, width and height (0: unknown), (N, 3), of indexed photos that pass a filter, in an order."""
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


def values_of(session: Session, field: str, wanted: PhotoFilter = SHOWN) -> list[tuple[str, int]]:
    """Values of a field, by its key, and their numbers of photos that pass a filter, the most frequent first."""
    if field in COLUMNS:
        counted = _counted(session, getattr(ImageRow, field), wanted, ImageRow.name.is_not(None))
    else:
        passing = sa.and_(ImageRow.name.is_not(None), *passing_conditions(session, wanted))
        counted = Counter(dict(counts_of_values(session, field, passing)))
    values = [one for one in counted.items() if FIELDS[field].kind.read(one[0]) is not None]
    return sorted(values, key=lambda one: (-one[1], one[0]))


def _counted(
    session: Session, column: sa.SQLColumnExpression[Any], wanted: PhotoFilter, *which: sa.ColumnElement[bool]
) -> Counter[str]:
    """Number of the photos that pass a filter of each value of a column."""
    query = sa.select(column, sa.func.count()).where(column.is_not(None), *which).group_by(column)
    if wanted != SHOWN:
        query = query.where(ImageRow.name.is_not(None), *passing_conditions(session, wanted))
        return Counter({str(value): int(count) for value, count in session.execute(query)})
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
    if (with_words := _with_words_alone(session, wanted)) is not None:
        return int(session.scalar(sa.select(sa.func.count()).select_from(with_words.subquery())) or 0)
    others, having = _without_tags(wanted)
    passing = [is_indexed(others), *passing_conditions(session, others)]
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


def folders_of(session: Session, wanted: PhotoFilter = SHOWN) -> list[tuple[str, int]]:
    """Folders of names of indexed photos, in order, and numbers of photos in them that pass, without subfolders."""
    return sorted(_counted(session, ImageRow.folder, wanted).items())


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
