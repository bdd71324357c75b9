"""Format 6: the folder of each photo's name, and indexes for counts and for rare values."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add a column, which is derived from the names, and the indexes."""
    op.add_column("images", sa.Column("folder", sa.String(1024)))
    images = sa.table("images", sa.column("name", sa.String), sa.column("folder", sa.String))
    # The name up to its last slash: strip all characters other than slashes from its end, then that slash.
    begins = sa.func.rtrim(images.c.name, sa.func.replace(images.c.name, "/", ""))
    folder = sa.case((begins == "", ""), else_=sa.func.substr(begins, 1, sa.func.length(begins) - 1))
    op.execute(sa.update(images).where(images.c.name.is_not(None)).values(folder=folder))
    op.create_index("ix_images_folder", "images", ["folder"])
    op.create_index("ix_images_counted", "images", ["number", "state", "features", "quantisation_error", "date_added"])
    is_missing = sa.text("missing_since IS NOT NULL")
    op.create_index(
        "ix_images_missing", "images", ["missing_since"], sqlite_where=is_missing, postgresql_where=is_missing
    )
    settings = sa.table("settings", sa.column("key", sa.String), sa.column("value", sa.Text))
    op.execute(sa.update(settings).where(settings.c.key == "cairn.format").values(value="6"))
