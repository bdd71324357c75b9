"""A cluster: addresses, versions, tasks, and deaths of workers or the scheduler."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from index.cluster.connection import Cluster, ClusterError, check_address
from index.cluster.tasks import WorkerDied
from index.cluster.versions import PYTHON, VersionsDiffer, compare_versions, own_versions
from index.errors import CairnError
from tests.support.clusters import Machines
from tests.support.patience import patience


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.connect("local:2") as opened:
        yield opened


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    found = Machines(tmp_path)
    yield found
    found.end()


def told(number: int, seconds: float = 0.0) -> tuple[int, int]:
    time.sleep(seconds)
    return number, os.getpid()


def refuse() -> None:
    raise CairnError("This cannot be done.")


def lose_the_disk() -> None:
    raise OSError(28, "No space left on device")


def die() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


@pytest.mark.parametrize("address", ["local", "local:0", "local:1000", "local:x", "host", "http://host:1", "a b:1", ""])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ClusterError, match="is no address of a cluster"):
        check_address(address)


@pytest.mark.parametrize("address", ["local:4", "host:8786", "tcp://10.0.0.1:8786", "tls://host:1", "tcp://[::1]:8786"])
def test_what_is_an_address(address: str) -> None:
    assert check_address(address) == address


def test_nobody_answers(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("index.cluster.connection.HELLO", 1.0)
    with pytest.raises(ClusterError, match=f"No Dask scheduler answers at {machines.address}"):
        Cluster.connect(machines.address)


def test_results_come_in_the_order_of_tasks_or_as_they_are_there(cluster: Cluster) -> None:
    found = list(cluster.run(partial(told, number) for number in range(50)))
    assert [number for number, _ in found] == list(range(50))
    assert os.getpid() not in {pid for _, pid in found}
    some = cluster.run((partial(told, number) for number in range(50)), ordered=False, batch=7)
    assert sorted(number for number, _ in some) == list(range(50))
    assert list(cluster.run(())) == []


def test_no_more_tasks_are_taken_than_keep_workers_busy(cluster: Cluster) -> None:
    taken = 0

    def tasks() -> Iterator[partial[tuple[int, int]]]:
        nonlocal taken
        while True:
            taken += 1
            yield partial(told, taken)

    found = cluster.run(tasks())
    assert [next(found)[0] for _ in range(5)] == [1, 2, 3, 4, 5]
    assert taken < 50
    found.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("task", "kind"), [(refuse, CairnError), (lose_the_disk, OSError)])
def test_what_a_task_raises_is_raised_here(cluster: Cluster, task: partial[None], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"This cannot be done|No space left"):
        list(cluster.run([task]))


def test_a_worker_that_is_killed_loses_nothing(cluster: Cluster) -> None:
    killed = set()
    numbers = []
    for number, pid in cluster.run(partial(told, number, 0.02) for number in range(120)):
        numbers.append(number)
        if number in (20, 60):
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    assert numbers == list(range(120))
    assert len(killed) == 2


@pytest.mark.slow
def test_a_task_that_kills_workers_is_given_up() -> None:
    with Cluster.connect("local:1") as cluster:
        tasks = [partial(int, 1), die, partial(int, 3)]
        assert list(cluster.run(tasks, instead=lambda task: -1)) == [1, -1, 3]
        with pytest.raises(WorkerDied, match="died at the same work"):
            list(cluster.run([die]))


@pytest.mark.slow
def test_a_scheduler_that_comes_back_goes_on(machines: Machines) -> None:
    scheduler = machines.scheduler()
    worker = machines.worker()
    deadline = time.monotonic() + patience(30)
    while True:
        try:
            cluster = Cluster.connect(machines.address, patience=60)
            break
        except ClusterError:
            assert time.monotonic() < deadline

    def bring_back() -> None:
        worker.kill()
        time.sleep(1)
        machines.scheduler()
        machines.worker()

    numbers = []
    with cluster:
        for number, _ in cluster.run(partial(told, number, 0.01) for number in range(60)):
            numbers.append(number)
            if number == 20:
                scheduler.kill()
                scheduler.wait()
                threading.Thread(target=bring_back).start()
    assert numbers == list(range(60))


@pytest.mark.slow
def test_a_scheduler_without_workers(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    machines.scheduler()
    monkeypatch.setattr("index.cluster.connection.HELLO", 6.0)
    with pytest.raises(ClusterError, match=r"has no workers: start some with dask worker"):
        Cluster.connect(machines.address)


def test_versions_that_differ() -> None:
    own = own_versions()
    compare_versions(own, own, "tcp://there")
    compare_versions(own, {**own, PYTHON: own[PYTHON].rsplit(".", 1)[0] + ".99"}, "tcp://there")  # no pickle differs
    with pytest.raises(VersionsDiffer, match=r"tcp://there has numpy 1\.0, and this command 2"):
        compare_versions({**own, "numpy": "2.0"}, {**own, "numpy": "1.0"}, "tcp://there")
    with pytest.raises(VersionsDiffer, match=r"tcp://there has no cairn-search"):
        compare_versions(own, {**own, "cairn-search": ""}, "tcp://there")


def test_a_worker_of_other_versions_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {**own_versions(), "faiss-cpu": "0.1"}
    monkeypatch.setattr("index.cluster.connection.own_versions", lambda: other)
    with pytest.raises(VersionsDiffer, match="faiss-cpu"):
        cluster.check_versions()
    monkeypatch.setattr("index.cluster.tasks.own_versions", lambda: other)
    with pytest.raises(VersionsDiffer, match="install the same version on all machines"):
        list(cluster.run([partial(int, 1)]))


class Joining:
    """A connection to a cluster in which one worker joins, and one is lost, during the query of versions."""

    def __init__(self) -> None:
        self.asked = 0

    def nthreads(self) -> dict[str, int]:
        return {"tcp://first:1": 1, "tcp://lost:1": 1}

    def run(
        self, function: Callable[[], str], workers: list[str] | None = None, on_error: str = ""
    ) -> dict[str, object]:
        self.asked += 1
        there = workers or ["tcp://first:1", "tcp://late:1"][: self.asked]
        return {one: OSError("lost") if "lost" in one and self.asked > 1 else function() for one in there}


def test_workers_that_come_or_go_while_versions_are_compared_are_accepted() -> None:
    cluster = Cluster("tcp://host:8786")
    cluster._client = Joining()  # type: ignore[assignment]
    cluster.check_versions()
