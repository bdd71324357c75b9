"""How a command joins a cluster: the address, and where its machines find the collection's files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from index.errors import CairnError
from retrieval.commands.options import cores

if TYPE_CHECKING:
    from index.cluster.connection import Cluster
    from retrieval.collection.collection import Collection
    from retrieval.groups.links import Asker
    from retrieval.indexing.preparing import Preparer
    from retrieval.library.searches import MakeSearcher

_PATIENCE = 10.0  # seconds that are waited for a scheduler that has gone, while somebody waits for an answer


@contextmanager
def joined(address: str | None, place: str | None) -> Iterator["Callable[[Collection], Preparer | None] | None"]:
    """Join the cluster at an address, before anything is made; leave it at the end of the block.

    Yields
    ------
    callable or None
        Gives who prepares the photos of a collection; None without an address.
    """
    if address is None:
        if place is not None:
            raise CairnError("--storage says where the workers of a cluster find files: name one with --cluster.")
        yield None
        return
    from index.cluster.connection import Cluster
    from index.cluster.storage import open_storage, send_new
    from retrieval.collection.layout import OPTIONS
    from retrieval.indexing.on_cluster import ClusterPreparer
    from retrieval.shards.storage_place import keep_storage_place, storage_place

    if place is not None:
        open_storage(place)  # says what is wrong with it
    with Cluster.connect(address) as cluster:

        def join(collection: "Collection") -> "Preparer":
            storage = open_storage(place or storage_place(collection))
            send_new(storage, OPTIONS, collection.folder / OPTIONS)  # says what is wrong with it
            if place is not None:
                keep_storage_place(collection, place)
            return ClusterPreparer(collection, cluster, storage)

        yield join


@contextmanager
def at_work(address: str | None, processes: int, folder: Path) -> Iterator["int | Cluster"]:
    """Give who is at work: processes of this machine (0: one a core), or the workers of the cluster at an address.

    Parameters
    ----------
    address : str, optional
        Of the cluster.
    processes : int
    folder : Path
        Where results are written; the workers must see it at the same path.
    """
    if address is None:
        yield processes or cores()
        return
    from index.cluster.connection import Cluster

    with Cluster.connect(address) as cluster:
        cluster.check_sees(folder)
        yield cluster


@contextmanager
def searching_on(address: str | None, shards: int) -> Iterator["MakeSearcher"]:
    """Connect to the cluster that a query is answered on; leave it at the end of the block.

    Yields
    ------
    callable
        Makes what searches a collection.
    """
    if address is None:
        if shards:
            raise CairnError("--shards says how a collection is shared among workers: name some with --cluster.")
        from retrieval.search.searcher import Searcher

        yield Searcher
        return
    from index.cluster.connection import Cluster
    from retrieval.shards.cluster import cluster_searchers

    with Cluster.connect(address, patience=_PATIENCE) as cluster:
        yield cluster_searchers(cluster, shards)


@contextmanager
def asking_on(address: str | None) -> Iterator["Callable[[Collection], Asker] | None"]:
    """Connect to the cluster whose workers are asked with many photos; leave it at the end of the block.

    Yields
    ------
    callable or None
        Gives what asks a collection; None without an address.
    """
    if address is None:
        yield None
        return
    from index.cluster.connection import Cluster
    from retrieval.groups.links import ask_shards
    from retrieval.shards.cluster import open_shards

    with Cluster.connect(address) as cluster:

        def join(collection: "Collection") -> "Asker":
            shards = open_shards(collection, cluster)
            return lambda numbers: ask_shards(collection, numbers, shards)

        yield join
