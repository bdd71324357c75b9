"""Format 7: indexes for catalogues of millions of photos, and names that PostgreSQL compares byte by byte."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the indexes; in PostgreSQL, let names, folders and dates be compared byte by byte."""
    if op.get_bind().dialect.name == "postgresql":
        # This rewrites no row, only the indexes of these columns, which pages are then read by.
        changes = [("name", 1024), ("folder", 1024), ("taken", 19)]
        bytewise = ", ".join(f'ALTER COLUMN {name} TYPE VARCHAR({length}) COLLATE "C"' for name, length in changes)
        op.execute(f"ALTER TABLE images {bytewise}")
    op.drop_index("ix_images_taken", "images")
    for table, name, columns, condition in (
        ("images", "unnamed", ["state", "number", "features"], "name IS NULL"),
        ("images", "added", ["date_added"], "name IS NOT NULL"),
        ("images", "taken", ["taken"], "name IS NOT NULL AND taken IS NOT NULL"),
        ("images", "place", ["latitude", "longitude"], "name IS NOT NULL AND latitude IS NOT NULL"),
        ("images", "camera", ["camera"], "name IS NOT NULL AND camera IS NOT NULL"),
        ("images", "titled", ["number"], "name IS NOT NULL AND title IS NOT NULL"),
        ("metadata", "imported", ["number", "key", "position"], "source = 'import'"),
    ):
        only: dict[str, Any] = {f"{database}_where": sa.text(condition) for database in ("sqlite", "postgresql")}
        op.create_index(f"ix_{table}_{name}", table, columns, **only)
    op.drop_index("ix_metadata_key_value_hash", "metadata")
    op.create_index("ix_metadata_value", "metadata", ["key", "value_hash", "number", "source"])
    settings = sa.table("settings", sa.column("key", sa.String), sa.column("value", sa.Text))
    op.execute(sa.update(settings).where(settings.c.key == "cairn.format").values(value="7"))
