"""Creation of worker processes: forked from one process that has opened the collection, or started separately. A fork
shares the memory of its parent until it writes to it, and is ready in milliseconds. So one process opens the
collection, does no job itself and has no second thread, not even one of a library; each worker is a fork of it. If the
system cannot fork safely, each worker is started separately and opens the collection itself.
"""

import contextlib
import gc
import json
import multiprocessing
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from index.parallel import can_fork, end_with_parent, keep_memory, without_interrupt
from index.text import printable_name
from retrieval.web.pool.job_process import WorkerJobs, limit_memory, work

_LOOK = 0.5  # seconds between two looks at whether the server is there


class Died(Exception):
    """A process died: it was killed, ran out of memory, or a library crashed."""


class NotStarted(Died):
    """No process can be started now, for lack of memory, processes or open files; what is open stays open."""


@dataclass(frozen=True)
class Start:
    """How the jobs of a worker are made."""

    make: Callable[..., WorkerJobs]  # a function of a module, for the process imports it by its name
    arguments: tuple[Any, ...]  # which must be picklable
    memory: int  # bytes that a worker may take on top of what it needs to start; 0: no limit
    nice: int  # by how much the processes stand back behind others, where the system knows that


def make_source(start: Start) -> "WorkerSource":
    """Make a source of workers, which is not open yet; raises `NotStarted` if the system cannot start a process."""
    return ForkServer(start) if can_fork() else Spawner(start)


