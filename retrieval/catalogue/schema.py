"""The tables of the catalogue."""

import datetime
import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, Session, mapped_column

from index.errors import Damaged
from index.files.names import is_plain_name
from index.files.reading import SQLITE_LOGS
from index.messages import Message, said
from index.text import path_of_stored, stored_path

FORMAT = 9

BULK: Mapping[str, Any] = {"synchronize_session": False}
"""Options of a statement that changes many rows, none of which the session has loaded."""

INDEXED, FAILED, REMOVED = "indexed", "failed", "removed"
FROM_FILE, IMPORTED = "file", "import"

# Settings of the catalogue itself.
FORMAT_KEY, NEXT_NUMBER_KEY, REVISION_KEY = "cairn.format", "cairn.next_number", "cairn.revision"
# Lower bound of the name of the next segment's folder, on a database server.
NEXT_FOLDER_KEY = "cairn.next_folder"
# A copy of the revision: if the two differ, the catalogue is damaged. Missing in some catalogues of format 3.
REVISION_COPY_KEY = "cairn.revision_copy"


class ForeignValue(Damaged):
    """A value in the catalogue has another type than its column: SQLite accepts any."""

    def __init__(self, value: object, wanted: str) -> None:
        super().__init__(
            said("The catalogue holds {value} where {wanted} belongs: run {cairn check}, then {cairn repair}."),
            value=repr(str(value)[:60]),
            wanted=Message(wanted),
        )


def _whole(value: Any) -> Any:
    if value is None or type(value) is int:
        return value
    raise ForeignValue(value, said("a number"))


def _real(value: Any) -> Any:
    if value is None or type(value) is float or type(value) is int:
        return value
    raise ForeignValue(value, said("a number"))


def _text(value: Any) -> Any:
    if value is None or (type(value) is str and "\0" not in value):
        return value
    raise ForeignValue(value, said("a text"))


class _Integer(sa.Integer):
    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:
        return _whole


class _BigInteger(sa.BigInteger):
    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:
        return _whole


class _Double(sa.Double[float]):
    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:
        return _real


class _Text(sa.Text):
    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:
        return _text


class _Path(sa.types.TypeDecorator[str]):
    """A path of a file, of any bytes: see `stored_path`."""

    impl = _Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else stored_path(value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else path_of_stored(value)


class _String(sa.String):
    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:
        return _text


class _FolderName(sa.types.TypeDecorator[str]):
    """A plain name of a folder; anything else, such as a path, is refused."""

    impl = sa.String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        if value is not None and not is_plain_name(value):
            raise ValueError(f"{value!r} is no name of a folder")
        return value

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:
        if not is_plain_name(value):
            raise ForeignValue(value, said("the plain name of a segment's folder"))
        return value


def _where(condition: str) -> dict[str, Any]:
    """Arguments of a partial index, in every database that supports it: see `_limit_indexes`."""
    return {"sqlite_where": sa.text(condition)}


def _bytewise(length: int) -> sa.types.TypeEngine[str]:
    """A text compared byte by byte: the default in SQLite, a collation in PostgreSQL."""
    return _String(length).with_variant(sa.VARCHAR(length, collation="C"), "postgresql")


def path_hash_of(path: str) -> int:
    """64-bit signed hash of a path, for `ImageRow.path_hash`."""
    return _hash_of(stored_path(path).encode("utf-8", "surrogatepass"))


def folder_of(name: str | None) -> str | None:
    """The folder of a photo's name, for `ImageRow.folder`: "" without one, None without a name."""
    return None if name is None else name.rpartition("/")[0]


def value_hash_of(value: str) -> int:
    """64-bit hash of a value of metadata, ignoring case, for `MetadataRow.value_hash`."""
    return path_hash_of(value.casefold())


def now() -> str:
    """The current time: ISO 8601, UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _hash_of(contents: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(contents, digest_size=8).digest(), "big", signed=True)


class Base(MappedAsDataclass, DeclarativeBase):
    """Rows are plain dataclasses; the catalogue returns copies, and changing these has no effect."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {int: _Integer}


@sa.event.listens_for(Base.metadata, "before_create")
def _limit_indexes(metadata: sa.MetaData, connection: sa.Connection, **_: Any) -> None:
    """Limit PostgreSQL's indexes to the same rows as SQLite's.

    Set here, not in the declarations, as SQLAlchemy imports the dialect of PostgreSQL when an index first names it: a
    twentieth of the time of `cairn info`.
    """
    if connection.dialect.name == "postgresql":
        for index in (one for table in metadata.tables.values() for one in table.indexes):
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]


