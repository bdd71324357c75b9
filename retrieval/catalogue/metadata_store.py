"""Metadata in the catalogue: values of files, imported values, and the effective values of both.

Both are stored as rows, each value under its key. Imported values override those of the file, key by key; tags of both
are combined. Effective values of fields with a column in `ImageRow` are also stored in the photo's row, for filters and
pages.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.database import chunks, dialect_of
from retrieval.catalogue.headers import field_of
from retrieval.catalogue.photos import indexed_among
from retrieval.catalogue.schema import (
    BULK,
    FROM_FILE,
    IMPORTED,
    REMOVED,
    HiddenRow,
    ImageRow,
    MetadataRow,
    value_hash_of,
)
from retrieval.catalogue.settings import keep_setting, setting_of
from retrieval.catalogue.words import make_words, write_words
from retrieval.metadata.fields import FIELDS, Metadata
from retrieval.metadata.text import LONGEST_KEY as LONGEST_KEY
from retrieval.metadata.text import LONGEST_VALUE as LONGEST_VALUE
from retrieval.metadata.text import clean

TAG = "tag"
LABELS_KEY = "metadata.labels"
"""Setting of the catalogue: how keys are written, JSON by key."""

_SPELLINGS = 100  # spellings of a tag to examine, at most

_IMAGES: Any = ImageRow.__table__
COLUMNS = {key: row.name for key, row in FIELDS.items() if key in _IMAGES.c}
"""Keys that the photo's own row holds too, and what they are called in Python."""
_ROWS: Any = MetadataRow.__table__


@dataclass(frozen=True)
class PhotoMetadata(Metadata):
    """Effective metadata of a photo."""

    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # other imported values, by key
    imported: frozenset[str] = frozenset()  # keys with imported metadata


def column_key(name: str) -> str:
    """The key of a column of a table or a condition: in lower case, with one key for synonyms.

    >>> column_key(" Keywords "), column_key("Archive No."), column_key("lat"), column_key("Aufnahme-Datum")
    ('tag', 'archive no.', 'latitude', 'taken')
    """
    key = folded_key(name)
    return field_of(key) or key


def folded_key(name: str) -> str:
    """The key of an unknown column: its name in lower case."""
    return clean(clean(name, LONGEST_KEY).casefold(), LONGEST_KEY)


def store_metadata(session: Session, found: Sequence[tuple[int, Metadata]]) -> None:
    """Store the metadata of photos' files, replacing earlier values; photos that are not indexed are ignored."""
    for chunk in chunks(found):
        there = indexed_among(session, [number for number, _ in chunk])
        earlier = (MetadataRow.number.in_(there), MetadataRow.source == FROM_FILE)
        session.execute(sa.delete(MetadataRow).where(*earlier), execution_options=BULK)
        read = dict(chunk)
        insert_metadata(session, [(number, read[number]) for number in there])
        _write_counting(session, there)


def insert_metadata(session: Session, found: Sequence[tuple[int, Metadata]]) -> None:
    """Store the metadata of new photos' files; the caller also writes `counting_columns`."""
    for chunk in chunks(found):
        rows = [row for number, one in chunk for row in _rows(number, FROM_FILE, _values(one).items())]
        if rows:
            session.execute(sa.insert(_ROWS), rows)


def counting_columns(metadata: Metadata) -> dict[str, Any]:
    """Metadata columns of the row of a photo without imported values."""
    return {key: getattr(metadata, name) for key, name in COLUMNS.items()}


