"""An open collection: its state, its photos by name, and how its parts are read and written."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import numpy as np
from sqlalchemy.orm import Session

from index.docstrings import completed
from index.errors import CairnError
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.photos import count_indexed, names_of, photo_of_name
from retrieval.collection.collection import Collection as Opened
from retrieval.collection.collection import CollectionChanged
from retrieval.library.filters import filter_from
from retrieval.library.paragraphs import SHARED
from retrieval.library.photos import Photo, Photos, cache_of, photos_of

# Modules for images and searching are imported lazily, as `cairn info` does not need them.
if TYPE_CHECKING:
    from retrieval.iiif.fetching import Fetcher
    from retrieval.library.cluster import ClusterWork
    from retrieval.library.given import Given, InCollection
    from retrieval.library.searches import Searches


LOOKS = 3
"""How often a collection is searched again that changes meanwhile."""

T = TypeVar("T")
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One path, or several."""


@completed(SHARED)
class OpenCollection:
    """An open collection, which each part of `Collection` reads and changes."""

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
        name = name_of(photo)
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
        {photo}

        {raises_missing}
        """
        from retrieval.library.given import row_of

        row = row_of(self.opened, photo)
        return photos_of(self.opened.catalogue, [row], cache_of(self.folder))[0]

    def _numbers(self, photos: "Given | Iterable[Given]") -> list[int]:
        """Numbers of photos of the collection, in their order."""
        from retrieval.library.given import row_of, several

        return [row_of(self.opened, one).number for one in several(photos)]  # type: ignore[arg-type]

    def _names(self, numbers: Iterable[int]) -> list[str]:
        """Names of those photos that exist, in their order."""
        numbers = list(numbers)
        names = self.opened.catalogue.read(names_of, numbers)
        return [names[number] for number in numbers if number in names]

    def _write(self, change: Callable[[Session], Any]) -> Any:
        """Change the catalogue in one transaction, and seal the collection; return the result of `change`."""
        with self._writing():
            return self.opened.catalogue.write(change)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        from retrieval.collection.sealing import sealed_afterwards

        with self._lock, sealed_afterwards(self.opened):
            yield

    def _steadily(self, do: Callable[[], T]) -> T:
        """Call a function with the current collection; repeat if it changes meanwhile."""
        cause: Exception | None = None
        for _ in range(LOOKS):
            if self._searches.is_outdated():
                self._searches.renew()
            try:
                return do()
            except (CollectionChanged, KeyError) as error:  # by another process, during the search
                cause = error
                time.sleep(0)
                self._searches.renew()
        raise CollectionChanged(
            "{folder} changes faster than it can be searched: try again.", folder=self.folder
        ) from cause


def name_of(photo: object) -> str | None:
    """The name of a photo of a collection; None for other arguments."""
    name = os.fspath(photo) if isinstance(photo, (str, os.PathLike)) else getattr(photo, "name", None)
    return str(name) if isinstance(name, str) else None


def paths_of(given: Paths) -> list[Path]:
    """Return one path or several as a list."""
    try:
        return [Path(given)] if isinstance(given, (str, os.PathLike)) else [Path(one) for one in given]
    except TypeError:
        raise CairnError(f"Photos are added by paths of files and folders, not by {given!r:.80}.") from None
