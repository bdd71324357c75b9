"""A pool of worker processes: each does one job at a time, and is killed and replaced if a job takes too long. Python's
own pools cannot recover once one of their processes has died. Here each worker has a thread, which takes a job from the
queue, sends it to the process through a pipe and waits for the answer, but no longer than the job's limit. The time in
which processes open a collection does not count: see `retrieval.web.pool.worker_source`.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from index.messages import Message
from retrieval.web.pool.job_process import OPENED, OPENING, OUTDATED, Answer, Refused, WorkerJobs
from retrieval.web.pool.turns import Turns
from retrieval.web.pool.worker_source import Died, NotStarted, Start, Worker, WorkerSource, make_source

__all__ = [
    "Answer",
    "Busy",
    "Died",
    "Failed",
    "Refused",
    "TookTooLong",
    "WorkerJobs",
    "WorkerPool",
    "WorkerPoolOptions",
]

LOOK = 5.0
"""Seconds between two looks at whether what workers have open has changed."""
LONGEST_OPENING = 600.0
"""Seconds that a worker may take to reopen what has changed."""
LARGEST = 256 << 20
"""Largest answer of a worker, in bytes: a picture, or facts of a collection with a million unreadable photos."""
GRACE = 2.0
"""Seconds that a job may continue after its client has left: most end by then, and their result is cached."""
_PAUSE = 1.0  # seconds at least between two attempts at what the system may refuse again


@dataclass(frozen=True)
class WorkerPoolOptions:
    """How many jobs run and wait, and what one may use."""

    workers: int = 2  # processes
    uploads: int = 0  # further processes, which alone do jobs with uploads, and nothing else; 0: all do all
    waiting: int = 32  # jobs that may wait, and as many with uploads; more are refused, of the client with most
    seconds: float = (
        60.0  # seconds after which a job is given up, counted from its submission or from when everything was open
    )
    memory: int = 3 << 30  # bytes that a process may take on top of what it needs to start; 0: no limit
    nice: int = 0  # by how much the processes stand back behind others, where the system knows that


class Busy(Exception):
    """Too many jobs are waiting."""


class TookTooLong(Exception):
    """A job did not end in time; its process was killed."""


class Failed(Exception):
    """A job failed because of a defect; the message is the traceback, only for the log."""


@dataclass(eq=False)
class _Task:
    job: str
    request: dict[str, Any]
    seconds: float  # that it may take
    deadline: float  # of time.monotonic
    client: str
    future: "Future[Answer]" = field(default_factory=Future)


class WorkerPool:
    """Worker processes and the queue before them.

    `make`, a function of a module, makes the `WorkerJobs` in a process, with picklable arguments.
    """

    def __init__(self, make: Callable[..., WorkerJobs], arguments: tuple[Any, ...], options: WorkerPoolOptions) -> None:
        self.options = options
        self._start = Start(make, arguments, options.memory, options.nice)
        self._changed = threading.Condition()  # of all that follows
        self._places = options.workers + options.uploads
        # Queues of jobs; if there are workers only for uploads, the second one is for uploads.
        self._queues: list[Turns[_Task]] = [Turns(options.waiting) for _ in range(2 if options.uploads else 1)]
        self._doing: dict[int, _Task] = {}  # by place
        self._workers: dict[int, Worker] = {}  # by place
        self._opening: WorkerSource | None = None
        self._source: WorkerSource | None = None  # that has opened everything
        self._deaths = 0  # of processes that opened
        self._closing = False
        self._serving = self._places  # threads that may have a worker
        self._threads = [threading.Thread(target=self._keep_open, daemon=True)]
        self._threads += [
            threading.Thread(target=self._serve, args=(place,), daemon=True) for place in range(self._places)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        job: str,
        request: dict[str, Any],
        seconds: float | None = None,
        *,
        client: str = "",
        upload: bool = False,
    ) -> "Future[Answer]":
        """Queue a job; its future gives the answer, or raises CairnError, `TookTooLong` or `Died`.

        The limit is `seconds`, or that of the options. Raises `Busy` if the queue is full. Clients take turns: the
        future raises `Busy` if the job is refused later because other clients have fewer waiting.
        """
        limit = self.options.seconds if seconds is None else seconds
        task = _Task(job, request, limit, time.monotonic() + limit, client)
        with self._changed:
            refused = task if self._closing else self._queues[-1 if upload else 0].add(task)
            if refused is task:
                raise Busy
            self._changed.notify_all()
        if refused is not None:
            _refuse(refused)
        return task.future

    def give_up(self, future: "Future[Answer]") -> None:
        """Give up an answer: a waiting job is never begun, and a running one is ended after a moment."""
        if future.done():
            return
        with self._changed:
            waited = [one for queue in self._queues for one in queue.take_out(lambda task: task.future is future)]
            doing = any(task.future is future for task in self._doing.values())
        for task in waited:
            task.future.cancel()
        if doing:
            timer = threading.Timer(GRACE, self._break_off, (future,))
            timer.daemon = True
            timer.start()

    def _break_off(self, future: "Future[Answer]") -> None:
        """Kill the worker that is still doing a job; it is replaced."""
        with self._changed:
            for place, task in self._doing.items():
                if task.future is future and (worker := self._workers.get(place)) is not None:
                    worker.kill()

    def waiting(self) -> int:
        """Number of waiting jobs."""
        return sum(map(len, self._queues))

    @property
    def is_open(self) -> bool:
        """Whether everything is open that workers need; otherwise jobs wait."""
        return self._source is not None

    def wait_until_open(self, seconds: float) -> None:
        """Wait until everything that workers need is open; raises TookTooLong, or Died if the process that opens it has
        died.
        """
        with self._changed:
            self._await_source(time.monotonic() + seconds)

    def processes(self) -> list[int]:
        """Process ids of the workers."""
        with self._changed:
            return [worker.pid for worker in self._workers.values()]

    def close(self) -> None:
        """End all workers, including busy ones; waiting jobs are given up."""
        with self._changed:
            self._closing = True
            given_up = [task for queue in self._queues for task in queue.take_out(lambda _: True)]
            for worker in self._workers.values():
                worker.kill()
            if self._opening is not None:
                self._opening.kill()
            self._changed.notify_all()
        for task in given_up:
            _refuse(task)
        for thread in self._threads:
            thread.join(10)

    def _serve(self, place: int) -> None:
        """Thread of one worker: do one task after another with its process."""
        queue = self._queues[0 if place < self.options.workers else -1]
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or queue or self._is_outdated(place))
                if self._closing:
                    break
                task = queue.take()
                if task is not None:
                    self._doing[place] = task
            if task is None:
                try:
                    self._hire(place, time.monotonic())
                except (Busy, Died, TookTooLong):
                    with self._changed:
                        self._changed.wait_for(lambda: self._closing or queue, _PAUSE)
                continue
            if task.future.set_running_or_notify_cancel():
                self._do(place, task)
            with self._changed:
                del self._doing[place]
        self._dismiss(place)
        with self._changed:
            self._serving -= 1
            self._changed.notify_all()

    def _do(self, place: int, task: _Task) -> None:
        """Have a task done, and resolve its future."""
        is_sent = False
        try:
            if time.monotonic() > task.deadline:  # it only waited: no process is at fault
                raise TookTooLong
            worker = self._hire(place, task.deadline, task)
            is_sent = True
            try:
                answer = _ask(worker, task, renew=worker.renews)
            except _NotBegun:  # it was killed while idle
                self._dismiss(place)
                worker = self._hire(place, task.deadline, task)
                answer = _ask(worker, task, renew=worker.renews)
            if answer is None:  # a fork of what has been reopened is there at once; it opens what could not be
                worker = self._hire_anew(place, worker, task)
                answer = _ask(worker, task, renew=True)
            if answer is None:
                raise Died
        except Exception as error:
            task.future.set_exception(error)
            if is_sent and not isinstance(error, Refused | Failed):
                self._dismiss(place)
            return
        task.future.set_result(answer)

    def _is_outdated(self, place: int) -> bool:
        """Whether there is no worker at a place, or an outdated one."""
        if self._source is None:
            return False
        worker = self._workers.get(place)
        return worker is None or worker.is_outdated(self._source)

    def _hire(self, place: int, deadline: float, task: _Task | None = None, instead: Worker | None = None) -> Worker:
        """Return the worker of a place, a new one where it is outdated. That does not count for a task's limit."""
        hired = None
        began = time.monotonic()
        while hired is None:
            with self._changed:
                worker = self._workers.get(place)
                if worker is not None and worker is not instead and not self._is_outdated(place):
                    return worker
                source = self._await_source(deadline)
            try:
                hired = source.hire()
            except NotStarted:
                if task is None or worker is None:
                    raise
                return worker  # it has to do for now
            except Died:
                self._lose(source)
        if task is not None:
            task.deadline += time.monotonic() - began
        self._dismiss(place)
        with self._changed:
            self._workers[place] = hired
            if self._closing:  # `close` has not seen this one
                hired.kill()
        return hired

    def _hire_anew(self, place: int, worker: Worker, task: _Task) -> Worker:
        """Reopen what has changed, and return a new worker, or the same if none can be started. A new one is needed
        because the previous one has done jobs, so its message that it opens something is not trusted.
        """
        began = time.monotonic()
        with self._changed:
            source = self._source
        if source is not None:
            self._renew(source)
            with contextlib.suppress(Busy, Died, TookTooLong):
                worker = self._hire(place, began, instead=worker)
        task.deadline += time.monotonic() - began
        return worker

    def _dismiss(self, place: int) -> None:
        with self._changed:
            worker = self._workers.pop(place, None)
        if worker is not None:
            worker.end()

    def _await_source(self, deadline: float) -> WorkerSource:
        """Wait, with the lock, for the process that has opened everything; `TookTooLong`, `Died` or `Busy` without."""
        deaths = self._deaths
        self._changed.wait_for(
            lambda: self._source is not None or self._closing or self._deaths > deaths, deadline - time.monotonic()
        )
        if self._closing:
            raise Busy
        if self._source is None:
            raise Died if self._deaths > deaths else TookTooLong
        return self._source

    def _keep_open(self) -> None:
        """Open all that workers need, and reopen what changes, besides their work."""
        while not self._closing:
            began = time.monotonic()
            try:
                source = make_source(self._start)
            except Died:
                self._note_death()
                continue
            with self._changed:
                self._opening = source
                if self._closing:
                    source.kill()
            try:
                source.open()
                with self._changed:
                    self._source = source
                    for task in chain.from_iterable(self._queues):
                        task.deadline = time.monotonic() + task.seconds
                    self._changed.notify_all()
                self._watch(source)
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, began + _PAUSE - time.monotonic())
            except Died:
                self._note_death()
            finally:
                with self._changed:  # workers end before the process that they were forked from, which reaps them
                    self._changed.wait_for(lambda: not self._closing or not self._serving)
                source.end()

    def _note_death(self) -> None:
        """Fail waiting jobs because the process that opens everything has died, and pause a moment."""
        with self._changed:
            self._deaths += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closing, _PAUSE)

    def _watch(self, source: WorkerSource) -> None:
        """Look for changes as long as a source is in use."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._source is not source, LOOK)
                if self._closing or self._source is not source:
                    return
            self._renew(source)

    def _renew(self, source: WorkerSource) -> None:
        """Let a source reopen what has changed, and replace idle workers."""
        try:
            source.look()
        except Died:
            self._lose(source)
        with self._changed:
            self._changed.notify_all()

    def _lose(self, source: WorkerSource) -> None:
        """Discard a source whose process has died: `_keep_open` makes another."""
        with self._changed:
            if self._source is source:
                self._source = None
            self._changed.notify_all()


def _refuse(task: _Task) -> None:
    """Fail a task that was not begun."""
    if task.future.set_running_or_notify_cancel():
        task.future.set_exception(Busy())


class _NotBegun(Died):
    """The worker died before it got the task."""


def _ask(worker: Worker, task: _Task, *, renew: bool) -> Answer | None:
    """Have a worker do a task; None if it is outdated and should not reopen by itself."""
    with _until(task.deadline, worker):
        try:
            worker.pipe.send_bytes(json.dumps([task.job, task.request, renew]).encode())
        except OSError as error:
            raise _NotBegun from error
        head, body = _receive(worker)
    if renew and head == OPENING:
        began = time.monotonic()
        with _until(began + LONGEST_OPENING, worker):
            if json.loads(worker.pipe.recv_bytes(LARGEST)) != OPENED:
                raise Died
        task.deadline += time.monotonic() - began
        with _until(task.deadline, worker):
            head, body = _receive(worker)
    match head:
        case {"outdated": True} if not renew:
            return None
        case {"failed": str(trace)}:
            raise Failed(trace)
        case {"refused": {"text": str(), "values": dict()} as said, "kind": str(kind)}:
            raise Refused(Message.from_dict(said), kind)
        case {"done": dict(done)}:
            return done, body
    raise Died  # it does not follow the protocol of a worker


def _receive(worker: Worker) -> tuple[object, bytes]:
    """The next object from a worker, and the bytes that follow it where it is an answer."""
    head = json.loads(worker.pipe.recv_bytes(LARGEST))
    return head, b"" if head in (OPENING, OUTDATED) else worker.pipe.recv_bytes(LARGEST)


@contextlib.contextmanager
def _until(deadline: float, worker: Worker) -> Iterator[None]:
    """Exchange messages with a worker, which is killed at a deadline: `TookTooLong`, or `Died` where it dies before.

    Waiting for a message to begin would not do: a process that a photo has taken over may begin one and not end it.
    """
    late = threading.Event()

    def give_up() -> None:
        late.set()
        worker.kill()

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, EOFError, ValueError, RecursionError) as error:
        if not late.is_set():
            raise Died from error
    except _NotBegun:
        if not late.is_set():
            raise
    finally:
        timer.cancel()
        timer.join()  # after this nothing is killed: its number may belong to another process by then
    if late.is_set():
        raise TookTooLong
