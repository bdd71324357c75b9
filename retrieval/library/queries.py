"""Searching a collection, and matching or comparing photos with its own."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from index.docstrings import completed
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build, whole
from index.parallel import one_thread
from index.progress import Progress
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.schema import ImageRow
from retrieval.library.filters import filter_from
from retrieval.library.opened import OpenCollection
from retrieval.library.paragraphs import SHARED
from retrieval.library.photos import Photo, cache_of
from retrieval.library.progress import Telling, telling
from retrieval.search.options import SearchOptions

# Modules for images and searching are imported lazily, as `cairn info` does not need them.
if TYPE_CHECKING:
    from retrieval.library.answers import Answer
    from retrieval.library.given import Given, InCollection
    from retrieval.library.impressions import AlignedPhotos, Impressions
    from retrieval.library.matches import Match
    from retrieval.library.print_clock import ClockDecisions, PrintClock
    from retrieval.search.answers import QueryImage


_MISSING: Any = object()  # of a photo that has no box, or a box that has no photo


@completed(SHARED)
class PhotoQueries(OpenCollection):
    """Searches and comparisons, which methods of `Collection` make."""

    @takes_options(SearchOptions)
    def search(
        self,
        photo: "Given | Iterable[Given]",
        box: Iterable[float] | None = None,
        *,
        top: int = 20,
        where: PhotoFilter | Mapping[str, Any] | None = None,
        match_all: bool = False,
        features: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> "Answer":
        """Find the photos that show the same object or landmark as a photo, or as a box in one.

        Parameters
        ----------
        {queries}
        {box}
        top : int
            Number of results.
        {where}
        {match_all}
        features : path-like, optional
            Features of photos that are not in a collection of features of another program.
        {options}

        Returns
        -------
        Answer
            The photos that have something in common with the query, the best first.

        {raises_unusable}
        FeaturesNeeded
            The collection has features of another program, and lacks those of the photo.
        CollectionChanged
            Other processes change the collection faster than it can be searched.
        CairnError
            The request cannot be fulfilled.
        """
        from retrieval.library.given import ask, queries_of

        how, top = build(SearchOptions, options), whole("top", top)
        queries, within = queries_of(photo, box)
        if top < 1:
            raise CairnError(f"top must be at least 1, not {top}.")
        wanted = filter_from(where)

        def search() -> "Answer":
            self._searches.searcher(how)  # report what it lacks before looking up a photo
            query_image = [ask(self.opened, one, within) for one in queries]
            return self._searches.search(query_image, how, wanted=wanted, top=top, match_all=match_all)

        with self._lock:
            if features is None:
                return self._steadily(search)
            with self.opened.other_features():
                self._use_features(Path(features), len(queries))
                return self._steadily(search)

    def search_many(
        self, photos: "Iterable[Given]", boxes: Iterable[Iterable[float] | None] | None = None, **how: Any
    ) -> "Iterator[Answer]":
        """Search for many photos, one after the other.

        Parameters
        ----------
        photos : iterable
            Photos, as for `search`.
        boxes : iterable, optional
            A box for each, or None.
        **how
            See `search`.

        Yields
        ------
        Answer
            Of each photo.

        Raises
        ------
        CairnError
            As `search`; or the numbers of boxes and photos differ.
        """
        from retrieval.library.given import is_one

        if isinstance(photos, (str, bytes)) or (not isinstance(photos, np.ndarray) and is_one(photos)):
            raise CairnError("Give a list of photos; search takes one.")
        pairs: Iterable[Any] = ((one, None) for one in photos)
        if boxes is not None:
            pairs = zip_longest(photos, boxes, fillvalue=_MISSING)
        for photo, box in pairs:
            if photo is _MISSING or box is _MISSING:
                raise CairnError("There must be as many boxes as photos: None stands for a whole photo.")
            yield self.search(photo, box, **how)

    def photos_like(
        self, words: str, *, top: int = 20, where: PhotoFilter | Mapping[str, Any] | None = None
    ) -> list[tuple[Photo, float]]:
        """Find the photos that look like what words say, by global descriptors that describe words, too.

        Parameters
        ----------
        words : str
            Such as "a red door in snow".
        top : int
            Most photos.
        {where}

        Returns
        -------
        list of (Photo, float)
            The best first, with the cosine between the rows of words and photo: nothing confirms any.

        Raises
        ------
        CairnError
            What described the photos describes no words.
        """
        from retrieval.library.photos import photos_there
        from retrieval.search.global_ranking import photos_like

        wanted = filter_from(where) or PhotoFilter()
        with self._lock:
            likeness_by_name = dict(photos_like(self.opened, words, wanted, whole("top", top, 1)))
            photos = photos_there(self.opened.catalogue, list(likeness_by_name), cache_of(self.folder))
        return [(photo, round(likeness_by_name[photo.number], 4)) for photo in photos]

    @takes_options(SearchOptions, leave=("expand", "every_turn", "soft", "global_descriptors"))
    def match(
        self,
        photo: "Given",
        other: "str | int | np.integer | os.PathLike[str] | InCollection",
        box: Iterable[float] | None = None,
        **options: Any,
    ) -> "Match":
        """Match a photo, or a box in one, with one photo of the collection.

        Parameters
        ----------
        photo : str, path-like, int, bytes, ndarray, PIL.Image.Image, Photo or Result
            Any photo, as for `search`.
        other : str, path-like, int, Photo or Result
            A photo of the collection: its name, its file, its number, or an element of an answer or a list.
        {box}
        {options}

        Returns
        -------
        Match
            Without inliers if geometry finds no map.

        {raises_unusable}
        CairnError
            The request cannot be fulfilled.
        """
        from retrieval.library.given import as_box, ask, row_of

        how = build(SearchOptions, options)
        within = as_box(box)

        def match() -> "Match":
            return self._searches.match(ask(self.opened, photo, within), row_of(self.opened, other), how)

        with self._lock:
            return self._steadily(match)

    @takes_options(SearchOptions, leave=("expand", "every_turn", "soft", "global_descriptors"))
    def impressions(
        self,
        photos: "Iterable[Given]",
        reference: "Given | None" = None,
        box: Iterable[float] | None = None,
        *,
        tolerance: float | None = None,
        progress: Telling = None,
        **options: Any,
    ) -> "Impressions":
        """Align photos of one printed block or plate, and compare each two of them.

        Parameters
        ----------
        {impressions}
        box : sequence of four floats, optional
            x0, y0, x1, y1 in pixels of the upright reference: what is compared. Otherwise what matches is.
        tolerance : float, optional
            Pixels of the frame within which ink counts as there; otherwise half the width of a line, one at least.
        {progress}
        {options}

        Returns
        -------
        Impressions
            Photos that do not match the reference are in `left_out`.

        {raises_unusable}
        CairnError
            Fewer than two photos were given, or too many; none matches the reference.
        """
        from retrieval.library.impressions import compare_aligned

        if tolerance is not None and not 0 <= tolerance <= 64:
            raise CairnError(f"A tolerance is from 0 to 64 pixels, not {tolerance}.")
        with self._aligning(photos, reference, box, build(SearchOptions, options), progress) as (_, found, tell):
            return compare_aligned(found, tolerance, tell)

    @takes_options(SearchOptions, leave=("expand", "every_turn", "soft"))
    def print_clock(
        self,
        photos: "Iterable[Given]",
        reference: "Given | None" = None,
        box: Iterable[float] | None = None,
        *,
        clock: str | None = None,
        decisions: "ClockDecisions | None" = None,
        keep: bool = False,
        progress: Telling = None,
        **options: Any,
    ) -> "PrintClock":
        """Estimate in which order impressions of one block or plate were printed, and when, by breaks or widths of
        lines.

        Dates that were imported or typed in calibrate the clock if at least two of them differ; those of files say when
        photos were taken, and count only by `ClockDecisions.dated`.

        Parameters
        ----------
        {impressions}
        box : sequence of four floats, optional
            x0, y0, x1, y1 in pixels of the upright reference: what is read. Otherwise what matches is.
        clock : {"breaks", "widths"}, optional
            What is read, in place of what the decisions say: breaks, of woodcuts, or widths of lines, of engravings.
        decisions : ClockDecisions, optional
            What is left out or overruled; otherwise what is kept with this reference and box.
        keep : bool
            Keep the decisions in the collection, in place of those that are kept.
        {progress}
        {options}

        Returns
        -------
        PrintClock
            Photos that do not match the reference are in `left_out`.

        {raises_unusable}
        CairnError
            Fewer than two photos are left, they have too few lines in common, or decisions contradict each other.
        """
        from retrieval.library.print_clock import (
            clock_key,
            dates_of,
            keep_decisions,
            kept_decisions,
            named_in,
            read_clock,
        )

        with self._aligning(photos, reference, box, build(SearchOptions, options), progress) as (query_image, found, _):
            key = clock_key(None if query_image.row is None else query_image.row.number, query_image.box)
            if decisions is None:
                followed = self.opened.catalogue.read(kept_decisions, key)
            else:
                followed = named_in(found, decisions)
            if clock is not None:
                followed = replace(followed, clock=clock)
            read = read_clock(found, followed, dates_of(self.opened, found))
            if keep:
                self._write(lambda session: keep_decisions(session, key, followed))
            return read

    @contextmanager
    def _aligning(
        self,
        photos: "Iterable[Given]",
        reference: "Given | None",
        box: Iterable[float] | None,
        how: SearchOptions,
        progress: Telling,
    ) -> "Iterator[tuple[QueryImage, AlignedPhotos, Progress]]":
        """Bring photos into the frame of a reference, and hold the lock."""
        from retrieval.library.given import as_box, ask, several
        from retrieval.library.impressions import TITLES, align_photos, rows_beside

        chosen, within = several(photos), as_box(box)
        with self._lock, one_thread(), telling(progress, TITLES) as tell:
            if reference is None and chosen:
                reference = chosen[0]
            if reference is None:
                raise CairnError("Comparing impressions needs at least two photos.")
            query_image = ask(self.opened, reference, within)
            rows = rows_beside(self.opened, query_image, chosen)
            most = self.opened.options.image.max_pixels

            def match(row: ImageRow) -> "Match":
                return self._steadily(lambda: self._searches.match(query_image, row, how))

            yield query_image, align_photos(query_image, rows, match, most_pixels=most, progress=tell), tell

    def _use_features(self, features: Path, queries: int) -> None:
        """Use files of features for photos that are not in the collection."""
        from retrieval.foreign.npz import NpzFile
        from retrieval.foreign.opening import open_features
        from retrieval.indexing.described import use_features

        source = open_features(features)
        if isinstance(source, NpzFile) and queries > 1:
            raise CairnError(f"{features} has the features of one photo: give one photo, or a folder of features.")
        use_features(self.opened, source)
