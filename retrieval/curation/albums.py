"""Albums of a collection: make by hand or from groups, rename, split, merge, sort."""

from collections.abc import Sequence
from typing import Literal

from sqlalchemy.orm import Session

from index.errors import CairnError
from retrieval.catalogue.curation import albums as rows
from retrieval.catalogue.curation.albums import AlbumFacts
from retrieval.catalogue.database import write_alone
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.schema import AlbumRow, ImageRow
from retrieval.metadata.text import clean

LONGEST_NAME = 200
"""Characters of an album's name."""
Order = Literal["name", "taken"]


class AlbumNotFound(CairnError):
    """There is no such album."""

    _kind = "missing"


class NoName(CairnError):
    """A name is empty."""

    _kind = "name"


def list_albums(session: Session) -> list[AlbumFacts]:
    """List all albums, the newest first."""
    return rows.albums_in(session)


def read_album(session: Session, album: int) -> AlbumFacts:
    """Read one album."""
    _row(session, album)
    return rows.albums_in(session, [album])[0]


def album_page(session: Session, album: int, offset: int, limit: int) -> tuple[int, list[ImageRow]]:
    """Number of photos of an album, and those of one page, in its order."""
    _row(session, album)
    return rows.page_of_album(session, album, offset, limit)


def albums_of_photo(session: Session, number: int) -> list[AlbumFacts]:
    """List the albums that a photo is in, the newest first."""
    return rows.albums_in(session, rows.albums_of_photo(session, number))


def make_album(session: Session, name: str, photos: Sequence[int] = (), cover: int | None = None) -> AlbumFacts:
    """Make an album, whose name must be unique, ignoring case; its cover is by default the first photo."""
    album = rows.insert_album(session, _free_name(session, name))
    rows.put_in(session, album, photos)
    _row(session, album).cover = cover
    session.flush()
    return read_album(session, album)


def change_album(
    session: Session, album: int, *, name: str | None = None, cover: int | None = None, order: Order | None = None
) -> AlbumFacts:
    """Rename an album, choose its cover, or sort it by name or date; photos without a date come last."""
    row = _row(session, album)
    if name is not None:
        row.name = _free_name(session, name, album)
    if cover is not None:
        if cover not in rows.numbers_in_album(session, album):
            raise CairnError("That photo is not in the album: add it first.")
        row.cover = cover
    if order is not None:
        photos = rows_of(session, rows.numbers_in_album(session, album), indexed=True)
        photos.sort(key=lambda one: (one.taken or "~" if order == "taken" else "", one.name or ""))
        rows.put_in_order(session, album, [one.number for one in photos])
    session.flush()
    return read_album(session, album)


def delete_album(session: Session, album: int) -> tuple[AlbumFacts, list[int]]:
    """Delete an album, whose photos stay in the collection; return the album, and its photos in order."""
    before = read_album(session, album), rows.numbers_in_album(session, album)
    rows.delete_album(session, album)
    return before


def add_to_album(session: Session, album: int, photos: Sequence[int]) -> list[int]:
    """Append photos to an album; return the numbers of those that were not in it."""
    _row(session, album)
    return rows.put_in(session, album, photos)


def remove_from_album(session: Session, album: int, photos: Sequence[int]) -> list[int]:
    """Remove photos from an album; return the numbers of those that were in it."""
    _row(session, album)
    return rows.take_out(session, album, photos)


def move_in_album(session: Session, album: int, photos: Sequence[int], before: int | None = None) -> None:
    """Move photos of an album before another of its photos, or to its end, without changing their relative order."""
    _row(session, album)
    moved = {int(number) for number in photos} - {before}
    present = rows.numbers_in_album(session, album)
    left, moving = ([one for one in present if (one in moved) is so] for so in (False, True))
    place = left.index(before) if before in left else len(left)
    rows.put_in_order(session, album, [*left[:place], *moving, *left[place:]])


def split_album(session: Session, album: int, photos: Sequence[int], name: str) -> AlbumFacts:
    """Move photos of an album to a new one, in the same order."""
    _row(session, album)
    new = rows.insert_album(session, _free_name(session, name))
    removed = rows.take_out(session, album, photos)
    if not removed:
        raise CairnError("None of these photos is in the album: choose some of its photos.")
    rows.put_in(session, new, removed)
    return read_album(session, new)


def merge_albums(session: Session, album: int, others: Sequence[int]) -> AlbumFacts:
    """Append the photos of other albums to one, each once, and delete the others."""
    row = _row(session, album)
    for other in dict.fromkeys(others):
        if other == album:
            continue
        merged = _row(session, other)
        rows.put_in(session, album, rows.numbers_in_album(session, other))
        row.cover = merged.cover if row.cover is None else row.cover
        session.flush()
        rows.delete_album(session, other)
    session.flush()
    return read_album(session, album)


def _row(session: Session, album: int) -> AlbumRow:
    row = rows.album_row(session, album)
    if row is None:
        raise AlbumNotFound("There is no such album: it may have been deleted.")
    return row


def _free_name(session: Session, name: str, album: int | None = None) -> str:
    """The normalised name; raises if another album has it."""
    cleaned = clean(name, LONGEST_NAME)
    if not cleaned:
        raise NoName("An album needs a name.")
    write_alone(session, AlbumRow)  # constraints do not cover names that differ only in case
    if rows.named(session, cleaned) not in (None, album):
        raise CairnError("There is an album called {cleaned} already: choose another name.", cleaned=repr(cleaned))
    return cleaned
