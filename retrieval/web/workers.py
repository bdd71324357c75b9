"""A pool of worker processes: each does one job at a time, and is killed and replaced where a job takes too long.

Python's own pools cannot be mended once a process of theirs has died. Here a thread stands for each worker: it takes
a job from the queue, hands it to its process through a pipe and waits for the answer, but no longer than the job's
limit. Jobs and answers cross the pipe as JSON and bytes, never as pickles: a process that a hostile photo has taken
over must not be able to run code in the server.
"""

import contextlib
import json
import multiprocessing
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from index.errors import CairnError
from index.parallel import end_with_parent, without_interrupt


@dataclass(frozen=True)
class PoolOptions:
    """How many jobs run and wait, and what one may use."""

    workers: int = 2  # processes
    waiting: int = 32  # jobs that may wait for one; more are refused
    seconds: float = 60.0  # a job that has not ended so long after it was submitted is given up
    memory: int = 3 << 30  # bytes that a process may take on top of what it needs to start; 0: no limit
    nice: int = 0  # by how much the processes stand back behind others, where the system knows that


class Busy(Exception):
    """Too many jobs are waiting."""


class TookTooLong(Exception):
    """A job did not end in time; its process was killed."""


class Died(Exception):
    """The process of a job died: it was killed, ran out of memory, or a library crashed."""


class Failed(Exception):
    """A job failed as none should; the message is the trace, for the log alone."""


class Refused(CairnError):
    """A job that cannot be done, for a reason its requester can mend.

    Parameters
    ----------
    sentence : str
        The reason.
    kind : str
        Which sort it is: a word that the jobs and the requester agree on.
    """

    def __init__(self, sentence: str, kind: str = "request") -> None:
        super().__init__(sentence)
        self.kind = kind


Answer = tuple[dict[str, Any], bytes]
"""What a job gives: an object, and bytes."""


class Jobs(Protocol):
    """What a worker process does; it lives in that process alone."""

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        """Do a job; `Refused` or another CairnError where it cannot be done."""


class Pool:
    """Worker processes and the queue before them.

    Parameters
    ----------
    make : callable
        Makes the `Jobs` in each process; a function of a module, for the process imports it by its name.
    arguments : tuple
        Its arguments, which must be picklable.
    options : PoolOptions
        Limits.
    """

    def __init__(self, make: Callable[..., Jobs], arguments: tuple[Any, ...], options: PoolOptions) -> None:
        self.options = options
        self._start = (make, arguments, options)
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closing = False
        self._workers: set[_Worker] = set()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(options.workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, job: str, request: dict[str, Any], seconds: float | None = None) -> "Future[Answer]":
        """Queue a job; its future gives the answer, or raises CairnError, `TookTooLong` or `Died`.

        It is given up after `seconds`, where that is not left to the options.

        Raises
        ------
        Busy
            As many jobs wait as may.
        """
        with self._lock:
            if self._closing or self.waiting() >= self.options.waiting:
                raise Busy
            limit = self.options.seconds if seconds is None else seconds
            task = _Task(job, request, time.monotonic() + limit, Future())
            self._tasks.put(task)
        return task.future

    def waiting(self) -> int:
        """Number of jobs that no worker has begun."""
        return self._tasks.qsize()

    def processes(self) -> list[int]:
        """Process ids of the workers."""
        with self._lock:
            return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    def close(self) -> None:
        """End all workers, those at work too; what waits is given up."""
        with self._lock:
            self._closing = True
            workers = list(self._workers)
            with contextlib.suppress(queue.Empty):
                while True:
                    self._give_up(self._tasks.get_nowait())
        for _ in self._threads:
            self._tasks.put(None)
        for worker in workers:
            worker.process.kill()
        for thread in self._threads:
            thread.join(10)

    def _serve(self) -> None:
        """Do one task after another with a process of one's own."""
        worker = self._hire()
        while (task := self._tasks.get()) is not None and not self._closing:
            if not task.future.set_running_or_notify_cancel():
                continue
            if time.monotonic() > task.deadline:  # it only waited: the process has done nothing wrong
                task.future.set_exception(TookTooLong())
                continue
            outcome: Answer | Exception
            try:
                outcome = worker.ask(task)
            except Exception as error:
                outcome = error
            # First the answer, then a new process: whoever waits need not wait for that.
            if isinstance(outcome, tuple):
                task.future.set_result(outcome)
            else:
                task.future.set_exception(outcome)
            if isinstance(outcome, TookTooLong | Died):
                self._dismiss(worker)
                worker = self._hire()
        self._dismiss(worker)
        self._give_up(task)

    @staticmethod
    def _give_up(task: "_Task | None") -> None:
        if task is not None and task.future.set_running_or_notify_cancel():
            task.future.set_exception(Busy())

    def _hire(self) -> "_Worker":
        worker = _Worker(*self._start)
        with self._lock:
            self._workers.add(worker)
            closing = self._closing
        if closing:  # `close` has not seen this one
            worker.process.kill()
        return worker

    def _dismiss(self, worker: "_Worker") -> None:
        worker.end()
        with self._lock:
            self._workers.discard(worker)


