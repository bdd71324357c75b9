"""Saved and standing searches of a collection, and what they found."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from index.attributes import shared_by
from index.docstrings import completed
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build
from retrieval.catalogue.curation import saved
from retrieval.catalogue.filters import PhotoFilter, fields_of
from retrieval.catalogue.photos import names_of
from retrieval.collection.collection import Collection as Opened
from retrieval.library.decisions import content_of
from retrieval.library.filters import filter_from
from retrieval.library.opened import OpenCollection
from retrieval.library.paragraphs import SHARED
from retrieval.library.progress import Telling, telling
from retrieval.library.reports import AskedSearch, SavedSearch
from retrieval.search.options import LOCAL, SearchOptions

# Modules for images and searching are imported lazily, as `cairn info` does not need them.
if TYPE_CHECKING:
    from retrieval.library.given import Given
    from retrieval.library.motifs import Occurrence
    from retrieval.library.standing import SentPhoto
    from retrieval.search.answers import QueryImage


_QUALITY = 90  # JPEG quality of the stored copy of a query photo that is not in the collection


@completed(SHARED)
class SearchDecisions(OpenCollection):
    """Saved searches, which methods of `Collection` make, run and change."""

    def saved_searches(self) -> list[SavedSearch]:
        """List the saved searches: favourites first, then by name."""
        return [_saved(one) for one in self.opened.catalogue.read(saved.saved_searches)]

    @takes_options(SearchOptions, leave=LOCAL)
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
        {box}
        {where}
        {match_all}
        standing : bool
            Also search photos that are added from now on: see `ask_searches`.
        favourite : bool
            List it first.
        tag : str, optional
            With `standing`: given to photos that it finds.
        {options}

        {raises_unusable}
        CairnError
            The request cannot be fulfilled, or the name is empty.
        """
        from retrieval.library.given import ask, queries_of
        from retrieval.library.standing import keep_search

        build(SearchOptions, options)  # report invalid options now
        wanted = filter_from(where)
        queries, within = queries_of(photo, box)
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
        {progress}

        Returns
        -------
        list of AskedSearch
            One for each search; the finds of each are stored, and those of standing searches get their tags.

        Raises
        ------
        CairnError
            There is no such search, or it cannot be run.
        """
        from retrieval.library.standing import ask_all, ask_standing

        with self._writing():
            if search is not None:
                runs = [ask_all(self.opened, self.opened.catalogue.read(_named, search))]
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
        {search}
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
        from retrieval.groups.tables import write_table
        from retrieval.library.motifs import occurrence_rows, occurrences_of, save_rows
        from retrieval.library.tei import occurrences_tei

        stored = self.opened.catalogue.read(_named, search)
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
        {search}
        photos : str, int, path-like, Photo or Result, or iterable of them
            Photos of the collection; those that the search has not found are added.
        category : str
            Any name; "": none. Finds that are "not related" do not count as shared by books.

        {raises_unchanged}
        CairnError
            There is no such search, or several are called so.
        """
        numbers = self._numbers(photos)
        self._write(lambda session: saved.categorise(session, _named(session, search).id, numbers, category))

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
        {search}
        name : str, optional
            New name.
        standing : bool, optional
            Whether it also searches photos that are added from now on: see `ask_searches`.
        favourite : bool, optional
            Whether it is listed first.
        tag : str, optional
            Given to photos that a standing search finds; empty: none.

        Raises
        ------
        CairnError
            There is no such search, several are called so, or the name is empty.
        """
        values = {"name": name, "standing": standing, "favourite": favourite, "tag": tag}

        def change(session: Session) -> saved.StoredSearch:
            number = _named(session, search).id
            saved.change_search(session, number, {key: one for key, one in values.items() if one is not None})
            return saved.saved_search(session, number)

        return _saved(self._write(change))

    def delete_search(self, search: int | str) -> SavedSearch:
        """Delete a saved search and its finds.

        Parameters
        ----------
        {search}

        Returns
        -------
        SavedSearch
            What it was.

        Raises
        ------
        CairnError
            There is no such search, or several are called so.
        """

        def delete(session: Session) -> saved.StoredSearch:
            stored = _named(session, search)
            saved.delete_search(session, stored.id)
            return stored

        return _saved(self._write(delete))


def _named(session: Session, search: int | str) -> saved.StoredSearch:
    """Return a saved search of an id, or of a name that one search alone has; raises CairnError otherwise."""
    matches = [one for one in saved.saved_searches(session) if search in (one.id, one.name)]
    if len(matches) != 1:
        raise CairnError(
            "{count} saved searches are called {search}: give the id of one.",
            count=len(matches) or "No",
            search=repr(search),
        )
    return matches[0]


def _saved(one: saved.StoredSearch) -> SavedSearch:
    return SavedSearch(**shared_by(SavedSearch, one))


def _sent(collection: Opened, query_image: "QueryImage") -> "SentPhoto":
    """Make the stored copy of a query photo that is not in the collection."""
    from retrieval.library.standing import SENT_SIDE, SentPhoto
    from retrieval.photos.decoding import read_colour_sized
    from retrieval.photos.thumbnails import encode_jpeg

    options = replace(collection.options.image, max_side=SENT_SIDE)
    pixels, width, height = read_colour_sized(query_image.path, options)
    return SentPhoto(content_of(query_image), encode_jpeg(pixels, _QUALITY), max(pixels.shape[:2]) / max(width, height))
