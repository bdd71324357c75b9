"""Tasks on the workers of a cluster: few at a time, and repeated if a worker or the scheduler is lost."""

import ctypes
import queue
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from index.cluster.versions import compare_versions, own_versions
from index.errors import CairnError

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

AHEAD = 3  # batches under way for each thread of the workers: one running, the others queued
WAITING = 4  # results that may wait for an earlier one, as a multiple of the batches under way
TRIES = 2  # times that a task is run again after the scheduler says that it killed workers
_MALLOC = {-8: 1, -3: 32 << 20, -1: 1 << 29}  # M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
_LOOK = 2.0  # seconds without a result before the connection is checked
_COUNT = 5.0  # seconds after which workers are counted again


class WorkerDied(CairnError):
    """Workers died, one after the other, at the same task."""


class Connected(Protocol):
    """A provider of a connection to a cluster that can reconnect."""

    address: str
    patience: float

    @property
    def client(self) -> "Client":
        """The connection at this moment."""

    @property
    def threads(self) -> int:
        """Threads of all workers now connected."""

    def reconnect(self, lost: "Client") -> None:
        """Reconnect; raises CairnError if that fails for some time."""

    def mend(self) -> None:
        """Replace dead workers, where possible."""


@dataclass
class _Batch(Generic[T]):
    """Tasks that one worker runs one after the other."""

    number: int
    tasks: Sequence[Callable[[], T]]
    future: "Future[Any] | None" = None
    deaths: int = 0


class Tasks(Generic[T]):
    """One series of tasks under way: see `Cluster.run`."""

    def __init__(
        self,
        cluster: Connected,
        *,
        ordered: bool,
        batch: int,
        instead: Callable[[Callable[[], T]], T] | None,
    ) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._ordered = ordered
        self._size = batch
        self._instead = instead
        self._under_way: dict[int, _Batch[T]] = {}
        self._done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()  # number, and the future that is done

    def run(self, tasks: Iterable[Callable[[], T]]) -> Iterator[T]:
        """Run tasks, and give their results."""
        todo = iter(tasks)
        waiting: dict[int, list[T]] = {}  # results that wait for one before them
        position, number = 0, 0
        counted_at, threads = 0.0, 1
        try:
            while True:
                if time.monotonic() - counted_at > _COUNT:
                    counted_at, threads = time.monotonic(), self._threads() or threads
                while len(self._under_way) < AHEAD * threads and len(waiting) < WAITING * AHEAD * threads:
                    some = list(islice(todo, self._size))
                    if not some:
                        break
                    self._submit(_Batch(number, some))
                    number += 1
                if not self._under_way and position == number:
                    return
                done, results = self._next()
                waiting[done] = results
                if not self._ordered:
                    yield from waiting.pop(done)
                    position += 1
                while position in waiting:
                    yield from waiting.pop(position)
                    position += 1
        finally:
            self._give_up()

    def _threads(self) -> int:
        try:
            return self._cluster.threads
        except (OSError, TimeoutError):
            return 0

    def _submit(self, batch: _Batch[T]) -> None:
        self._under_way[batch.number] = batch
        client = self._cluster.client
        try:
            future = client.submit(perform, batch.tasks, own_versions(), pure=False)
        except Exception:
            if client.status == "running":
                raise
            self._recover()  # which submits this batch too
            return
        batch.future = future
        future.add_done_callback(lambda one, number=batch.number: self._done.put((number, one)))

    def _next(self) -> tuple[int, list[T]]:
        """Wait for the next batch; return its number and results."""
        alone_since: float | None = None
        while True:
            try:
                number, future = self._done.get(timeout=_LOOK)
            except queue.Empty:
                alone_since = self._look(alone_since)
                continue
            batch = self._under_way.get(number)
            if batch is None or batch.future is not future:
                continue  # of a connection that was lost
            results = self._results(batch)
            if results is not None:
                del self._under_way[number]
                return number, results

    def _look(self, alone_since: float | None) -> float | None:
        """Check scheduler and workers; return since when there has been no worker."""
        try:
            if self._client is not self._cluster.client or self._client.status != "running":
                self._recover()
            elif self._client.nthreads():
                return None
            else:
                self._cluster.mend()
        except (OSError, TimeoutError):
            self._recover()
        now = time.monotonic()
        if alone_since is not None and now - alone_since > self._cluster.patience:
            raise WorkerDied(
                "The cluster at {address} has had no workers for {seconds} s: start some, and run the same command "
                "again; it goes on where it stopped.",
                address=self._cluster.address,
                seconds=f"{self._cluster.patience:.0f}",
            )
        return alone_since or now

    def _results(self, batch: _Batch[T]) -> list[T] | None:
        """Fetch the results of a finished batch; None if it is submitted again."""
        from distributed import CancelledError, KilledWorker

        future = batch.future
        assert future is not None
        try:
            results: list[T] = future.result()
            return results
        except KilledWorker as error:
            batch.deaths += 1
            if batch.deaths < TRIES:
                self._submit(batch)
                return None
            if self._instead is not None:
                return [self._instead(task) for task in batch.tasks]
            raise WorkerDied(
                "{times} times, workers of {address} died at the same work: see their logs, and give them more memory "
                "maybe.",
                times=batch.deaths,
                address=self._cluster.address,
            ) from error
        except (CancelledError, TimeoutError, OSError) as error:
            # An error raised by the task does not mean that the connection is lost.
            if future.status == "error" and not isinstance(error, CancelledError):
                raise
            self._recover()
            return None

    def _recover(self) -> None:
        """Reconnect, and submit all batches under way again."""
        self._cluster.reconnect(self._client)
        self._client = self._cluster.client
        for batch in list(self._under_way.values()):
            self._submit(batch)

    def _give_up(self) -> None:
        futures = [batch.future for batch in self._under_way.values() if batch.future is not None]
        self._under_way.clear()
        if futures:
            try:
                self._client.cancel(futures, force=True)
            except Exception:  # the cluster may have gone
                return


def perform(tasks: Sequence[Callable[[], T]], versions: dict[str, str]) -> list[T]:
    """Run tasks in a worker, one after the other, if its versions are those of the calling process."""
    prepare_process()
    compare_versions(versions, own_versions(), _name())
    return [task() for task in tasks]


@cache
def prepare_process() -> None:
    """Keep each task of this process on one thread, and keep freed memory for reuse.

    The other cores belong to other workers. Dask returns freed memory to the system at once, but a photo or a search
    allocates arrays of the same sizes repeatedly.
    """
    import cv2
    import faiss  # noqa: F401  with what follows, it brings threads of its own
    import scipy.linalg
    import scipy.sparse  # noqa: F401
    from threadpoolctl import threadpool_limits

    cv2.setNumThreads(1)
    threadpool_limits(1)
    mallopt = getattr(ctypes.CDLL(None) if sys.platform == "linux" else None, "mallopt", None)
    if mallopt is not None:  # the C library is GNU's
        for parameter, value in _MALLOC.items():
            mallopt(parameter, value)


def _name() -> str:
    from distributed import get_worker

    return str(get_worker().address)
