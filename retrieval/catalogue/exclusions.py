"""Photos that were removed for good: the list that keeps them out when their folders are indexed again.

A photo is kept out by its content, wherever its file lies and whatever it is called, and by the path that it had, so
that a file that was edited there stays out as well. It is taken in again by `cairn index --again`.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.database import chunks
from retrieval.catalogue.schema import INDEXED, ExcludedRow, ImageRow, path_hash_of

_BULK: Mapping[str, Any] = {"synchronize_session": False}


class Exclusion(NamedTuple):
    """A photo that was removed for good."""

    number: int  # that it had; no photo gets it again
    path: str  # where its file was last seen
    name: str  # that it had in the collection
    sha256: str | None = None
    size: int | None = None  # bytes
    mtime_ns: int | None = None
    removed: str = ""  # when: ISO 8601, UTC

    def reason(self, path: str, sha256: str | None) -> str:
        """Why this keeps out a file at a path; its content is None if it could not be read."""
        if sha256 is None or sha256 != self.sha256:
            return f"at the path of {self.name}, which was removed for good"
        if path == self.path:
            return f"removed for good as {self.name}"
        return f"the same content as {self.name}, which was removed for good"


class Exclusions:
    """Looks up files among the photos that were removed for good.

    Parameters
    ----------
    excluded : iterable of Exclusion
        All of them.
    """

    def __init__(self, excluded: Iterable[Exclusion]) -> None:
        self._by_path: dict[str, list[Exclusion]] = {}
        self._by_content: dict[str, list[Exclusion]] = {}
        for one in excluded:
            self._by_path.setdefault(one.path, []).append(one)
            if one.sha256 is not None:
                self._by_content.setdefault(one.sha256, []).append(one)

    def at(self, path: str, size: int, mtime_ns: int) -> Exclusion | None:
        """The photo whose file this is beyond doubt, unchanged where it was, so that it need not be read; or None."""
        there = self._by_path.get(path, ())
        return next((one for one in there if (one.size, one.mtime_ns) == (size, mtime_ns)), None)

    def matching(self, path: str, sha256: str) -> list[Exclusion]:
        """The photos that keep a file out: those of its content first, then those of its path."""
        found = [*self._by_content.get(sha256, ()), *self._by_path.get(path, ())]
        return list(dict.fromkeys(found))


def exclude_photos(session: Session, numbers: Sequence[int]) -> None:
    """Put indexed images on the list; to be called before they become tombstones."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    columns = (ImageRow.number, ImageRow.path, ImageRow.path_hash, ImageRow.name, ImageRow.sha256)
    query = sa.select(*columns, ImageRow.size, ImageRow.mtime_ns).where(ImageRow.state == INDEXED)
    for chunk in chunks([int(number) for number in numbers]):
        rows = session.execute(query.where(ImageRow.number.in_(chunk)).order_by(ImageRow.number)).mappings().all()
        if rows:
            session.execute(sa.insert(ExcludedRow), [{**row, "removed": now} for row in rows])


def exclusions_in(session: Session) -> list[Exclusion]:
    """Photos that were removed for good, in the order of the numbers that they had."""
    columns = [getattr(ExcludedRow, name) for name in Exclusion._fields]
    return [Exclusion(*row) for row in session.execute(sa.select(*columns).order_by(ExcludedRow.number))]


def include_photos(session: Session, numbers: Sequence[int]) -> None:
    """Take photos off the list of those that were removed for good, by the numbers that they had."""
    for chunk in chunks(list(numbers)):
        session.execute(sa.delete(ExcludedRow).where(ExcludedRow.number.in_(chunk)), execution_options=_BULK)


def move_exclusions(session: Session, moved: Sequence[Exclusion]) -> None:
    """Write where the files of photos on the list are now, so that they need not be read again to be known."""
    for one in moved:
        values = {"path": one.path, "path_hash": path_hash_of(one.path), "size": one.size, "mtime_ns": one.mtime_ns}
        session.execute(
            sa.update(ExcludedRow).where(ExcludedRow.number == one.number).values(values), execution_options=_BULK
        )
