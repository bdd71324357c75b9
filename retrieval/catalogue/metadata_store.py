"""Metadata in the catalogue: what files say and what was imported, and of both what counts.

Both are kept as rows, each value under its key. What was imported wins over what the file says, key by key; tags of
both count together. What counts of the fields that `ImageRow` has a column for is in the photo's own row too, for
filters and pages.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.database import chunks
from retrieval.catalogue.headers import field_of
from retrieval.catalogue.schema import (
    FROM_FILE,
    IMPORTED,
    INDEXED,
    REMOVED,
    HiddenRow,
    ImageRow,
    MetadataRow,
    Setting,
    value_hash_of,
)
from retrieval.catalogue.words import make_words, write_words
from retrieval.metadata.fields import FIELDS, Metadata
from retrieval.metadata.text import LONGEST_KEY as LONGEST_KEY
from retrieval.metadata.text import LONGEST_VALUE as LONGEST_VALUE
from retrieval.metadata.text import clean

TAG = "tag"
LABELS_KEY = "metadata.labels"
"""Setting of the catalogue: how keys are written, JSON by key."""

_SPELLINGS = 100  # of a tag that are looked at, at most

_IMAGES: Any = ImageRow.__table__
COLUMNS = {key: row.name for key, row in FIELDS.items() if key in _IMAGES.c}
"""Keys that the photo's own row holds too, and what they are called in Python."""
_ROWS: Any = MetadataRow.__table__
_BULK: Mapping[str, Any] = {"synchronize_session": False}


@dataclass(frozen=True)
class PhotoMetadata(Metadata):
    """What counts of a photo."""

    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by key: what else was imported
    imported: frozenset[str] = frozenset()  # keys with imported metadata


def column_key(name: str) -> str:
    """The key that a column of a table, or a condition, means: in lower case, and one for what has several names.

    >>> column_key(" Keywords "), column_key("Archive No."), column_key("lat"), column_key("Aufnahme-Datum")
    ('tag', 'archive no.', 'latitude', 'taken')
    """
    key = folded_key(name)
    return field_of(key) or key


def folded_key(name: str) -> str:
    """The key under which a column is kept that is not understood: its name in lower case."""
    return clean(clean(name, LONGEST_KEY).casefold(), LONGEST_KEY)


def store_metadata(session: Session, found: Sequence[tuple[int, Metadata]]) -> None:
    """Keep what the files of photos say, in place of what they said before; photos that are not indexed are left out.

    Parameters
    ----------
    session : Session
        A transaction that writes, in which the photos are there.
    found : sequence of (int, Metadata)
        Image numbers, each once, and what was read.
    """
    for chunk in chunks(found):
        there = _indexed(session, [number for number, _ in chunk])
        earlier = (MetadataRow.number.in_(there), MetadataRow.source == FROM_FILE)
        session.execute(sa.delete(MetadataRow).where(*earlier), execution_options=_BULK)
        read = dict(chunk)
        insert_metadata(session, [(number, read[number]) for number in there])
        _write_counting(session, there)


def insert_metadata(session: Session, found: Sequence[tuple[int, Metadata]]) -> None:
    """Keep the metadata of photos' files that are not yet kept; `counting_columns` are to be written too."""
    for chunk in chunks(found):
        rows = [row for number, one in chunk for row in _rows(number, FROM_FILE, _values(one).items())]
        if rows:
            session.execute(sa.insert(_ROWS), rows)


def counting_columns(metadata: Metadata) -> dict[str, Any]:
    """What the row of a photo says of it if nothing was imported for it, by column."""
    return {key: getattr(metadata, name) for key, name in COLUMNS.items()}


