"""Decisions of users: titles and tags, albums, hidden photos, pairs that are no match, saved searches."""

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from sqlalchemy.orm import Session

from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build, options_of
from retrieval.catalogue.curation import saved
from retrieval.catalogue.curation.albums import StoredAlbum as AlbumFacts
from retrieval.catalogue.curation.albums import named, shown_in_album
from retrieval.catalogue.curation.hidden import hidden_among, hide, show
from retrieval.catalogue.curation.rejections import reject, rejected_for, take_back
from retrieval.catalogue.filters import PhotoFilter, fields_of
from retrieval.catalogue.photos import names_of
from retrieval.collection.collection import Collection as Opened
from retrieval.curation import albums, editing, sharing
from retrieval.library.filters import filter_from
from retrieval.library.progress import Telling, telling
from retrieval.library.reports import Album, AskedSearch, Edited, SavedSearch, SharedAlbum
from retrieval.search.options import SearchOptions

if TYPE_CHECKING:
    from retrieval.library.given import Given
    from retrieval.library.motifs import Occurrence
    from retrieval.library.standing import SentPhoto
    from retrieval.search.answers import QueryImage

_LOCAL = tuple(name for name, one in options_of(SearchOptions).items() if one.option.local)  # they name files
_QUALITY = 90  # JPEG quality of the stored copy of a query photo that is not in the collection


