"""Photos that could not be indexed, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.text import printable
from retrieval.catalogue.changes import rows_of_paths
from retrieval.catalogue.database import chunks
from retrieval.catalogue.schema import BULK, FAILED, ImageRow, values_of_row
from retrieval.catalogue.settings import reserve_numbers


@dataclass(frozen=True, slots=True)
class Failure:
    """A photo that could not be indexed."""

    path: str
    reason: str  # one sentence
    size: int | None = None
    mtime_ns: int | None = None
    sha256: str | None = None


def keep_failures(session: Session, failures: Sequence[Failure]) -> None:
    r"""Store why photos could not be indexed, and replace earlier failures of the same paths.

    An indexed photo of the same path is not changed. Bytes of a path that are not text are stored as ``\xff``.
    """
    newest = {printable(failure.path): failure for failure in failures}
    forget_failures(session, list(newest))
    first = reserve_numbers(session, len(newest))
    rows = [
        ImageRow(
            number=first + i,
            path=path,
            state=FAILED,
            reason=printable(failure.reason),
            size=failure.size,
            mtime_ns=failure.mtime_ns,
            sha256=failure.sha256,
        )
        for i, (path, failure) in enumerate(newest.items())
    ]
    if rows:
        session.execute(sa.insert(ImageRow), [values_of_row(row) for row in rows])


def forget_failures(session: Session, paths: Sequence[str]) -> None:
    """Delete the failures of these paths, for instance of photos that no longer exist."""
    for chunk in chunks([printable(path) for path in paths]):
        forget_failed_rows(session, rows_of_paths(session, chunk))


def forget_failed_rows(session: Session, rows: Sequence[tuple[int, str]]) -> None:
    """Delete those of some rows, pairs of number and state, that are failures."""
    for chunk in chunks([number for number, state in rows if state == FAILED]):
        session.execute(sa.delete(ImageRow).where(ImageRow.number.in_(chunk)), execution_options=BULK)


def failures_in(session: Session) -> list[Failure]:
    """All failures, in the order in which they were recorded."""
    columns = (ImageRow.path, ImageRow.reason, ImageRow.size, ImageRow.mtime_ns, ImageRow.sha256)
    rows = session.execute(
        sa.select(*columns).where(ImageRow.state == FAILED, ImageRow.name.is_(None)).order_by(ImageRow.number)
    )
    return [Failure(row.path, row.reason, row.size, row.mtime_ns, row.sha256) for row in rows]
