"""A collection of photos, as `import cairn` and the commands use it."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import numpy as np

from index.attributes import shared_by
from index.errors import CairnError
from index.extensions import named
from index.options.arguments import takes_options
from index.options.declaration import build, chosen, whole
from index.parallel import one_thread, processes
from index.progress import Progress
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.photos import count_indexed, photo_of_name
from retrieval.catalogue.schema import FILE, ImageRow
from retrieval.collection.collection import Collection as Opened
from retrieval.collection.collection import CollectionChanged
from retrieval.collection.summary import count_collection, describe_collection
from retrieval.iiif.options import FetchOptions
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.library.decisions import Decisions
from retrieval.library.filters import filter_from
from retrieval.library.health import back_up, check
from retrieval.library.photos import Photo, Photos, cache_of, photos_of
from retrieval.library.progress import INDEXING, Telling, telling
from retrieval.library.reports import (
    Added,
    BackedUp,
    Check,
    Compacted,
    DescribedGlobally,
    Imported,
    Info,
    MovedRoot,
    Refreshed,
    Removed,
    Retrained,
    Root,
    Sidecars,
    rounded,
)
from retrieval.search.options import SearchOptions

# Modules for images and searching are imported lazily, as `cairn info` does not need them.
if TYPE_CHECKING:
    from retrieval.iiif.fetching import Fetcher
    from retrieval.indexing.report import IndexReport
    from retrieval.library.answers import Answer
    from retrieval.library.cluster import ClusterWork
    from retrieval.library.given import Given, InCollection
    from retrieval.library.groups import Groups
    from retrieval.library.impressions import AlignedPhotos, Impressions
    from retrieval.library.matches import Match
    from retrieval.library.pairs import Pairs, PhotoFeatures
    from retrieval.library.print_clock import ClockDecisions, PrintClock
    from retrieval.library.searches import Searches
    from retrieval.library.shared_books import SharedBooks
    from retrieval.search.answers import QueryImage

_LOOKS = 3  # how often a collection is searched again that changes meanwhile

_MISSING: Any = object()  # of a photo that has no box, or a box that has no photo

T = TypeVar("T")
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One path, or several."""