@dataclass(frozen=True)
class _Task:
    job: str
    request: dict[str, Any]
    deadline: float  # of time.monotonic
    future: "Future[Answer]"


class _Worker:
    """One process, and this side of the pipe to it."""

    def __init__(self, make: Callable[..., Jobs], arguments: tuple[Any, ...], options: PoolOptions) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the server's threads and their locks
        self._pipe, there = context.Pipe()
        self.process = context.Process(target=_work, args=(there, make, arguments, options), daemon=True)
        with without_interrupt():
            self.process.start()
        there.close()

    def ask(self, task: _Task) -> Answer:
        """Have a task done."""
        try:
            self._pipe.send_bytes(json.dumps([task.job, task.request]).encode())
            if not self._pipe.poll(max(0.0, task.deadline - time.monotonic())):
                raise TookTooLong
            head = json.loads(self._pipe.recv_bytes())
            body = self._pipe.recv_bytes()
        except (OSError, EOFError, ValueError) as error:
            raise Died from error
        if "failed" in head:
            raise Failed(head["failed"])
        if "refused" in head:
            raise Refused(head["refused"], head["kind"])
        return head["done"], body

    def end(self) -> None:
        """Kill the process, and wait until it is gone."""
        self.process.kill()
        self.process.join()
        self._pipe.close()


def _work(pipe: Connection, make: Callable[..., Jobs], arguments: tuple[Any, ...], options: PoolOptions) -> None:
    """Do jobs until the pipe is closed: what runs in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the server ends this one
    end_with_parent()
    if options.nice and hasattr(os, "nice"):
        os.nice(options.nice)
    jobs = make(*arguments)
    _limit_memory(options.memory)
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        while True:
            job, request = json.loads(pipe.recv_bytes())
            body = b""
            try:
                done, body = jobs.do(job, request)
                message = json.dumps({"done": done})
            except CairnError as error:
                kind = error.kind if isinstance(error, Refused) else "request"
                message = json.dumps({"refused": str(error), "kind": kind})
            except MemoryError:
                message = json.dumps({"refused": "There is not enough memory for this request.", "kind": "memory"})
            except Exception:  # a defect, which the server's log tells of
                message = json.dumps({"failed": traceback.format_exc()})
            pipe.send_bytes(message.encode())
            pipe.send_bytes(body)


def _limit_memory(memory: int) -> None:
    """Bound what this process may allocate from now on, where the system can."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[5])  # data and stack
    except (ImportError, OSError):
        return
    if memory:
        # Not the address space: files of the index that are mapped read-only count there too.
        limit = pages * resource.getpagesize() + memory
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard < 0 else min(limit, hard), hard))
