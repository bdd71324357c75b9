"""A Dask cluster, running at an address or started here. Refused if versions differ."""

import contextlib
import logging
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from index.cluster.tasks import Tasks
from index.cluster.versions import compare_versions, own_versions, version_of
from index.errors import Unreachable
from index.extras import install_command
from index.parallel import without_interrupt

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

T = TypeVar("T")

LOCAL = re.compile(r"local:([1-9][0-9]{0,2})")
_SCHEDULER = re.compile(r"(?:(?:tcp|tls)://)?[^\s/:]+:[0-9]{1,5}|(?:tcp|tls)://\[[0-9a-fA-F:.]+\]:[0-9]{1,5}")
HELLO = 5.0  # seconds that a scheduler has to answer
PATIENCE = 120.0  # seconds to wait for a lost scheduler or lost workers


# Settings of workers on this machine. All but the first make Dask monitor itself less often: by default that takes a
# seventh of a core.
_LOCAL = {
    "distributed.scheduler.allowed-failures": 2,  # workers that may die at a task before the task is blamed
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "2s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.system-monitor.interval": "5s",
}


class ClusterError(Unreachable):
    """A cluster that cannot be reached, has no workers, or does not see a folder of this machine."""


class Cluster:
    """Workers of a Dask cluster, by `connect`; a context manager, for `index.parallel.run` in place of a number."""

    def __init__(self, address: str, *, patience: float = PATIENCE) -> None:
        self.address = address
        self.patience = patience
        self._local: LocalCluster | None = None
        self._client: Client | None = None
        self._lock = threading.Lock()

    @classmethod
    def connect(cls, address: str, *, patience: float = PATIENCE) -> Self:
        """Connect to a cluster. Raises ClusterError if the address is invalid, nothing answers there, or it
        has no workers; VersionsDiffer if they have other versions of packages than this process.
        """
        cluster = cls(check_address(address), patience=patience)
        try:
            cluster._open(HELLO)
            cluster.check_versions()
        except BaseException:
            cluster.close()
            raise
        return cluster

    @property
    def client(self) -> "Client":
        """The connection."""
        assert self._client is not None
        return self._client

    @property
    def threads(self) -> int:
        """Threads of all workers now connected."""
        return sum(self.client.nthreads().values())

    def run(
        self,
        tasks: Iterable[Callable[[], T]],
        *,
        ordered: bool = True,
        batch: int = 1,
        instead: Callable[[Callable[[], T]], T] | None = None,
    ) -> Iterator[T]:
        """Run tasks on the workers, and give their results as they come: see `index.parallel.run`. A task is run again
        if its worker dies, or the scheduler is lost and comes back, so running it twice must do no harm. Raises
        ClusterError if the scheduler does not come back, WorkerDied if the last worker does not, or workers die at a
        task.

        `tasks`: functions without arguments, picklable by reference. `instead`: returns the result of a task at which
        worker after worker died; without it, that is an error.
        """
        return Tasks(self, ordered=ordered, batch=batch, instead=instead).run(tasks)

    def everywhere(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function on each worker now connected, and wait for all."""
        self.client.run(function, *arguments)

    def check_sees(self, folder: Path) -> None:
        """Raise ClusterError if a worker cannot see the contents of a folder of this machine."""
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".cairn-", dir=folder.resolve()) as probe:
            for worker, is_there in self.client.run(Path(probe.name).is_file).items():
                if not is_there:
                    raise ClusterError(
                        "The worker {worker} does not see {folder}: it must be at this path on all machines.",
                        worker=worker,
                        folder=folder.resolve(),
                    )

    def check_versions(self) -> None:
        """Raise VersionsDiffer if a worker has other versions of packages that results depend on than this process."""
        for worker, versions in self._versions().items():
            compare_versions(own_versions(), versions, worker)

    def reconnect(self, lost: "Client", patience: float | None = None) -> None:
        """Reconnect after the scheduler was lost, and wait for it. Done once for each connection."""
        patience = self.patience if patience is None else patience
        with self._lock:
            if self._client is not lost:
                return
            _close(lost)
            self._client = None
            end = time.monotonic() + patience
            while True:
                try:
                    self._open(min(HELLO, patience))
                    return
                except ClusterError:
                    if self._local is not None or time.monotonic() > end:
                        raise ClusterError(
                            "The cluster at {address} was lost: start its scheduler and workers, and run the same "
                            "command again; it goes on where it stopped.",
                            address=self.address,
                        ) from None
                    time.sleep(1)

    def mend(self) -> None:
        """Replace dead workers, if this process started them."""
        if self._local is not None:
            self._local.scale(len(self._local.worker_spec))

    def close(self) -> None:
        """Leave the cluster; stop it if it was started here."""
        if self._client is not None:
            _close(self._client)
            self._client = None
        if self._local is not None:
            with contextlib.suppress(Exception):
                self._local.close(timeout=5)
            self._local = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, timeout: float) -> None:
        distributed = load_dask()
        local = LOCAL.fullmatch(self.address)
        if local and self._local is None:
            import dask

            # Outside `without_interrupt`: whoever starts the tracker lets Ctrl-C through to its thread again.
            resource_tracker.ensure_running()
            # The thread that starts the workers is made here.
            with dask.config.set(_LOCAL), without_interrupt():
                self._local = distributed.LocalCluster(
                    n_workers=int(local[1]),
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
        try:
            self._client = distributed.Client(
                self.address if self._local is None else self._local, timeout=timeout, set_as_default=False
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                "No Dask scheduler answers at {address}: start one with dask scheduler, or name another.",
                address=self.address,
            ) from error
        except (TypeError, RuntimeError) as error:  # Dask's error when its settings name no certificates
            if not self.address.startswith("tls://"):
                raise
            raise ClusterError(
                "{address} needs certificates: name them in Dask's own settings (distributed.comm.tls).",
                address=self.address,
            ) from error
        self._await_workers(timeout)

    def _await_workers(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not self.client.nthreads():
            if time.monotonic() > end:
                raise ClusterError(
                    "The cluster at {address} has no workers: start some with dask worker {address}.",
                    address=self.address,
                )
            time.sleep(0.1)

    def _versions(self) -> dict[str, dict[str, str]]:
        """The versions on each worker that stays connected throughout, by its address."""
        # A function of the standard library: a worker without Cairn can run it too.
        versions: dict[str, dict[str, str]] = {worker: {} for worker in self.client.nthreads()}
        for package in own_versions():
            answers = self.client.run(version_of(package), workers=list(versions), on_error="return")
            for worker, answer in answers.items():
                if isinstance(answer, PackageNotFoundError):
                    versions[worker][package] = ""
                elif isinstance(answer, str):
                    versions[worker][package] = answer
                else:  # the worker has gone
                    del versions[worker]
        return versions


def check_address(address: str) -> str:
    """Return the address of a cluster; raises ClusterError if it is invalid."""
    is_local = address == "local" or address.startswith("local:")
    if (LOCAL if is_local else _SCHEDULER).fullmatch(address) is None:
        raise ClusterError(
            f"{address!r} is no address of a cluster: give that of a Dask scheduler, such as tcp://host:8786, or "
            "local:4 for 4 workers on this machine."
        )
    return address


def load_dask() -> Any:
    """Import Dask; raises ClusterError where it is not installed."""
    try:
        import distributed
    except ImportError:
        raise ClusterError(f"A cluster needs Dask: {install_command('cluster')}.") from None
    for name in [one for one in logging.root.manager.loggerDict if one.split(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are reported by us
    return distributed


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.close(timeout=2)
