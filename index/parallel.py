"""Tasks in several processes or threads, run and stopped together; and linear algebra on one thread.

Worker processes do not receive Ctrl-C or SIGTERM: the command does, and kills them. If the command is killed by
SIGKILL, a worker notices within a second that its parent is gone, and ends. On Windows it ends after five idle minutes.
"""

import contextlib
import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from index.extensions import carried
from index.options.declaration import Option, whole
from index.options.panels import RUNNING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

T = TypeVar("T")


class RemoteWorkers(Protocol):
    """Workers that are not child processes: see `index.cluster.connection.Cluster`."""

    def run(self, tasks: Iterable[Callable[[], T]], *, ordered: bool = True, batch: int = 1) -> Iterator[T]:
        """Run tasks, as `run` does."""


Workers = int | RemoteWorkers
"""A number of processes on this machine, or a pool of remote workers."""

# Modules with a linear algebra library besides NumPy's. They are not loaded just to count its threads.
_WITH_ITS_OWN = frozenset({"faiss", "scipy.linalg"})
# Of glibc's mallopt: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD.
_KEPT, _LARGEST_KEPT = -1, -3
_LARGEST_GROWTH = "_MAX_MEMORY_LEAK_SIZE"  # of joblib's workers; undocumented, may disappear
_LOOK = 0.5  # seconds between two checks of a worker whether its parent is alive

_unfinished: set[Generator[Any, None, None]] = set()  # results of processes that are not fully read


def cores() -> int:
    """Number of cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


WORKERS = Option("Number of processes; 0: one per core. The result does not depend on it.", RUNNING, least=0)
"""The option `workers`: see `processes`."""


def processes(workers: Any) -> int:
    """Number of processes for an argument `workers`: 0 stands for one a core."""
    return whole("workers", workers, 0) or cores()


class Terminated(BaseException):
    """The process received SIGTERM."""


def run(
    tasks: Iterable[Callable[[], T]],
    workers: Workers,
    *,
    ordered: bool = True,
    threads: bool = False,
    batch: int | None = None,
) -> Iterator[T]:
    """Run tasks in parallel, and yield their results. Unread results wait in memory.

    With one worker, or tasks for one only, they run lazily in this process. Raises BrokenProcessPool if a process was
    killed, for example for lack of memory; errors of tasks are raised here too. After an error no process is running.
    `tasks`: functions without arguments, pickled for processes; large arrays in them are shared, not copied. `threads`:
    threads of this process in place of processes, for work that releases the interpreter lock; in order, one task at a
    time, and few of them ahead of the results that are read. `batch`: tasks per process at a time; by default more if
    they are quick.
    """
    if not isinstance(workers, int) and threads:
        workers = os.cpu_count() or 1
    if not isinstance(workers, int):
        yield from workers.run(tasks, ordered=ordered, batch=batch or 1)
        return
    extra = carried()
    todo = iter(tasks) if extra is None else (partial(extra.run, task) for task in tasks)
    first = list(islice(todo, workers * (batch or 1)))
    processes = -(-len(first) // (batch or 1))
    todo = chain(first, todo)
    if workers == 1 or processes < 2:
        yield from (task() for task in todo)
        return
    if threads:
        from concurrent.futures import Future, ThreadPoolExecutor

        waiting: deque[Future[T]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            try:
                for task in todo:
                    waiting.append(pool.submit(task))
                    if len(waiting) == 2 * workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for one in waiting:  # after an error, or if no more results are read
                    one.cancel()
        return
    from joblib import Parallel, delayed

    # A worker that was idle for long is replaced, which needs no warning.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    parallel = Parallel(
        n_jobs=processes,
        return_as="generator" if ordered else "generator_unordered",
        batch_size=batch or "auto",
        backend="loky",
        initializer=_begin_work,
    )
    with without_interrupt():  # the processes are started here
        results: Generator[T, None, None] = parallel(delayed(task)() for task in todo)
        _unfinished.add(results)
    try:
        for result in results:  # noqa: UP028  `yield from` would close it with a warning
            yield result
    finally:
        _close(results)


def end_workers() -> None:
    """Kill the processes that compute results of `run` that will not be read."""
    for results in list(_unfinished):
        _close(results)


def _close(results: Generator[Any, None, None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of abandoned tasks
        with contextlib.suppress(ValueError):  # another thread is reading it, and will close it
            results.close()
    _unfinished.discard(results)


def _begin_work() -> None:
    """Prepare a worker process, which may use one core: the others belong to other workers."""
    import cv2

    end_with_parent()
    keep_memory()
    _stay_with_mapped_files()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it may reach all processes of a command, and one of them handles it
    cv2.setNumThreads(1)


def _stay_with_mapped_files() -> None:
    """Let this worker process grow without being replaced.

    joblib replaces a worker that has grown by 300 MB, as if it lost memory. But what it maps of a large collection
    counts too: with what `keep_memory` keeps it would be replaced every few seconds.
    """
    import joblib.externals.loky.process_executor as executor

    if hasattr(executor, _LARGEST_GROWTH):
        setattr(executor, _LARGEST_GROWTH, sys.maxsize)


def keep_memory() -> None:
    """Let this process keep up to a quarter of a gigabyte of freed memory for reuse.

    A photo takes successive arrays of some ten megabytes. glibc returns each to the system and requests it again,
    filled with zeros: a tenth of the time of an upload. Does nothing with another C library, or if the environment
    configures malloc.
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_LARGEST_KEPT, 32 << 20)  # the largest possible value
        mallopt(_KEPT, 256 << 20)