class Decisions:
    """Decisions of people about photos, which methods of `Collection` make and list."""

    _lock: threading.RLock

    @property
    def opened(self) -> Opened:
        """The open collection."""
        raise NotImplementedError

    # Titles, dates, tags and stars

    def edit(
        self,
        photos: "Given | Iterable[Given]",
        *,
        title: str | None = None,
        caption: str | None = None,
        taken: str | None = None,
        add_tags: str | Iterable[str] = (),
        remove_tags: str | Iterable[str] = (),
        rating: int | None = None,
        favourite: bool | None = None,
    ) -> Edited:
        """Edit metadata of photos, which overrides that of their files; the files do not change.

        Parameters
        ----------
        photos : str, int, path-like, Photo or Result, or iterable of them
            Photos of the collection.
        title : str, optional
            Their title; "": that of their files.
        caption : str, optional
            Their caption; "": that of their files.
        taken : str, optional
            When they were taken, such as 1923, 1923-05 or 1923-05-17; "": the date of their files.
        add_tags, remove_tags : str or iterable of str
            Tags to add and to remove; tags of a file stay.
        rating : int, optional
            Stars, 1 to 5; 0: the rating of their files.
        favourite : bool, optional
            Mark them as favourites, or no longer.

        Returns
        -------
        Edited
            For `undo`.

        Raises
        ------
        CairnError
            A value is invalid.
        """
        add, remove = ((one,) if isinstance(one, str) else tuple(one) for one in (add_tags, remove_tags))
        edit = editing.Edit(title, caption, taken, add, remove, rating, favourite)
        numbers = self._numbers(photos)
        done = self._write(lambda session: editing.edit_photos(session, numbers, edit))
        return Edited(len(done.before), done.kept, {number: dict(values) for number, values in done.before.items()})

    def undo(self, edited: Edited) -> int:
        """Undo an edit.

        Parameters
        ----------
        edited : Edited
            Result of `edit`.

        Returns
        -------
        int
            Number of the photos that still exist.
        """
        restored: int = self._write(lambda session: editing.restore_photos(session, edited.before))
        return restored

    # Albums

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
        name : str
            Of the album, ignoring case.

        Returns
        -------
        list of str
            Names of photos.

        Raises
        ------
        CairnError
            There is no such album.
        """
        read = self.opened.catalogue.read
        return self._names(read(shown_in_album, read(_named, name)))

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
        name : str
            Of the album, ignoring case.
        photos : str, int, path-like, Photo or Result, or iterable of them
            Photos of the album to move, after it is sorted; their order among each other stays.
        before : str, int, path-like, Photo or Result, optional
            The photo of the album that they come before; by default they come last.
        order : str, optional
            ``"name"`` or ``"taken"``: sort all photos so.
        cover : str, int, path-like, Photo or Result, optional
            The photo of the album that stands for it.

        Returns
        -------
        Album

        Raises
        ------
        PhotoNotFound
            There is no such photo; nothing is changed then.
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
            if not {*moved, *([] if place is None else [place])} <= {*shown_in_album(session, album)}:
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
        name : str
            Of the album, ignoring case.
        photos : str, int, path-like, Photo or Result, or iterable of them
            Photos of the collection; those already in the album keep their places.

        Returns
        -------
        Album

        Raises
        ------
        PhotoNotFound
            There is no such photo; nothing is changed then.
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
        name : str
        photos : str, int, path-like, Photo or Result, or iterable of them

        Returns
        -------
        Album

        Raises
        ------
        PhotoNotFound
            There is no such photo.
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
        name : str
        new_name : str
            No other album has this name.

        Returns
        -------
        Album

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
        name : str

        Returns
        -------
        Album
            What it was.

        Raises
        ------
        CairnError
            There is no such album.
        """
        return _album(self._write(lambda session: albums.delete_album(session, _named(session, name))[0]))

    def share_album(self, name: str, *, days: int | None = None, expires: str | None = None) -> SharedAlbum:
        """Make a link that shows the photos of an album, at viewing size, to everyone who has it.

        It works while a server of this user serves the collection: `cairn serve` or `cairn open`, with a password file,
        as otherwise no other user has access.

        Parameters
        ----------
        name : str
            Of the album.
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
        """List the links to albums, the newest first.

        Returns
        -------
        list of SharedAlbum
        """
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

    # Hidden photos

    def hide(self, photos: "Given | Iterable[Given]") -> list[str]:
        """Hide photos from lists and search results; they stay in the collection.

        Parameters
        ----------
        photos : str, int, path-like, Photo or Result, or iterable of them

        Returns
        -------
        list of str
            Names of those that were not hidden before. ``collection.photos({"hidden": True})`` lists all.

        Raises
        ------
        PhotoNotFound
            There is no such photo; nothing is changed then.
        """
        numbers = self._numbers(photos)
        return self._names(self._write(lambda session: hide(session, numbers)))

    def show(self, photos: "Given | Iterable[Given]") -> list[str]:
        """Show hidden photos again.

        Parameters
        ----------
        photos : str, int, path-like, Photo or Result, or iterable of them

        Returns
        -------
        list of str
            Names of those that were hidden.

        Raises
        ------
        PhotoNotFound
            There is no such photo; nothing is changed then.
        """
        numbers = self._numbers(photos)

        def again(session: Session) -> list[int]:
            hidden = hidden_among(session, numbers)
            show(session, hidden)
            return hidden

        return self._names(self._write(again))

    # No match

    def reject(self, query: "Given", photos: "Given | Iterable[Given]") -> list[str]:
        """Mark photos as not showing the same as another photo: searches with that one leave them out from now on.

        Parameters
        ----------
        query : str, int, path-like, bytes, ndarray, PIL.Image.Image, Photo or Result
            The query photo, as for `search`.
        photos : str, int, path-like, Photo or Result, or iterable of them
            Photos of the collection that are no match of it.

        Returns
        -------
        list of str
            Names of those that were not rejected before.

        Raises
        ------
        PhotoNotFound
            There is no such photo; nothing is changed then.
        """
        key, numbers = self._query_key(query), self._numbers(photos)
        return self._names(self._write(lambda session: reject(session, key, numbers)))

    def accept(self, query: "Given", photos: "Given | Iterable[Given]") -> list[str]:
        """Unmark photos as no match of another: see `reject`.

        Parameters
        ----------
        query : str, int, path-like, bytes, ndarray, PIL.Image.Image, Photo or Result
        photos : str, int, path-like, Photo or Result, or iterable of them

        Returns
        -------
        list of str
            Names of those that were rejected.

        Raises
        ------
        PhotoNotFound
            There is no such photo; nothing is changed then.
        """
        key, numbers = self._query_key(query), self._numbers(photos)

        def again(session: Session) -> list[int]:
            rejected = _rejected(session, key)
            take_back(session, key, numbers)
            return [number for number in numbers if number in rejected]

        return self._names(self._write(again))

    def rejected(self, query: "Given") -> list[str]:
        """List the photos that are no match of a photo.

        Parameters
        ----------
        query : str, int, path-like, bytes, ndarray, PIL.Image.Image, Photo or Result

        Returns
        -------
        list of str
            Names, by number of the photo.

        Raises
        ------
        PhotoNotFound
            There is no such photo.
        """
        key = self._query_key(query)
        return self._names(self.opened.catalogue.read(_rejected, key))

    # Saved and standing searches

    def saved_searches(self) -> list[SavedSearch]:
        """List the saved searches: favourites first, then by name.

        Returns
        -------
        list of SavedSearch
        """
        return [_saved(one) for one in self.opened.catalogue.read(saved.saved_searches)]

    @takes_options(SearchOptions, leave=_LOCAL)
    def save_search(
        self,
        name: str,
        photo: "Given | Iterable[Given]",
        box: Iterable[float] | None = None,
        *,
        where: PhotoFilter | Mapping[str, Any] | None = None,
        match_all: bool = False,
        standing: bool = False,
        favourite: bool = False,
        tag: str | None = None,
        **options: Any,
    ) -> SavedSearch:
        """Save a search under a name; a standing search also covers photos that are added from now on.

        Parameters
        ----------
        name : str
        photo : str, path-like, int, bytes, ndarray, PIL.Image.Image, Photo or Result; or an iterable of them
            The query, as for `search`. One photo may be from outside the collection: a copy of it is stored.
        box : sequence of four floats, optional
            x0, y0, x1, y1 in pixels of the upright photo: search for its content.
        where : Filter or mapping, optional
            Photos to search.
        match_all : bool
            With several photos: results must match all of them, not any.
        standing : bool
            Also search photos that are added from now on: see `ask_searches`.
        favourite : bool
            List it first.
        tag : str, optional
            With `standing`: given to photos that it finds.
        {options}

        Returns
        -------
        SavedSearch

        Raises
        ------
        PhotoNotFound, PhotoUnusable
            There is no such photo, or it cannot be read.
        CairnError
            The request cannot be fulfilled, or the name is empty.
        """
        from retrieval.library.given import as_box, ask, several
        from retrieval.library.standing import keep_search

        build(SearchOptions, options)  # report invalid options now
        wanted, within, queries = filter_from(where), as_box(box), several(photo)
        if not queries:
            raise CairnError("A query needs at least one photo.")
        if within is not None and len(queries) > 1:
            raise CairnError("A box can only be used with one photo: give one photo, or leave the box out.")
        query_images = [ask(self.opened, one, within) for one in queries]
        elsewhere = [one for one in query_images if one.row is None]
        if len(elsewhere) > 1:
            raise CairnError(
                "A saved search can have only one photo that is not in the collection: add the others to "
                "the collection."
            )
        kept = [
            {
                **({"photo": one.row.number} if one.row is not None else {"name": Path(one.name).name}),
                **({"box": list(one.box)} if one.box is not None else {}),
            }
            for one in query_images
        ]
        how = {
            **options,
            **(fields_of(wanted) if wanted is not None else {}),
            **({"match": "all"} if match_all else {}),
        }
        sent = _sent(self.opened, elsewhere[0]) if elsewhere else None

        def keep(session: Session) -> saved.StoredSearch:
            more = {"standing": standing, "favourite": favourite, "tag": tag}
            return saved.saved_search(session, keep_search(session, name, kept, how, sent, **more))

        return _saved(self._write(keep))

    def ask_searches(self, search: int | str | None = None, *, progress: Telling = None) -> list[AskedSearch]:
        """Run the standing searches on the photos added since, or one saved search on all photos.

        Parameters
        ----------
        search : int or str, optional
            Id or name of the one to run on all photos, standing or not. Its finds, including likely photos, are stored
            without a tag, 1,000 photos at most: see `occurrences`.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        list of AskedSearch
            One for each search; the finds of each are stored, and those of standing searches get their tags.

        Raises
        ------
        CairnError
            There is no such search, or it cannot be run.
        """
        from retrieval.library.motifs import named_search
        from retrieval.library.standing import ask_all, ask_standing

        with self._writing():
            if search is not None:
                runs = [ask_all(self.opened, self.opened.catalogue.read(named_search, search))]
            else:
                with telling(progress, {"searches": "Asking (searches)"}) as tell:
                    runs = ask_standing(self.opened, progress=tell)
        names = self.opened.catalogue.read(names_of, sorted({number for one in runs for number in one.found}))
        return [
            AskedSearch(
                one.search.id,
                one.search.name,
                one.asked,
                [names[number] for number in one.found if number in names],
                one.problem or None,
            )
            for one in runs
        ]

    def occurrences(
        self, search: int | str, *, category: str | None = None, out: str | Path | None = None
    ) -> "list[Occurrence]":
        """List the finds of a saved search: the book and page of each photo, and its category.

        Parameters
        ----------
        search : int or str
            Its id; or its name, if unique.
        category : str, optional
            Only those of a category; "": those without one.
        out : path-like, optional
            Write a table (CSV) of them here, or TEI where its name ends in ``.xml``.

        Returns
        -------
        list of Occurrence
            By date. `ask_searches` runs the search on all photos.

        Raises
        ------
        CairnError
            There is no such search, several have this name, or the table cannot be written.
        """
        from retrieval.groups.groups import write_table
        from retrieval.library.motifs import named_search, occurrence_rows, occurrences_of, save_rows
        from retrieval.library.tei import occurrences_tei

        stored = self.opened.catalogue.read(named_search, search)
        photos = occurrences_of(self.opened, stored, category)
        if out is not None and Path(out).suffix.lower() == ".xml":
            write_table(Path(out), occurrences_tei(self.opened, stored, category))
        elif out is not None:
            save_rows(Path(out), occurrence_rows(photos))
        return photos

    def categorise(self, search: int | str, photos: "Given | Iterable[Given]", category: str) -> None:
        """Put photos into a category of the finds of a saved search, such as "same block" or "copy".

        Parameters
        ----------
        search : int or str
            Its id; or its name, if unique.
        photos : str, int, path-like, Photo or Result, or iterable of them
            Photos of the collection; those that the search has not found are added.
        category : str
            Any name; "": none. Finds that are "not related" do not count as shared by books.

        Raises
        ------
        PhotoNotFound
            There is no such photo; nothing is changed then.
        CairnError
            There is no such search, or several are called so.
        """
        from retrieval.library.motifs import named_search

        numbers = self._numbers(photos)
        self._write(lambda session: saved.categorise(session, named_search(session, search).id, numbers, category))

    def change_search(
        self,
        search: int | str,
        *,
        name: str | None = None,
        standing: bool | None = None,
        favourite: bool | None = None,
        tag: str | None = None,
    ) -> SavedSearch:
        """Change a saved search; what is left out stays the same.

        Parameters
        ----------
        search : int or str
            Its id; or its name, if unique.
        name : str, optional
            New name.
        standing : bool, optional
            Whether it also searches photos that are added from now on: see `ask_searches`.
        favourite : bool, optional
            Whether it is listed first.
        tag : str, optional
            Given to photos that a standing search finds; empty: none.

        Returns
        -------
        SavedSearch

        Raises
        ------
        CairnError
            There is no such search, several are called so, or the name is empty.
        """
        from retrieval.library.motifs import named_search

        values = {"name": name, "standing": standing, "favourite": favourite, "tag": tag}

        def change(session: Session) -> saved.StoredSearch:
            number = named_search(session, search).id
            saved.change_search(session, number, {key: one for key, one in values.items() if one is not None})
            return saved.saved_search(session, number)

        return _saved(self._write(change))

    def delete_search(self, search: int | str) -> SavedSearch:
        """Delete a saved search and its finds.

        Parameters
        ----------
        search : int or str
            Its id; or its name, if unique.

        Returns
        -------
        SavedSearch
            What it was.

        Raises
        ------
        CairnError
            There is no such search, or several are called so.
        """
        from retrieval.library.motifs import named_search

        def delete(session: Session) -> saved.StoredSearch:
            stored = named_search(session, search)
            saved.delete_search(session, stored.id)
            return stored

        return _saved(self._write(delete))

    def _numbers(self, photos: "Given | Iterable[Given]") -> list[int]:
        """Numbers of photos of the collection, in their order."""
        from retrieval.library.given import row_of, several

        return [row_of(self.opened, one).number for one in several(photos)]  # type: ignore[arg-type]

    def _names(self, numbers: Iterable[int]) -> list[str]:
        """Names of those photos that exist, in their order."""
        numbers = list(numbers)
        names = self.opened.catalogue.read(names_of, numbers)
        return [names[number] for number in numbers if number in names]

    def _query_key(self, query: "Given") -> int | str:
        """Number of the photo of a query, or the SHA-256 of a file."""
        from retrieval.library.given import ask

        query_image = ask(self.opened, query)
        return query_image.row.number if query_image.row is not None else _content(query_image)

    def _write(self, change: Callable[[Session], Any]) -> Any:
        """Change the catalogue in one transaction, and seal the collection; return the result of `change`."""
        with self._writing():
            return self.opened.catalogue.write(change)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        from retrieval.collection.sealing import sealed_afterwards

        with self._lock, sealed_afterwards(self.opened):
            yield


def _named(session: Session, name: str) -> int:
    album = named(session, name)
    if album is None:
        raise albums.AlbumNotFound("There is no album {name}.", name=repr(name))
    return album


def _album(one: AlbumFacts) -> Album:
    return Album(one.album, one.name, one.photos, one.created)


def _saved(one: saved.StoredSearch) -> SavedSearch:
    return SavedSearch(
        one.id, one.name, dict(one.query), one.favourite, one.standing, one.tag, one.created, one.found, one.new
    )


def _rejected(session: Session, query: int | str) -> list[int]:
    return rejected_for(session, None, query) if isinstance(query, str) else rejected_for(session, query)


def _content(query_image: "QueryImage") -> str:
    return query_image.content or hashlib.sha256(query_image.path.read_bytes()).hexdigest()


def _sent(collection: Opened, query_image: "QueryImage") -> "SentPhoto":
    """Make the stored copy of a query photo that is not in the collection."""
    from retrieval.library.standing import SENT_SIDE, SentPhoto
    from retrieval.photos.decoding import read_colour_sized
    from retrieval.photos.thumbnails import encode_jpeg

    options = replace(collection.options.image, max_side=SENT_SIDE)
    pixels, width, height = read_colour_sized(query_image.path, options)
    return SentPhoto(_content(query_image), encode_jpeg(pixels, _QUALITY), max(pixels.shape[:2]) / max(width, height))
