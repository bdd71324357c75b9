"""Code of a worker process, which receives jobs through a pipe, one after another, and sends answers.

Jobs and answers cross the pipe as JSON and bytes, never as pickles: a process that a hostile photo has taken over must
not be able to run code in the server.
"""

import contextlib
import json
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from index.errors import CairnError, Damaged
from index.messages import Message

Answer = tuple[dict[str, Any], bytes]
"""Answer of a job: an object, and bytes."""

OPENING, OPENED = {"opening": True}, {"opened": True}
"""Message of a process before and after it reopens what has changed: that time does not count for the job."""
OUTDATED = {"outdated": True}
"""Message of a process that has not done a job because what it has open has changed."""


DAMAGED = "damaged"
"""Kind of refusal for a damaged file of the collection."""


class Refused(CairnError):
    """A job cannot be done, for a reason that the requester can change; jobs and requester agree on the kinds."""

    def __init__(self, text: str | Message, kind: str = "request", **values: object) -> None:
        super().__init__(text, **values)
        self.kind = kind


class WorkerJobs:
    """What a worker process does, by default with nothing open between jobs. It is made in one process, and copied with
    that process's memory into each worker.
    """

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        """Do a job; raises `Refused` or another CairnError if that is not possible."""
        raise NotImplementedError

    def is_outdated(self) -> bool:
        """Whether what is open has changed since it was opened, or could not be opened."""
        return False

    def renew(self) -> None:
        """Reopen what has changed; raises CairnError if it cannot be opened."""

    def let_go(self) -> None:
        """Close connections, which no two processes may share; they are opened again when they are needed."""


def work(pipe: Connection, jobs: WorkerJobs) -> None:
    """Do jobs until the pipe is closed; each message says whether to reopen what has changed first."""
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        while True:
            job, request, renew = json.loads(pipe.recv_bytes())
            head: dict[str, Any]
            body = b""
            try:
                if jobs.is_outdated():
                    if not renew:
                        _send(pipe, OUTDATED)
                        continue
                    _renew(pipe, jobs)
                done, body = jobs.do(job, request)
                head = {"done": done}
            except CairnError as error:
                kind = DAMAGED if isinstance(error, Damaged) else "request"
                kind = error.kind if isinstance(error, Refused) else kind
                head = {"refused": error.message.to_dict(), "kind": kind}
            except MemoryError:
                reason = Message("There is not enough memory for this request.")
                head = {"refused": reason.to_dict(), "kind": "memory"}
            except Exception:  # a defect, which is logged by the server
                head = {"failed": traceback.format_exc()}
            _send(pipe, head)
            pipe.send_bytes(body)


def _renew(pipe: Connection, jobs: WorkerJobs) -> None:
    _send(pipe, OPENING)
    try:
        jobs.renew()
    finally:
        _send(pipe, OPENED)


def _send(pipe: Connection, head: Mapping[str, Any]) -> None:
    pipe.send_bytes(json.dumps(head).encode())


def limit_memory(memory: int) -> None:
    """Limit what this process may allocate from now on, in bytes, if the system can; 0: no limit."""
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
