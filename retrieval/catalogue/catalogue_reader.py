"""The reading half of the catalogue: what is asked of the rows of one collection."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from retrieval.catalogue.browsing import (
    NAME,
    Pages,
    cameras_of,
    folders_of,
    months_of,
    numbers_of,
    page_after,
    page_of,
    positions_of,
    rows_there,
    shapes_of,
)
from retrieval.catalogue.changes import quantisation_errors
from retrieval.catalogue.database import Database
from retrieval.catalogue.exclusions import Exclusion, exclusions_in
from retrieval.catalogue.failures import Failure, failures_in
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.link_store import links_after, links_in
from retrieval.catalogue.metadata_store import PhotoMetadata, imported_values, key_counts, metadata_of, tag_counts
from retrieval.catalogue.photos import (
    KnownContents,
    KnownPhotos,
    SeenPhotos,
    all_indexed,
    contents_of_photos,
    count_indexed,
    counts_of_photos,
    dates_added,
    first_and_last_added,
    known_contents,
    known_photos,
    missing_photos,
    numbers_of_names,
    photo_of_content,
    photo_of_each_root,
    photo_of_name,
    places_of_photos,
    rows_of,
    values_of,
)
from retrieval.catalogue.schema import ImageRow, SegmentRow, count_writing
from retrieval.catalogue.segment_rows import orphans_in, segments_in, tombstones_in
from retrieval.catalogue.settings import read_revision, revision_of, setting_of


class CatalogueReader:
    """What is asked of a catalogue. Every method is one transaction; all raise CairnError where the database fails.

    A server page, a query and indexing call only what holds a part of the rows at a time, or a few bytes of each.

    Parameters
    ----------
    address : str or sqlalchemy.URL
        Any SQLAlchemy address. It is not touched before the first method is called.

    Raises
    ------
    CairnError
        The address is not one, or its driver is not installed.
    """

    def __init__(self, address: str | sa.URL) -> None:
        self._database = Database(address)
        self._pages = Pages()
        self._seen = SeenPhotos()

    @property
    def address(self) -> sa.URL:
        """Where the catalogue is."""
        return self._database.address

    @property
    def file(self) -> Path | None:
        """The SQLite file; None where the catalogue is in another database."""
        return self._database.file

    def setting(self, key: str) -> str | None:
        """The text kept under a key, or None."""
        with self._transaction() as session:
            return setting_of(session, key)

    def known(self) -> KnownPhotos:
        """What is known of each path that is indexed or failed, at this moment: see `known_photos`.

        Of one that is both, a photo that was indexed and whose file is damaged since: what was indexed.
        """
        with self._transaction() as session:
            return known_photos(session, self.paths_of)

    def known_contents(self) -> KnownContents:
        """The SHA-256 of all photos that are indexed or failed."""
        with self._transaction() as session:
            return known_contents(session)

    def exclusions(self) -> list[Exclusion]:
        """Photos that were removed for good, in the order of the numbers that they had."""
        with self._transaction() as session:
            return exclusions_in(session)

    def links(self, numbers: Sequence[int] | None = None) -> dict[int, bytes]:
        """What photos, all or some, were verified with, as `keep_links` keeps it, by ascending numbers."""
        with self._transaction() as session:
            return dict(links_in(session, numbers))

    def links_after(self, number: int, limit: int) -> list[tuple[int, bytes]]:
        """The first photos behind a number that links are kept of, and these as they are: nothing tells damage."""
        with self._transaction() as session:
            return links_after(session, number, limit)

    def failures(self) -> list[Failure]:
        """Photos that failed, in the order in which that was recorded."""
        with self._transaction() as session:
            return failures_in(session)

    def images(self, numbers: Sequence[int] | None = None) -> list[ImageRow]:
        """All indexed images by ascending number, or those of the numbers, in their order.

        Raises
        ------
        KeyError
            One of the numbers is not that of an indexed image.
        """
        with self._transaction() as session:
            return all_indexed(session) if numbers is None else rows_of(session, numbers, indexed=True)

    def seen_images(self, numbers: Sequence[int]) -> list[ImageRow]:
        """Indexed images as `images` gives them, from memory where nothing was written since they were read last.

        They are others' as well: not to be changed.

        Raises
        ------
        KeyError
            One of the numbers is not that of an indexed image.
        """
        wanted = [int(number) for number in numbers]
        rows = self._seen.rows_at(self.revision())
        if not all(number in rows for number in wanted):
            with self._transaction(snapshot=True) as session:
                rows = self._seen.rows_at(revision_of(session))
                missing = [number for number in wanted if number not in rows]
                rows.update((row.number, row) for row in rows_of(session, missing, indexed=True))
        return [rows[number] for number in wanted]

    def page(
        self,
        offset: int,
        limit: int,
        name: str | None = None,
        folder: str | None = None,
        *,
        wanted: PhotoFilter | None = None,
    ) -> tuple[int, list[ImageRow]]:
        """Indexed images by name, byte by byte: those of one page.

        Parameters
        ----------
        offset : int
            Images that come before the page.
        limit : int
            Images on the page, at most.
        name : str, optional
            Only images whose name has this in it, in upper or lower case; nothing in it is a wildcard. (PostgreSQL
            knows the case of the letters that its own locale knows.)
        folder : str, optional
            Only images whose name lies in this folder, or in one below it; all for "".
        wanted : PhotoFilter, optional
            What else an image has to fulfil; its own name and folder count where those above are not given.

        Returns
        -------
        total : int
            Images that pass, on all pages.
        rows : list of ImageRow

        Raises
        ------
        ValueError
            `offset` or `limit` is negative.
        """
        if offset < 0 or limit < 0:
            raise ValueError(f"no page has {limit} images from {offset} on")
        with self._transaction(snapshot=True) as session:
            return page_of(session, offset, limit, (wanted or PhotoFilter()).narrowed(name, folder), self._pages)

    def page_after(self, name: str, limit: int, *, wanted: PhotoFilter | None = None) -> list[ImageRow]:
        """The first images that pass a filter and are behind a name ("": behind none), in the order of the names.

        Pages that follow each other so miss no image and have none twice, whatever is added and removed meanwhile.
        """
        with self._transaction() as session:
            return page_after(session, name, limit, wanted or PhotoFilter())

    def numbers(
        self, name: str | None = None, folder: str | None = None, *, wanted: PhotoFilter | None = None
    ) -> NDArray[np.int64]:
        """Numbers of the indexed images that pass the filters of `page`, ascending int64.

        Without `wanted` those that are hidden are among them.
        """
        with self._transaction(snapshot=True) as session:
            everything = PhotoFilter(hidden=None)
            return numbers_of(session, (everything if wanted is None else wanted).narrowed(name, folder))

    def shapes(self, wanted: PhotoFilter | None = None, order: str = NAME) -> NDArray[np.int64]:
        """Number, width and height (pixels; 0: not known) of the indexed images that pass a filter.

        Parameters
        ----------
        wanted : PhotoFilter, optional
            Which images.
        order : str
            One of `retrieval.catalogue.browsing.ORDERS`.

        Returns
        -------
        array (N, 3) int64
        """
        with self._transaction() as session:
            return shapes_of(session, wanted or PhotoFilter(), order)

    def months(self, wanted: PhotoFilter | None = None) -> list[tuple[str, int]]:
        """Months (YYYY-MM, or YYYY; "": no date) and how many of the images that pass were taken in each, in order."""
        with self._transaction() as session:
            return months_of(session, wanted or PhotoFilter())

    def positions(self, wanted: PhotoFilter | None = None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Numbers (N,) and degrees north and east (N, 2) of the images that pass and have a place, by number."""
        with self._transaction() as session:
            return positions_of(session, wanted or PhotoFilter())

    def cameras(self) -> list[tuple[str, int]]:
        """Cameras of indexed images, those of the most first, and how many that are not hidden each took."""
        with self._transaction() as session:
            return cameras_of(session)

    def there(self, numbers: Sequence[int]) -> list[ImageRow]:
        """Those of some images that are indexed, in the order of the numbers."""
        with self._transaction() as session:
            return rows_there(session, numbers)

    def places(self) -> list[tuple[int, str, str]]:
        """Number, name and path of all indexed images, by ascending number."""
        return [place for some in self.places_in_parts() for place in some]

    def places_in_parts(self) -> Iterator[list[tuple[int, str, str]]]:
        """What `places` gives, part by part, each of its own moment: no transaction is open between them."""
        first = 0
        while True:
            with self._transaction() as session:
                some = places_of_photos(session, first)
            if not some:
                return
            yield some
            first = some[-1][0] + 1

    def photo_of_each_root(self) -> list[tuple[str, str]]:
        """Name and path of one indexed image of each folder that was indexed: of what paths have before the names."""
        with self._transaction() as session:
            return photo_of_each_root(session)

    def contents(self) -> list[tuple[int, str | None]]:
        """Number and SHA-256 of the content of all indexed images, by ascending number."""
        with self._transaction() as session:
            return contents_of_photos(session)

    def metadata(self, numbers: Sequence[int]) -> dict[int, PhotoMetadata]:
        """What is known of each of some images: what was imported, else what its file says; tags of both."""
        with self._transaction() as session:
            return metadata_of(session, numbers)

    def imported(self) -> dict[int, dict[str, list[str]]]:
        """What was imported for indexed images, by number and key; of others there is nothing."""
        with self._transaction() as session:
            return imported_values(session)

    def metadata_keys(self) -> list[tuple[str, int]]:
        """Keys of the metadata of indexed images, in order, and how many images have a value of each."""
        with self._transaction() as session:
            return key_counts(session)

    def tags(self, limit: int = 1000) -> list[tuple[str, int]]:
        """Tags of indexed images, those of the most first, and how many that are not hidden have each."""
        with self._transaction() as session:
            return tag_counts(session, limit)

    def folders(self) -> list[tuple[str, int]]:
        """Folders of the names of indexed images ("" for a name without one), in order, and how many each holds.

        Images in the folders below one do not count for it, nor do those that are hidden.
        """
        with self._transaction() as session:
            return folders_of(session)

    def rows(self, numbers: Sequence[int]) -> list[ImageRow]:
        """Images of any state, in the order of the numbers; KeyError where there is none."""
        with self._transaction() as session:
            return rows_of(session, numbers, indexed=False)

    def numbers_of_names(self, names: Sequence[str]) -> dict[str, int]:
        """The numbers of those of some names that indexed images have."""
        with self._transaction() as session:
            return numbers_of_names(session, names)

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The names of indexed images, in the order of the numbers; KeyError where one is not indexed."""
        with self._transaction() as session:
            found = values_of(session, ImageRow.name, numbers)
        return [found[int(number)] for number in numbers]

    def names_of(self, numbers: Sequence[int]) -> dict[int, str]:
        """The names of those of some images that are indexed."""
        with self._transaction() as session:
            return values_of(session, ImageRow.name, numbers)

    def missing(self) -> list[ImageRow]:
        """Indexed images whose files were gone when last looked for, by ascending number."""
        with self._transaction() as session:
            return missing_photos(session)

    def dates_added(self, paths: Sequence[str]) -> dict[str, str]:
        """When the indexed images of some paths were added (ISO 8601, UTC), by path, where that is known."""
        with self._transaction() as session:
            return dates_added(session, paths)

    def first_and_last_added(self) -> tuple[str, str] | None:
        """When the first and the last of the indexed images were added; None where that is not known of any."""
        with self._transaction() as session:
            return first_and_last_added(session)

    def quantisation_errors(self, since: int) -> tuple[tuple[int, float], tuple[int, float]]:
        """How far features lie from their words, before an image number and from it on: see `changes`."""
        with self._transaction() as session:
            return quantisation_errors(session, since)

    def paths_of(self, numbers: Sequence[int]) -> dict[int, str]:
        """The paths of those of some images that are indexed or failed."""
        with self._transaction() as session:
            return values_of(session, ImageRow.path, numbers, indexed=False)

    def paths(self, numbers: Sequence[int]) -> list[str]:
        """The paths of indexed images, in the order of the numbers; KeyError where one is not indexed."""
        with self._transaction() as session:
            found = values_of(session, ImageRow.path, numbers)
        return [found[int(number)] for number in numbers]

    def image_by_name(self, name: str) -> ImageRow | None:
        """The indexed image of that name, or None."""
        with self._transaction() as session:
            return photo_of_name(session, name)

    def image_of_content(self, sha256: str) -> ImageRow | None:
        """The indexed photo of a content, by the SHA-256 of its file; the first of several, None of none."""
        with self._transaction() as session:
            return photo_of_content(session, sha256)

    def segments(self) -> list[SegmentRow]:
        """All segments, in the order in which they were committed."""
        with self._transaction() as session:
            return segments_in(session)

    def removed(self) -> frozenset[int]:
        """Numbers of the tombstones: images that are in a segment but not in the collection."""
        with self._transaction() as session:
            return tombstones_in(session)

    def snapshot(self) -> tuple[list[SegmentRow], frozenset[int]]:
        """What `segments` and `removed` give, both of one moment, whoever writes meanwhile."""
        with self._transaction(snapshot=True) as session:
            return segments_in(session), tombstones_in(session)

    def revision(self) -> int:
        """How often the catalogue has been written to: where it is the same twice, nothing was written between."""
        return read_revision(self._database)

    def counts(self) -> dict[str, int]:
        """How many images are `indexed`, `failed` and `removed`, and how many `features` the indexed ones have."""
        with self._transaction() as session:
            return counts_of_photos(session)

    def count(self) -> int:
        """How many images are indexed."""
        with self._transaction() as session:
            return count_indexed(session)

    def orphans(self, segments_dir: Path) -> list[Path]:
        """Folders of segments that were never committed: what a killed process leaves, or one at work still writes."""
        return orphans_in(segments_dir, self.segments())

    @contextmanager
    def reading(self, snapshot: bool = False) -> Iterator[Session]:
        """A transaction that reads, for what is kept of photos by modules of their own, such as albums.

        Parameters
        ----------
        snapshot : bool
            All statements see the catalogue as it was at the first one.
        """
        with self._transaction(snapshot=snapshot) as session:
            yield session

    @contextmanager
    def _transaction(self, write: bool = False, snapshot: bool = False) -> Iterator[Session]:
        with self._database.transaction(write, snapshot) as session:
            if write:
                count_writing(session)
            yield session

    def __str__(self) -> str:
        return str(self._database)
