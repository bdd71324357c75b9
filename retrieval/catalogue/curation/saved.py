"""Saved searches, and the photos that they found among new photos or all."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.errors import CairnError
from retrieval.catalogue.database import chunks, write_alone
from retrieval.catalogue.metadata_store import add_tag
from retrieval.catalogue.photos import indexed_among
from retrieval.catalogue.schema import BULK, INDEXED, ImageRow, SavedFindRow, SavedSearchRow
from retrieval.metadata.text import LONGEST_TAG, clean

LONGEST_NAME = 200
"""Characters of the name of a search."""
MOST = 1_000
"""Searches that are kept."""

CHANGEABLE = ("name", "favourite", "standing", "tag")
"""What of a saved search can be changed."""


@dataclass(frozen=True)
class StoredSearch:
    """A saved search."""

    id: int
    name: str
    query: dict[str, Any]  # queries and options, as saved
    has_photo: bool  # whether a photo from outside the collection is stored with it
    favourite: bool
    standing: bool  # whether added photos are searched
    tag: str | None  # given to photos that it finds
    created: str  # ISO 8601, UTC
    asked_to: int  # photos of smaller numbers were searched
    found: int = 0  # stored finds
    new: int = 0  # finds not yet viewed


@dataclass(frozen=True)
class Find:
    """A photo that a saved search has found."""

    number: int
    probability: float | None
    region: list[list[float]] | None  # corners in pixels of the photo
    found: str = ""  # when: ISO 8601, UTC
    seen: bool = False
    category: str | None = None  # chosen by a user


class SearchNotFound(CairnError):
    """There is no saved search of this number."""

    _kind = "missing"


class TooManySearches(CairnError):
    """The number of saved searches is at its limit."""

    _kind = "large"


def save_search(
    session: Session,
    name: str,
    query: Mapping[str, Any],
    photo: bytes | None = None,
    *,
    standing: bool = False,
    favourite: bool = False,
    tag: str | None = None,
) -> int:
    """Save a search, and return its number; raises TooManySearches beyond `MOST`.

    `photo` is the file of a photo from outside the collection that is part of the query; `tag` is given to found
    photos.
    """
    row = SavedSearchRow(
        name=_name(name),
        query=json.dumps(query),
        photo=photo,
        favourite=favourite,
        standing=standing,
        tag=_tag(tag),
    )
    write_alone(session, SavedSearchRow)
    if (session.scalar(sa.select(sa.func.count()).select_from(SavedSearchRow)) or 0) >= MOST:
        raise TooManySearches("There are {MOST} saved searches already: delete some first.", MOST=f"{MOST:,}")
    row.asked_to = _next(session)
    session.add(row)
    session.flush()
    assert row.id is not None
    return row.id


def saved_searches(session: Session) -> list[StoredSearch]:
    """All saved searches: favourites first, then by name."""
    columns = [column for column in SavedSearchRow.__table__.columns if column.key != "photo"]
    query = sa.select(*columns, SavedSearchRow.photo.is_not(None).label("has_photo"))
    counted = (
        sa.select(SavedFindRow.search, sa.func.count(), sa.func.sum(sa.case((SavedFindRow.seen, 0), else_=1)))
        .join(ImageRow, ImageRow.number == SavedFindRow.number)
        .where(ImageRow.state == INDEXED)
        .group_by(SavedFindRow.search)
    )
    rows = session.execute(query).mappings().all()
    finds = {search: (int(found), int(new)) for search, found, new in session.execute(counted)}
    searches = [
        StoredSearch(
            id=row["id"],
            name=row["name"],
            query=_query(row["query"]),
            has_photo=bool(row["has_photo"]),
            favourite=bool(row["favourite"]),
            standing=bool(row["standing"]),
            tag=row["tag"],
            created=row["created"],
            asked_to=int(row["asked_to"]),
            found=finds.get(row["id"], (0, 0))[0],
            new=finds.get(row["id"], (0, 0))[1],
        )
        for row in rows
    ]
    return sorted(searches, key=lambda one: (not one.favourite, one.name.casefold(), one.id))


def saved_search(session: Session, search: int) -> StoredSearch:
    """One saved search; raises SearchNotFound if there is no such search."""
    for one in saved_searches(session):
        if one.id == search:
            return one
    raise _no(search)


def photo_of_search(session: Session, search: int) -> bytes | None:
    """The photo from outside the collection that is stored with a search; None without one."""
    return session.scalar(sa.select(SavedSearchRow.photo).where(SavedSearchRow.id == search))


def change_search(session: Session, search: int, values: Mapping[str, Any]) -> None:
    """Change some of `CHANGEABLE` of a search. A standing search covers photos that are added from then on."""
    wanted = {key: values[key] for key in CHANGEABLE if key in values}
    if "name" in wanted:
        wanted["name"] = _name(wanted["name"])
    if "tag" in wanted:
        wanted["tag"] = _tag(wanted["tag"])
    row = session.get(SavedSearchRow, search)
    if row is None:
        raise _no(search)
    if wanted.get("standing") and not row.standing:
        row.asked_to = _next(session)
    for key, value in wanted.items():
        setattr(row, key, value)


def delete_search(session: Session, search: int) -> None:
    """Delete a saved search and its finds; does nothing if there is no such search."""
    session.execute(sa.delete(SavedFindRow).where(SavedFindRow.search == search), execution_options=BULK)
    session.execute(sa.delete(SavedSearchRow).where(SavedSearchRow.id == search), execution_options=BULK)


def keep_finds(session: Session, search: int, finds: Iterable[Find], asked_to: int | None) -> list[int]:
    """Store finds of a search, update region and probability of earlier ones; return the numbers of newly found photos.

    With `asked_to`, the number below which all photos were searched, the finds are those of a standing search in new
    photos, and get its tag. With None, a user searched all photos: earlier finds that are no longer found are deleted,
    unless they have a category. Photos that were removed meanwhile, and a deleted search, are ignored.
    """
    by_number = {one.number: one for one in finds}
    row = session.get(SavedSearchRow, search)
    if row is None:
        return []
    row.asked_to = max(row.asked_to, asked_to or 0)
    if asked_to is None:
        undecided = sa.select(SavedFindRow).where(SavedFindRow.search == search, SavedFindRow.category.is_(None))
        for earlier in session.scalars(undecided):
            if earlier.number not in by_number:
                session.delete(earlier)
    new: list[int] = []
    for some in chunks(sorted(by_number)):
        known = _kept(session, search, some)
        new += [number for number in indexed_among(session, some) if number not in known]
        for number, kept in known.items():
            kept.probability, kept.region = by_number[number].probability, _written(by_number[number].region)
    session.add_all(
        SavedFindRow(
            search=search,
            number=number,
            probability=by_number[number].probability,
            region=_written(by_number[number].region),
            seen=asked_to is None,
        )
        for number in new
    )
    if row.tag and asked_to is not None:
        add_tag(session, new, row.tag)
    return new


def categorise(session: Session, search: int, numbers: Sequence[int], category: str) -> None:
    """Put photos into a category of the finds of a search ("" for none), adding those that it has not found."""
    saved_search(session, search)
    cleaned = clean(category, LONGEST_TAG) or None
    for some in chunks(list(numbers)):
        known = _kept(session, search, some)
        for number in indexed_among(session, some):
            row = known.get(number)
            if row is None and cleaned:
                session.add(SavedFindRow(search=search, number=number, seen=True, category=cleaned))
            elif row is not None:
                row.category, row.seen = cleaned, True
    session.flush()


def finds_of(session: Session, search: int) -> list[Find]:
    """The finds of a search, the latest first."""
    query = (
        sa.select(SavedFindRow)
        .join(ImageRow, ImageRow.number == SavedFindRow.number)
        .where(SavedFindRow.search == search, ImageRow.state == INDEXED)
        .order_by(SavedFindRow.number.desc())
    )
    return [
        Find(row.number, row.probability, _region(row.region), row.found, row.seen, row.category)
        for row in session.scalars(query)
    ]


def mark_seen(session: Session, search: int, numbers: Sequence[int] | None = None) -> None:
    """Mark finds of a standing search as viewed: some photos, or all."""
    of_search = SavedFindRow.search == search
    parts = (
        [of_search]
        if numbers is None
        else [sa.and_(of_search, SavedFindRow.number.in_(some)) for some in chunks([int(one) for one in numbers])]
    )
    for part in parts:
        session.execute(sa.update(SavedFindRow).where(part).values(seen=True), execution_options=BULK)


def _kept(session: Session, search: int, numbers: Sequence[int]) -> dict[int, SavedFindRow]:
    query = sa.select(SavedFindRow).where(SavedFindRow.search == search, SavedFindRow.number.in_(numbers))
    return {row.number: row for row in session.scalars(query)}


def _next(session: Session) -> int:
    """A number above those of all photos that are in the catalogue."""
    return int(session.scalar(sa.select(sa.func.max(ImageRow.number))) or 0) + 1


def _name(name: str) -> str:
    cleaned = clean(name, LONGEST_NAME)
    if not cleaned:
        raise CairnError("A saved search needs a name.")
    return cleaned


def _tag(tag: str | None) -> str | None:
    return clean(tag or "", LONGEST_TAG) or None


def _query(text: str) -> dict[str, Any]:
    """The query of a row; empty if it is damaged."""
    try:
        query = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return query if isinstance(query, dict) else {}


def _written(region: list[list[float]] | None) -> str | None:
    return None if region is None else json.dumps(region)


def _region(text: str | None) -> list[list[float]] | None:
    try:
        region = [[float(x), float(y)] for x, y in json.loads(text)] if text is not None else None
    except (ValueError, TypeError, RecursionError):
        return None
    return region if region and all(math.isfinite(value) for point in region for value in point) else None


def _no(search: int) -> SearchNotFound:
    return SearchNotFound("There is no saved search {search}.", search=search)
