"""The catalogue: which photos a collection has, where their features are, and which photos failed and why.

The segments hold the features and the catalogue holds everything else, in any database that SQLAlchemy speaks to. A
segment belongs to the collection from the moment its row is committed: a process that is killed before leaves a folder
that `Catalogue.orphans` finds, and nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from index.errors import CairnError
from index.text import check_storable
from retrieval.catalogue.browsing import folders_of, numbers_of, page_of
from retrieval.catalogue.changes import (
    Move,
    Rewritten,
    bury,
    mark_missing,
    move_photos,
    quantisation_errors,
    replace_segments,
)
from retrieval.catalogue.database import Database
from retrieval.catalogue.exclusions import Exclusion, exclude, exclusions_in, follow, include
from retrieval.catalogue.failures import Failure, failures_in, forget_failures, record_failures
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.link_store import begin_links, keep_links, links_in
from retrieval.catalogue.metadata_store import (
    PhotoMetadata,
    import_values,
    imported_values,
    key_counts,
    metadata_of,
    store_metadata,
    tag_counts,
)
from retrieval.catalogue.migrations import prepare
from retrieval.catalogue.photos import (
    Known,
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
    photo_of_name,
    places_of_photos,
    rows_of,
    values_of,
)
from retrieval.catalogue.schema import COUNT_WRITING, FILE, ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment, next_folder_in, orphans_in, segments_in, tombstones_in
from retrieval.catalogue.settings import keep_setting, reserve_numbers, revision_of, setting_of
from retrieval.metadata.fields import Metadata


class Catalogue:
    """The rows of one collection. Every method is one transaction; all raise CairnError where the database fails.

    Use `Catalogue.open`. It may be shared by threads, and by processes that each open it.

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

    @property
    def address(self) -> sa.URL:
        """Where the catalogue is."""
        return self._database.address

    @property
    def file(self) -> Path | None:
        """The SQLite file; None where the catalogue is in another database."""
        return self._database.file

    @classmethod
    def open(cls, where: Path | str, create: bool = False, before_migration: Callable[[], None] | None = None) -> Self:
        """Open a catalogue.

        Parameters
        ----------
        where : Path or str
            The collection's folder, whose catalogue is the SQLite file `catalogue.sqlite`; or an SQLAlchemy address.
        create : bool
            Make it, and the folder, where there is none.
        before_migration : callable, optional
            Called before a catalogue of an earlier format is migrated; what it raises leaves that as it is.

        Raises
        ------
        CairnError
            There is none, it cannot be reached, is damaged, is another program's, or of a later version.
        """
        if isinstance(where, str) and "://" in where:
            catalogue = cls(where)
        else:
            catalogue = cls(sa.URL.create("sqlite", database=str(Path(where) / FILE)))
        try:
            catalogue._open(create, before_migration)
        except BaseException:
            catalogue.close()
            raise
        return catalogue

    def close(self) -> None:
        """Give the connections back."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Writing

    def reserve_numbers(self, count: int) -> int:
        """Take `count` image numbers that nobody has had or will have.

        Returns
        -------
        int
            The first; the others follow it. Those that are not used then are lost, which does no harm.
        """
        with self._transaction(write=True) as session:
            return reserve_numbers(session, count)

    def commit_segment(
        self,
        segment: SegmentRow,
        images: Sequence[ImageRow],
        metadata: Sequence[Metadata] = (),
        included: Sequence[int] = (),
    ) -> list[str]:
        """Make a published segment and its images part of the collection: all of it or nothing.

        An earlier image of the same path becomes a tombstone, which leaves the new one what was imported for it, as one
        does that was removed and shows the same or was of its path. An earlier failure of it is forgotten.

        Parameters
        ----------
        segment : SegmentRow
            Without `id`.
        images : sequence of ImageRow
            With reserved numbers; `position` in the segment. `segment_id` is filled in here, and `name` is a wish.
        metadata : sequence of Metadata
            What the images' files say of them; may be left out.
        included : sequence of int
            Photos that leave the list of those that were removed for good, by the numbers that they had.

        Returns
        -------
        list of str
            The name of each image: the wish or the file's name, or what `unique_name` makes of the path.

        Raises
        ------
        CairnError
            A path or name cannot be stored (see `check_storable`).
        ValueError
            A number was never reserved.
        """
        for image in images:
            check_storable(image.path)
            check_storable(image.name or "")
        with self._transaction(write=True) as session:
            return commit_segment(session, segment, images, metadata, included)

    def record_failures(self, failures: Sequence[Failure]) -> None:
        r"""Keep why photos could not be indexed, in place of what was recorded for the same paths before.

        An indexed image of the same path stays as it is. Bytes of a path that are not text are kept as ``\xff``.
        """
        if failures:
            with self._transaction(write=True) as session:
                record_failures(session, failures)

    def forget_failures(self, paths: Sequence[str]) -> None:
        """Forget the failures of these paths, for instance of photos that are no longer there."""
        if paths:
            with self._transaction(write=True) as session:
                forget_failures(session, paths)

    def remove(self, numbers: Iterable[int], for_good: bool = False) -> None:
        """Turn indexed images into tombstones; their names become free, their numbers do not.

        With `for_good` they also go on the list of `exclusions`, which outlives the tombstones.
        """
        numbers = list(numbers)
        with self._transaction(write=True) as session:
            if for_good:
                exclude(session, numbers)
            bury(session, numbers)

    def include(self, numbers: Sequence[int]) -> None:
        """Take photos off the list of those that were removed for good, by the numbers that they had."""
        if len(numbers):
            with self._transaction(write=True) as session:
                include(session, numbers)

    def follow(self, moved: Sequence[Exclusion]) -> None:
        """Write where the files of photos are now that were removed for good."""
        if moved:
            with self._transaction(write=True) as session:
                follow(session, moved)

    def move(self, moves: Sequence[Move]) -> list[str]:
        """Write where indexed photos are now, none of which is missing then; give the names of those that wish for one.

        Raises
        ------
        CairnError
            A path or name cannot be stored (see `check_storable`).
        """
        for move in moves:
            check_storable(move.path)
            check_storable(move.name or "")
        if not moves:
            return []
        with self._transaction(write=True) as session:
            return move_photos(session, moves)

    def mark_missing(self, numbers: Sequence[int], missing: bool = True) -> None:
        """Write that the files of indexed photos have gone, from now on, or that they are back."""
        if len(numbers):
            with self._transaction(write=True) as session:
                mark_missing(session, numbers, missing)

    def replace_segments(
        self,
        old: Sequence[int | None],
        new: Sequence[Rewritten],
        settings: Mapping[str, str] | None = None,
        leave_out: Sequence[int] = (),
    ) -> list[int]:
        """Put rewritten segments in the place of others, and keep settings with them: see `changes.replace_segments`.

        Returns
        -------
        list of int
            Numbers of the tombstones that are gone.

        Raises
        ------
        CairnError
            The old segments have changed since they were read.
        """
        with self._transaction(write=True) as session:
            dropped = replace_segments(session, old, new, leave_out)
            for key, value in (settings or {}).items():
                keep_setting(session, key, value)
        return dropped

    def shrink(self) -> None:
        """Give room that is no longer used back to the file system, where the database is a file of SQLite's."""
        # Counted before and afterwards: the file is another one, also where this process is killed between.
        with self._transaction(write=True):
            pass
        self._database.shrink()
        with self._transaction(write=True):
            pass

    def store_metadata(self, found: Sequence[tuple[int, Metadata]]) -> None:
        """Keep what the files of indexed images say, in place of what they said before."""
        with self._transaction(write=True) as session:
            store_metadata(session, found)

    def import_values(
        self,
        values: Mapping[int, Mapping[str, Sequence[str]]],
        replace: bool = False,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Keep imported metadata of indexed images, by number and key: all of it or nothing.

        With `replace`, what was imported earlier is forgotten first, of all images. `labels` are how keys are written.
        """
        with self._transaction(write=True) as session:
            import_values(session, values, replace=replace, labels=labels)

    def begin_links(self, kind: str) -> None:
        """Forget all links between photos, and keep those of another kind from now on: see `link_store`."""
        with self._transaction(write=True) as session:
            begin_links(session, kind)

    def keep_links(self, kind: str, found: Mapping[int, bytes]) -> None:
        """Keep what photos were verified with, by their numbers; CairnError where other links are kept meanwhile."""
        if found:
            with self._transaction(write=True) as session:
                keep_links(session, kind, found)

    def set_setting(self, key: str, value: str) -> None:
        """Keep a text under a key."""
        with self._transaction(write=True) as session:
            keep_setting(session, key, value)

    # Reading

    def setting(self, key: str) -> str | None:
        """The text kept under a key, or None."""
        with self._transaction() as session:
            return setting_of(session, key)

    def known(self) -> dict[str, Known]:
        """What is known of each path that is indexed or failed.

        Of one that is both, a photo that was indexed and whose file is damaged since: what was indexed.
        """
        with self._transaction() as session:
            return known_photos(session)

    def known_contents(self) -> set[str]:
        """The SHA-256 of all photos that are indexed or failed."""
        with self._transaction() as session:
            return known_contents(session)

    def exclusions(self) -> list[Exclusion]:
        """Photos that were removed for good, in the order of the numbers that they had."""
        with self._transaction() as session:
            return exclusions_in(session)

    def links(self) -> dict[int, bytes]:
        """What photos were verified with, as `keep_links` keeps it, by ascending numbers."""
        with self._transaction() as session:
            return dict(links_in(session))

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
        with self._transaction() as session:
            total, rows = page_of(session, offset, limit, (wanted or PhotoFilter()).narrowed(name, folder))
            return total, list(rows)

    def numbers(
        self, name: str | None = None, folder: str | None = None, *, wanted: PhotoFilter | None = None
    ) -> NDArray[np.int64]:
        """Numbers of the indexed images that pass the filters of `page`, ascending int64."""
        with self._transaction() as session:
            return numbers_of(session, (wanted or PhotoFilter()).narrowed(name, folder))

    def places(self) -> list[tuple[int, str, str]]:
        """Number, name and path of all indexed images, by ascending number."""
        with self._transaction() as session:
            return places_of_photos(session)

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
        """Tags of indexed images, those of the most images first, and how many images have each."""
        with self._transaction() as session:
            return tag_counts(session, limit)

    def folders(self) -> list[tuple[str, int]]:
        """Folders of the names of indexed images ("" for a name without one), in order, and how many each holds.

        Images in the folders below one do not count for it.
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
        with self._database.transaction(snapshot=True) as session:
            return segments_in(session), tombstones_in(session)

    def revision(self) -> int:
        """How often the catalogue has been written to: where it is the same twice, nothing was written between."""
        with self._transaction() as session:
            return revision_of(session)

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

    def next_folder(self, segments_dir: Path) -> str:
        """A name for the next segment's folder, above every number that a segment or an orphan has."""
        return next_folder_in(segments_dir, self.segments())

    def _open(self, create: bool, before_migration: Callable[[], None] | None) -> None:
        file = self._database.file
        if file is not None:
            # SQLite would make an empty file where there is none.
            try:
                if create:
                    file.parent.mkdir(parents=True, exist_ok=True)
                elif not file.is_file():
                    raise CairnError(f"{file.parent} is not a collection: make one with cairn index.")
            except OSError as error:
                raise CairnError(
                    f"{file.parent} cannot be made a collection ({error.strerror or error}): choose another folder."
                ) from error
        prepare(self._database, create, before_migration)

    @contextmanager
    def _transaction(self, write: bool = False) -> Iterator[Session]:
        with self._database.transaction(write) as session:
            if write:
                session.execute(COUNT_WRITING)
            yield session

    def __str__(self) -> str:
        return str(self._database)