def import_values(
    session: Session,
    values: Mapping[int, Mapping[str, Sequence[str]]],
    *,
    replace: bool = False,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Store imported values by image number and key, replacing earlier ones; photos that are not indexed are ignored.

    Values are clean, as in `retrieval.catalogue.tables.importing`; numbers are written for `float` to read. `replace`
    first deletes the earlier imported values of all photos. `labels` are display forms of keys.
    """
    _write_labels(session, labels or {}, forget=replace)
    if replace:
        imported = sa.select(MetadataRow.number).where(_is_imported()).distinct()
        touched = list(session.scalars(imported))
        session.execute(sa.delete(MetadataRow).where(MetadataRow.source == IMPORTED), execution_options=BULK)
        for chunk in chunks(touched):
            _write_counting(session, chunk)
    for chunk in chunks(list(values)):
        there = indexed_among(session, chunk)
        if not replace:
            of_key: dict[str, list[int]] = {}
            for number in there:
                for key in values[number]:
                    of_key.setdefault(key, []).append(number)
            for key, numbers in of_key.items():
                earlier = (MetadataRow.number.in_(numbers), MetadataRow.source == IMPORTED, MetadataRow.key == key)
                session.execute(sa.delete(MetadataRow).where(*earlier), execution_options=BULK)
        rows = [row for number in there for row in _rows(number, IMPORTED, values[number].items())]
        if rows:
            session.execute(sa.insert(_ROWS), rows)
        _write_counting(session, there)


def add_tag(session: Session, numbers: Sequence[int], tag: str) -> None:
    """Add a tag to photos, ignoring case; photos that are not indexed are ignored."""
    lacking: dict[int, dict[str, list[str]]] = {}
    for number, values in values_by_number(session, numbers, [TAG]).items():
        imported = values.get((IMPORTED, TAG), [])
        if tag.casefold() not in {one.casefold() for one in (*imported, *values.get((FROM_FILE, TAG), []))}:
            lacking[number] = {TAG: [*imported, tag]}
    import_values(session, lacking)


def tidy_metadata(session: Session) -> None:
    """Delete metadata of images that do not exist; rewrite effective values of all others, and all words."""
    gone = MetadataRow.number.not_in(sa.select(ImageRow.number))
    session.execute(sa.delete(MetadataRow).where(gone), execution_options=BULK)
    _write_columns(session, list(session.scalars(sa.select(MetadataRow.number).distinct())))
    make_words(session)


def copy_imported(session: Session, old_number: int, new_number: int) -> None:
    """Copy imported values to another image, once its row and the metadata of its file are written."""
    columns = [column.key for column in _ROWS.columns]
    taken = [sa.literal(new_number).label(key) if key == "number" else _ROWS.c[key] for key in columns]
    earlier = sa.select(*taken).where(_ROWS.c.number == old_number, _ROWS.c.source == IMPORTED)
    if session.execute(earlier.limit(1)).first() is None:
        return
    session.execute(sa.insert(_ROWS).from_select(columns, earlier))
    _write_counting(session, [new_number])


def find_tombstones(session: Session, images: Iterable[ImageRow], others: sa.Select[Any]) -> dict[int, int]:
    """Removed images with imported values, by the numbers of images of the same content or path.

    `others`: numbers of further images to consider, such as those with decisions.

    If there are several, content takes precedence over path, then the one added last.
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
    tombstones = {one.number: numbers.get(("content", one.sha256), numbers.get(("path", one.path))) for one in images}
    return {number: tombstone for number, tombstone in tombstones.items() if tombstone is not None}


def metadata_of(session: Session, numbers: Sequence[int]) -> dict[int, PhotoMetadata]:
    """Effective metadata of some photos, perhaps empty: imported values, else those of the file, and tags of both."""
    labels = key_labels(session)
    return {number: _counting(values, labels) for number, values in values_by_number(session, numbers, None).items()}


def key_labels(session: Session) -> dict[str, str]:
    """Display forms of keys: by key, the name of the column that it was imported from, if different."""
    try:
        labels = json.loads(setting_of(session, LABELS_KEY) or "{}")
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, dict):
        return {}  # damaged: use the keys themselves
    return {key: label for key, label in labels.items() if isinstance(label, str) and folded_key(label) == key}


def _write_labels(session: Session, labels: Mapping[str, str], forget: bool) -> None:
    """Store display forms of keys, in addition to those of earlier imports or replacing them."""
    earlier = key_labels(session)
    merged = {**({} if forget else earlier), **labels}
    merged = {key: label for key, label in sorted(merged.items()) if label != key}
    if merged != earlier:
        keep_setting(session, LABELS_KEY, json.dumps(merged))


def imported_values(session: Session) -> dict[int, dict[str, list[str]]]:
    """Imported values of indexed photos, by number and display form of the key; photos without any are left out."""
    labels = key_labels(session)
    values: dict[int, dict[str, list[str]]] = {}
    columns = (MetadataRow.number, MetadataRow.key, MetadataRow.value)
    query = sa.select(*columns).join(ImageRow, ImageRow.number == MetadataRow.number)
    query = query.where(_is_imported(), ImageRow.name.is_not(None))
    for number, key, value in session.execute(
        query.order_by(MetadataRow.number, MetadataRow.key, MetadataRow.position)
    ):
        values.setdefault(number, {}).setdefault(labels.get(key, key), []).append(value)
    return values


def key_counts(session: Session) -> list[tuple[str, int]]:
    """Display forms of keys of the metadata of indexed photos, in order, and numbers of photos of each."""
    labels = key_labels(session)
    # Count only the first value of a key for each photo.
    counted = _counted(_ROWS.c.key, lambda one: [one.position == 0], lambda one, other: one.key == other.key)
    counts = sorted((key, int(count)) for key, count in session.execute(counted))
    return [(labels.get(key, key), count) for key, count in counts]