class ForkServer:
    """A process that opens what jobs need, and forks the workers. It is used by one thread until it is open."""

    def __init__(self, start: Start) -> None:
        self.generation = 0  # how often it has reopened what has changed
        self._lock = threading.Lock()
        self._opening = True
        self._given_up = False
        self._control, self._process = _start_process(_serve_forks, start)

    def open(self) -> None:
        """Wait until the process has opened all; raises `Died` if it dies."""
        with _or_died():
            self._control.recv_bytes()
        self._opening = False

    def hire(self) -> "Worker":
        """Fork a worker; raises `NotStarted` if none can be started now, `Died` if never."""
        with _or_not_started():
            ours, theirs = multiprocessing.Pipe()
        try:
            with self._lock:
                pid, generation = self._fork(theirs)
            with _or_not_started():  # here there may be too many open files, or the worker may be dead already
                return _Forked(pid, ours, self, generation, os.pidfd_open(pid))
        except Died:
            ours.close()  # a worker ends with that
            raise
        finally:
            theirs.close()

    def _fork(self, pipe: Connection) -> tuple[int, int]:
        """Fork a worker that uses a pipe; return its process number and its generation."""
        with _or_not_started():  # before any message
            channel = socket.fromfd(self._control.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
        with channel, _or_died():
            self._control.send_bytes(b"fork")
            reduction.sendfds(channel, [pipe.fileno()])
            pid, answer = json.loads(self._control.recv_bytes())
        if not pid:
            raise NotStarted(answer)
        return pid, answer

    def look(self) -> None:
        """Let the process reopen what has changed, while workers do jobs; raises `Died` if it dies."""
        with _or_died(), self._lock:
            self._opening = True
            if self._given_up:
                raise Died
            self._control.send_bytes(b"look")
            self.generation = int(json.loads(self._control.recv_bytes()))
            self._opening = False

    def kill(self) -> None:
        """Kill the process as soon as it is opening something."""
        self._given_up = True
        if self._opening:
            self._process.kill()

    def end(self) -> None:
        """End the process; the workers stay."""
        self._process.kill()
        self._process.join()
        with self._lock:
            self._control.close()


@dataclass(frozen=True)
class _Forked:
    """A worker that is no child of this process."""

    pid: int
    pipe: Connection  # for its jobs and answers
    source: ForkServer
    generation: int  # of the source
    handle: int  # of the process, and of no later one with its number
    renews: bool = False  # whether it must reopen a changed collection itself

    def is_outdated(self, source: "WorkerSource") -> bool:
        """Whether the source would give a worker with another state open."""
        return self.source is not source or self.generation != self.source.generation

    def kill(self) -> None:
        """Kill the process, and fail what waits for it."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        _shut(self.pipe)

    def end(self) -> None:
        """Kill the process, and wait until it is gone."""
        self.kill()
        gone = select.poll()
        gone.register(self.handle, select.POLLIN)
        gone.poll()
        os.close(self.handle)
        self.pipe.close()


class Spawner:
    """Starts each worker by itself; see `ForkServer`."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._given_up = False
        self._beginning: set[_Spawned] = set()
        self._first: list[_Spawned] = []

    def open(self) -> None:
        """Start the first worker."""
        self._first.append(self._begin())

    def hire(self) -> "Worker":
        """Return the first worker, or start one and wait until it has opened all."""
        with contextlib.suppress(IndexError):
            return self._first.pop()
        return self._begin()

    def _begin(self) -> "_Spawned":
        worker = _Spawned(*_start_process(_work_alone, self._start))
        self._beginning.add(worker)
        if self._given_up:
            worker.kill()
        try:
            with _or_died():
                worker.pipe.recv_bytes()
        except Died:
            worker.end()
            raise
        finally:
            self._beginning.discard(worker)
        return worker

    def look(self) -> None:
        """Workers reopen by themselves what has changed."""

    def kill(self) -> None:
        """Kill the workers that are being started."""
        self._given_up = True
        for worker in list(self._beginning):
            worker.kill()

    def end(self) -> None:
        """End the first worker if it was not taken."""
        for worker in self._first:
            worker.end()


@dataclass(frozen=True, eq=False)
class _Spawned:
    """A worker that is a child of this process; see `_Forked`."""

    pipe: Connection
    process: BaseProcess
    renews: bool = True

    @property
    def pid(self) -> int:
        return self.process.pid or 0

    def is_outdated(self, source: "WorkerSource") -> bool:
        return False  # it does so itself

    def kill(self) -> None:
        self.process.kill()
        _shut(self.pipe)

    def end(self) -> None:
        self.kill()
        self.process.join()
        self.pipe.close()


Worker = _Forked | _Spawned
WorkerSource = ForkServer | Spawner


def _shut(pipe: Connection) -> None:
    """End reading from a pipe, although children of the process at its other end may keep it open."""
    if sys.platform != "win32":  # there it is no socket
        with contextlib.suppress(OSError):
            end = socket.socket(fileno=pipe.fileno())
            try:
                end.shutdown(socket.SHUT_RDWR)
            finally:
                end.detach()


@contextlib.contextmanager
def _or_died() -> Iterator[None]:
    """Turn errors of a pipe whose other end is gone into `Died`."""
    try:
        yield
    except (OSError, EOFError, ValueError) as error:
        raise Died from error


@contextlib.contextmanager
def _or_not_started() -> Iterator[None]:
    """Turn errors of exhausted system resources into `NotStarted`."""
    try:
        yield
    except OSError as error:
        raise NotStarted(str(error)) from error


def _start_process(run: Callable[[Connection], None], start: Start) -> tuple[Connection, BaseProcess]:
    """Start a process, and send it `start` first; return this end of its pipe, and the process."""
    context = multiprocessing.get_context("spawn")  # a fork would copy the server's threads and their locks
    with _or_not_started():
        ours, theirs = context.Pipe()
        try:
            process = context.Process(target=run, args=(theirs,), daemon=True)
            with without_interrupt():
                process.start()
            with contextlib.suppress(BrokenPipeError):  # it has died: fail what waits for its first message
                ours.send(start)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
    return ours, process


def _stand_back(start: Start) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the server ends this one
    if start.nice and hasattr(os, "nice"):
        os.nice(start.nice)


def _work_alone(pipe: Connection) -> None:
    """Main function of a worker that was started separately: open everything, and do jobs."""
    start: Start = pipe.recv()
    _stand_back(start)
    end_with_parent()
    keep_memory()
    jobs = start.make(*start.arguments)
    limit_memory(start.memory)
    pipe.send_bytes(b"open")
    work(pipe, jobs)


def _serve_forks(control: Connection) -> None:
    """Main function of a `ForkServer`: open everything, and fork workers on request."""
    _keep_one_thread()
    start: Start = control.recv()  # which loads the module of the jobs, and the libraries that it needs
    _stand_back(start)
    keep_memory()
    with _ending_with_parent():
        jobs = start.make(*start.arguments)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets workers that have ended
    generation = 0
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        control.send_bytes(b"open")
        while True:
            if control.recv_bytes() == b"look":
                generation += _renew(jobs)
                control.send_bytes(json.dumps(generation).encode())
                continue
            handle = reduction.recv_handle(control)
            jobs.let_go()
            gc.collect()
            gc.freeze()  # a collection in a worker would write to what is shared
            answer: list[Any]
            try:
                pid = os.fork()
            except OSError as error:  # the next one may be started
                answer = [0, str(error)]
            else:
                if not pid:
                    _be_worker(control, handle, jobs, start)
                answer = [pid, generation]
            os.close(handle)
            control.send_bytes(json.dumps(answer).encode())


def _renew(jobs: WorkerJobs) -> bool:
    """Reopen what has changed; return whether anything has, and could be opened. The workers report errors."""
    with contextlib.suppress(Exception):
        if jobs.is_outdated():
            jobs.renew()
            return True
    return False


def _be_worker(control: Connection, handle: int, jobs: WorkerJobs, start: Start) -> None:
    """Do jobs in a fork, and then end the process without returning to the caller."""
    code = 1
    try:
        control.close()  # its contents are not for a process that reads untrusted photos
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        threading.Thread(target=_end_with_server, args=(handle,), daemon=True).start()
        limit_memory(start.memory)
        work(Connection(handle), jobs)
        code = 0
    except Exception:  # a defect, reported here alone
        for line in traceback.format_exc().splitlines():
            print(printable_name(line), file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _end_with_server(handle: int) -> None:
    """End this process when the other end of its pipe is closed, whatever it is doing."""
    gone = select.poll()
    gone.register(handle, 0)  # its end is reported in any case
    gone.poll()
    os._exit(1)


def _keep_one_thread() -> None:
    """Let libraries compute in the calling thread: a fork has no other, and requests run in parallel.

    OpenBLAS starts its threads when it is loaded, so this comes before that.
    """
    from threadpoolctl import threadpool_limits

    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    threadpool_limits(1)  # those that the server's main module has loaded


@contextlib.contextmanager
def _ending_with_parent() -> Iterator[None]:
    """Within a block, end this process when its parent is gone; the thread for that ends with the block."""
    done = threading.Event()
    parent = os.getppid()

    def watch() -> None:
        while not done.wait(_LOOK):
            if os.getppid() != parent:
                os._exit(1)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
