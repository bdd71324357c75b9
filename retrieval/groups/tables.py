"""Tables (CSV) of groups, and the files that tables are written to."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from index.arrays import save_bytes
from index.errors import CairnError
from retrieval.catalogue.photos import rows_of
from retrieval.metadata.pages import file_of

if TYPE_CHECKING:
    from retrieval.collection.collection import Collection
    from retrieval.groups.groups import FoundGroup


def group_rows(collection: "Collection", groups: "Iterable[FoundGroup]") -> Iterator[tuple[str, ...]]:
    """Rows of a table of groups: group, name, path, original of a near duplicate, relation, and first of its similar
    shots.
    """
    yield "group", "name", "path", "duplicate_of", "kind", "similar_to"
    for group in groups:
        rows = {row.number: row for row in collection.catalogue.read(rows_of, group.photos)}
        names = {number: row.name or "" for number, row in rows.items()}
        similar_to = {number: names[first] for first, *others in group.similar for number in others}
        for number in group.photos:
            original = group.duplicates.get(number)
            duplicate_of = "" if original is None else names[original]
            kind = group.kinds.get(number, "")
            shot = similar_to.get(number, "")
            yield str(group.number), names[number], str(file_of(rows[number].path)), duplicate_of, kind, shot


def check_table(path: Path) -> None:
    """Raise CairnError if a table cannot be written: better before hours of work than after."""
    if path.is_dir() or not path.parent.is_dir():
        raise CairnError(f"{path} is a folder, or in a folder that does not exist: choose another file for the table.")


def write_table(path: Path, text: str) -> None:
    """Write a table to a file."""
    check_table(path)
    save_bytes(path, text.encode("utf-8"))
