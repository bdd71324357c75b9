"""A collection of photos, as `import cairn` and the commands use it."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from index.attributes import shared_by
from index.docstrings import completed
from index.options.arguments import takes_options
from index.options.declaration import chosen
from index.parallel import processes
from index.reports import rounded
from retrieval.collection.summary import count_collection, describe_collection
from retrieval.iiif.options import FetchOptions
from retrieval.indexing.add_options import AddOptions
from retrieval.library.albums import AlbumDecisions
from retrieval.library.decisions import PhotoDecisions
from retrieval.library.links import PhotoLinks
from retrieval.library.opened import Paths, paths_of
from retrieval.library.paragraphs import SHARED
from retrieval.library.progress import INDEXING, Telling, telling
from retrieval.library.reports import Added, Imported, Info
from retrieval.library.saved_searches import SearchDecisions
from retrieval.library.upkeep import Upkeep

# Modules for images and searching are imported lazily, as `cairn info` does not need them.
if TYPE_CHECKING:
    from retrieval.catalogue.curation.sidecars import Sidecars
    from retrieval.catalogue.metadata_refresh import Refreshed
    from retrieval.indexing.report import IndexReport
    from retrieval.library.given import InCollection
    from retrieval.library.pairs import PhotoFeatures


@completed(SHARED)
class Collection(PhotoLinks, PhotoDecisions, AlbumDecisions, SearchDecisions, Upkeep):
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
        {cluster_workers}
        {progress}
        {options}

        Returns
        -------
        Added
            Photos that could not be read are in it, with the reason.

        {raises_locked}
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

    def features(self, photo: "str | int | np.integer | os.PathLike[str] | InCollection") -> "PhotoFeatures":
        """Return the stored features of a photo of the collection.

        Parameters
        ----------
        {photo}

        {raises_missing}
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

    def info(self) -> Info:
        """Return the facts of the collection, such as numbers of photos and bytes for each feature."""
        with self._lock:
            return Info(**describe_collection(self.opened))

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

        pairs = mapping.items() if isinstance(mapping, Mapping) else mapping
        columns = tuple(parse_mapping(f"{word}={header}") for word, header in pairs)
        options = TableOptions(name_column, delimiter, columns)
        with self._writing():
            report = import_table(self.opened.catalogue, Path(table), options, replace=replace)
        found = {**report.columns, "warnings": [str(one) for one in report.columns["warnings"]]}
        return Imported(**{**vars(report), "columns": found, "notes": [str(one) for one in report.notes]})

    def refresh_metadata(self, *, progress: Telling = None) -> "Refreshed":
        """Read the metadata of the photos' files again; imported values stay.

        Parameters
        ----------
        {progress}
        """
        from retrieval.catalogue.metadata_refresh import refresh_metadata

        titles = {"read": "Reading (photos)"}
        with self._writing(), telling(progress, titles) as tell:
            return refresh_metadata(self.opened.catalogue, tell)

    def write_sidecars(self, *, progress: Telling = None) -> "Sidecars":
        """Write imported or entered metadata of photos, and their albums, into XMP sidecars next to them.

        Other programs read titles, captions, tags, dates, places and ratings there; an album is the hierarchical
        subject ``Albums|NAME``. Existing sidecars keep their other contents. Photos do not change.

        Parameters
        ----------
        {progress}
        """
        from retrieval.catalogue.curation.sidecars import write_sidecars

        with self._lock, telling(progress, {"write": "Writing (photos)"}) as tell:
            return write_sidecars(self.opened.catalogue, tell, self.opened.below)


def _paths_and_addresses(paths: Paths) -> tuple[list[Path], list[str]]:
    """Part paths of photos from addresses of manifests."""
    if isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Iterable):
        paths = [paths]
    from retrieval.iiif.addresses import is_address

    some = list(paths)
    return paths_of([one for one in some if not is_address(one)]), [str(one) for one in some if is_address(one)]


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
