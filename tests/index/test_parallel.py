"""Parallel tasks: the same results with any workers, and no worker left running."""

import contextlib
import os
import platform
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path

import numpy as np
import psutil
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from index.parallel import Terminated, end_workers, one_thread, run, stopping_in_order
from tests.support.paths import ROOT
from tests.support.patience import patience

LATER = patience(1.5)  # seconds
WAYS = [(1, False), (2, False), (3, True)]


def double(number: int) -> int:
    return 2 * number


def where(_: int) -> tuple[int, int]:
    import cv2

    time.sleep(0.05)
    return os.getpid(), cv2.getNumThreads()


def grow(mapped: Path, number: int) -> int:
    """Read a mapped file into memory, and keep it there, after the first tasks."""
    if number > 3:
        kept[mapped] = np.memmap(mapped, np.uint8, "r")
        kept[mapped][:: 1 << 12].sum()
    time.sleep(0.3)
    return os.getpid()


kept: dict[Path, np.ndarray] = {}


def fail(number: int) -> int:
    if number == 3:
        raise ValueError("three")
    return number


def write_later(path: Path, seconds: float) -> None:
    path.with_suffix(".begun").touch()
    time.sleep(seconds)
    path.touch()


def tasks(function: Callable[[int], int], number: int) -> list[Callable[[], int]]:
    return [partial(function, one) for one in range(number)]


def test_a_worker_that_maps_a_large_collection_is_not_replaced(tmp_path: Path) -> None:
    """joblib takes growth by 300 MB for lost memory, and looks once a second."""
    with (tmp_path / "mapped").open("wb") as file:
        file.truncate(400 << 20)
    assert len(set(run([partial(grow, tmp_path / "mapped", one) for one in range(14)], 2, batch=1))) == 2


@pytest.mark.parametrize(("workers", "threads"), WAYS)
@pytest.mark.parametrize("batch", [None, 1, 4])
@pytest.mark.parametrize("number", [0, 1, 9])
def test_results_come_in_the_order_of_the_tasks(workers: int, threads: bool, batch: int | None, number: int) -> None:
    found = run(iter(tasks(double, number)), workers, threads=threads, batch=batch)
    assert list(found) == [2 * one for one in range(number)]


@pytest.mark.parametrize(("workers", "threads"), WAYS)
def test_where_order_does_not_matter_all_results_come(workers: int, threads: bool) -> None:
    assert sorted(run(tasks(double, 9), workers, ordered=False, threads=threads)) == list(range(0, 18, 2))


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "threads"), WAYS)
def test_what_a_task_raises_is_raised(workers: int, threads: bool) -> None:
    with pytest.raises(ValueError, match="three"):
        list(run(tasks(fail, 9), workers, threads=threads))


