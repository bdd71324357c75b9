"""Figures as a table (CSV)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from index.arrays import save_rows
from index.errors import CairnError


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of the same columns as a table, atomically."""
    if not path.parent.is_dir():
        raise CairnError(f"{path.parent} is not a folder: make it first, or write the table elsewhere.")
    save_rows(path, [rows[0], *(row.values() for row in rows)])
