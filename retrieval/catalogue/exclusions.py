"""Exclusions: photos that were removed for good, and are skipped when their folders are indexed again.

A photo is excluded by its content, whatever its path and name, and by its old path, so that a file that was edited
there is skipped as well. `cairn index --again` adds it again.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.database import chunks
from retrieval.catalogue.schema import BULK, INDEXED, ExcludedRow, ImageRow, now, path_hash_of


class Exclusion(NamedTuple):
    """A photo that was removed for good."""

    number: int  # its number, which is not reused
    path: str  # last known path of its file
    name: str  # its name in the collection
    sha256: str | None = None
    size: int | None = None  # bytes
    mtime_ns: int | None = None
    removed: str = ""  # when: ISO 8601, UTC

    def reason(self, path: str, sha256: str | None) -> str:
        """Why this excludes a file at a path; `sha256` is None if it could not be read."""
        if sha256 is None or sha256 != self.sha256:
            return f"at the path of {self.name}, which was removed for good"
        if path == self.path:
            return f"removed for good as {self.name}"
        return f"the same content as {self.name}, which was removed for good"


class Exclusions:
    """Looks up files among the exclusions."""

    def __init__(self, excluded: Iterable[Exclusion]) -> None:
        self._by_path: dict[str, list[Exclusion]] = {}
        self._by_content: dict[str, list[Exclusion]] = {}
        for one in excluded:
            self._by_path.setdefault(one.path, []).append(one)
            if one.sha256 is not None:
                self._by_content.setdefault(one.sha256, []).append(one)

    def at(self, path: str, size: int, mtime_ns: int) -> Exclusion | None:
        """The photo of an unchanged file at its old path, which need not be read; None if there is no such photo."""
        there = self._by_path.get(path, ())
        return next((one for one in there if (one.size, one.mtime_ns) == (size, mtime_ns)), None)

    def matching(self, path: str, sha256: str) -> list[Exclusion]:
        """The photos that exclude a file: those of its content first, then those of its path."""
        matches = [*self._by_content.get(sha256, ()), *self._by_path.get(path, ())]
        return list(dict.fromkeys(matches))


def exclude_photos(session: Session, numbers: Sequence[int]) -> None:
    """Add indexed images to the list; call it before they become tombstones."""
    removed = now()
    columns = (ImageRow.number, ImageRow.path, ImageRow.path_hash, ImageRow.name, ImageRow.sha256)
    query = sa.select(*columns, ImageRow.size, ImageRow.mtime_ns).where(ImageRow.state == INDEXED)
    for chunk in chunks([int(number) for number in numbers]):
        rows = session.execute(query.where(ImageRow.number.in_(chunk)).order_by(ImageRow.number)).mappings().all()
        if rows:
            session.execute(sa.insert(ExcludedRow), [{**row, "removed": removed} for row in rows])


def exclusions_in(session: Session) -> list[Exclusion]:
    """All exclusions, by number."""
    columns = [getattr(ExcludedRow, name) for name in Exclusion._fields]
    return [Exclusion(*row) for row in session.execute(sa.select(*columns).order_by(ExcludedRow.number))]


def include_photos(session: Session, numbers: Sequence[int]) -> None:
    """Remove photos from the list, by number."""
    for chunk in chunks(list(numbers)):
        session.execute(sa.delete(ExcludedRow).where(ExcludedRow.number.in_(chunk)), execution_options=BULK)


def move_exclusions(session: Session, moved: Sequence[Exclusion]) -> None:
    """Store new paths of files of exclusions, so that they need not be read again."""
    for one in moved:
        values = {"path": one.path, "path_hash": path_hash_of(one.path), "size": one.size, "mtime_ns": one.mtime_ns}
        session.execute(
            sa.update(ExcludedRow).where(ExcludedRow.number == one.number).values(values), execution_options=BULK
        )
