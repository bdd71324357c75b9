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

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.errors import CairnError
from index.text import check_storable
from retrieval.catalogue.catalogue_reader import CatalogueReader
from retrieval.catalogue.changes import Move, Rewritten, bury, mark_missing, move_photos, replace_segments
from retrieval.catalogue.exclusions import Exclusion, exclude, follow, include
from retrieval.catalogue.failures import Failure, forget_failures, record_failures
from retrieval.catalogue.link_store import begin_links, keep_links
from retrieval.catalogue.metadata_store import import_values, store_metadata
from retrieval.catalogue.migrations import prepare
from retrieval.catalogue.schema import FILE, ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment, next_folder_in, reserve_folder
from retrieval.catalogue.settings import keep_setting, reserve_numbers
from retrieval.metadata.fields import Metadata


class Catalogue(CatalogueReader):
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

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that writes, and is counted, for what is kept of photos by modules of their own."""
        with self._transaction(write=True) as session:
            yield session

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

    def next_folder(self, segments_dir: Path) -> str:
        """A name for the next segment's folder, above every number that a segment or an orphan has.

        Where the database is a server's, no other writer is given the same, whichever folder its segments lie in.
        """
        if self.file is not None:
            return next_folder_in(segments_dir, self.segments())
        with self._transaction(write=True) as session:
            return reserve_folder(session, segments_dir)

    def _open(self, create: bool, before_migration: Callable[[], None] | None) -> None:
        file = self._database.file
        if file is not None:
            # SQLite would make an empty file where there is none.
            try:
                if create:
                    file.parent.mkdir(parents=True, exist_ok=True)
                elif not file.is_file():
                    raise CairnError("{parent} is not a collection: make one with {cairn index}.", parent=file.parent)
            except OSError as error:
                raise CairnError(
                    f"{file.parent} cannot be made a collection ({error.strerror or error}): choose another folder."
                ) from error
        prepare(self._database, create, before_migration)
