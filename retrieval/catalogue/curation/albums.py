"""Albums as rows: indexed photos under a name, in an order, with a cover; hidden photos stay, but do not count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.orm import Session

from retrieval.catalogue.browsing import rows_there
from retrieval.catalogue.database import chunks
from retrieval.catalogue.photos import indexed_among
from retrieval.catalogue.schema import BULK, INDEXED, AlbumPhotoRow, AlbumRow, HiddenRow, ImageRow


@dataclass(frozen=True)
class AlbumFacts:
    """An album."""

    album: Annotated[int, Field(description="Its id, which no other album gets.")]
    name: str
    created: Annotated[str, Field(description="ISO 8601, UTC.")]
    # The first by default; None: the album is empty.
    cover: Annotated[int | None, Field(description="Number of the photo that stands for it.")]
    photos: Annotated[int, Field(description="How many it has.")]


def albums_in(session: Session, only: Sequence[int] | None = None) -> list[AlbumFacts]:
    """All albums, the newest first; or some, by their ids."""
    there = sa.select(AlbumPhotoRow.album, AlbumPhotoRow.number, AlbumPhotoRow.position)
    there = there.join(ImageRow, ImageRow.number == AlbumPhotoRow.number).where(*_is_shown())
    if only is not None:
        there = there.where(AlbumPhotoRow.album.in_(only))
    members = there.subquery()
    # The first by position, then by number.
    place = sa.func.row_number().over(partition_by=members.c.album, order_by=(members.c.position, members.c.number))
    placed = sa.select(members, place.label("place")).subquery()
    counted = (
        sa.select(
            placed.c.album,
            sa.func.count().label("photos"),
            sa.func.max(sa.case((placed.c.place == 1, placed.c.number))).label("first"),
            sa.func.max(sa.case((placed.c.number == AlbumRow.cover, placed.c.number))).label("cover"),
        )
        .join(AlbumRow, AlbumRow.id == placed.c.album)
        .group_by(placed.c.album)
        .subquery()
    )
    query = sa.select(AlbumRow.id, AlbumRow.name, AlbumRow.created, counted.c.photos, counted.c.first, counted.c.cover)
    query = query.outerjoin(counted, counted.c.album == AlbumRow.id).order_by(AlbumRow.id.desc())
    if only is not None:
        query = query.where(AlbumRow.id.in_(only))
    return [
        AlbumFacts(album, name, created, first if cover is None else cover, int(photos or 0))
        for album, name, created, photos, first, cover in session.execute(query)
    ]


def albums_of_photo(session: Session, number: int) -> list[int]:
    """Ids of the albums that a photo is in, in order."""
    query = sa.select(AlbumPhotoRow.album).where(AlbumPhotoRow.number == number).order_by(AlbumPhotoRow.album)
    return list(session.scalars(query))


def in_albums(session: Session, numbers: Sequence[int]) -> frozenset[int]:
    """Those of some photos that are in an album."""
    query = sa.select(AlbumPhotoRow.number)
    return frozenset(
        one for some in chunks(numbers) for one in session.scalars(query.where(AlbumPhotoRow.number.in_(some)))
    )


def album_row(session: Session, album: int) -> AlbumRow | None:
    """The row of an album, to be changed in a transaction that writes; None if it does not exist."""
    return session.get(AlbumRow, album)


def named(session: Session, name: str) -> int | None:
    """The id of the album of this name, ignoring case; None if it does not exist."""
    rows = session.execute(sa.select(AlbumRow.id, AlbumRow.name))
    return next((album for album, other in rows if other.casefold() == name.casefold()), None)


def numbers_in_album(session: Session, album: int, *, hidden: bool = True) -> list[int]:
    """Numbers of the photos of an album, in its order, including hidden ones or not."""
    query = sa.select(AlbumPhotoRow.number).join(ImageRow, ImageRow.number == AlbumPhotoRow.number)
    query = query.where(AlbumPhotoRow.album == album, *(_is_indexed() if hidden else _is_shown()))
    return list(session.scalars(query.order_by(AlbumPhotoRow.position, AlbumPhotoRow.number)))


def page_of_album(session: Session, album: int, offset: int, limit: int) -> tuple[int, list[ImageRow]]:
    """Number of photos of an album, and those of one page, in its order."""
    wanted = (AlbumPhotoRow.album == album, *_is_shown())
    joined = sa.join(AlbumPhotoRow, ImageRow, ImageRow.number == AlbumPhotoRow.number)
    total = session.scalar(sa.select(sa.func.count()).select_from(joined).where(*wanted))
    # Sorting reads only the numbers, which two indexes have.
    query = sa.select(AlbumPhotoRow.number).select_from(joined).where(*wanted)
    query = query.order_by(AlbumPhotoRow.position, AlbumPhotoRow.number).offset(offset).limit(limit)
    return int(total or 0), rows_there(session, list(session.scalars(query)))


def insert_album(session: Session, name: str) -> int:
    """Create an empty album; return its id."""
    row = AlbumRow(name=name)
    session.add(row)
    session.flush()
    assert row.id is not None
    return row.id


def delete_album(session: Session, album: int) -> None:
    """Delete an album; its photos stay in the collection."""
    session.execute(sa.delete(AlbumPhotoRow).where(AlbumPhotoRow.album == album), execution_options=BULK)
    session.execute(sa.delete(AlbumRow).where(AlbumRow.id == album), execution_options=BULK)


def put_in(session: Session, album: int, numbers: Sequence[int]) -> list[int]:
    """Append photos to an album; return those that were not in it. Photos that are not indexed are ignored."""
    inside = set(session.scalars(sa.select(AlbumPhotoRow.number).where(AlbumPhotoRow.album == album)))
    new = [number for number in indexed_among(session, [int(number) for number in numbers]) if number not in inside]
    last = session.scalar(sa.select(sa.func.max(AlbumPhotoRow.position)).where(AlbumPhotoRow.album == album))
    first = 0 if last is None else int(last) + 1
    if new:
        rows = [{"album": album, "number": number, "position": first + place} for place, number in enumerate(new)]
        session.execute(sa.insert(AlbumPhotoRow), rows)
    return new


def take_out(session: Session, album: int, numbers: Sequence[int]) -> list[int]:
    """Remove photos from an album; return those that were in it, in their order there."""
    wanted = {int(number) for number in numbers}
    gone = [number for number in numbers_in_album(session, album) if number in wanted]
    for some in chunks(gone):
        condition = (AlbumPhotoRow.album == album, AlbumPhotoRow.number.in_(some))
        session.execute(sa.delete(AlbumPhotoRow).where(*condition), execution_options=BULK)
    return gone


def put_in_order(session: Session, album: int, numbers: Sequence[int]) -> None:
    """Set the order of the photos of an album: all of them, each once."""
    rows: Any = AlbumPhotoRow.__table__
    change = sa.update(rows).where(rows.c.album == album, rows.c.number == sa.bindparam("of"))
    places = [{"of": int(number), "at": place} for place, number in enumerate(numbers)]
    if places:
        session.execute(change.values(position=sa.bindparam("at")), places)


def _is_shown() -> tuple[sa.ColumnElement[bool], ...]:
    return *_is_indexed(), ImageRow.number.not_in(sa.select(HiddenRow.number))


def _is_indexed() -> tuple[sa.ColumnElement[bool], ...]:
    return (ImageRow.state == INDEXED,)
