"""Format 4: links between photos, and the revision twice in every catalogue."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the table of the links, and the copy of the revision where a catalogue has none."""
    op.create_table(
        "links",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("found", sa.LargeBinary, nullable=False),
        sa.Column("found_hash", sa.BigInteger, nullable=False),
    )
    settings = sa.table("settings", sa.column("key", sa.String), sa.column("value", sa.Text))
    has_copy = sa.exists().where(settings.c.key == "cairn.revision_copy")
    if not op.get_bind().scalar(sa.select(has_copy)):
        revision = sa.select(sa.literal("cairn.revision_copy"), settings.c.value).where(
            settings.c.key == "cairn.revision"
        )
        op.execute(sa.insert(settings).from_select(["key", "value"], revision))
    op.execute(sa.update(settings).where(settings.c.key == "cairn.format").values(value="4"))
