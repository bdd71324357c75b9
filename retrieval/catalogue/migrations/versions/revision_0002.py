"""Format 2: metadata, moved and missing photos, checksums of segments, and a count of writes."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add nullable columns, and the table of the metadata."""
    # Segments before images, as in every transaction that writes, to avoid deadlocks.
    op.add_column("segments", sa.Column("sha256", sa.String(64)))
    for column in (
        sa.Column("missing_since", sa.String(40)),
        sa.Column("quantisation_error", sa.Double),
        sa.Column("taken", sa.String(19)),
        sa.Column("latitude", sa.Double),
        sa.Column("longitude", sa.Double),
        sa.Column("camera", sa.String(256)),
        sa.Column("title", sa.Text),
    ):
        op.add_column("images", column)
    op.create_index("ix_images_sha256", "images", ["sha256"])
    op.create_index("ix_images_taken", "images", ["taken"])
    op.create_table(
        "metadata",
        sa.Column("number", sa.BigInteger, sa.ForeignKey("images.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("source", sa.String(16), primary_key=True),
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("value_hash", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_metadata_key_value_hash", "metadata", ["key", "value_hash"])

    settings = sa.table("settings", sa.column("key", sa.String), sa.column("value", sa.Text))
    op.bulk_insert(settings, [{"key": "cairn.revision", "value": "0"}])
    op.execute(sa.update(settings).where(settings.c.key == "cairn.format").values(value="2"))