def import_values(
    session: Session,
    values: Mapping[int, Mapping[str, Sequence[str]]],
    *,
    replace: bool = False,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Keep imported values of photos; photos that are not indexed are left out.

    Parameters
    ----------
    session : Session
        A transaction that writes.
    values : mapping of int to mapping of str to sequence of str
        By image number, then by key: what takes the place of what was imported for that key. Clean, as
        `retrieval.catalogue.tables.importing` gives them; the value of a number is written so that `float` reads it.
    replace : bool
        Forget first what was imported earlier, of all photos.
    labels : mapping of str to str, optional
        By key: how it is written if that is not as the key itself, as columns of tables keep their case.
    """
    _write_labels(session, labels or {}, forget=replace)
    if replace:
        imported = sa.select(MetadataRow.number).where(_is_imported()).distinct()
        touched = list(session.scalars(imported))
        session.execute(sa.delete(MetadataRow).where(MetadataRow.source == IMPORTED), execution_options=_BULK)
        for chunk in chunks(touched):
            _write_counting(session, chunk)
    for chunk in chunks(list(values)):
        there = _indexed(session, chunk)
        if not replace:
            of_key: dict[str, list[int]] = {}
            for number in there:
                for key in values[number]:
                    of_key.setdefault(key, []).append(number)
            for key, numbers in of_key.items():
                earlier = (MetadataRow.number.in_(numbers), MetadataRow.source == IMPORTED, MetadataRow.key == key)
                session.execute(sa.delete(MetadataRow).where(*earlier), execution_options=_BULK)
        rows = [row for number in there for row in _rows(number, IMPORTED, values[number].items())]
        if rows:
            session.execute(sa.insert(_ROWS), rows)
        _write_counting(session, there)


def add_tag(session: Session, numbers: Sequence[int], tag: str) -> None:
    """Add a tag to photos, ignoring case; what is not indexed is left out."""
    lacking: dict[int, dict[str, list[str]]] = {}
    for number, values in values_by_number(session, numbers, [TAG]).items():
        imported = values.get((IMPORTED, TAG), [])
        if tag.casefold() not in {one.casefold() for one in (*imported, *values.get((FROM_FILE, TAG), []))}:
            lacking[number] = {TAG: [*imported, tag]}
    import_values(session, lacking)


def tidy_metadata(session: Session) -> None:
    """Forget metadata of images that are not there, and write again what counts of all others, and all words."""
    gone = MetadataRow.number.not_in(sa.select(ImageRow.number))
    session.execute(sa.delete(MetadataRow).where(gone), execution_options=_BULK)
    _write_columns(session, list(session.scalars(sa.select(MetadataRow.number).distinct())))
    make_words(session)


def copy_imported(session: Session, old_number: int, new_number: int) -> None:
    """Give an image what was imported for another: a photo that has changed keeps it.

    Call it when the new image's row, and what its file says, are written.
    """
    columns = [column.key for column in _ROWS.columns]
    taken = [sa.literal(new_number).label(key) if key == "number" else _ROWS.c[key] for key in columns]
    earlier = sa.select(*taken).where(_ROWS.c.number == old_number, _ROWS.c.source == IMPORTED)
    if session.execute(earlier.limit(1)).first() is None:
        return
    session.execute(sa.insert(_ROWS).from_select(columns, earlier))
    _write_counting(session, [new_number])


def find_tombstones(session: Session, images: Iterable[ImageRow], others: sa.Select[Any]) -> dict[int, int]:
    """Removed images that values were imported for, by the numbers of images that show the same or are of their path.

    `others` are numbers of images that count as well: something else is known of them.

    Of several the one that was added last counts, and of a content rather than of a path.
    """
    images = list(images)
    numbers: dict[Any, int] = {}
    imported = sa.select(MetadataRow.number).where(_is_imported())
    query = sa.select(ImageRow.number, ImageRow.path, ImageRow.sha256).order_by(ImageRow.number)
    query = query.where(ImageRow.state == REMOVED, ImageRow.number.in_(imported.union_all(others)))
    for chunk in chunks(images):
        for number, path, _ in session.execute(query.where(ImageRow.path_hash.in_([one.path_hash for one in chunk]))):
            numbers["path", path] = number
        contents = [one.sha256 for one in chunk if one.sha256 is not None]
        for number, _, content in session.execute(query.where(ImageRow.sha256.in_(contents))):
            numbers["content", content] = number
    found = {one.number: numbers.get(("content", one.sha256), numbers.get(("path", one.path))) for one in images}
    return {number: tombstone for number, tombstone in found.items() if tombstone is not None}


def metadata_of(session: Session, numbers: Sequence[int]) -> dict[int, PhotoMetadata]:
    """What counts of each of some photos: what was imported, else what its file says, tags of both.

    Nothing of one that has no metadata, or is not there.
    """
    labels = key_labels(session)
    return {number: _counting(values, labels) for number, values in values_by_number(session, numbers, None).items()}


def key_labels(session: Session) -> dict[str, str]:
    """How keys are written: by key, the name of the column that it was imported from, if that is another."""
    text = session.scalars(sa.select(Setting.value).where(Setting.key == LABELS_KEY)).one_or_none()
    try:
        labels = json.loads(text or "{}")
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, dict):
        return {}  # damaged: the keys themselves are as good
    return {key: label for key, label in labels.items() if isinstance(label, str) and folded_key(label) == key}


def _write_labels(session: Session, labels: Mapping[str, str], forget: bool) -> None:
    """Keep how keys are written, in addition to those of earlier imports or in their place."""
    earlier = key_labels(session)
    kept = {**({} if forget else earlier), **labels}
    kept = {key: label for key, label in sorted(kept.items()) if label != key}
    if kept != earlier:
        session.merge(Setting(key=LABELS_KEY, value=json.dumps(kept)))


def imported_values(session: Session) -> dict[int, dict[str, list[str]]]:
    """What was imported for indexed photos, by number and key as it is written; of others there is nothing."""
    labels = key_labels(session)
    found: dict[int, dict[str, list[str]]] = {}
    columns = (MetadataRow.number, MetadataRow.key, MetadataRow.value)
    query = sa.select(*columns).join(ImageRow, ImageRow.number == MetadataRow.number)
    query = query.where(_is_imported(), ImageRow.name.is_not(None))
    for number, key, value in session.execute(
        query.order_by(MetadataRow.number, MetadataRow.key, MetadataRow.position)
    ):
        found.setdefault(number, {}).setdefault(labels.get(key, key), []).append(value)
    return found


def key_counts(session: Session) -> list[tuple[str, int]]:
    """Keys of the metadata of indexed photos as they are written, in order, and how many photos have each."""
    labels = key_labels(session)
    # Of the values of a key, the first stands for all of a photo.
    counted = _counted(_ROWS.c.key, lambda one: [one.position == 0], lambda one, other: one.key == other.key)
    found = sorted((key, int(count)) for key, count in session.execute(counted))
    return [(labels.get(key, key), count) for key, count in found]


def tag_counts(session: Session, limit: int = 1000) -> list[tuple[str, int]]:
    """Tags of indexed photos, those of the most first, and how many that are not hidden have each.

    A tag with several spellings, in upper and lower case, is spelt as one of its first photos has it.
    """
    counted = _counted(
        _ROWS.c.value_hash,
        lambda one: [one.key == TAG],
        lambda one, other: sa.and_(other.key == TAG, one.value_hash == other.value_hash),
    ).cte("counted")
    kind, photos = counted.c
    # They are counted in an index, without reading a row; and only the texts that may be shown are read.
    most = sa.select(photos.label("photos")).order_by(photos.desc()).limit(limit).subquery()
    first = sa.select(_ROWS.c.value).where(_ROWS.c.key == TAG, _ROWS.c.value_hash == kind).correlate(counted)
    some = first.order_by(_ROWS.c.number).limit(_SPELLINGS).subquery()
    tag = sa.select(sa.func.max(some.c.value)).correlate(counted).scalar_subquery()  # in lower case, where one is
    query = sa.select(tag.label("tag"), photos.label("count"), kind)
    query = query.where(photos >= sa.select(sa.func.min(most.c.photos)).scalar_subquery())
    found = session.execute(query.order_by(sa.desc("count"), sa.asc("tag")).limit(limit)).all()
    # Those that are hidden are few, and taken off.
    rows = sa.select(_ROWS.c.value_hash, sa.func.count(_ROWS.c.number.distinct()))
    named = sa.select(HiddenRow.number).join(_IMAGES, _IMAGES.c.number == HiddenRow.number)
    named = named.where(_IMAGES.c.name.is_not(None))
    rows = rows.where(_ROWS.c.key == TAG, _ROWS.c.number.in_(named)).group_by(_ROWS.c.value_hash)
    hidden = {which: int(count) for which, count in session.execute(rows)}
    left = [(text, int(count) - hidden.get(which, 0)) for text, count, which in found]
    return sorted(((text, count) for text, count in left if count > 0), key=lambda one: -one[1])


def _counted(
    by: sa.Column[Any],
    wanted: Callable[[Any], list[sa.ColumnElement[bool]]],
    same: Callable[[Any, Any], sa.ColumnElement[bool]],
) -> sa.Select[Any]:
    """How many indexed photos have values of each kind: a row for each, with its photos.

    All values are counted once. Of that are taken, as they are few, those of files that were imported as well, and
    those of photos without a name, which failed or were removed.

    Parameters
    ----------
    by : Column
        Of the metadata: what makes a kind.
    wanted : callable
        From the columns of the metadata to the values that are counted; a photo has at most one of each source.
    same : callable
        From the columns of two rows of a photo to whether they are of one kind.
    """
    file, unnamed = _ROWS.alias("of_file"), sa.select(_IMAGES.c.number).where(_IMAGES.c.name.is_(None))
    twice = _ROWS.join(file, sa.and_(file.c.number == _ROWS.c.number, same(_ROWS.c, file.c)))
    both = [*wanted(_ROWS.c), *wanted(file.c), _is_imported(), file.c.source == FROM_FILE]
    parts = []
    for sign, found, conditions in ((1, _ROWS, wanted(_ROWS.c)), (-1, twice, both)):
        of_all = sa.select(by, (sign * sa.func.count()).label("photos")).select_from(found).where(*conditions)
        of_unnamed = sa.select(by, (-sign * sa.func.count()).label("photos")).select_from(found)
        of_unnamed = of_unnamed.where(*conditions, _ROWS.c.number.in_(unnamed))
        parts += [of_all.group_by(by), of_unnamed.group_by(by)]
    kind, count = sa.union_all(*parts).subquery().c
    photos = sa.func.sum(count)
    return sa.select(kind.label("kind"), photos.label("photos")).group_by(kind).having(photos > 0)


def has_value(key: str, *values: str) -> sa.ColumnElement[bool]:
    """Whether one of some values of a photo's metadata counts, as a condition on `ImageRow`, in upper or lower case."""
    one = sa.orm.aliased(MetadataRow)
    # All photos that have it are looked up at once, by the index of the values: not whether each photo has it.
    # Of two values with the same 64 bits one might be taken for the other, which no collection lives to see.
    having = sa.select(one.number).where(one.key == key, one.value_hash.in_([value_hash_of(value) for value in values]))
    return ImageRow.number.in_(having if key == TAG else having.where(_counts(one)))


def has_such(key: str, such: Callable[[sa.SQLColumnExpression[Any]], sa.ColumnElement[bool]]) -> sa.ColumnElement[bool]:
    """Whether a value of a photo's metadata that counts fulfils something, as a condition on `ImageRow`."""
    one = sa.orm.aliased(MetadataRow)
    return ImageRow.number.in_(sa.select(one.number).where(one.key == key, such(one.value), _counts(one)))


def counts_of_values(session: Session, key: str, which: sa.ColumnElement[bool]) -> list[tuple[str, int]]:
    """Values of a field that has one for each photo, and how many of the photos that fulfil a condition have each."""
    one = sa.orm.aliased(MetadataRow)
    query = sa.select(one.value, sa.func.count()).join(ImageRow, ImageRow.number == one.number)
    query = query.where(one.key == key, one.position == 0, _counts(one), which).group_by(one.value)
    return [(value, int(count)) for value, count in session.execute(query)]


def _counts(one: Any) -> sa.ColumnElement[bool]:
    """Whether a value counts: nothing else was imported under its key."""
    other = sa.orm.aliased(MetadataRow)
    imported = sa.select(other.number).where(other.number == one.number, other.key == one.key)
    return sa.or_(one.source == IMPORTED, ~imported.where(other.source == IMPORTED).exists())


def _values(metadata: Metadata) -> dict[str, Sequence[str]]:
    """A file's metadata as it is stored: texts, by key; no key without a value."""
    values = {key: (row, getattr(metadata, row.name)) for key, row in FIELDS.items()}
    return {key: row.kind.write(value) for key, (row, value) in values.items() if value not in (None, False, ())}


def _rows(number: int, source: str, values: Iterable[tuple[str, Sequence[str]]]) -> list[dict[str, Any]]:
    return [
        {
            "number": number,
            "source": source,
            "key": key,
            "position": position,
            "value": value,
            "value_hash": value_hash_of(value),
        }
        for key, several in values
        for position, value in enumerate(several)
    ]


def has_any_tag(tags: Sequence[str]) -> sa.ColumnElement[bool]:
    """Whether a photo has one of some tags, as a condition on `ImageRow`; the same in upper and lower case."""
    return ImageRow.number.in_(_having_any(tags))


def lacks_tags(session: Session, tags: Sequence[str]) -> sa.ColumnElement[bool]:
    """Whether a photo has none of some tags, as a condition on `ImageRow`; the same in upper and lower case."""
    having = _having_any(tags)
    if session.get_bind().dialect.name == "sqlite":
        return ImageRow.number.not_in(having)  # which SQLite makes a list of, once
    # Looked up for each photo. PostgreSQL would rather read all that have a tag for each, where it takes them for few:
    # the offset keeps it from that.
    return ~having.where(MetadataRow.number == ImageRow.number).offset(0).exists()


def _having_any(tags: Sequence[str]) -> sa.Select[Any]:
    hashes = [value_hash_of(tag) for tag in tags]
    return sa.select(MetadataRow.number).where(MetadataRow.key == TAG, MetadataRow.value_hash.in_(hashes))


def _is_imported() -> sa.ColumnElement[bool]:
    """That a value was imported, written so that databases find the index of these."""
    condition: sa.ColumnElement[bool] = _ROWS.c.source == sa.literal_column(f"'{IMPORTED}'")
    return condition


def _indexed(session: Session, numbers: Sequence[int]) -> list[int]:
    """Those of some photos that are indexed."""
    query = sa.select(ImageRow.number).where(ImageRow.number.in_(numbers), ImageRow.state == INDEXED)
    return list(session.scalars(query))


def values_by_number(
    session: Session, numbers: Sequence[int], keys: Sequence[str] | None
) -> dict[int, dict[tuple[str, str], list[str]]]:
    """Values of some photos by number, then by source and key; those of some keys alone, where these are given."""
    found: dict[int, dict[tuple[str, str], list[str]]] = {int(number): {} for number in numbers}
    query = sa.select(MetadataRow.number, MetadataRow.source, MetadataRow.key, MetadataRow.value)
    if keys is not None:
        query = query.where(MetadataRow.key.in_(keys))
    for chunk in chunks(list(found)):
        order = (MetadataRow.number, MetadataRow.source, MetadataRow.key, MetadataRow.position)
        for number, source, key, value in session.execute(query.where(MetadataRow.number.in_(chunk)).order_by(*order)):
            found[number].setdefault((source, key), []).append(value)
    return found


def _counting(
    values: Mapping[tuple[str, str], Sequence[str]], labels: Mapping[str, str] | None = None
) -> PhotoMetadata:
    """What counts of the values of one photo, under keys as they are written."""
    labels = labels or {}
    by_source = {source: {k: v for (s, k), v in values.items() if s == source} for source in (FROM_FILE, IMPORTED)}
    counts = by_source[FROM_FILE] | by_source[IMPORTED]
    tags = {tag.casefold(): tag for tag in (*by_source[IMPORTED].get(TAG, ()), *by_source[FROM_FILE].get(TAG, ()))}
    read = {key: FIELDS[key].kind.read(counts[key][0]) for key in counts if key in FIELDS and key != TAG}
    # A text that is no value of the field was imported under its key before there was such a field.
    known = {key: value for key, value in read.items() if value is not None}
    return PhotoMetadata(
        **{FIELDS[key].name: value for key, value in known.items()},
        tags=tuple(tags.values()),
        others={
            labels.get(key, key): tuple(several)
            for key, several in sorted(counts.items())
            if key not in known and key != TAG
        },
        imported=frozenset(labels.get(key, key) for key in by_source[IMPORTED]),
    )


def _write_counting(session: Session, numbers: Sequence[int]) -> None:
    """Write what counts of photos: into their own rows, and as words."""
    _write_columns(session, numbers)
    write_words(session, numbers)


def _write_columns(session: Session, numbers: Sequence[int]) -> None:
    """Write what counts into the photos' own rows."""
    rows = []
    for number, values in values_by_number(session, numbers, list(COLUMNS)).items():
        counting = counting_columns(_counting(values))
        rows.append({"of": number, **{f"new_{key}": value for key, value in counting.items()}})
    if rows:
        new: dict[Any, Any] = {key: sa.bindparam(f"new_{key}") for key in COLUMNS}
        session.execute(sa.update(_IMAGES).where(_IMAGES.c.number == sa.bindparam("of")).values(new), rows)
