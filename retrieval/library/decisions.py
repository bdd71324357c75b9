"""Decisions of people about photos: titles, dates, tags and stars, hidden photos, pairs that are no match."""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from index.docstrings import completed
from retrieval.catalogue.curation.hidden import hidden_among, hide, show
from retrieval.catalogue.curation.rejections import reject, rejected_for, take_back
from retrieval.curation import editing
from retrieval.curation.editing import Edited
from retrieval.library.opened import OpenCollection
from retrieval.library.paragraphs import SHARED

# Modules for images and searching are imported lazily, as `cairn info` does not need them.
if TYPE_CHECKING:
    from retrieval.library.given import Given
    from retrieval.search.answers import QueryImage


@completed(SHARED)
class PhotoDecisions(OpenCollection):
    """Decisions of people about photos, which methods of `Collection` make and list."""

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
        {photos}
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
        edited: Edited = self._write(lambda session: editing.edit_photos(session, numbers, edit))
        return edited

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

    def hide(self, photos: "Given | Iterable[Given]") -> list[str]:
        """Hide photos from lists and search results; they stay in the collection.

        Parameters
        ----------
        {photos}

        Returns
        -------
        list of str
            Names of those that were not hidden before. ``collection.photos({"hidden": True})`` lists all.

        {raises_unchanged}
        """
        numbers = self._numbers(photos)
        return self._names(self._write(lambda session: hide(session, numbers)))

    def show(self, photos: "Given | Iterable[Given]") -> list[str]:
        """Show hidden photos again.

        Parameters
        ----------
        {photos}

        Returns
        -------
        list of str
            Names of those that were hidden.

        {raises_unchanged}
        """
        numbers = self._numbers(photos)

        def again(session: Session) -> list[int]:
            hidden = hidden_among(session, numbers)
            show(session, hidden)
            return hidden

        return self._names(self._write(again))

    def reject(self, query: "Given", photos: "Given | Iterable[Given]") -> list[str]:
        """Mark photos as not showing the same as another photo: searches with that one leave them out from now on.

        Parameters
        ----------
        {query}
        photos : str, int, path-like, Photo or Result, or iterable of them
            Photos of the collection that are no match of it.

        Returns
        -------
        list of str
            Names of those that were not rejected before.

        {raises_unchanged}
        """
        key, numbers = self._query_key(query), self._numbers(photos)
        return self._names(self._write(lambda session: reject(session, key, numbers)))

    def accept(self, query: "Given", photos: "Given | Iterable[Given]") -> list[str]:
        """Unmark photos as no match of another: see `reject`.

        Parameters
        ----------
        {query}
        {photos}

        Returns
        -------
        list of str
            Names of those that were rejected.

        {raises_unchanged}
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
        {query}

        Returns
        -------
        list of str
            Names, by number of the photo.

        {raises_missing}
        """
        key = self._query_key(query)
        return self._names(self.opened.catalogue.read(_rejected, key))

    def _query_key(self, query: "Given") -> int | str:
        """Number of the photo of a query, or the SHA-256 of a file."""
        from retrieval.library.given import ask

        query_image = ask(self.opened, query)
        return query_image.row.number if query_image.row is not None else content_of(query_image)


def _rejected(session: Session, query: int | str) -> list[int]:
    return rejected_for(session, None, query) if isinstance(query, str) else rejected_for(session, query)


def content_of(query_image: "QueryImage") -> str:
    """SHA-256 of the file of a query photo."""
    return query_image.content or hashlib.sha256(query_image.path.read_bytes()).hexdigest()
