"""Format 1: segments, images and settings."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "segments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("folder", sa.String(255), nullable=False, unique=True),
        sa.Column("images", sa.Integer, nullable=False),
        sa.Column("features", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("vocabulary_fingerprint", sa.String(64), nullable=False),
        sa.Column("descriptor_fingerprint", sa.String(64), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
    )
    op.create_table(
        "images",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("path_hash", sa.BigInteger, nullable=False),
        sa.Column("name", sa.String(1024), unique=True),
        sa.Column("sha256", sa.String(64)),
        sa.Column("size", sa.BigInteger),
        sa.Column("mtime_ns", sa.BigInteger),
        sa.Column("width", sa.Integer),
        sa.Column("height", sa.Integer),
        sa.Column("features", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("segment_id", sa.Integer, sa.ForeignKey("segments.id")),
        sa.Column("position", sa.Integer),
        sa.CheckConstraint("state IN ('indexed', 'failed', 'removed')"),
    )
    op.create_index("ix_images_path_hash", "images", ["path_hash"])
    op.create_index("ix_images_segment_id", "images", ["segment_id"])
    settings = op.create_table(
        "settings",
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.bulk_insert(settings, [{"key": "cairn.format", "value": "1"}, {"key": "cairn.next_number", "value": "0"}])
