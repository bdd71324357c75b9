"""Holders of shards on the workers of a Dask cluster: one actor on each worker, shared by all clients."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from index.cluster.connection import Cluster
from index.cluster.tasks import prepare_process
from index.cluster.versions import compare_versions, own_versions
from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.shards.epoch import open_epoch
from retrieval.shards.holder import Call, Holder
from retrieval.shards.holders import Holders, Lost
from retrieval.shards.shards import Shards

if TYPE_CHECKING:
    from distributed import Actor, Client

_LOOK = 0.25  # seconds between two checks whether members that do not answer are still alive
_GONE = ("lost", "error", "cancelled")  # states of an actor

_holder: Holder | None = None
_lock = threading.Lock()


def process_holder() -> Holder:
    """Return the holder of this process, so that several servers share its loaded shards."""
    global _holder
    with _lock:
        if _holder is None:
            prepare_process()
            _holder = Holder()
        return _holder


class ShardActor:
    """Proxy of the holder of a worker process, which must have the same versions."""

    def __init__(self, versions: dict[str, str], name: str) -> None:
        self._refusal: CairnError | None = None
        try:
            compare_versions(versions, own_versions(), name)
        except CairnError as error:
            self._refusal = error
        self._holder = process_holder()

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """Run calls of a holder: see `Holder.run`."""
        if self._refusal is not None:
            raise self._refusal
        return self._holder.run(calls)


def open_shards(collection: Collection, cluster: Cluster) -> Shards:
    """Divide the current content of a collection into shards for the workers of a cluster."""
    return Shards(open_epoch(collection, usual_shards(cluster)), ClusterHolders(cluster))


def usual_shards(cluster: Cluster) -> int:
    """Default number of shards: two for each worker, so that those of a lost one can go to several."""
    return max(1, 2 * len(cluster.client.nthreads()))


class ClusterHolders(Holders):
    """The holders on the workers of a cluster; `patience` is the wait for a lost scheduler, seconds."""

    def __init__(self, cluster: Cluster, patience: float | None = None) -> None:
        self._cluster = cluster
        self._patience = patience
        self._client: Client | None = None
        self._actors: dict[str, Actor] = {}
        self.messages = 0

    def members(self) -> list[str]:
        """Addresses of the workers; empty if the scheduler does not answer."""
        for _ in range(2):
            client = self._connected()
            try:
                if client.status == "running":
                    return list(client.nthreads())
            except (OSError, TimeoutError, RuntimeError):
                pass
            with contextlib.suppress(CairnError):  # there may be another by now
                self._cluster.reconnect(client, self._patience)
        return []

    def ask(self, calls: Mapping[str, Sequence[Call]], seconds: float) -> dict[str, list[Any] | Exception]:
        """Call workers in parallel: see `Holders.ask`."""
        if not calls:
            return {}
        self.messages += len(calls)
        try:
            client = self._connected()
            with client.as_current():  # actors need to know their client
                answers: dict[str, list[Any] | Exception] = client.sync(self._ask, client, calls, seconds)
        except (OSError, TimeoutError, RuntimeError):
            self._actors.clear()
            return {member: Lost([member]) for member in calls}
        for member, reply in answers.items():
            if isinstance(reply, Lost):
                self._actors.pop(member, None)
        return answers

    def _connected(self) -> "Client":
        """The connection of the cluster, which may have been replaced."""
        client = self._cluster.client
        if client is not self._client:
            self._actors.clear()
            client.direct_to_workers = True  # the scheduler has no part in a search
            self._client = client
        return client

    async def _ask(
        self, client: "Client", calls: Mapping[str, Sequence[Call]], seconds: float
    ) -> dict[str, list[Any] | Exception]:
        """Call workers in parallel; those without an actor get one."""

        async def ask(member: str) -> Any:
            if member not in self._actors:
                self._actors[member] = await client.submit(
                    ShardActor,
                    own_versions(),
                    member,
                    actor=True,
                    workers=[member],
                    allow_other_workers=False,
                    key=f"cairn-shards-{client.id}-{member}-{time.monotonic_ns()}",
                )
            return await self._actors[member].run(list(calls[member]))

        tasks = {member: asyncio.ensure_future(ask(member)) for member in calls}
        return await _gather(tasks, self._actors, time.monotonic() + seconds)


async def _gather(tasks: dict[str, Any], actors: Mapping[str, Any], end: float) -> dict[str, Any]:
    """Wait for several answers; `Lost` for workers that are gone, or do not answer in time."""
    found: dict[str, Any] = {}
    while tasks:
        await asyncio.wait(tasks.values(), timeout=max(0.0, min(_LOOK, end - time.monotonic())))
        late = time.monotonic() > end
        for member, task in list(tasks.items()):
            if task.done():
                error = task.exception()
                # A broken connection, or a lost actor; errors of holders themselves have other types.
                broken = isinstance(error, (OSError, TimeoutError, RuntimeError)) or type(error) is ValueError
                found[member] = Lost([member]) if broken else error if error is not None else task.result()
            elif late or _is_gone(actors.get(member)):
                task.cancel()
                found[member] = Lost([member])
            else:
                continue
            del tasks[member]
    return found


def _is_gone(actor: Any) -> bool:
    future = getattr(actor, "_future", None)
    return future is not None and future.status in _GONE
