"""Run the work on a collection on this machine, or on the workers of a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from index.errors import CairnError
from index.parallel import processes

if TYPE_CHECKING:
    from index.cluster.connection import Cluster
    from retrieval.collection.collection import Collection
    from retrieval.groups.links import Asker
    from retrieval.indexing.preparing import Preparer
    from retrieval.search.options import SearchOptions
    from retrieval.search.searcher import Searcher
    from retrieval.shards.epoch import Epoch
    from retrieval.shards.shards import Shards

_PATIENCE = 10.0  # seconds that a search waits for a lost scheduler


class ClusterWork:
    """Work of a cluster for a collection: search it in shards, find groups and index photos.

    It connects at first use, so that forked processes make their own connections. The address is that of a Dask
    scheduler, or ``local:N``; `shards` is 0 for two for each worker; workers read the collection's files from
    `storage`, by default the one that the collection names, or its folder. Raises ClusterError if the address is
    invalid, or Dask is not installed.
    """

    def __init__(self, address: str, shards: int = 0, storage: str | None = None) -> None:
        from index.cluster.connection import check_address, load_dask

        load_dask()  # once, for all processes that are forked of this one
        self._address = check_address(address)
        self._number = shards
        self._storage = storage
        self._cluster: Cluster | None = None
        self._epoch: Epoch | None = None
        self._shards: Shards | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; stop it if it was started here."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = self._shards = None

    @property
    def cluster(self) -> "Cluster":
        """The cluster; raises ClusterError if it cannot be joined."""
        from index.cluster.connection import Cluster

        if self._cluster is None:
            self._cluster = Cluster.connect(self._address)
        return self._cluster

    @property
    def scheduler(self) -> str:
        """Address at which other processes reach the cluster."""
        return str(self.cluster.client.scheduler_info()["address"])

    @property
    def number(self) -> int:
        """How many shards a collection is cut into."""
        from retrieval.shards.cluster import usual_shards

        return self._number or usual_shards(self.cluster)

    def renew(self, collection: "Collection") -> None:
        """Divide the current content of a collection into shards, which are distributed when a search needs them."""
        from retrieval.shards.epoch import open_epoch

        self._epoch, self._shards = open_epoch(collection, self.number), None

    @property
    def shards(self) -> "Shards":
        """The shards of the collection since the last `renew`, with this process's connection."""
        from retrieval.shards.cluster import ClusterHolders
        from retrieval.shards.shards import Shards

        assert self._epoch is not None
        if self._shards is None:
            self._shards = Shards(self._epoch, ClusterHolders(self.cluster, _PATIENCE))
        return self._shards

    def searcher(self, collection: "Collection", options: "SearchOptions") -> "Searcher":
        """Return a searcher of a collection as of the last `renew`."""
        from retrieval.shards.engine import sharded_searcher

        return sharded_searcher(collection, options, self.shards)

    def asker(self, collection: "Collection") -> "Asker":
        """Return an object that queries a collection with many of its photos."""
        from retrieval.groups.links import ask_shards
        from retrieval.shards.cluster import open_shards

        shards = open_shards(collection, self.cluster)
        return lambda numbers: ask_shards(collection, numbers, shards)

    def preparer(self, collection: "Collection") -> "Preparer":
        """Return an object that prepares photos for a collection; its catalogue stores the name of the storage."""
        from index.cluster.storage import open_storage, send_new
        from retrieval.collection.layout import OPTIONS
        from retrieval.indexing.on_cluster import ClusterPreparer
        from retrieval.shards.storage_place import keep_storage_place, storage_place

        storage = open_storage(self._storage or storage_place(collection))
        send_new(storage, OPTIONS, collection.folder / OPTIONS)  # raises a clear error if it is unusable
        if self._storage is not None:
            keep_storage_place(collection, self._storage)
        return ClusterPreparer(collection, self.cluster, storage)


def join_cluster(address: str | None, shards: int = 0, storage: str | None = None) -> ClusterWork | None:
    """Join the cluster at an address, with the options of `ClusterWork`; None without one."""
    if address is None:
        if shards:
            raise CairnError("{--shards} says how a collection is shared among workers: name some with {--cluster}.")
        if storage is not None:
            raise CairnError("{--storage} says where the workers of a cluster find files: name one with {--cluster}.")
        return None
    if storage is not None:
        from index.cluster.storage import open_storage

        open_storage(storage)  # raises a clear error if it is unusable
    work = ClusterWork(address, shards, storage)
    work.cluster  # noqa: B018 (it is joined now)
    return work


@contextmanager
def joined(address: str | None, shards: int = 0, storage: str | None = None) -> Iterator[ClusterWork | None]:
    """Join the cluster at an address for a block: see `join_cluster`."""
    work = join_cluster(address, shards, storage)
    try:
        yield work
    finally:
        if work is not None:
            work.close()


@contextmanager
def at_work(address: str | None, workers: int, folder: Path) -> Iterator["int | Cluster"]:
    """Yield a number of processes (0: one a core), or the cluster, whose workers must see `folder` at this path."""
    if address is None:
        yield processes(workers)
        return
    with joined(address) as work:
        assert work is not None
        work.cluster.check_sees(folder)
        yield work.cluster