def values_of_row(row: Base) -> dict[str, Any]:
    """The values of a row, by column."""
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}


class SegmentRow(Base, kw_only=True):
    """A segment that belongs to the collection."""

    __tablename__ = "segments"

    id: Mapped[int | None] = mapped_column(primary_key=True, nullable=False, default=None)  # given by the database
    folder: Mapped[str] = mapped_column(_FolderName(255), unique=True)  # its name inside segments/
    images: Mapped[int]
    features: Mapped[int] = mapped_column(_BigInteger)
    bytes: Mapped[int] = mapped_column(_BigInteger)
    vocabulary_fingerprint: Mapped[str] = mapped_column(_String(64))
    descriptor_fingerprint: Mapped[str] = mapped_column(_String(64))
    # ISO 8601, UTC: text, as SQLite stores no time zones
    created: Mapped[str] = mapped_column(_String(40), default_factory=now)
    sha256: Mapped[str | None] = mapped_column(_String(64), default=None)  # of the bytes of its meta.json


class ImageRow(Base, kw_only=True):
    """A photo: indexed, failed, or removed (a tombstone until its segment is rewritten)."""

    __tablename__ = "images"
    __table_args__ = (
        sa.CheckConstraint(f"state IN ('{INDEXED}', '{FAILED}', '{REMOVED}')"),
        # Covers counts over all photos, so that no row is read. It does not begin with the state, as SQLite would
        # assume that to be selective, and search by it even if numbers are given.
        sa.Index("ix_images_counted", "number", "state", "features", "quantisation_error", "date_added"),
        # Few photos have missing files, and few have no name: they failed or were removed.
        sa.Index("ix_images_missing", "missing_since", **_where("missing_since IS NOT NULL")),
        sa.Index("ix_images_unnamed", "state", "number", "features", **_where("name IS NULL")),
        sa.Index("ix_images_added", "date_added", **_where("name IS NOT NULL")),
        # Columns of photos with names; the condition allows counting without reading rows.
        sa.Index("ix_images_taken", "taken", **_where("name IS NOT NULL AND taken IS NOT NULL")),
        sa.Index("ix_images_place", "latitude", "longitude", **_where("name IS NOT NULL AND latitude IS NOT NULL")),
        sa.Index("ix_images_camera", "camera", **_where("name IS NOT NULL AND camera IS NOT NULL")),
        sa.Index("ix_images_titled", "number", **_where("name IS NOT NULL AND title IS NOT NULL")),
    )

    number: Mapped[int] = mapped_column(_BigInteger, primary_key=True, autoincrement=False)  # never used again
    path: Mapped[str] = mapped_column(_Path)
    # For lookups: a path may be too long for an index of PostgreSQL.
    path_hash: Mapped[int] = mapped_column(_BigInteger, index=True, init=False, repr=False)
    name: Mapped[str | None] = mapped_column(_bytewise(1024), unique=True, default=None)  # of indexed photos only
    sha256: Mapped[str | None] = mapped_column(_String(64), index=True, default=None)  # finds a photo that has moved
    size: Mapped[int | None] = mapped_column(_BigInteger, default=None)  # bytes
    mtime_ns: Mapped[int | None] = mapped_column(_BigInteger, default=None)
    width: Mapped[int | None] = mapped_column(default=None)  # pixels of the upright original
    height: Mapped[int | None] = mapped_column(default=None)
    features: Mapped[int] = mapped_column(default=0)
    state: Mapped[str] = mapped_column(_String(16), default=INDEXED)
    reason: Mapped[str | None] = mapped_column(_Text, default=None)  # why it failed
    segment_id: Mapped[int | None] = mapped_column(sa.ForeignKey(SegmentRow.id), index=True, default=None)
    position: Mapped[int | None] = mapped_column(default=None)  # in the segment
    missing_since: Mapped[str | None] = mapped_column(_String(40), default=None)  # ISO 8601, UTC: its file is gone
    # Mean squared distance of its features to their words.
    quantisation_error: Mapped[float | None] = mapped_column(_Double, default=None)
    # Effective metadata: imported values, else those of the file. `MetadataRow` has both.
    taken: Mapped[str | None] = mapped_column(  # local time of the camera: YYYY, YYYY-MM, … or YYYY-MM-DDTHH:MM:SS
        _bytewise(19), default=None
    )
    latitude: Mapped[float | None] = mapped_column(_Double, default=None)  # degrees north, WGS 84
    longitude: Mapped[float | None] = mapped_column(_Double, default=None)  # degrees east
    camera: Mapped[str | None] = mapped_column(_String(256), default=None)
    title: Mapped[str | None] = mapped_column(_Text, default=None)
    date_added: Mapped[str | None] = mapped_column(_String(40), default=None)  # ISO 8601, UTC; None: unknown
    folder: Mapped[str | None] = mapped_column(_bytewise(1024), index=True, init=False, repr=False)  # of its name

    def __post_init__(self) -> None:
        self.derive()

    def derive(self) -> None:
        """Update derived values."""
        self.path_hash = path_hash_of(self.path)
        self.folder = folder_of(self.name)


