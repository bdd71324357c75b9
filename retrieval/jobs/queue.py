"""The queue of jobs: one at a time, in a file that outlives its process.

Jobs of one collection run in the order of adding; of several collections, the one with the shortest job goes first,
unless another has waited for long.

The file has the arguments of each job; the command line of Cairn is built from them when it begins, for a collection
that the queue serves. Commands resume when they are run again, so a job whose process or server was killed is simply
queued again. If several servers share one file, one runs the jobs: the others see them, and may add more.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from index.attributes import some_of
from index.errors import CairnError
from index.messages import Message, said
from retrieval.collection.layout import LINKS_LOCK, LOCK
from retrieval.collection.locking import CollectionLocked, lock_file
from retrieval.jobs.job import JobNotFound, QueuedJob
from retrieval.jobs.kinds import KINDS, JobKind, read
from retrieval.jobs.running import CAN_PAUSE, Child
from retrieval.jobs.store import (
    CANCELLED,
    DONE,
    ENDED,
    FAILED,
    PAUSED,
    QUEUED,
    RUNNING,
    STATES,
    JobRow,
    Store,
    read_message,
)

PATIENCE = 10.0
"""Seconds that a cancelled job has to end in good order."""

LOOK = 2.0
"""Seconds between two looks at what other processes have added, and at locks that are waited for."""

LONG = 900.0
"""Seconds after which a job is no longer passed by shorter ones of other collections."""

TRIES = 3
"""How often a job is begun whose process is killed."""

_log = logging.getLogger("cairn.jobs")

_WAITING = said("Another command is changing the collection: this waits until it has ended.")
_DAMAGED = Message("The record of this job is damaged: start it again.")
_GIVEN_UP = Message(
    "The process was killed several times, most likely because there was not enough memory: free some, and try again."
)
_KILLED = said("The process was killed, most likely because there was not enough memory; it will start again.")


class Queue:
    """Jobs that wait, run, and have ended. Any thread may use it.

    `file` is the SQLite file, which is created with the first job, or the error for adding a job if there can be no
    file. `find` returns the folder of a collection by its name in jobs. Photos are only taken from below `roots`.
    `after` lists functions that are called, in a separate thread, with a job that has ended. `version` rises with each
    change. `hosts` may be fetched from although their addresses are not public.
    """

    def __init__(self, file: Path | CairnError, find: Callable[[str], Path], roots: Sequence[Path] = ()) -> None:
        self.find = find
        self.roots = tuple(roots)
        self.hosts: tuple[str, ...] = ()
        self.after: list[Callable[[QueuedJob], None]] = []
        self.version = 0
        self._store = Store(file)
        self._changed = threading.Condition()
        self._catalogues: dict[str, str] = {}
        self._children: dict[int, Child] = {}  # that run, or are paused
        self._followers: list[threading.Thread] = []
        self._cancelled: set[int] = set()
        self._killed: dict[int, int] = {}  # how often a job's process was killed
        self._notes: dict[int, str] = {}
        self._locked: dict[int, float] = {}  # jobs whose collection was locked, and when to try again
        self._unwritten: dict[int, tuple[list[str], dict[str, Any]]] = {}  # outcomes of jobs not yet written
        self._stopping = False
        self._worker: threading.Thread | None = None
        self._own = contextlib.ExitStack()
        self._owns = False

    def start(self) -> None:
        """Begin to work."""
        with self._changed:
            if self._worker is not None:
                return
            self._stopping = False
            self._store.set_aside()
            self._worker = threading.Thread(target=self._work, name="jobs", daemon=True)
            self._worker.start()

    def stop(self, seconds: float = 4.0) -> None:
        """Stop the running job, to resume when the queue is started again; kill it after some seconds."""
        with self._changed:
            worker, self._worker = self._worker, None
            self._stopping = True
            self._changed.notify_all()
            children = list(self._children.values())
        if worker is None:
            return
        worker.join()
        for child in children:
            child.interrupt()
        until = time.monotonic() + seconds
        for thread in self._followers:
            thread.join(max(0.0, until - time.monotonic()))
        for child in children:
            child.kill()
        for thread in self._followers:
            thread.join()
        self._followers.clear()
        self._own.close()
        self._owns = False
        self._store.close()

    def name_catalogue(self, collection: str, address: str) -> None:
        """Set the catalogue of a collection: commands for it receive it, but it is not written down."""
        self._catalogues[collection] = address

    def catalogue_of(self, collection: str) -> str | None:
        """The address of a collection's catalogue; None if that is in the collection."""
        return self._catalogues.get(collection)

    def add(self, collection: str, work: JobKind) -> QueuedJob:
        """Queue a job, and return it, or an identical one that is waiting."""
        work.options(self.find(collection), self.roots)
        arguments = work.model_dump_json()
        with self._change():
            for row in self._store.rows(collection):
                if (row.state, row.kind, row.arguments) == (QUEUED, work.kind, arguments):
                    return self._job(row)
            number = self._store.add(
                kind=work.kind, collection=collection, arguments=arguments, state=QUEUED, added=_now()
            )
            return self.job(number)

    def jobs(self, collection: str | None = None, ended: int | None = None) -> list[QueuedJob]:
        """List the jobs of a collection, or of all, as they were added, with only the last `ended` ones."""
        return [self._job(row) for row in self._store.rows(collection, ended)]

    def job(self, number: int) -> QueuedJob:
        """Return one job; raises JobNotFound if there is no such job."""
        row = self._store.row(number)
        if row is None:
            raise JobNotFound("There is no such job: it may have been forgotten.")
        return self._job(row)

    def before_each(self) -> dict[int, QueuedJob]:
        """Return for each waiting job the one that is to end before it begins, as far as is known now."""
        rows = [row for row in self._store.rows(ended=0) if row.is_sound]
        order = [row for row in rows if row.state == RUNNING]
        waiting = [row for row in rows if row.state == QUEUED]
        while waiting:
            order.append(_in_turn(waiting)[0])
            waiting.remove(order[-1])
        return {row.id: self._job(before) for before, row in pairwise(order)}

    def pause(self, number: int) -> None:
        """Suspend a running job, or let a waiting one wait until `resume`."""
        with self._change():
            job = self.job(number)
            child = self._children.get(number)
            if job.state == RUNNING:
                if not CAN_PAUSE:
                    raise CairnError("This system cannot pause a job: cancel it, and begin it again later.")
                self._here(child)
            if job.state == PAUSED:
                return
            # Write before it is suspended: if that fails, it must continue.
            if not self._store.change(number, [QUEUED, RUNNING], state=PAUSED):
                raise CairnError("The job has ended: there is nothing to pause.")
            if child is not None:
                child.pause()

    def resume(self, number: int) -> None:
        """Continue a paused job, as soon as no other one runs; raises CairnError if it is not paused."""
        with self._change():
            self.job(number)
            if not self._store.change(number, [PAUSED], state=QUEUED):
                raise CairnError("The job is not paused.")

    def cancel(self, number: int) -> None:
        """End a job cleanly, without undoing its work; after `PATIENCE` seconds it is killed."""
        with self._change():
            job = self.job(number)
            if job.state in ENDED:
                raise CairnError("The job has ended: there is nothing to cancel.")
            child = self._children.get(number)
            if child is not None:
                self._end(number, child)
            elif not self._store.change(number, [QUEUED, PAUSED], state=CANCELLED, ended=_now()):
                self._here(child)

    def forget(self, number: int) -> None:
        """Remove an ended job from the list; raises CairnError if it has not ended."""
        with self._change():
            self.job(number)
            if not self._store.delete(number):
                raise CairnError("The job has not ended: cancel it first.")

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        with self._changed:
            yield
            self.version += 1
            self._changed.notify_all()

    def _here(self, child: Child | None) -> Child:
        if child is None:
            raise CairnError("Another server runs this job: ask that one.")
        return child

    def _end(self, number: int, child: Child) -> None:
        self._cancelled.add(number)
        child.interrupt()
        killing = threading.Timer(PATIENCE, child.kill)
        killing.daemon = True
        killing.start()

    def _job(self, row: JobRow) -> QueuedJob:
        try:
            work = read(row.kind, row.arguments)
        except CairnError:
            work = None
        job = QueuedJob(
            work=work,
            state=row.state if row.state in STATES else FAILED,
            error=row.error if row.is_sound else _DAMAGED,
            note=self._notes.get(row.id) if row.state == QUEUED else None,
            **some_of(row, "id", "kind", "collection", "result", "added", "started", "ended"),
        )
        child = self._children.get(row.id)
        if child is None:
            return job
        reached = child.reached
        return replace(
            job,
            title_of_step=reached.title,
            **some_of(reached, "step", "done", "of", "unit"),
            share=child.share,
            seconds_left=child.seconds_left if row.state == RUNNING else None,
        )

    # The queue's own threads

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._stopping:
                    return
                try:
                    self._settle()
                    row = self._next() if self._take_over() else None
                    if row is not None:
                        self._begin(row)
                        continue
                except CairnError:  # the disk is full or disconnected: it may come back
                    pass
                except Exception:  # whatever is wrong, the other jobs are done
                    _log.exception("The list of jobs cannot be worked off.")
                self._changed.wait(LOOK)

    def _take_over(self) -> bool:
        """Whether this process does the work: the first to come, until it ends."""
        if self._owns:
            return True
        file = self._store.file
        if not isinstance(file, Path) or not self._store.exists():
            return False
        try:
            with contextlib.ExitStack() as own:  # releases the lock if the rows cannot be written
                own.enter_context(lock_file(file.with_suffix(".lock"), "Another server does the work."))
                self._store.queue_again(self._children)
                self._own = own.pop_all()
        except (CairnError, OSError):
            return False
        self._owns = True
        self.version += 1
        return True

    def _next(self) -> JobRow | None:
        """The job to begin or to resume now; None if no job is waiting, or one is running."""
        rows = self._store.rows(ended=0)
        for row in rows:
            if not row.is_sound:
                self._store.fail(row.id, _DAMAGED, _now())
                self.version += 1
        open_rows = [row for row in rows if row.is_sound]
        for number in self._children.keys() - {row.id for row in open_rows} - self._cancelled:
            paused = self._store.row(number)
            if paused is not None and paused.state == CANCELLED:  # paused here, and cancelled by another server
                self._end(number, self._children[number])
        running = {row.id for row in open_rows if row.state == RUNNING}
        if running - self._children.keys():  # not running, as all run in this process
            self._store.queue_again(self._children)
        if running:
            return None
        held = {row.collection: row.id for row in open_rows if row.id in self._children}
        for row in _in_turn([row for row in open_rows if row.state == QUEUED]):
            if held.get(row.collection, row.id) != row.id:  # a paused job holds the collection
                self._note(row.id, said("A paused job is using the collection: continue the job, or cancel it."))
            elif row.id not in self._locked or self._is_free(row):
                return row
        return None

    def _note(self, number: int, sentence: str) -> None:
        if self._notes.get(number) != sentence:
            self._notes[number] = sentence
            self.version += 1

    def _is_free(self, row: JobRow) -> bool:
        """Whether the locks that a job has found taken are free."""
        if time.monotonic() < self._locked[row.id]:
            return False
        try:
            collection = self.find(row.collection)
            for name in (LOCK, LINKS_LOCK):
                if (collection / name).exists():
                    with lock_file(collection / name, _WAITING):
                        pass
        except CollectionLocked:
            self._locked[row.id] = time.monotonic() + LOOK / 2
            return False
        except (CairnError, OSError):
            pass  # the job itself reports the error
        return True

    def _begin(self, row: JobRow) -> None:
        number = row.id
        self._notes.pop(number, None)
        self._locked.pop(number, None)
        self.version += 1
        child = self._children.get(number)
        if child is not None:
            if self._store.change(number, [QUEUED], state=RUNNING):
                child.go_on()
            return
        if not self._store.change(number, [QUEUED], state=RUNNING, started=_now(), error=None, result=None):
            return  # another server has cancelled it since, or lets it wait
        try:
            work = read(row.kind, row.arguments)
            catalogue = self.catalogue_of(row.collection)
            command = work.command(self.find(row.collection), self.roots, catalogue, self.hosts)
            child = Child(command, self._tell, work.parts)
        except Exception as error:
            self._note_outcome(number, [RUNNING], {"state": FAILED, "ended": _now(), "error": _reason(error)})
            return
        self._children[number] = child
        thread = threading.Thread(target=self._follow, args=(number, child), name=f"job {number}", daemon=True)
        self._followers = [one for one in self._followers if one.is_alive()] + [thread]
        thread.start()

    def _tell(self) -> None:
        self.version += 1

    def _follow(self, number: int, child: Child) -> None:
        code = child.wait()
        with self._change():
            try:
                outcome = self._outcome(number, child, code)
            except Exception as error:
                outcome = {"state": FAILED, "error": _reason(error)}
            child.close()
            del self._children[number]
            self._cancelled.discard(number)
            if outcome["state"] == QUEUED:
                self._note_outcome(number, [RUNNING], outcome)  # a paused one stays so
                return
            outcome["ended"] = _now()
            self._note_outcome(number, [QUEUED, RUNNING, PAUSED], outcome)
            try:
                job = replace(self.job(number), **outcome)
            except JobNotFound:  # its file is gone
                return
        for callback in self.after:
            try:
                callback(job)
            except CairnError:  # the disk is full or disconnected: the job has ended anyway
                pass
            except Exception:
                _log.exception("What is to be done after job %d cannot be done.", number)

    def _note_outcome(self, number: int, states: list[str], outcome: dict[str, Any]) -> None:
        """Write the outcome of a job; if that fails, it is retried before the next one begins."""
        try:
            self._store.change(number, states, **outcome)
        except CairnError:  # the disk is full or disconnected
            self._unwritten[number] = states, outcome

    def _settle(self) -> None:
        """Write pending outcomes; raises CairnError if that fails again."""
        for number, (states, outcome) in list(self._unwritten.items()):
            self._store.change(number, states, **outcome)
            del self._unwritten[number]
            self.version += 1

    def _outcome(self, number: int, child: Child, code: int) -> dict[str, Any]:
        """Outcome of a job whose process has ended."""
        result = child.result()
        error = str(result.get("error", "")) if result is not None else ""
        message = read_message(result and result.get("message"), error or child.complaint())
        if code in (0, 1) and result is not None and not error:
            return {"state": DONE, "result": result}
        if number in self._cancelled:
            return {"state": CANCELLED}
        if self._stopping:
            return {"state": QUEUED}
        if result is not None and result.get("kind") == CollectionLocked.__name__:
            self._notes[number] = _WAITING
            self._locked[number] = time.monotonic()
            return {"state": QUEUED}
        if code < 0:
            self._killed[number] = self._killed.get(number, 0) + 1
            if self._killed[number] < TRIES:
                self._notes[number] = _KILLED
                return {"state": QUEUED}
            message = _GIVEN_UP
        elif not message.text:
            message = Message("The command ended with the code {code}.", code=code)
        return {"state": FAILED, "error": message}


def _in_turn(rows: Sequence[JobRow]) -> list[JobRow]:
    """Put queued jobs in the order in which they are tried: the first of each collection, the shortest first."""
    heads = {row.collection: row for row in reversed(rows)}

    def effort(row: JobRow) -> tuple[int, int]:
        waits = _seconds_since(row.added) > LONG
        return 0 if waits or row.kind not in KINDS else KINDS[row.kind].effort, row.id

    first = sorted(heads.values(), key=effort)
    return [*first, *(row for row in rows if row not in first)]


def _seconds_since(moment: str) -> float:
    """Seconds since a time in ISO format; infinity if it is invalid."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    except (TypeError, ValueError):
        return float("inf")


def _reason(error: Exception) -> Message:
    """Describe in one sentence why a job failed."""
    if isinstance(error, CairnError):
        return error.message
    if isinstance(error, OSError):
        return Message(
            "No process can be begun ({error}): see what else is running on this machine.", error=error.strerror
        )
    _log.error("A job cannot be done.", exc_info=error)
    return Message("Something went wrong in the server: its log says more.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
