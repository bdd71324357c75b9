"""Format 9: categories of photos found by saved searches."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column."""
    op.add_column("saved_finds", sa.Column("category", sa.String(200)))
    settings = sa.table("settings", sa.column("key", sa.String), sa.column("value", sa.Text))
    op.execute(sa.update(settings).where(settings.c.key == "cairn.format").values(value="9"))
