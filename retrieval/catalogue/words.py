"""Full-text index: photos with words of a given prefix in names, fields, imported columns, dates and albums.

The words of each photo are in one table, an FTS5 table of SQLite or a `tsvector` of PostgreSQL, and are written in the
transaction that changes their source. A catalogue of an earlier version has no such table until a photo is written; up
to then queries read everything, in seconds rather than milliseconds. Names of albums are few, and are matched at query
time.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.database import chunks, dialect_of
from retrieval.catalogue.schema import IMPORTED, AlbumPhotoRow, AlbumRow, ImageRow, MetadataRow
from retrieval.catalogue.sqlite.full_text import MADE_BY, WORDS
from retrieval.metadata.fields import FIELDS
from retrieval.metadata.words import months_meant, words_of, words_of_date

MOST_WORDS = 2000  # of a photo; a caption of 10,000 characters has fewer


class _TypeByName(sa.types.UserDefinedType[str]):
    """A type of PostgreSQL by its name: to import those of SQLAlchemy takes every command a twentieth of a second."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        """The name."""
        return self.name


_SQLITE = sa.table(WORDS, sa.column("rowid", sa.Integer), sa.column("text", sa.Text))
_SERVER = sa.table(WORDS, sa.column("number", sa.BigInteger), sa.column("words", _TypeByName("TSVECTOR")))
_MADE_BY = {
    "sqlite": (MADE_BY,),
    "postgresql": (
        f"CREATE TABLE {WORDS} (number BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
        f"CREATE INDEX ix_{WORDS} ON {WORDS} USING gin (words) WITH (fastupdate = off)",
    ),
}
_UNSAID = frozenset(key for key, row in FIELDS.items() if row.kind.name not in ("text", "tags", "date"))
_DATES = frozenset(key for key, row in FIELDS.items() if row.kind.name == "date")
_TAGS = frozenset(key for key, row in FIELDS.items() if row.kind.name == "tags")


def has_words(session: Session) -> bool:
    """Whether the catalogue has the table of words."""
    dialect = dialect_of(session)
    if dialect == "sqlite":
        there = sa.text("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = :name")
    elif dialect == "postgresql":
        there = sa.text("SELECT 1 WHERE to_regclass(:name) IS NOT NULL")
    else:
        return False
    return session.scalar(there, {"name": WORDS}) is not None


def lacks_words(session: Session) -> bool:
    """Whether the catalogue has photos, and lacks a table of words that its database can hold."""
    return not has_words(session) and _has_full_text(session) and bool(_every_photo(session, 1))


def write_words(session: Session, numbers: Sequence[int]) -> None:
    """Replace the stored words of indexed photos by the current ones; at the first call, of all photos."""
    session.flush()
    if not numbers:
        return
    if not has_words(session):
        make_words(session)
        return
    table, key = _table(session)
    for some in chunks([int(number) for number in numbers]):
        session.execute(sa.delete(table).where(key.in_(some)))
        _insert(session, _words_of_photos(session, some))


def make_words(session: Session) -> None:
    """Rebuild the table of words, with those of all photos, if the database supports full text."""
    session.flush()
    if not has_words(session):
        if not _has_full_text(session):
            return
        for statement in _MADE_BY[dialect_of(session)]:
            session.execute(sa.text(statement))
    else:
        session.execute(sa.delete(_table(session)[0]))
    for some in chunks(_every_photo(session)):
        _insert(session, _words_of_photos(session, some))


def words_are_right(session: Session) -> bool:
    """Whether the table of words, if there is one, has those of all photos as they are now, and no others."""
    if not has_words(session):
        return True
    table, key = _table(session)
    kept = table.c.text if table is _SQLITE else sa.func.tsvector_to_array(table.c.words)
    numbers = _every_photo(session)
    for some in chunks(numbers):
        there = {number: words for number, words in session.execute(sa.select(key, kept).where(key.in_(some)))}
        for number, words in _words_of_photos(session, some):
            found = there.get(number, "\0")
            if set(found.split() if isinstance(found, str) else found) != set(words):
                return False
    return session.scalar(sa.select(sa.func.count()).select_from(table)) == len(numbers)


def numbers_with_words(session: Session, text: str) -> sa.Select[Any] | None:
    """Numbers of the indexed photos that `have_words`, as a query of the table of words alone, or None."""
    wanted = list(dict.fromkeys(words_of(text)))
    if not wanted or not has_words(session) or any(_albums_named(session, wanted).values()):
        return None
    return _having(session, {word: [word, *months_meant(word)] for word in wanted})


def have_words(session: Session, text: str, by_name: bool = False) -> list[sa.ColumnElement[bool]]:
    """Conditions on `ImageRow` that a photo has all words of a text, as prefixes.

    The name of a month matches photos taken in it, and the name of an album all its photos. With `by_name`, photos are
    scanned in the order of their names, as many have the words: SQLite cannot know that, and would sort them all.
    """
    wanted = list(dict.fromkeys(words_of(text)))
    if not wanted:
        return [sa.false()]
    meant = {word: [word, *months_meant(word)] for word in wanted}
    albums = _albums_named(session, wanted)
    if not has_words(session):
        return [_among(session, _found_by_reading(session, meant, albums))]
    number: sa.SQLColumnExpression[int] = ImageRow.number
    if by_name and dialect_of(session) == "sqlite":
        number = ImageRow.number + 0  # an expression without index
    inside = {word: meant[word] for word in wanted if not albums[word]}
    passing: list[sa.ColumnElement[bool]] = [number.in_(_having(session, inside))] if inside else []
    for word in wanted:
        if albums[word]:
            in_album = sa.select(AlbumPhotoRow.number).where(AlbumPhotoRow.album.in_(albums[word]))
            passing.append(sa.or_(number.in_(_having(session, {word: meant[word]})), number.in_(in_album)))
    return passing


def _having(session: Session, meant: Mapping[str, Sequence[str]]) -> sa.Select[Any]:
    """Numbers of the photos that have each of some words, or one of its meanings, of only letters and digits."""
    if dialect_of(session) == "sqlite":
        expression = " AND ".join("(" + " OR ".join(f'"{one}"*' for one in some) + ")" for some in meant.values())
        matches = sa.literal_column(WORDS).op("MATCH")(expression)
        return sa.select(_SQLITE.c.rowid).where(matches)
    expression = " & ".join("(" + " | ".join(f"'{one}':*" for one in some) + ")" for some in meant.values())
    condition = _SERVER.c.words.op("@@")(sa.cast(sa.literal(expression), _TypeByName("TSQUERY")))
    return sa.select(_SERVER.c.number).where(condition)


def _albums_named(session: Session, wanted: Sequence[str]) -> dict[str, list[int]]:
    """Ids of the albums whose names have a word as a prefix, by the word."""
    albums = session.execute(sa.select(AlbumRow.id, AlbumRow.name))
    named = [(album, words_of(name)) for album, name in albums if album is not None]
    return {word: [album for album, words in named if any(one.startswith(word) for one in words)] for word in wanted}


def _found_by_reading(
    session: Session, meant: Mapping[str, Sequence[str]], albums: Mapping[str, Sequence[int]]
) -> list[int]:
    """Numbers of the photos that have all words, by reading their rows."""
    inside = {
        word: set(session.scalars(sa.select(AlbumPhotoRow.number).where(AlbumPhotoRow.album.in_(some))))
        for word, some in albums.items()
    }
    return [
        number
        for some in chunks(_every_photo(session))
        for number, words in _words_of_photos(session, some)
        if all(
            number in inside[word] or any(one.startswith(tuple(forms)) for one in words)
            for word, forms in meant.items()
        )
    ]


def _among(session: Session, numbers: Sequence[int]) -> sa.ColumnElement[bool]:
    """Condition that a photo is one of many, passed as one value, as a statement takes only a few thousand."""
    if dialect_of(session) == "sqlite":
        rows = sa.func.json_each(json.dumps(numbers)).table_valued("value")
        return ImageRow.number.in_(sa.select(rows.c.value))
    listed = sa.cast(sa.literal(list(numbers), sa.ARRAY(sa.BigInteger)), sa.ARRAY(sa.BigInteger))
    return ImageRow.number == sa.any_(listed)


def _every_photo(session: Session, limit: int | None = None) -> list[int]:
    """Numbers of all indexed photos, or of the first ones; only these have names."""
    query = sa.select(ImageRow.number).where(ImageRow.name.is_not(None)).order_by(ImageRow.number)
    return list(session.scalars(query.limit(limit)))


def _words_of_photos(session: Session, numbers: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    """Numbers of those of some photos that are indexed, and the different words of each."""
    names = sa.select(ImageRow.number, ImageRow.name).where(ImageRow.number.in_(numbers), ImageRow.name.is_not(None))
    by_photo: dict[int, dict[str, list[str]]] = {number: {} for number, _ in session.execute(names)}
    columns = (MetadataRow.number, MetadataRow.source, MetadataRow.key, MetadataRow.value)
    rows = sa.select(*columns).where(MetadataRow.number.in_(list(by_photo)))
    imported = set()
    # Imported values come last, and replace those of the file, except tags, which are combined.
    for number, source, key, value in session.execute(
        rows.order_by(MetadataRow.source == IMPORTED, MetadataRow.number, MetadataRow.key, MetadataRow.position)
    ):
        if source == IMPORTED and key not in _TAGS and (number, key) not in imported:
            imported.add((number, key))
            by_photo[number].pop(key, None)
        by_photo[number].setdefault(key, []).append(value)
    for number, name in session.execute(names):
        words = dict.fromkeys(words_of(name or ""))
        for key, values in by_photo[number].items():
            if key not in _UNSAID:
                is_date = FIELDS[key].kind.read if key in _DATES else lambda _: None
                for value in values:
                    words.update(dict.fromkeys(words_of_date(value) if is_date(value) else words_of(value)))
        yield number, list(words)[:MOST_WORDS]


def _insert(session: Session, words: Iterable[tuple[int, list[str]]]) -> None:
    if dialect_of(session) == "sqlite":
        statement = sa.text(f"INSERT INTO {WORDS} (rowid, text) VALUES (:number, :words)")
        rows: list[dict[str, Any]] = [{"number": number, "words": " ".join(some)} for number, some in words]
    else:
        statement = sa.text(f"INSERT INTO {WORDS} (number, words) VALUES (:number, array_to_tsvector(:words))")
        rows = [{"number": number, "words": some} for number, some in words]
    if rows:
        session.execute(statement, rows)


def _table(session: Session) -> tuple[sa.TableClause, sa.ColumnClause[int]]:
    """The table of words, and its column of the photos' numbers."""
    return (_SQLITE, _SQLITE.c.rowid) if dialect_of(session) == "sqlite" else (_SERVER, _SERVER.c.number)


def _has_full_text(session: Session) -> bool:
    """Whether the database supports full text: SQLite may be built without."""
    dialect = dialect_of(session)
    if dialect == "sqlite":
        return session.scalar(sa.text("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'")) is not None
    return dialect == "postgresql"