def end_with_parent(parent: int | None = None) -> None:
    """End this process once its parent is gone, by default the one known to `multiprocessing` or `run`."""
    import multiprocessing

    if parent is None and (known := multiprocessing.parent_process()) is not None:
        parent = known.pid
    if parent is None or os.name != "posix":
        return
    number = parent

    def watch() -> None:
        while os.getppid() == number:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def can_fork() -> bool:
    """Whether processes can be forked here, and identified even if process numbers are reused."""
    if sys.platform != "linux":  # elsewhere system libraries have their own threads
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def without_interrupt() -> Iterator[None]:
    """Make processes started within a block ignore Ctrl-C: their parent ends them, without tracebacks."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # Of this thread alone; a new process inherits the mask of the thread that starts it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _quiet_tracker() -> Iterator[None]:
    """Silence the resource tracker that cleans up after killed workers, if it starts in the block.

    joblib's tracker warns about everything that it removes or finds gone, sometimes after the last output of a stopped
    command.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, "ignore:resource_tracker")))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


@contextlib.contextmanager
def stopping_in_order() -> Iterator[None]:
    """Make SIGTERM end a block as Ctrl-C does, and raise Terminated; a second one ends the process at once."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread can handle signals
        yield
        return
    received = False

    def stop(*_: object) -> None:
        nonlocal received
        received = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with _quiet_tracker():
            yield
    except BaseException as error:
        if received:  # a library may have turned it into another exception
            raise Terminated from error
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        end_workers()
    if received:
        raise Terminated


def _controller() -> "ThreadpoolController":
    """The controller of the threads of all linear algebra libraries now loaded."""
    return _controller_with(frozenset(_WITH_ITS_OWN & sys.modules.keys()))


@cache
def _controller_with(loaded: frozenset[str]) -> "ThreadpoolController":
    del loaded  # rebuilt when more is loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_limit_lock = threading.Lock()
_limited = 0  # active blocks of `one_thread`, of all threads together
_before: Any = None  # restores the numbers of threads from before the first of them


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra on the calling thread within a block.

    Synchronising threads costs more than it saves when products take microseconds, and a sum's last bit depends on
    their number.

    The limit applies to the whole process. The first block of several threads sets it and the last one lifts it: if
    each restored the previous limit, overlapping blocks would leave it set.
    """
    global _limited, _before
    with _limit_lock:
        if not _limited:
            _before = _controller().limit(limits=1, user_api="blas")
            _let_other_threads_limit()
        _limited += 1
    try:
        yield
    finally:
        with _limit_lock:
            _limited -= 1
            if not _limited:
                _before.restore_original_limits()
                _let_other_threads_limit()


def _let_other_threads_limit() -> None:
    """Let any thread lift the limit of this one: later versions of threadpoolctl allow only the same thread."""
    from threadpoolctl import OpenBLASController

    getattr(OpenBLASController, "clear_controlling_thread", lambda: None)()
