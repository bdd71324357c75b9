"""The catalogue: photos of a collection, places of their features, and failures with reasons.

Segments hold the features, and the catalogue everything else, in any database that SQLAlchemy supports. A segment
belongs to the collection once its row is committed: a process killed before that only leaves a folder, which
`orphans_in` finds.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.errors import CairnError
from retrieval.catalogue.browsing import Pages, page_of
from retrieval.catalogue.database import Database
from retrieval.catalogue.filters import SHOWN, PhotoFilter
from retrieval.catalogue.migrations import prepare
from retrieval.catalogue.photos import KnownPhotos, SeenPhotos, known_photos, paths_of, places_of_photos, rows_of
from retrieval.catalogue.schema import FILE, ImageRow, count_writing
from retrieval.catalogue.segment_rows import next_folder_in, reserve_folder, segments_in
from retrieval.catalogue.settings import read_revision, read_setting, revision_of

T = TypeVar("T")
P = ParamSpec("P")


class Catalogue:
    """The rows of one collection, read and written by functions of the modules of this package, in transactions.

    Such a function takes a session first: `catalogue.read(count_indexed)` calls one in its own transaction, `with
    catalogue.reading() as session` is one transaction for several. All raise CairnError if the database fails. Methods
    of this class need several transactions, or cache results between them.

    Use `Catalogue.open`. Threads may share it; each process opens its own. The address is any of SQLAlchemy, and not
    used before the first transaction.
    """

    def __init__(self, address: str | sa.URL) -> None:
        self._database = Database(address)
        self._pages = Pages()
        self._seen = SeenPhotos()

    @classmethod
    def open(cls, where: Path | str, create: bool = False, before_migration: Callable[[], None] | None = None) -> Self:
        """Open or create the catalogue `catalogue.sqlite` of a collection's folder, or one at an SQLAlchemy address.

        `before_migration` is called before a catalogue of an earlier format is migrated; if it raises, nothing is
        changed. Raises CairnError if the catalogue is missing, unreachable, damaged, another program's, or of a later
        version.
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

    def _open(self, create: bool, before_migration: Callable[[], None] | None) -> None:
        file = self._database.file
        if file is not None:
            # SQLite would create a missing file.
            try:
                if create:
                    file.parent.mkdir(parents=True, exist_ok=True)
                elif not file.is_file():
                    raise CairnError(
                        "{parent} is not a collection: create one with {cairn index|cairn.create}.", parent=file.parent
                    )
            except OSError as error:
                raise CairnError(
                    "No collection can be created in {folder} ({reason}): choose another folder.",
                    folder=file.parent,
                    reason=error.strerror or str(error),
                ) from error
        prepare(self._database, create, before_migration)

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self._database)

    @property
    def address(self) -> sa.URL:
        """Location of the catalogue."""
        return self._database.address

    @property
    def file(self) -> Path | None:
        """The SQLite file; None if the catalogue is in another database."""
        return self._database.file

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that reads: all statements see the state of the catalogue at the first one."""
        with self._database.transaction() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that writes, committed at the end or rolled back on an error; it counts as a revision."""
        with self._database.transaction(write=True) as session:
            count_writing(session)
            yield session

    def read(self, function: Callable[Concatenate[Session, P], T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call a function, with a session first, in a transaction that reads; return its result."""
        with self.reading() as session:
            return function(session, *arguments, **options)

    def write(self, function: Callable[Concatenate[Session, P], T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call a function, with a session first, in a transaction that writes; return its result."""
        with self.writing() as session:
            return function(session, *arguments, **options)

    def setting(self, key: str) -> str | None:
        """The text stored under one of the keys of the schema, or None."""
        return read_setting(self._database, key)

    def revision(self) -> int:
        """Number of writes to the catalogue: if it is the same twice, nothing was written in between."""
        return read_revision(self._database)

    def known(self) -> KnownPhotos:
        """Facts of each path that is indexed or failed, at this moment: see `known_photos`. Paths are read later."""
        return self.read(known_photos, lambda numbers: self.read(paths_of, numbers))

    def seen_images(self, numbers: Sequence[int]) -> list[ImageRow]:
        """Rows like those of `rows_of`, cached until the next write, and shared: do not change them."""
        wanted = [int(number) for number in numbers]
        rows = self._seen.rows_at(self.revision())
        if not all(number in rows for number in wanted):
            with self.reading() as session:
                rows = self._seen.rows_at(revision_of(session))
                missing = [number for number in wanted if number not in rows]
                rows.update((row.number, row) for row in rows_of(session, missing))
        return [rows[number] for number in wanted]

    def page(self, offset: int, limit: int, wanted: PhotoFilter = SHOWN) -> tuple[int, list[ImageRow]]:
        """Number of photos that pass a filter, and those of one page by name: see `page_of`, with cached page ends."""
        return self.read(page_of, offset, limit, wanted, self._pages)

    def places(self) -> Iterator[tuple[int, str, str]]:
        """Number, name and path of all indexed images, by ascending number, in parts, each in a transaction."""
        first = 0
        while some := self.read(places_of_photos, first):
            yield from some
            first = some[-1][0] + 1

    def next_folder(self, segments_dir: Path) -> str:
        """A name for the next segment's folder, above every number that a segment or an orphan has.

        On a database server it is unique among all writers, whatever their folders of segments.
        """
        if self.file is not None:
            return next_folder_in(segments_dir, self.read(segments_in))
        return self.write(reserve_folder, segments_dir)

    def shrink(self) -> None:
        """Return unused space to the file system, if the database is an SQLite file."""
        # A revision before and after: the file changes, even if this process is killed in between.
        with self.writing():
            pass
        self._database.shrink()
        with self.writing():
            pass
