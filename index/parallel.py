"""Many processes or threads at work: tasks run side by side, and stopped together; and linear algebra on one thread.

Worker processes do not receive Ctrl-C or SIGTERM: the command does, and kills them. If the command is killed by
SIGKILL, a worker notices within a second that its parent has gone, and ends. On Windows a worker ends once its task is
done and it has been idle for five minutes.
"""

import contextlib
import os
import signal
import sys
import threading
import time
import warnings
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
    """Workers that are not processes of this one: see `index.cluster.connection.Cluster`."""

    def run(self, tasks: Iterable[Callable[[], T]], *, ordered: bool = True, batch: int = 1) -> Iterator[T]:
        """Run tasks, as `run` does."""


Workers = int | RemoteWorkers
"""Who is at work: a number of processes on this machine, or a pool of workers."""

# Modules that bring a linear algebra beside NumPy's. They are not loaded for the count of its threads alone.
_WITH_ITS_OWN = frozenset({"faiss", "scipy.linalg"})
# Of glibc's mallopt: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD.
_KEPT, _LARGEST_KEPT = -1, -3
_LOOK = 0.5  # seconds between two looks of a worker at whether its parent is there

_unfinished: set[Generator[Any, None, None]] = set()  # results of processes, not read to their end


def cores() -> int:
    """Number of cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


WORKERS = Option("Processes; 0: one a core. The result does not depend on it.", RUNNING, least=0)
"""The option `workers` of whatever works on several processes: see `processes`."""


def processes(workers: Any) -> int:
    """How many processes work, for an argument `workers`: 0 stands for one a core."""
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
    """Run tasks side by side, and give their results as they come. Results that are not read yet wait in memory.

    With one worker, or tasks for no more than one, they run in this process, each when its result is asked for. Raises
    BrokenProcessPool if a process was killed, for want of memory maybe; what a task raises is raised here too. Either
    way no process is at work any longer. `tasks`: without arguments. Processes get them pickled; large arrays in them
    are shared and not copied. `threads`: threads of this process in place of processes, for work that lets others run
    meanwhile; in order, and one task at a time. `batch`: how many tasks a process takes at a time; by default the more,
    the quicker they are.
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
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(lambda task: task(), todo)
        return
    from joblib import Parallel, delayed

    # A worker that was idle for long, or has grown, ends and is replaced, which needs no warning.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    parallel = Parallel(
        n_jobs=processes,
        return_as="generator" if ordered else "generator_unordered",
        batch_size=batch or "auto",
        backend="loky",
        initializer=_begin_work,
    )
    with without_interrupt():  # the processes are started here
        found: Generator[T, None, None] = parallel(delayed(task)() for task in todo)
        _unfinished.add(found)
    try:
        for result in found:  # noqa: UP028  `yield from` would close it with a warning
            yield result
    finally:
        _close(found)


def end_workers() -> None:
    """Kill the processes that work on results of `run` that will not be read."""
    for found in list(_unfinished):
        _close(found)


def _close(found: Generator[Any, None, None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that tasks were given up
        with contextlib.suppress(ValueError):  # another thread is reading it, and closes it
            found.close()
    _unfinished.discard(found)


def _begin_work() -> None:
    """Prepare a worker process, where every core is another process's already."""
    import cv2

    end_with_parent()
    keep_memory()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it may reach all processes of a command, and one of them answers it
    cv2.setNumThreads(1)


def keep_memory() -> None:
    """Let this process keep memory that it has freed, up to a quarter of a gigabyte, for what needs some next.

    A photo takes arrays of some ten megabytes, one after the other. glibc gives each back to the system and asks for it
    again, which fills it with zeros: a tenth of the time of an upload. If there is another C library, or the
    environment says how memory is kept, all stays as it is.
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_LARGEST_KEPT, 32 << 20)  # the largest that it takes
        mallopt(_KEPT, 256 << 20)


def end_with_parent(parent: int | None = None) -> None:
    """Let this process end as soon as its parent is no longer there. `parent`: its process number; left out where
    `multiprocessing` or `run` has started this process, and knows it.
    """
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
    """Whether processes can be forked here, and identified although process numbers are reused."""
    if sys.platform != "linux":  # elsewhere libraries of the system have threads of their own
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def without_interrupt() -> Iterator[None]:
    """Let the processes that are started within a block not feel Ctrl-C: their parent ends them.

    Python would write a trace for each that is still being started.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # Of this thread alone; a process has the mask of the thread that starts it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _quiet_tracker() -> Iterator[None]:
    """Let the process that removes what killed workers leave behind do so without a word, if it begins in a block.

    joblib has one. It warns of all that it removes, and of what is gone already: at times after the last word of a
    command that was stopped.
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
    """Let SIGTERM end a block as Ctrl-C does: what is open is closed, and no worker stays at work; then Terminated is
    raised. A second SIGTERM ends the process at once.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone can answer signals
        yield
        return
    told = False

    def stop(*_: object) -> None:
        nonlocal told
        told = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with _quiet_tracker():
            yield
    except BaseException as error:
        if told:  # a library may have made something else of it
            raise Terminated from error
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        end_workers()
    if told:
        raise Terminated


def _controller() -> "ThreadpoolController":
    """What tells all linear algebra that is loaded now how many threads to use."""
    return _controller_beside(frozenset(_WITH_ITS_OWN & sys.modules.keys()))


@cache
def _controller_beside(loaded: frozenset[str]) -> "ThreadpoolController":
    del loaded  # it is looked for again when there is more
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_limit_lock = threading.Lock()
_limited = 0  # blocks of `one_thread` that are under way, of all threads together
_before: Any = None  # what restores the numbers of threads from before the first of them


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra on the calling thread within a block.

    Threads that wait for each other cost more than they bring where products take microseconds, and a sum's last bit
    depends on their number.

    The limit is one of the whole process. The first block of several threads sets it, and the last one lifts it: if
    each restored what it found, one that began within another would restore that one's limit for good.
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
    """Let any thread lift the limit that this one has set: later versions of threadpoolctl let that one alone do so."""
    from threadpoolctl import OpenBLASController

    getattr(OpenBLASController, "clear_controlling_thread", lambda: None)()
