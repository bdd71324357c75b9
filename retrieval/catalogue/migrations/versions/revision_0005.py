"""Format 5: when each photo was added."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add a column; it stays empty for existing photos, as it is unknown when they were added."""
    op.add_column("images", sa.Column("date_added", sa.String(40)))
    settings = sa.table("settings", sa.column("key", sa.String), sa.column("value", sa.Text))
    op.execute(sa.update(settings).where(settings.c.key == "cairn.format").values(value="5"))
