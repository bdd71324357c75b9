"""Albums of a collection, and links that show them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast, get_args

from sqlalchemy.orm import Session

from index.docstrings import completed
from index.errors import CairnError
from retrieval.catalogue.curation.albums import AlbumFacts, named, numbers_in_album
from retrieval.curation import albums, sharing
from retrieval.library.opened import OpenCollection
from retrieval.library.paragraphs import SHARED
from retrieval.library.reports import Album, SharedAlbum

# Modules for images and searching are imported lazily, as `cairn info` does not need them.
if TYPE_CHECKING:
    from retrieval.library.given import Given


@completed(SHARED)
class AlbumDecisions(OpenCollection):
    """Albums, which methods of `Collection` list, arrange and share."""

    def albums(self) -> list[Album]:
        """List the albums, the newest first.

        Returns
        -------
        list of Album
            ``collection.photos({"album": album.id})`` lists the photos of one.
        """
        return [_album(one) for one in self.opened.catalogue.read(albums.list_albums)]

    def album_photos(self, name: str) -> list[str]:
        """List the photos of an album in its order.

        Parameters
        ----------
        {album}

        Returns
        -------
        list of str
            Names of photos.

        {raises_no_album}
        """
        read = self.opened.catalogue.read
        return self._names(read(numbers_in_album, read(_named, name), hidden=False))

    def arrange_album(
        self,
        name: str,
        photos: "Given | Iterable[Given]" = (),
        *,
        before: "Given | None" = None,
        order: str | None = None,
        cover: "Given | None" = None,
    ) -> Album:
        """Sort an album, move photos in it, or choose its cover.

        Parameters
        ----------
        {album}
        photos : str, int, path-like, Photo or Result, or iterable of them
            Photos of the album to move, after it is sorted; their order among each other stays.
        before : str, int, path-like, Photo or Result, optional
            The photo of the album that they come before; by default they come last.
        order : str, optional
            ``"name"`` or ``"taken"``: sort all photos so.
        cover : str, int, path-like, Photo or Result, optional
            The photo of the album that stands for it.

        {raises_unchanged}
        CairnError
            There is no such album, there is no such order, a photo is not in the album, or `before` has no photos to
            move.
        """
        if order is not None and order not in get_args(albums.Order):
            raise CairnError("The order of an album is name or taken, not {order}.", order=order)
        moved = self._numbers(photos)
        (place,), (shown,) = (self._numbers(one) if one is not None else [None] for one in (before, cover))
        if place is not None and not moved:
            raise CairnError("{--before} says where photos are moved to: name the photos, too.")

        def arrange(session: Session) -> AlbumFacts:
            album = _named(session, name)
            if not {*moved, *([] if place is None else [place])} <= {*numbers_in_album(session, album, hidden=False)}:
                raise CairnError("That photo is not in the album: add it first.")
            albums.change_album(session, album, cover=shown, order=cast("albums.Order | None", order))
            if moved:
                albums.move_in_album(session, album, moved, place)
            return albums.read_album(session, album)

        return _album(self._write(arrange))

    def add_to_album(self, name: str, photos: "Given | Iterable[Given]" = ()) -> Album:
        """Append photos to an album, which is created if it does not exist.

        Parameters
        ----------
        {album}
        photos : str, int, path-like, Photo or Result, or iterable of them
            Photos of the collection; those already in the album keep their places.

        {raises_unchanged}
        """
        numbers = self._numbers(photos)

        def add(session: Session) -> AlbumFacts:
            album = named(session, name)
            if album is None:
                return albums.make_album(session, name, numbers)
            albums.add_to_album(session, album, numbers)
            return albums.read_album(session, album)

        return _album(self._write(add))

    def remove_from_album(self, name: str, photos: "Given | Iterable[Given]") -> Album:
        """Remove photos from an album; they stay in the collection.

        Parameters
        ----------
        {album}
        {photos}

        {raises_missing}
        CairnError
            There is no such album.
        """
        numbers = self._numbers(photos)

        def remove(session: Session) -> AlbumFacts:
            album = _named(session, name)
            albums.remove_from_album(session, album, numbers)
            return albums.read_album(session, album)

        return _album(self._write(remove))

    def rename_album(self, name: str, new_name: str) -> Album:
        """Rename an album.

        Parameters
        ----------
        {album}
        new_name : str
            No other album has this name.

        Raises
        ------
        CairnError
            There is no such album, or the new name is empty or taken.
        """
        return _album(self._write(lambda session: albums.change_album(session, _named(session, name), name=new_name)))

    def delete_album(self, name: str) -> Album:
        """Delete an album; its photos stay in the collection.

        Parameters
        ----------
        {album}

        Returns
        -------
        Album
            What it was.

        {raises_no_album}
        """
        return _album(self._write(lambda session: albums.delete_album(session, _named(session, name))[0]))

    def share_album(self, name: str, *, days: int | None = None, expires: str | None = None) -> SharedAlbum:
        """Make a link that shows the photos of an album, at viewing size, to everyone who has it.

        It works while a server of this user serves the collection: `cairn serve` or `cairn open`, with a password file,
        as otherwise no other user has access.

        Parameters
        ----------
        {album}
        days : int, optional
            Days from today until its last day; 30 if neither is given.
        expires : str, optional
            Its last day (UTC), such as 2027-01-31.

        Returns
        -------
        SharedAlbum
            With the path that opens it, which cannot be retrieved later.

        Raises
        ------
        CairnError
            There is no such album, or no such day.
        """
        last = sharing.last_day(days, expires)
        album = self.opened.catalogue.read(_named, name)
        token, link = sharing.share(self.opened.folder, album, last)
        (shared,) = self._shared([link], f"/shared/{token}")
        return shared

    def shared_albums(self) -> list[SharedAlbum]:
        """List the links to albums, the newest first."""
        return self._shared(sharing.links_of(self.opened.folder))

    def end_shared_album(self, link: str) -> SharedAlbum:
        """Disable a link to an album: from now on it shows nothing.

        Parameters
        ----------
        link : str
            Its id, as `shared_albums` lists it.

        Returns
        -------
        SharedAlbum
            What it was.

        Raises
        ------
        CairnError
            There is no such link.
        """
        (ended,) = self._shared([sharing.end_link(self.opened.folder, link)])
        return ended

    def _shared(self, links: Sequence[sharing.ShareLink], path: str | None = None) -> list[SharedAlbum]:
        names = {one.id: one.name for one in self.albums()}
        return [SharedAlbum(one.id, names.get(one.album), one.created, one.expires, one.is_over, path) for one in links]


def _named(session: Session, name: str) -> int:
    album = named(session, name)
    if album is None:
        raise albums.AlbumNotFound("There is no album {name}.", name=repr(name))
    return album


def _album(one: AlbumFacts) -> Album:
    return Album(one.album, one.name, one.photos, one.created)