def tag_counts(session: Session, limit: int = 1000) -> list[tuple[str, int]]:
    """Tags of indexed photos and their numbers of photos that are not hidden, the most frequent first.

    A tag with several spellings, in upper and lower case, has the spelling of one of its first photos.
    """
    counted = _counted(
        _ROWS.c.value_hash,
        lambda one: [one.key == TAG],
        lambda one, other: sa.and_(other.key == TAG, one.value_hash == other.value_hash),
    ).cte("counted")
    kind, photos = counted.c
    # Counted in an index, without reading rows; only texts that may be displayed are read.
    most = sa.select(photos.label("photos")).order_by(photos.desc()).limit(limit).subquery()
    first = sa.select(_ROWS.c.value).where(_ROWS.c.key == TAG, _ROWS.c.value_hash == kind).correlate(counted)
    some = first.order_by(_ROWS.c.number).limit(_SPELLINGS).subquery()
    tag = (
        sa.select(sa.func.max(some.c.value)).correlate(counted).scalar_subquery()
    )  # a lower-case spelling, if there is one
    query = sa.select(tag.label("tag"), photos.label("count"), kind)
    query = query.where(photos >= sa.select(sa.func.min(most.c.photos)).scalar_subquery())
    counts = session.execute(query.order_by(sa.desc("count"), sa.asc("tag")).limit(limit)).all()
    # The few hidden photos are subtracted.
    rows = sa.select(_ROWS.c.value_hash, sa.func.count(_ROWS.c.number.distinct()))
    named = sa.select(HiddenRow.number).join(_IMAGES, _IMAGES.c.number == HiddenRow.number)
    named = named.where(_IMAGES.c.name.is_not(None))
    rows = rows.where(_ROWS.c.key == TAG, _ROWS.c.number.in_(named)).group_by(_ROWS.c.value_hash)
    hidden = {which: int(count) for which, count in session.execute(rows)}
    remaining = [(text, int(count) - hidden.get(which, 0)) for text, count, which in counts]
    return sorted(((text, count) for text, count in remaining if count > 0), key=lambda one: -one[1])


def _counted(
    by: sa.Column[Any],
    wanted: Callable[[Any], list[sa.ColumnElement[bool]]],
    same: Callable[[Any, Any], sa.ColumnElement[bool]],
) -> sa.Select[Any]:
    """Numbers of indexed photos with values of each kind: a row for each.

    All values are counted once. The few values of files that are overridden by imported ones, and those of photos
    without a name, which failed or were removed, are subtracted. The column `by` defines a kind; `wanted` makes the
    conditions on counted values; `same` compares two rows of a photo. A photo has at most one value of each source.
    """
    file, unnamed = _ROWS.alias("of_file"), sa.select(_IMAGES.c.number).where(_IMAGES.c.name.is_(None))
    twice = _ROWS.join(file, sa.and_(file.c.number == _ROWS.c.number, same(_ROWS.c, file.c)))
    both = [*wanted(_ROWS.c), *wanted(file.c), _is_imported(), file.c.source == FROM_FILE]
    parts = []
    for sign, rows, conditions in ((1, _ROWS, wanted(_ROWS.c)), (-1, twice, both)):
        of_all = sa.select(by, (sign * sa.func.count()).label("photos")).select_from(rows).where(*conditions)
        of_unnamed = sa.select(by, (-sign * sa.func.count()).label("photos")).select_from(rows)
        of_unnamed = of_unnamed.where(*conditions, _ROWS.c.number.in_(unnamed))
        parts += [of_all.group_by(by), of_unnamed.group_by(by)]
    kind, count = sa.union_all(*parts).subquery().c
    photos = sa.func.sum(count)
    return sa.select(kind.label("kind"), photos.label("photos")).group_by(kind).having(photos > 0)


def has_value(key: str, *values: str) -> sa.ColumnElement[bool]:
    """Condition on `ImageRow` that one of some values is effective for a photo, ignoring case."""
    one = sa.orm.aliased(MetadataRow)
    # All photos with the value are looked up at once, by the index of values, not checked one by one. Collisions of the
    # 64-bit hashes are too unlikely to matter.
    having = sa.select(one.number).where(one.key == key, one.value_hash.in_([value_hash_of(value) for value in values]))
    return ImageRow.number.in_(having if key == TAG else having.where(_counts(one)))


def has_such(key: str, such: Callable[[sa.SQLColumnExpression[Any]], sa.ColumnElement[bool]]) -> sa.ColumnElement[bool]:
    """Condition on `ImageRow` that an effective value of a photo's metadata fulfils a condition."""
    one = sa.orm.aliased(MetadataRow)
    return ImageRow.number.in_(sa.select(one.number).where(one.key == key, such(one.value), _counts(one)))


