"""Format 8: decisions on photos: albums, hidden photos, pairs that are no match, saved searches."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the empty tables."""
    op.create_table(
        "albums",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        _time("created"),
        sa.Column("cover", sa.BigInteger),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "album_photos",
        _key("album", "albums.id", sa.Integer),
        _key("number", "images.number"),
        sa.Column("position", sa.Integer, nullable=False),
    )
    op.create_table(
        "hidden", _key("number", "images.number"), sa.Column("because", sa.Text, nullable=False), _time("since")
    )
    op.create_table(
        "rejections",
        _key("one", "images.number"),
        _key("other", "images.number"),
        _time("since"),
        sa.CheckConstraint("one < other"),
    )
    op.create_table(
        "query_rejections",
        sa.Column("sha256", sa.String(64), primary_key=True),
        _key("number", "images.number"),
        _time("since"),
    )
    op.create_table(
        "saved_searches",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("photo", sa.LargeBinary),
        sa.Column("favourite", sa.Boolean, nullable=False),
        sa.Column("standing", sa.Boolean, nullable=False),
        sa.Column("tag", sa.Text),
        _time("created"),
        sa.Column("asked_to", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "saved_finds",
        _key("search", "saved_searches.id", sa.Integer),
        _key("number", "images.number"),
        _time("found"),
        sa.Column("probability", sa.Double),
        sa.Column("region", sa.Text),
        sa.Column("seen", sa.Boolean, nullable=False),
    )
    # Rows on a photo are deleted with it: they are looked up by its number.
    for table, column in (
        ("album_photos", "number"),
        ("rejections", "other"),
        ("query_rejections", "number"),
        ("saved_finds", "number"),
    ):
        op.create_index(f"ix_{table}_{column}", table, [column])
    settings = sa.table("settings", sa.column("key", sa.String), sa.column("value", sa.Text))
    op.execute(sa.update(settings).where(settings.c.key == "cairn.format").values(value="8"))


def _key(name: str, of: str, kind: type[sa.types.TypeEngine[Any]] = sa.BigInteger) -> sa.Column[Any]:
    """A part of a key that belongs to the row of another table."""
    belongs = sa.ForeignKey(of, ondelete="CASCADE")
    return sa.Column(name, kind, belongs, primary_key=True, autoincrement=False)


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.String(40), nullable=False)
