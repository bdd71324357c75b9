"""Format 3: photos that were removed for good, which indexing skips."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the table of the photos that were removed for good."""
    op.create_table(
        "excluded",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("path_hash", sa.BigInteger, nullable=False),
        sa.Column("name", sa.String(1024), nullable=False),
        sa.Column("sha256", sa.String(64)),
        sa.Column("size", sa.BigInteger),
        sa.Column("mtime_ns", sa.BigInteger),
        sa.Column("removed", sa.String(40), nullable=False),
    )
    settings = sa.table("settings", sa.column("key", sa.String), sa.column("value", sa.Text))
    op.execute(sa.update(settings).where(settings.c.key == "cairn.format").values(value="3"))