def counts_of_values(session: Session, key: str, which: sa.ColumnElement[bool]) -> list[tuple[str, int]]:
    """Values of a field with one value for each photo, and numbers of photos that fulfil a condition."""
    one = sa.orm.aliased(MetadataRow)
    query = sa.select(one.value, sa.func.count()).join(ImageRow, ImageRow.number == one.number)
    query = query.where(one.key == key, one.position == 0, _counts(one), which).group_by(one.value)
    return [(value, int(count)) for value, count in session.execute(query)]


def _counts(one: Any) -> sa.ColumnElement[bool]:
    """Condition that a value is effective: no imported value under its key overrides it."""
    other = sa.orm.aliased(MetadataRow)
    imported = sa.select(other.number).where(other.number == one.number, other.key == one.key)
    return sa.or_(one.source == IMPORTED, ~imported.where(other.source == IMPORTED).exists())


def _values(metadata: Metadata) -> dict[str, Sequence[str]]:
    """A file's metadata as stored texts, by key, without empty ones."""
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
    """Condition on `ImageRow` that a photo has one of some tags, ignoring case."""
    return ImageRow.number.in_(_having_any(tags))


def lacks_tags(session: Session, tags: Sequence[str]) -> sa.ColumnElement[bool]:
    """Condition on `ImageRow` that a photo lacks all of some tags, ignoring case."""
    having = _having_any(tags)
    if dialect_of(session) == "sqlite":
        return ImageRow.number.not_in(having)  # SQLite materialises this once
    # Looked up for each photo. If PostgreSQL expects few photos with a tag, it would read all of them for each photo:
    # the offset prevents that.
    return ~having.where(MetadataRow.number == ImageRow.number).offset(0).exists()


def _having_any(tags: Sequence[str]) -> sa.Select[Any]:
    hashes = [value_hash_of(tag) for tag in tags]
    return sa.select(MetadataRow.number).where(MetadataRow.key == TAG, MetadataRow.value_hash.in_(hashes))


def _is_imported() -> sa.ColumnElement[bool]:
    """Condition that a value was imported, in a form that matches the partial index."""
    condition: sa.ColumnElement[bool] = _ROWS.c.source == sa.literal_column(f"'{IMPORTED}'")
    return condition


def values_by_number(
    session: Session, numbers: Sequence[int], keys: Sequence[str] | None
) -> dict[int, dict[tuple[str, str], list[str]]]:
    """Values of some photos by number, then by source and key; `keys`: only these."""
    values: dict[int, dict[tuple[str, str], list[str]]] = {int(number): {} for number in numbers}
    query = sa.select(MetadataRow.number, MetadataRow.source, MetadataRow.key, MetadataRow.value)
    if keys is not None:
        query = query.where(MetadataRow.key.in_(keys))
    for chunk in chunks(list(values)):
        order = (MetadataRow.number, MetadataRow.source, MetadataRow.key, MetadataRow.position)
        for number, source, key, value in session.execute(query.where(MetadataRow.number.in_(chunk)).order_by(*order)):
            values[number].setdefault((source, key), []).append(value)
    return values


def _counting(
    values: Mapping[tuple[str, str], Sequence[str]], labels: Mapping[str, str] | None = None
) -> PhotoMetadata:
    """Effective values of one photo, under display forms of keys."""
    labels = labels or {}
    by_source = {source: {k: v for (s, k), v in values.items() if s == source} for source in (FROM_FILE, IMPORTED)}
    counts = by_source[FROM_FILE] | by_source[IMPORTED]
    tags = {tag.casefold(): tag for tag in (*by_source[IMPORTED].get(TAG, ()), *by_source[FROM_FILE].get(TAG, ()))}
    read = {key: FIELDS[key].kind.read(counts[key][0]) for key in counts if key in FIELDS and key != TAG}
    # A text that is no valid value was imported before the field existed.
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
    """Write effective values of photos into their rows and as words."""
    _write_columns(session, numbers)
    write_words(session, numbers)


def _write_columns(session: Session, numbers: Sequence[int]) -> None:
    rows = []
    for number, values in values_by_number(session, numbers, list(COLUMNS)).items():
        counting = counting_columns(_counting(values))
        rows.append({"of": number, **{f"new_{key}": value for key, value in counting.items()}})
    if rows:
        new: dict[Any, Any] = {key: sa.bindparam(f"new_{key}") for key in COLUMNS}
        session.execute(sa.update(_IMAGES).where(_IMAGES.c.number == sa.bindparam("of")).values(new), rows)