_PhotoNumber = Annotated[
    int, mapped_column(_BigInteger, sa.ForeignKey(ImageRow.number, ondelete="CASCADE"), primary_key=True)
]
"""Number of a photo, with which a row is deleted."""


class MetadataRow(Base, kw_only=True):
    """One value of metadata from a photo's file or an imported table."""

    __tablename__ = "metadata"
    __table_args__ = (
        # With all columns that queries by value read, so that no row is read.
        sa.Index("ix_metadata_value", "key", "value_hash", "number", "source"),
        sa.Index("ix_metadata_imported", "number", "key", "position", **_where("source = 'import'")),
    )

    number: Mapped[_PhotoNumber] = mapped_column(autoincrement=False)
    source: Mapped[str] = mapped_column(_String(16), primary_key=True)  # FROM_FILE or IMPORTED
    key: Mapped[str] = mapped_column(_String(64), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=0)  # among those of one key
    value: Mapped[str] = mapped_column(_Text)
    # For lookups: a value may be too long for an index of PostgreSQL.
    value_hash: Mapped[int] = mapped_column(_BigInteger, init=False, repr=False)

    def __post_init__(self) -> None:
        self.value_hash = value_hash_of(self.value)


class ExcludedRow(Base, kw_only=True):
    """A photo that was removed for good, which indexing skips: see `retrieval.catalogue.exclusions`."""

    __tablename__ = "excluded"

    number: Mapped[int] = mapped_column(_BigInteger, primary_key=True, autoincrement=False)  # of the image it was
    path: Mapped[str] = mapped_column(_Path)
    path_hash: Mapped[int] = mapped_column(_BigInteger, init=False, repr=False)  # detects damage
    name: Mapped[str] = mapped_column(_String(1024))
    sha256: Mapped[str | None] = mapped_column(_String(64), default=None)
    size: Mapped[int | None] = mapped_column(_BigInteger, default=None)  # bytes
    mtime_ns: Mapped[int | None] = mapped_column(_BigInteger, default=None)
    removed: Mapped[str] = mapped_column(_String(40))  # ISO 8601, UTC

    def __post_init__(self) -> None:
        self.path_hash = path_hash_of(self.path)


class LinkRow(Base, kw_only=True):
    """Links of a photo, as bytes: see `retrieval.groups.links`."""

    __tablename__ = "links"

    number: Mapped[int] = mapped_column(_BigInteger, primary_key=True, autoincrement=False)  # of the image
    found: Mapped[bytes] = mapped_column(sa.LargeBinary)
    found_hash: Mapped[int] = mapped_column(_BigInteger, init=False, repr=False)  # detects damage

    def __post_init__(self) -> None:
        self.found_hash = self._hash()

    @property
    def is_whole(self) -> bool:
        """Whether the row is undamaged."""
        return isinstance(self.found, bytes) and self.found_hash == self._hash()

    def _hash(self) -> int:
        return _hash_of(f"{self.number} ".encode() + self.found)


class AlbumRow(Base, kw_only=True):
    """An album: photos under a name."""

    __tablename__ = "albums"
    __table_args__ = ({"sqlite_autoincrement": True},)  # ids are never reused, as they are part of addresses

    id: Mapped[int | None] = mapped_column(primary_key=True, nullable=False, default=None)  # given by the database
    name: Mapped[str] = mapped_column(_String(200), unique=True)
    created: Mapped[str] = mapped_column(_String(40), default_factory=now)  # ISO 8601, UTC
    cover: Mapped[int | None] = mapped_column(_BigInteger, default=None)  # a photo, which may have been removed


