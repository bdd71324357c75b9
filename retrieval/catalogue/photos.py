"""Photos of a catalogue as they are looked up: by number, by name, by what tells whether they have changed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.text import printable
from retrieval.catalogue.database import CHUNK, chunks
from retrieval.catalogue.schema import FAILED, INDEXED, REMOVED, ImageRow, path_hash_of


class Known(NamedTuple):
    """What tells whether a photo is unchanged since it was indexed, or failed."""

    number: int
    state: str
    size: int | None
    mtime_ns: int | None
    sha256: str | None
    missing: bool = False  # its file was gone when last looked for


def known_photos(session: Session) -> dict[str, Known]:
    """What is known of each path that is indexed or failed; of one that is both, what was indexed."""
    columns = (ImageRow.number, ImageRow.state, ImageRow.size, ImageRow.mtime_ns, ImageRow.sha256)
    query = sa.select(ImageRow.path, *columns, ImageRow.missing_since.is_not(None)).where(ImageRow.state != REMOVED)
    rows = session.execute(query.order_by(ImageRow.state == INDEXED, ImageRow.number))
    return {row[0]: Known(*row[1:]) for row in rows}


def known_contents(session: Session) -> set[str]:
    """The SHA-256 of all photos that are indexed or failed."""
    query = sa.select(ImageRow.sha256).where(ImageRow.state != REMOVED, ImageRow.sha256.is_not(None))
    return {str(content) for content in session.scalars(query.execution_options(yield_per=CHUNK))}


def all_indexed(session: Session) -> list[ImageRow]:
    """All indexed photos by ascending number."""
    return list(session.scalars(sa.select(ImageRow).where(ImageRow.state == INDEXED).order_by(ImageRow.number)))


def rows_of(session: Session, numbers: Sequence[int], *, indexed: bool) -> list[ImageRow]:
    """Photos of any state or indexed ones alone, in the order of the numbers; KeyError where there is none."""
    query = sa.select(ImageRow).where(ImageRow.state == INDEXED) if indexed else sa.select(ImageRow)
    found: dict[int, ImageRow] = {}
    for chunk in chunks([int(number) for number in numbers]):
        found.update((row.number, row) for row in session.scalars(query.where(ImageRow.number.in_(chunk))))
    return [found[int(number)] for number in numbers]


def values_of(session: Session, column: Any, numbers: Sequence[int]) -> dict[int, str]:
    """A column's values of those of some photos that are indexed."""
    query = sa.select(ImageRow.number, column).where(ImageRow.state == INDEXED)
    found: dict[int, str] = {}
    for chunk in chunks([int(number) for number in numbers]):
        found.update((number, value) for number, value in session.execute(query.where(ImageRow.number.in_(chunk))))
    return found


def places_of_photos(session: Session) -> list[tuple[int, str, str]]:
    """Number, name and path of all indexed photos, by ascending number."""
    query = sa.select(ImageRow.number, ImageRow.name, ImageRow.path).where(ImageRow.state == INDEXED)
    return [(number, name or "", path) for number, name, path in session.execute(query.order_by(ImageRow.number))]


def contents_of_photos(session: Session) -> list[tuple[int, str | None]]:
    """Number and SHA-256 of the content of all indexed photos, by ascending number."""
    query = sa.select(ImageRow.number, ImageRow.sha256).where(ImageRow.state == INDEXED)
    return [(number, sha256) for number, sha256 in session.execute(query.order_by(ImageRow.number))]


def dates_added(session: Session, paths: Sequence[str]) -> dict[str, str]:
    """When the indexed photos of some paths were added, by path, where that is known."""
    found: dict[str, str] = {}
    for chunk in chunks(paths):
        query = sa.select(ImageRow.path, ImageRow.date_added).where(
            ImageRow.path_hash.in_([path_hash_of(path) for path in chunk]),
            ImageRow.state == INDEXED,
            ImageRow.date_added.is_not(None),
        )
        found.update((path, str(date)) for path, date in session.execute(query))
    return found


def first_and_last_added(session: Session) -> tuple[str, str] | None:
    """When the first and the last of the indexed photos were added of which that is known; None where there is none."""
    query = sa.select(sa.func.min(ImageRow.date_added), sa.func.max(ImageRow.date_added))
    first, last = session.execute(query.where(ImageRow.state == INDEXED)).one()
    return None if first is None else (str(first), str(last))


def numbers_of_names(session: Session, names: Sequence[str]) -> dict[str, int]:
    """The numbers of those of some names that indexed photos have."""
    found: dict[str, int] = {}
    for chunk in chunks([name for name in names if printable(name) == name]):
        query = sa.select(ImageRow.name, ImageRow.number).where(ImageRow.name.in_(chunk))
        found.update((str(name), number) for name, number in session.execute(query))
    return found


def photo_of_name(session: Session, name: str) -> ImageRow | None:
    """The indexed photo of a name, or None."""
    if printable(name) != name:
        return None  # no such name is ever stored, and no database takes it
    return session.scalars(sa.select(ImageRow).where(ImageRow.name == name)).one_or_none()


def photo_of_content(session: Session, sha256: str) -> ImageRow | None:
    """The first indexed photo of a content, or None."""
    wanted = (ImageRow.sha256 == sha256, ImageRow.state == INDEXED)
    return session.scalars(sa.select(ImageRow).where(*wanted).order_by(ImageRow.number).limit(1)).one_or_none()


def missing_photos(session: Session) -> list[ImageRow]:
    """Indexed photos whose files were gone when last looked for, by ascending number."""
    wanted = (ImageRow.state == INDEXED, ImageRow.missing_since.is_not(None))
    # Sorted here: for the order a database would read all photos, and there are few of these.
    return sorted(session.scalars(sa.select(ImageRow).where(*wanted)), key=lambda row: row.number)


def counts_of_photos(session: Session) -> dict[str, int]:
    """How many photos are `indexed`, `failed` and `removed`, and how many `features` the indexed ones have."""
    sums = sa.select(sa.func.count(), sa.func.sum(ImageRow.features)).where(ImageRow.state == INDEXED)
    indexed, features = session.execute(sums).one()
    # Indexed photos alone have names; the others are few, and found by that.
    others = sa.select(ImageRow.state, sa.func.count()).where(ImageRow.name.is_(None)).group_by(ImageRow.state)
    by_state = {state: int(images) for state, images in session.execute(others)}
    return {
        INDEXED: int(indexed),
        FAILED: by_state.get(FAILED, 0),
        REMOVED: by_state.get(REMOVED, 0),
        "features": int(features or 0),
    }


def count_indexed(session: Session) -> int:
    """How many photos are indexed: all rows, which SQLite counts without reading them, but those without a name."""
    rows = sa.select(sa.func.count()).select_from(ImageRow)
    return int(session.scalar(rows) or 0) - int(session.scalar(rows.where(ImageRow.name.is_(None))) or 0)