def where_two_work(folder: Path, number: int) -> tuple[int, int]:
    """As `where`, once two processes are running: one could do everything before the other starts."""
    (folder / str(os.getpid())).touch()
    end = time.monotonic() + patience(60)
    while len(list(folder.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    return where(number)


def test_processes_work_with_one_thread_each_and_there_are_no_more_than_batches(tmp_path: Path) -> None:
    found = list(run([partial(where_two_work, tmp_path, one) for one in range(8)], 2))
    assert {threads for _, threads in found} == {1}
    assert len({process for process, _ in found}) == 2 and os.getpid() not in dict(found)
    assert {process for process, _ in run([partial(where, one) for one in range(4)], 2, batch=4)} == {os.getpid()}


def test_one_worker_begins_no_task_before_its_result_is_wanted() -> None:
    begun: list[int] = []
    endless = (partial(begun.append, number) for number in count())
    assert list(islice(run(endless, 1), 3)) == [None] * 3
    assert begun == [0, 1, 2]


def test_threads_take_few_tasks_ahead_of_the_results_that_are_read() -> None:
    taken: list[int] = []

    def endless() -> Iterator[Callable[[], int]]:
        for number in count():
            taken.append(number)
            yield partial(double, number)

    results = run(endless(), 3, threads=True)
    for read in range(20):
        assert next(results) == 2 * read
        assert len(taken) <= read + 6
    results.close()


@pytest.mark.parametrize("fails", [False, True])
def test_tasks_that_no_thread_has_begun_are_dropped_if_no_more_is_read_or_one_fails(fails: bool) -> None:
    begun: list[int] = []
    go_on = threading.Event()

    def wait(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ValueError("none")
        go_on.wait(patience(60))

    results = run(
        [partial(double, 1), *(partial(wait, number if fails else number + 1) for number in range(9))], 2, threads=True
    )
    threading.Timer(0.5, go_on.set).start()
    if fails:
        with pytest.raises(ValueError, match="none"):
            list(results)
    else:
        assert next(results) == 2
        results.close()
    assert len(begun) <= 2 + fails


def test_large_arrays_are_the_same_in_a_process() -> None:
    values = np.random.default_rng(0).normal(size=300_000)
    total = [task.sum() for task in run([partial(np.multiply, values, factor) for factor in (1.0, 2.0, 3.0)], 2)]
    assert total == [values.sum(), (values * 2).sum(), (values * 3).sum()]


@pytest.mark.parametrize("stop", ["close", *(pytest.param(one, marks=pytest.mark.slow) for one in ("leave", "forget"))])
@pytest.mark.slow
def test_who_reads_no_further_leaves_no_worker_at_work(tmp_path: Path, stop: str) -> None:
    jobs = [partial(double, 1), *(partial(write_later, tmp_path / f"{number}", LATER) for number in range(2))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run(jobs, 2, ordered=False)  # type: ignore[arg-type]
        assert next(found) == 2
        while not list(tmp_path.glob("*.begun")):
            time.sleep(0.01)
        if stop == "close":
            found.close()  # type: ignore[attr-defined]
        elif stop == "leave":
            with stopping_in_order():
                pass
        else:
            end_workers()
    begun = sorted(path.stem for path in tmp_path.glob("*.begun"))
    time.sleep(LATER + 0.5)
    assert begun and not any((tmp_path / name).exists() for name in begun)
    assert list(run(tasks(double, 3), 2)) == [0, 2, 4]  # others can work afterwards


def send_sigterm(_: int = 0) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.skipif(os.name != "posix", reason="no SIGTERM")
class TestSigterm:
    def test_it_is_raised_and_what_was_set_before_is_set_again(self) -> None:
        reported: list[int] = []
        before = signal.signal(signal.SIGTERM, lambda *_: reported.append(1))
        try:
            closed = []
            with pytest.raises(Terminated), stopping_in_order():
                try:
                    send_sigterm()
                finally:
                    closed.append(1)
            send_sigterm()
            assert (reported, closed) == ([1], [1])
        finally:
            signal.signal(signal.SIGTERM, before)

    def test_what_workers_leave_behind_is_removed_without_a_word(self) -> None:
        script = (
            "from joblib.externals.loky.backend import resource_tracker as tracker\n"
            "from index.parallel import stopping_in_order\n"
            "with {block}: tracker.ensure_running(); tracker.register('/no semaphore of this name', 'semlock')"
        )
        said = [
            subprocess.run(
                [sys.executable, "-c", script.format(block=block)], cwd=ROOT, capture_output=True, text=True, check=True
            ).stderr
            for block in ("stopping_in_order()", "__import__('contextlib').nullcontext()")
        ]
        assert said[0] == "" and "leaked semlock" in said[1]

    def test_what_others_make_of_it_does_not_matter(self) -> None:
        with pytest.raises(Terminated), stopping_in_order():
            try:
                send_sigterm()
            except BaseException:
                raise KeyboardInterrupt from None
        with pytest.raises(Terminated), stopping_in_order(), contextlib.suppress(BaseException):
            send_sigterm()

    def test_other_errors_stay_what_they_are(self) -> None:
        with pytest.raises(KeyError), stopping_in_order():
            raise KeyError

    @pytest.mark.slow
    def test_it_ends_a_wait_for_workers(self, tmp_path: Path) -> None:
        jobs = [partial(write_later, tmp_path / f"{number}", LATER) for number in range(4)]
        with pytest.raises(Terminated), stopping_in_order():
            threading.Timer(0.7, send_sigterm).start()
            list(run(jobs, 2))
        time.sleep(LATER + 0.5)
        assert not [path for path in tmp_path.iterdir() if not path.suffix]

    def test_a_thread_is_left_as_it_is(self) -> None:
        handlers = []

        def work() -> None:
            with stopping_in_order():
                handlers.append(signal.getsignal(signal.SIGTERM))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert handlers == [signal.getsignal(signal.SIGTERM)]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a worker ends when it has been idle")
def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    """The parent is a process that is killed while its workers sleep."""
    code = (
        "from functools import partial; from pathlib import Path; from index.parallel import run\n"
        "from tests.index.test_parallel import write_later\n"
        f"list(run([partial(write_later, Path({str(tmp_path)!r}) / str(n), {LATER}) for n in range(8)], 2))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    while len(list(tmp_path.glob("*.begun"))) < 2:
        time.sleep(0.02)
    children = psutil.Process(parent.pid).children(recursive=True)
    parent.kill()
    parent.wait()
    assert len(children) >= 2 and psutil.wait_procs(children, timeout=patience(10))[1] == []


def test_one_thread_gives_back_what_was_before_however_blocks_of_threads_overlap() -> None:
    def threads() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if "numpy.libs" in one["filepath"]]

    within, outside = threading.Event(), threading.Event()

    def overlap() -> None:
        with one_thread():
            within.set()
            outside.wait(patience(10))

    with threadpool_limits(2, user_api="blas"):
        if threads() != [2]:
            pytest.skip("NumPy's linear algebra cannot be told how many threads to use")
        other = threading.Thread(target=overlap, daemon=True)
        with one_thread():
            other.start()
            assert within.wait(patience(10))
        assert threads() == [1]  # the other block goes on
        outside.set()
        other.join()
        assert threads() == [2]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone is asked to keep memory")
@pytest.mark.parametrize(("setting", "kept"), [({}, True), ({"MALLOC_TRIM_THRESHOLD_": "131072"}, False)])
def test_memory_that_was_freed_is_kept_unless_the_environment_says_how(setting: dict[str, str], kept: bool) -> None:
    """Successive arrays of 20 MB: each page is requested once in all, or once for each array."""
    script = """
import ctypes, resource
from index.parallel import keep_memory
keep_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    some = libc.malloc(20 << 20)
    ctypes.memset(some, 1, 20 << 20)
    libc.free(some)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, **setting},
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert (int(done.stdout) < 2 * (20 << 20) / 4096) == kept