class AlbumPhotoRow(Base, kw_only=True):
    """A photo in an album."""

    __tablename__ = "album_photos"

    album: Mapped[int] = mapped_column(
        sa.ForeignKey(AlbumRow.id, ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    number: Mapped[_PhotoNumber] = mapped_column(index=True)
    position: Mapped[int]  # in the album; positions may have gaps


class HiddenRow(Base, kw_only=True):
    """A photo that is not shown in lists and answers, such as a copy of another one."""

    __tablename__ = "hidden"

    number: Mapped[_PhotoNumber] = mapped_column(autoincrement=False)
    because: Mapped[str] = mapped_column(_Text, default="")
    since: Mapped[str] = mapped_column(_String(40), default_factory=now)  # ISO 8601, UTC


class RejectionRow(Base, kw_only=True):
    """Two photos that people marked as not showing the same."""

    __tablename__ = "rejections"
    __table_args__ = (sa.CheckConstraint("one < other"),)

    one: Mapped[_PhotoNumber] = mapped_column(autoincrement=False)
    other: Mapped[_PhotoNumber] = mapped_column(index=True)
    since: Mapped[str] = mapped_column(_String(40), default_factory=now)  # ISO 8601, UTC


class QueryRejectionRow(Base, kw_only=True):
    """A photo that people marked as not showing the same as a photo from outside the collection."""

    __tablename__ = "query_rejections"

    sha256: Mapped[str] = mapped_column(_String(64), primary_key=True)  # of the photo from outside
    number: Mapped[_PhotoNumber] = mapped_column(index=True)
    since: Mapped[str] = mapped_column(_String(40), default_factory=now)  # ISO 8601, UTC


class SavedSearchRow(Base, kw_only=True):
    """A saved search."""

    __tablename__ = "saved_searches"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int | None] = mapped_column(primary_key=True, nullable=False, default=None)  # given by the database
    name: Mapped[str] = mapped_column(_String(200))
    query: Mapped[str] = mapped_column(_Text)  # JSON
    photo: Mapped[bytes | None] = mapped_column(sa.LargeBinary, default=None)  # a query from outside the collection
    favourite: Mapped[bool] = mapped_column(default=False)
    standing: Mapped[bool] = mapped_column(default=False)  # new photos are searched for it
    tag: Mapped[str | None] = mapped_column(_Text, default=None)  # given to found photos
    created: Mapped[str] = mapped_column(_String(40), default_factory=now)  # ISO 8601, UTC
    asked_to: Mapped[int] = mapped_column(_BigInteger, default=0)  # photos with numbers below were searched


class SavedFindRow(Base, kw_only=True):
    """A photo that a saved search has found."""

    __tablename__ = "saved_finds"

    search: Mapped[int] = mapped_column(
        sa.ForeignKey(SavedSearchRow.id, ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    number: Mapped[_PhotoNumber] = mapped_column(index=True)
    found: Mapped[str] = mapped_column(_String(40), default_factory=now)  # ISO 8601, UTC
    probability: Mapped[float | None] = mapped_column(_Double, default=None)
    region: Mapped[str | None] = mapped_column(_Text, default=None)  # JSON: where in the photo
    seen: Mapped[bool] = mapped_column(default=False)  # viewed by a user
    category: Mapped[str | None] = mapped_column(_String(200), default=None)  # chosen by a user


DECIDED: tuple[type[Base], ...] = (
    AlbumRow,
    AlbumPhotoRow,
    HiddenRow,
    RejectionRow,
    QueryRejectionRow,
    SavedSearchRow,
    SavedFindRow,
)
"""What people decided about photos, and nothing else in a collection knows."""


class Setting(Base, kw_only=True):
    """Settings of the catalogue itself, and of the collection."""

    __tablename__ = "settings"

    key: Mapped[str] = mapped_column(_String(255), primary_key=True)
    value: Mapped[str] = mapped_column(_Text)


# Alembic's table, missing in format 1. Also defined here, so that new catalogues can be created without Alembic.
REVISIONS = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

TABLES: dict[str, Any] = {mapper.class_.__tablename__: mapper.class_ for mapper in Base.registry.mappers}
"""Classes of rows, by the names of their tables."""


def count_writing(session: Session | sa.Connection) -> None:
    """Count a write; every transaction that writes begins with this.

    The second of two writers waits here. Rows are updated one after the other: a database may lock the rows of one
    statement in any order, which could cause a deadlock.
    """
    following = sa.cast(sa.cast(Setting.value, sa.BigInteger) + 1, sa.Text)
    for key in (REVISION_KEY, REVISION_COPY_KEY):
        change = sa.update(Setting).where(Setting.key == key).values(value=following)
        session.execute(change, execution_options=BULK)


FILE = "catalogue.sqlite"
FILES = (FILE, *(f"{FILE}{end}" for end in SQLITE_LOGS))
"""Its SQLite file, and those that SQLite keeps next to it."""
