"""Opening and making collections."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.errors import CairnError
from index.opencv import refuse_mixture
from index.options.arguments import takes_options
from index.options.declaration import build, whole
from retrieval.collection.collection import Collection as Opened
from retrieval.collection.layout import OPTIONS
from retrieval.collection.options import CollectionOptions
from retrieval.library.cluster import join_cluster
from retrieval.library.collection import Collection
from retrieval.library.opened import paths_of

if TYPE_CHECKING:
    from retrieval.library.cluster import ClusterWork


class CollectionExists(CairnError):
    """There already is a collection in the folder."""


def open(
    folder: str | os.PathLike[str],
    *,
    catalogue: str | None = None,
    cluster: str | None = None,
    shards: int = 0,
    storage: str | None = None,
) -> Collection:
    """Open a collection.

    Parameters
    ----------
    folder : path-like
        Its folder.
    catalogue : str, optional
        SQLAlchemy address of its catalogue; by default the SQLite file in the folder.
    cluster : str, optional
        Address of a Dask scheduler whose workers search, group and add photos in place of processes; ``local:4``: 4
        workers on this machine. The connection ends when the collection is closed.
    shards : int
        With `cluster`: number of parts of about equally many features that the workers search; 0: two for each worker.
    storage : str, optional
        With `cluster`: storage that files for the workers are sent to, such as ``s3://bucket/folder``; it is
        remembered. By default workers must see the folder at the same path.

    Returns
    -------
    Collection
        To be closed, best by ``with``.

    Raises
    ------
    CollectionNotFound
        There is no such collection.
    CairnError
        A part of it is damaged, the catalogue is another collection's, or the cluster cannot be joined.

    Examples
    --------
    >>> import cairn
    >>> with cairn.open("holiday.cairn") as collection:  # doctest: +SKIP
    ...     answer = collection.search("church.jpg")
    """
    joined = join_cluster(cluster, whole("shards", shards, 0), storage)
    try:
        return open_named(Path(folder).absolute(), catalogue=catalogue, cluster=joined)
    except BaseException:
        if joined is not None:
            joined.close()
        raise


def open_named(folder: Path, *, catalogue: str | None = None, cluster: "ClusterWork | None" = None) -> Collection:
    """Open a collection without making its path absolute, for messages; the working folder must not change."""
    refuse_mixture()
    return Collection(Opened.open(folder, catalogue=catalogue), cluster)


@takes_options(CollectionOptions)
def create(
    folder: str | os.PathLike[str],
    *,
    exist_ok: bool = False,
    features: str | os.PathLike[str] | None = None,
    photos: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    catalogue: str | None = None,
    **options: Any,
) -> Collection:
    """Make a collection; `Collection.add` then adds photos to it.

    The options are fixed for the lifetime of the collection.

    Parameters
    ----------
    folder : path-like
        The new folder, for the collection alone.
    exist_ok : bool
        Open an existing collection; once it has photos, the other options are ignored.
    features : path-like, optional
        Keypoints and descriptors of another program, from files; then descriptor, detector, measurement_scale, upright,
        max_side and ignore are not used.
    photos : path-like or sequence of them
        With `features`: the photos that they belong to.
    catalogue : str, optional
        SQLAlchemy address of the catalogue, such as one of PostgreSQL; by default an SQLite file in the folder.
    {options}

    Returns
    -------
    Collection
        To be closed, best by ``with``.

    Raises
    ------
    CollectionExists
        The collection exists, and `exist_ok` is False.
    CairnError
        The folder has other files, or an option names something that does not exist.

    Examples
    --------
    >>> import cairn
    >>> with cairn.create("holiday.cairn") as collection:  # doctest: +SKIP
    ...     collection.add("Pictures/holiday", progress=True)
    """
    folder = Path(folder).absolute()  # programs change their working folder
    if not exist_ok and (folder / OPTIONS).is_file():
        raise CollectionExists(f"There is a collection at {folder} already: open it, or give exist_ok=True.")
    return make(
        folder,
        build(CollectionOptions, options),
        features=Path(features) if features is not None else None,
        photos=paths_of(photos),
        catalogue=catalogue,
    )


def make(
    folder: Path,
    options: CollectionOptions,
    *,
    features: Path | None = None,
    photos: Sequence[Path] = (),
    label: str | None = None,
    values: str | None = None,
    catalogue: str | None = None,
    cluster: "ClusterWork | None" = None,
) -> Collection:
    """Create a collection with options, or open an existing one, whose own options count once it has a vocabulary.

    For features of another program see `create_described`. Raises CairnError if the folder has other files, or an
    option names something that does not exist.
    """
    if features is None:
        return Collection(Opened.create(folder, options, catalogue=catalogue), cluster)
    from retrieval.indexing.described import create_described

    return Collection(
        create_described(folder, options, features, photos, label=label, values=values, catalogue=catalogue), cluster
    )