class Collection(Decisions):
    """A collection of photos: a folder with their features and metadata; the photos stay in their own folders.

    `cairn.create` and `cairn.open` return it; `close` or ``with`` closes it. Calls from several threads are safe, and
    wait for each other; to search in parallel, let each thread open the collection. Changes by other processes are
    visible to the next call. It cannot be pickled: each process opens it, also after a fork.

    Attributes
    ----------
    folder : Path
        Absolute path of its folder.

    Examples
    --------
    >>> import cairn
    >>> with cairn.create("holiday.cairn") as collection:  # doctest: +SKIP
    ...     collection.add("Pictures/holiday", progress=True)
    ...     for result in collection.search("church.jpg").found:
    ...         print(result.name, f"{result.probability:.0%}")
    """

    def __init__(self, opened: Opened, cluster: "ClusterWork | None" = None, fetcher: "Fetcher | None" = None) -> None:
        """Wrap an opened collection, optionally with the cluster that does the work and what asks other hosts."""
        self.folder = opened.folder
        self._opened: Opened | None = opened
        self._cluster = cluster
        self._fetcher = fetcher
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            return f"<Collection {str(self.folder)!r}: {len(self)} photos>"
        except CairnError:  # its catalogue cannot be reached, which a debugger need not know
            return f"<Collection {str(self.folder)!r}>"

    def __len__(self) -> int:
        return self.opened.catalogue.read(count_indexed)

    def __iter__(self) -> Iterator[Photo]:
        return iter(self.photos())

    def __contains__(self, photo: object) -> bool:
        name = _name_of(photo)
        return name is not None and self.opened.catalogue.read(photo_of_name, name) is not None

    def __reduce__(self) -> NoReturn:
        raise TypeError("A collection cannot be pickled or copied: open it where it is needed, by cairn.open.")

    @cached_property
    def _searches(self) -> "Searches":
        from retrieval.library.searches import Searches

        return Searches(self.opened, self._cluster)

    @property
    def opened(self) -> Opened:
        """The internal collection, for other parts of Cairn; raises CairnError if it was closed."""
        if self._opened is None:
            raise CairnError(f"The collection {self.folder} was closed: open it again.")
        return self._opened

    def close(self) -> None:
        """Close the catalogue, and release the memory of searches.

        The object cannot be used any more. Closing it twice does no harm.
        """
        with self._lock:
            vars(self).pop("_searches", None)
            if self._opened is not None:
                self._opened.catalogue.close()
                self._opened = None
            if self._cluster is not None:
                self._cluster.close()

    @takes_options(AddOptions, FetchOptions)
    def add(
        self,
        photos: Paths,
        *,
        workers: int = 0,
        progress: Telling = None,
        **options: Any,
    ) -> Added:
        """Add photos, and update the data on those that are in the collection.

        Unchanged photos are skipped; moved ones are recognised by content. The next call resumes an interrupted one.

        Parameters
        ----------
        photos : path-like or iterable of them
            Photos, and folders of photos; addresses (``https://…``) of IIIF manifests, of collections of these, and
            of streams of their changes, whose pages are fetched.
        workers : int
            Processes, unless a cluster does the work; 0: one for each core. The result does not depend on it.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.
        {options}

        Returns
        -------
        Added
            Photos that could not be read are in it, with the reason.

        Raises
        ------
        CollectionLocked
            Another process is changing the collection.
        CairnError
            A path does not exist, the vocabulary does not fit, or nothing can be fetched from any address.
        """
        from retrieval.indexing.adding import index_photos
        from retrieval.indexing.describing import describe_new
        from retrieval.library.books import keep_book_metadata

        how, fetching = chosen(AddOptions, options), chosen(FetchOptions, options)
        paths, addresses = _paths_and_addresses(photos)
        with self._lock:
            with telling(progress, INDEXING) as tell:
                pages = None
                if addresses:
                    from retrieval.library.manifests import fetch_pages

                    kept, self._fetcher = self._fetcher, None  # it is closed by the run that it is for
                    pages = fetch_pages(self.opened, addresses, fetching, tell, kept)
                    paths.append(pages.root)
                report = index_photos(
                    self.opened,
                    paths,
                    how,
                    workers=processes(workers),
                    preparer=self._cluster.preparer(self.opened) if self._cluster is not None else None,
                    progress=tell,
                )
                report.notes += describe_new(self.opened, processes(workers), tell)
            keep_book_metadata(self.opened, paths)
            if pages is not None:
                pages.keep_metadata(self.opened, is_whole=not report.left)
                report.notes += pages.notes
            facts = count_collection(self.opened)
        return _added(report, facts, pages.to_dicts() if pages is not None else [])

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
        photo : str, path-like, int, bytes, ndarray, PIL.Image.Image, Photo or Result; or an iterable of them
            A name in the collection or a file; a number in the collection; the content of a file; an image in RGB, as
            for `cairn.as_image`; or a photo of the collection. Several are searched for together.
        box : sequence of four floats, optional
            x0, y0, x1, y1 in pixels of the upright photo: search for its content.
        top : int
            Number of results.
        where : Filter or mapping, optional
            Photos to search: a `cairn.Filter`, or its fields, such as ``{"folder": "rome"}``.
        match_all : bool
            With several photos: results must match all of them, not any.
        features : path-like, optional
            Features of photos that are not in a collection of features of another program.
        {options}

        Returns
        -------
        Answer
            The photos that have something in common with the query, the best first.

        Raises
        ------
        PhotoNotFound, PhotoUnusable
            There is no such photo, or it cannot be read.
        FeaturesNeeded
            The collection has features of another program, and lacks those of the photo.
        CollectionChanged
            Other processes change the collection faster than it can be searched.
        CairnError
            The request cannot be fulfilled.
        """
        from retrieval.library.given import as_box, ask, several

        how = build(SearchOptions, options)
        queries, top = several(photo), whole("top", top)
        if not queries:
            raise CairnError("A query needs at least one photo.")
        if box is not None and len(queries) > 1:
            raise CairnError("A box can only be used with one photo: give one photo, or leave the box out.")
        if top < 1:
            raise CairnError(f"top must be at least 1, not {top}.")
        wanted = filter_from(where)
        within = as_box(box)

        def search() -> "Answer":
            self._searches.searcher(how)  # report what it lacks before looking up a photo
            query_image = [ask(self.opened, one, within) for one in queries]
            return self._searches.search(query_image, how, wanted=wanted, top=top, match_all=match_all)

        with self._lock:
            if features is None:
                return self._steadily(search)
            with self._other_features():
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
        box : sequence of four floats, optional
            x0, y0, x1, y1 in pixels of the upright photo.
        {options}

        Returns
        -------
        Match
            Without inliers if geometry finds no map.

        Raises
        ------
        PhotoNotFound, PhotoUnusable
            There is no such photo, or it cannot be read.
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
        photos : iterable of str, path-like, int, Photo or Result
            Photos of the collection; the reference may be among them.
        reference : str, path-like, int, bytes, ndarray, PIL.Image.Image, Photo or Result, optional
            Any photo, as `search` takes it, whose frame the others are brought into; otherwise the first of the photos.
        box : sequence of four floats, optional
            x0, y0, x1, y1 in pixels of the upright reference: what is compared. Otherwise what matches is.
        tolerance : float, optional
            Pixels of the frame within which ink counts as there; otherwise half the width of a line, one at least.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.
        {options}

        Returns
        -------
        Impressions
            Photos that do not match the reference are in `left_out`.

        Raises
        ------
        PhotoNotFound, PhotoUnusable
            There is no such photo, or it cannot be read.
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
        photos : iterable of str, path-like, int, Photo or Result
            Photos of the collection; the reference may be among them.
        reference : str, path-like, int, bytes, ndarray, PIL.Image.Image, Photo or Result, optional
            Any photo, as `search` takes it, whose frame the others are brought into; otherwise the first of the photos.
        box : sequence of four floats, optional
            x0, y0, x1, y1 in pixels of the upright reference: what is read. Otherwise what matches is.
        clock : {"breaks", "widths"}, optional
            What is read, in place of what the decisions say: breaks, of woodcuts, or widths of lines, of engravings.
        decisions : ClockDecisions, optional
            What is left out or overruled; otherwise what is kept with this reference and box.
        keep : bool
            Keep the decisions in the collection, in place of those that are kept.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.
        {options}

        Returns
        -------
        PrintClock
            Photos that do not match the reference are in `left_out`.

        Raises
        ------
        PhotoNotFound, PhotoUnusable
            There is no such photo, or it cannot be read.
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
    ) -> "Iterator[tuple[QueryImage, AlignedPhotos, Progress | None]]":
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

    def photos(self, where: PhotoFilter | Mapping[str, Any] | None = None) -> Photos:
        """List photos by name.

        Parameters
        ----------
        where : Filter or mapping, optional
            A `cairn.Filter`, or its fields; by default all photos.

        Returns
        -------
        Photos
            A sequence of `Photo` that is read some at a time.

        Raises
        ------
        CairnError
            The filter is not understood.
        """
        return Photos(self.opened.catalogue, cache_of(self.folder), filter_from(where) or PhotoFilter())

    def photo(self, photo: "str | int | np.integer | os.PathLike[str] | InCollection") -> Photo:
        """Find one photo of the collection.

        Parameters
        ----------
        photo : str, path-like, int or Result
            Its name, file or number, or an element of an answer.

        Returns
        -------
        Photo

        Raises
        ------
        PhotoNotFound
            There is no such photo.
        """
        from retrieval.library.given import row_of

        row = row_of(self.opened, photo)
        return photos_of(self.opened.catalogue, [row], cache_of(self.folder))[0]

    def features(self, photo: "str | int | np.integer | os.PathLike[str] | InCollection") -> "PhotoFeatures":
        """Return the stored features of a photo of the collection.

        Parameters
        ----------
        photo : str, path-like, int, Photo or Result
            Its name, file or number, or an element of an answer or a list.

        Returns
        -------
        PhotoFeatures

        Raises
        ------
        PhotoNotFound
            There is no such photo.
        """
        from retrieval.features.kept import kept_features
        from retrieval.library.given import row_of
        from retrieval.library.pairs import make_features

        def read() -> "PhotoFeatures":
            row = row_of(self.opened, photo)
            image = self.opened.index.images.features(row.number)
            return make_features(row, kept_features(image, max(row.width or 1, row.height or 1)))

        with self._lock:
            return self._steadily(read)

    def pairs(
        self,
        top: int = 20,
        *,
        verified: bool = False,
        inliers: int = 15,
        workers: int = 0,
        progress: Telling = None,
    ) -> "Pairs":
        """Pair each photo with the most similar ones, for structure from motion, without reading photos again.

        Hidden photos are left out, and so are pairs marked as no match.

        Parameters
        ----------
        top : int
            Photos that each photo is paired with, at most.
        verified : bool
            Pair photos only with those verified by geometry, the most inliers first; otherwise by the best scores.
        inliers : int
            Fewest verified matches of a pair, with `verified`.
        workers : int
            Processes that verify, unless a cluster does the work; 0: one for each core.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        Pairs
            Each pair once.

        Raises
        ------
        CairnError
            The collection has no photos yet, or a number is out of range.
        """
        from retrieval.groups.pairs import PairOptions, choose_pairs
        from retrieval.library.pairs import TITLES, Pairs

        options = PairOptions(whole("top", top), verified, whole("inliers", inliers))

        def choose() -> "Pairs":
            with telling(progress, TITLES) as tell:
                asker = self._cluster.asker(self.opened) if self._cluster is not None else None
                result = choose_pairs(self.opened, options, workers=processes(workers), asker=asker, progress=tell)
                return Pairs(lambda: self.opened, self._lock, result)

        with self._lock:
            return self._steadily(choose)

    def group(
        self,
        inliers: int = 20,
        *,
        augment: bool | None = None,
        workers: int = 0,
        progress: Telling = None,
    ) -> "Groups":
        """Find and store groups of photos that show the same, and near duplicates among them.

        Only photos that were added since the last call are searched for; a call that was interrupted is picked up.

        Parameters
        ----------
        inliers : int
            Smallest number of verified matches that links two photos.
        augment : bool, optional
            Let linked photos borrow features from each other, so that searches find more; by default as in the last
            call.
        workers : int
            Processes, unless a cluster does the work; 0: one for each core.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        Groups
            Empty if no photos are linked.

        Raises
        ------
        CollectionLocked
            Another process is grouping.
        CairnError
            The collection has no photos yet.
        """
        from retrieval.groups.groups import GroupOptions, group_photos
        from retrieval.library.groups import make_groups

        options = GroupOptions(inliers=whole("inliers", inliers), augment=augment)
        titles = {
            "verify": "Verifying (photos)",
            "look": "Comparing looks (photos)",
            "borrow": "Borrowing (photos)",
        }
        with self._lock, telling(progress, titles) as tell:
            asker = self._cluster.asker(self.opened) if self._cluster is not None else None
            result = group_photos(self.opened, options, workers=processes(workers), asker=asker, progress=tell)
        try:
            return make_groups(self.opened, result)
        except KeyError:  # a photo was removed meanwhile
            return self.groups()

    def groups(self) -> "Groups":
        """Return the groups that `group` found last; photos that were removed since are left out.

        Returns
        -------
        Groups

        Raises
        ------
        NotGrouped
            The collection was never grouped.
        """
        from retrieval.groups.groups import read_groups
        from retrieval.library.groups import make_groups

        for _ in range(_LOOKS):
            with self._lock, suppress(KeyError):  # if another process removes a photo meanwhile
                return make_groups(self.opened, read_groups(self.opened))
        raise CollectionChanged(f"{self.folder} changes faster than its groups can be read: try again.")

    def shared_books(
        self,
        *,
        category: str | None = None,
        out: str | os.PathLike[str] | None = None,
        pages: str | os.PathLike[str] | None = None,
    ) -> "SharedBooks":
        """List books that share pictures, by the groups of the last `group`, and by finds of saved searches.

        Parameters
        ----------
        category : str, optional
            Count only finds of saved searches in this category.
        out : path-like, optional
            Write a table (CSV) here, with a row and a column for each book: numbers of pictures that two books share.
        pages : path-like, optional
            Write a table (CSV) here, with a row for each pair of matching pages.

        Returns
        -------
        SharedBooks

        Raises
        ------
        CairnError
            A table cannot be written.
        """
        from retrieval.library.motifs import save_rows
        from retrieval.library.shared_books import shared_books

        shared = shared_books(self.opened, category)
        for path, rows in ((out, shared.matrix), (pages, shared.page_rows)):
            if path is not None:
                save_rows(Path(path), rows())
        return shared

    def save_annotations(
        self, path: str | os.PathLike[str], *, answer: "Answer | None" = None, progress: Telling = None
    ) -> int:
        """Write the matches within groups, or the results of a search, as W3C Web Annotations (JSON-LD) or TEI (.xml).

        Each pair of photos that geometry links is one: a region of each (``FragmentSelector``), the probability that
        they show the same, and the map between them. A photo that came by IIIF is named by its canvas.

        Parameters
        ----------
        path : path-like
            Output file; one that ends in ``.xml`` is TEI: a zone for each region, and a link for each pair.
        answer : Answer, optional
            Of a search of this collection, in place of the groups: results that are found, or likely, each from the
            query's box, or all of it, to its region in the photo.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        int
            How many annotations it has.

        Raises
        ------
        NotGrouped
            The collection was never grouped.
        CairnError
            It cannot be written there.
        """
        from index.arrays import save_bytes, save_json
        from retrieval.library.annotations import annotation_page, answer_page, pairs_of_groups
        from retrieval.library.tei import matches_text

        if answer is not None:
            page = answer_page(answer, lambda name: self.photo(name) if name in self else None)
        else:
            with telling(progress, {"annotate": "Comparing (pairs)"}) as tell:
                page = annotation_page(pairs_of_groups(self.opened.catalogue, self.groups()), self.match, tell)
        try:
            if Path(path).suffix.lower() == ".xml":
                save_bytes(Path(path), matches_text(page).encode())
            else:
                save_json(Path(path), page)
        except OSError as error:
            raise CairnError(f"{os.fspath(path)} cannot be written ({error.strerror}): choose another name.") from None
        return len(page["items"])

    def remove(
        self,
        names: "str | InCollection | Iterable[str | InCollection]" = (),
        *,
        missing: bool = False,
        gone: Paths = (),
        folder: str | os.PathLike[str] | None = None,
        for_good: bool = False,
        dry_run: bool = False,
    ) -> Removed:
        """Remove photos from the collection; their files stay.

        Parameters
        ----------
        names : str, Photo, Result, or iterable of them
            Photos of the collection; objects count by their names.
        missing : bool
            Also photos whose files were missing at the last run, and still are.
        gone : path-like or iterable of them
            Folders that are gone for good. Otherwise `missing` is refused if an indexed folder is missing or empty, as
            its drive may not be connected.
        folder : path-like, optional
            Also photos whose names lie in this folder, or below it.
        for_good : bool
            Exclude them when their folders are indexed again.
        dry_run : bool
            Change nothing.

        Returns
        -------
        Removed

        Raises
        ------
        PhotoNotFound
            There is no photo of one of the names; then nothing is removed.
        CairnError
            There is no collection in the folder, no photo is named, or a folder of missing photos is absent.
        """
        from retrieval.indexing.removal import remove_photos

        some = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
        called = []
        for one in some:
            name = _name_of(one)
            if name is None:
                raise CairnError(f"Photos are removed by their names, not by {one!r:.80}.")
            called.append(name)
        folder = os.fspath(folder) if folder is not None else None
        with self._lock:
            removed = remove_photos(
                self.opened,
                called,
                missing=missing,
                gone=paths_of(gone),
                folder=folder,
                for_good=for_good,
                dry_run=dry_run,
            )
            return Removed(removed, for_good, dry_run, self.opened.catalogue.read(count_indexed))

    def roots(self) -> list[Root]:
        """List the folders that photos were indexed with, in order.

        Returns
        -------
        list of Root
        """
        from retrieval.indexing.roots import list_roots

        return [Root(*one) for one in list_roots(self.opened)]

    def move_root(
        self, old: str | os.PathLike[str], new: str | os.PathLike[str], *, progress: Telling = None
    ) -> MovedRoot:
        """Record that a folder of photos was moved; files of other sizes or times are read and compared.

        Parameters
        ----------
        old, new : path-like
            The old folder, or one above or below it, and the new one.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        MovedRoot

        Raises
        ------
        CairnError
            No photo lies below the old folder, the new one does not exist, or has none of the photos.
        """
        from retrieval.indexing.roots import move_root

        with self._lock, telling(progress, {"look": "Looking for photos"}) as tell:
            return MovedRoot(*move_root(self.opened, Path(old), Path(new), tell))

    def name_from(self, folder: str | os.PathLike[str]) -> dict[str, str]:
        """Name the photos below a folder by their paths relative to it, as if it had been indexed first.

        Parameters
        ----------
        folder : path-like
            One that photos were indexed with, or one above or below it.

        Returns
        -------
        dict of str to str
            The new names by the old ones.

        Raises
        ------
        CairnError
            No photo lies below the folder.
        """
        from retrieval.indexing.roots import name_from

        with self._lock:
            return name_from(self.opened, Path(folder))

    def backup(self, target: str | os.PathLike[str], *, link: bool = False, progress: Telling = None) -> BackedUp:
        """Copy the collection to another folder, or update a copy there, and verify the whole copy.

        Other processes may change the collection meanwhile: the copy is of one moment. It is a collection itself, whose
        catalogue is an SQLite file in its folder. A call that is stopped leaves an earlier copy whole.

        Parameters
        ----------
        target : path-like
            A new or empty folder, or an earlier, unchanged backup of this collection.
        link : bool
            Link files that never change instead of copying them: this needs no space, but damage affects both.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        BackedUp

        Raises
        ------
        CollectionLocked
            Another process is making this backup.
        CairnError
            The folder has other files, the collection is damaged, or the disk is full.
        """
        with self._lock:
            return back_up(self.opened, target, link=link, progress=progress)

    def compact(self, *, progress: Telling = None) -> Compacted:
        """Merge small segments, and free the space of removed photos.

        Parameters
        ----------
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        Compacted

        Raises
        ------
        CollectionLocked
            Another process is changing the collection.
        """
        from retrieval.indexing.compaction import compact

        with self._lock, telling(progress, {"compact": "Compacting (features)"}) as tell:
            report = compact(self.opened, progress=tell)
            images = self.opened.catalogue.read(count_indexed)
        return Compacted(
            images=images,
            removed=report.removed,
            segments={"before": report.segments[0], "after": report.segments[1]},
            bytes={"before": report.bytes[0], "after": report.bytes[1]},
            thumbnails=report.thumbnails,
            seconds=round(report.seconds, 3),
        )

    @takes_options(RetrainOptions)
    def retrain(
        self,
        *,
        features: str | os.PathLike[str] | None = None,
        workers: int = 0,
        progress: Telling = None,
        **options: Any,
    ) -> Retrained:
        """Train a new vocabulary on the current photos of the collection; searches go on meanwhile.

        Parameters
        ----------
        features : path-like, optional
            Features of the photos, of a collection of features of another program.
        workers : int
            Processes; 0: one for each core.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.
        {options}

        Returns
        -------
        Retrained

        Raises
        ------
        CollectionLocked
            Another process is changing the collection.
        CairnError
            Photos cannot be read, and must not be dropped.
        """
        from retrieval.indexing.described import use_features_again
        from retrieval.indexing.retraining import retrain

        how = build(RetrainOptions, options)
        with self._lock, self._other_features() if features is not None else nullcontext():
            if features is not None:
                use_features_again(self.opened, Path(features))
            with telling(progress, INDEXING) as tell:
                report = retrain(self.opened, how, workers=processes(workers), progress=tell)
            images = self.opened.catalogue.read(count_indexed)
        return Retrained(
            images=images,
            words={"before": report.words[0], "after": report.words[1]},
            quantisation_error={"before": round(report.error[0], 6), "after": round(report.error[1], 6)},
            dropped=report.dropped,
            augmentation_emptied=report.forgotten,
            seconds=rounded(report.seconds),
        )

    def add_global_descriptors(self, source: Any, *, workers: int = 0, progress: Telling = None) -> DescribedGlobally:
        """Add global descriptors to photos: one vector per photo, of what it looks like as a whole.

        ``search(..., global_descriptors="fused")`` then uses them.

        Parameters
        ----------
        source : str, path-like or global descriptor
            Name of an extension of the kind ``global_descriptor``, or an object that keeps its contract: it describes
            photos that lack a row, and `add` those that come. Or a file, whose rows replace all others: an .npz of
            ``names`` (N,) and ``vectors`` (N, D), or an .npy (N, D) with the names in a text file of its name.
        workers : int
            Processes; 0: one for each core.
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        DescribedGlobally

        Raises
        ------
        CollectionLocked
            Another process is changing the collection.
        CairnError
            There is no such extension or file, or none of its names is that of a photo.
        """
        from retrieval.foreign.global_descriptors import KIND
        from retrieval.indexing.describing import describe_photos

        with self._lock, telling(progress, INDEXING) as tell:
            place = os.fspath(source) if isinstance(source, os.PathLike) else named(KIND, source)
            report = describe_photos(self.opened, place, processes(workers), tell)
            return DescribedGlobally(images=self.opened.catalogue.read(count_indexed), **vars(report))

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
        where : Filter or mapping, optional
            Which photos are looked through.

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

    def remove_global_descriptors(self) -> None:
        """Remove the global descriptors that `add_global_descriptors` gave.

        Raises
        ------
        CollectionLocked
            Another process is changing the collection.
        """
        from retrieval.indexing.describing import drop_global

        with self._lock:
            drop_global(self.opened)

    def info(self) -> Info:
        """Return the facts of the collection, such as numbers of photos and bytes for each feature.

        Returns
        -------
        Info
        """
        with self._lock:
            return Info(**describe_collection(self.opened))

    def check(self, *, progress: Telling = None) -> Check:
        """Verify every file of the collection, and report damage; changes nothing.

        Parameters
        ----------
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        Check
        """
        catalogue = self.opened.catalogue
        address = None
        if catalogue.file != self.folder / FILE:
            address = catalogue.address.render_as_string(hide_password=False)
        return check(self.folder, catalogue=address, progress=progress)

    def import_metadata(
        self,
        table: str | os.PathLike[str],
        *,
        name_column: str | None = None,
        mapping: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        delimiter: str = "auto",
        replace: bool = False,
    ) -> Imported:
        """Import metadata of photos from a table (CSV), which overrides that of their files.

        Parameters
        ----------
        table : path-like
            Its first line names the columns; headers in six languages are understood.
        name_column : str, optional
            Column that names the photo of a row; by default name, path or file.
        mapping : mapping of str to str, or pairs of them
            From the word for a field, such as date, title or tags, to the header of its column.
        delimiter : {"auto", ",", ";", "tab"}
            Between the columns.
        replace : bool
            Delete earlier imported values of all photos.

        Returns
        -------
        Imported
            Rows that are about no photo, or about several, are in it.

        Raises
        ------
        CairnError
            The table cannot be read, or has no column that names the photos.
        """
        from retrieval.catalogue.tables.columns import parse_mapping
        from retrieval.catalogue.tables.importing import TableOptions, import_table
        from retrieval.collection.sealing import sealed_afterwards

        pairs = mapping.items() if isinstance(mapping, Mapping) else mapping
        columns = tuple(parse_mapping(f"{word}={header}") for word, header in pairs)
        options = TableOptions(name_column, delimiter, columns)
        with self._lock, sealed_afterwards(self.opened):
            report = import_table(self.opened.catalogue, Path(table), options, replace=replace)
        found = {**report.columns, "warnings": [str(one) for one in report.columns["warnings"]]}
        return Imported(**{**vars(report), "columns": found, "notes": [str(one) for one in report.notes]})

    def refresh_metadata(self, *, progress: Telling = None) -> Refreshed:
        """Read the metadata of the photos' files again; imported values stay.

        Parameters
        ----------
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        Refreshed
        """
        from retrieval.catalogue.metadata_refresh import refresh_metadata
        from retrieval.collection.sealing import sealed_afterwards

        titles = {"read": "Reading (photos)"}
        with self._lock, sealed_afterwards(self.opened), telling(progress, titles) as tell:
            report = refresh_metadata(self.opened.catalogue, tell)
        return Refreshed(**shared_by(Refreshed, report))

    def write_sidecars(self, *, progress: Telling = None) -> Sidecars:
        """Write imported or entered metadata of photos, and their albums, into XMP sidecars next to them.

        Other programs read titles, captions, tags, dates, places and ratings there; an album is the hierarchical
        subject ``Albums|NAME``. Existing sidecars keep their other contents. Photos do not change.

        Parameters
        ----------
        progress : bool or callable, optional
            True shows bars; a callable receives step, done and total.

        Returns
        -------
        Sidecars
        """
        from retrieval.catalogue.curation.sidecars import write_sidecars

        with self._lock, telling(progress, {"write": "Writing (photos)"}) as tell:
            report = write_sidecars(self.opened.catalogue, tell, self.opened.below)
        return Sidecars(**vars(report))

    def _steadily(self, do: Callable[[], T]) -> T:
        """Call a function with the current collection; repeat if it changes meanwhile."""
        cause: Exception | None = None
        for _ in range(_LOOKS):
            if self._searches.is_outdated():
                self._searches.renew()
            try:
                return do()
            except (CollectionChanged, KeyError) as error:  # by another process, during the search
                cause = error
                time.sleep(0)
                self._searches.renew()
        raise CollectionChanged(f"{self.folder} changes faster than it can be searched: try again.") from cause

    @contextmanager
    def _other_features(self) -> Iterator[None]:
        """Restore the extractor afterwards: paths of features of another program are valid for one call."""
        before = self.opened.known_extractor
        try:
            yield
        finally:
            self.opened.restore_extractor(before)

    def _use_features(self, features: Path, queries: int) -> None:
        """Use files of features for photos that are not in the collection."""
        from retrieval.foreign.npz import NpzFile
        from retrieval.foreign.opening import open_features
        from retrieval.indexing.described import use_features

        source = open_features(features)
        if isinstance(source, NpzFile) and queries > 1:
            raise CairnError(f"{features} has the features of one photo: give one photo, or a folder of features.")
        use_features(self.opened, source)


def paths_of(given: Paths) -> list[Path]:
    """Return one path or several as a list."""
    try:
        return [Path(given)] if isinstance(given, (str, os.PathLike)) else [Path(one) for one in given]
    except TypeError:
        raise CairnError(f"Photos are added by paths of files and folders, not by {given!r:.80}.") from None


def _paths_and_addresses(paths: Paths) -> tuple[list[Path], list[str]]:
    """Part paths of photos from addresses of manifests."""
    if isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Iterable):
        paths = [paths]
    from retrieval.iiif.addresses import is_address

    some = list(paths)
    return paths_of([one for one in some if not is_address(one)]), [str(one) for one in some if is_address(one)]


def _name_of(photo: object) -> str | None:
    """The name of a photo of a collection; None for other arguments."""
    name = os.fspath(photo) if isinstance(photo, (str, os.PathLike)) else getattr(photo, "name", None)
    return str(name) if isinstance(name, str) else None


def _added(report: "IndexReport", facts: Mapping[str, Any], manifests: list[dict[str, Any]]) -> Added:
    """Result of an indexing run, with the totals of the collection."""
    values = shared_by(Added, report) | {
        **{name: facts[name] for name in ("images", "features", "words", "bytes_per_feature")},
        "failed_before": len(report.failed_before),
        "passed_over": dict(report.passed_over.files.most_common()),
        "folders_passed_over": dict(report.passed_over.folders.most_common()),
        "seconds": rounded(report.seconds),
        "manifests": manifests,
        "_failed_before": frozenset(report.failed_before),
    }
    return Added(**values)
