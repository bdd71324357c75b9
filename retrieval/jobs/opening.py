"""Location of the queues of collections: the state folder of the user, never a collection.

Not in a collection, as that may come from someone else, and a queue runs without a click. A queue also belongs to one
machine: the state folder may be on a shared drive, or restored on another machine.
"""

import contextlib
import hashlib
import platform
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from index.errors import CairnError
from retrieval.collection.identity import read_identity
from retrieval.jobs.job import JobNotFound, QueuedJob
from retrieval.jobs.kinds import SearchesJob
from retrieval.jobs.queue import Queue
from retrieval.jobs.store import DONE
from retrieval.state.folder import state_folder

QUEUES = "queues"
"""Folder of the state folder in which each queue has one."""

FILE = "jobs.sqlite"
"""File name of a queue."""

ALONE = ""
"""Name of a collection in a queue that is for it alone."""

_MACHINE = Path("/etc/machine-id")  # on Linux; see machine-id(5)


def queue_of(collection: Path, roots: Sequence[Path]) -> Queue:
    """Open the queue of one collection, by its identity and path, in which it is named `ALONE`."""

    def find(name: str) -> Path:
        if name != ALONE:
            raise JobNotFound("The job is for another collection than this server has.")
        return collection

    return _open(f"{read_identity(collection) or ''} {collection.resolve()}", find, roots)


def queue_below(home: Path, find: Callable[[str], Path], roots: Sequence[Path]) -> Queue:
    """Open the queue of all collections in a folder, by their names there; `find` returns the folder of each."""
    return _open(f"home {home.resolve()}", find, roots)


def _open(served: str, find: Callable[[str], Path], roots: Sequence[Path]) -> Queue:
    key = hashlib.sha256(f"{_machine()}\0{served}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    file: Path | CairnError
    try:
        file = state_folder(QUEUES, key) / FILE
    except CairnError as error:  # everything except jobs works without it
        file = error
    queue = Queue(file, find, roots)
    queue.after.append(partial(_ask_searches, queue))
    return queue


def _machine() -> str:
    with contextlib.suppress(OSError, ValueError):
        text = _MACHINE.read_text("ascii").strip()
        if re.fullmatch("[0-9a-f]{32}", text):  # images of containers have other contents, or no such file
            return text
    return platform.node()


def _ask_searches(queue: Queue, job: QueuedJob) -> None:
    """Queue the standing searches of a collection after photos were added to it."""
    added = job.kind == "index" and job.state == DONE and (job.result or {}).get("added")
    if added and _has_standing_searches(queue.find(job.collection), queue.catalogue_of(job.collection)):
        queue.add(job.collection, SearchesJob())


def _has_standing_searches(collection: Path, catalogue: str | None) -> bool:
    import sqlalchemy as sa

    from retrieval.catalogue.schema import SavedSearchRow
    from retrieval.collection.collection import Collection

    with Collection.open(collection, catalogue=catalogue) as opened, opened.catalogue.reading() as session:
        return session.scalar(sa.select(SavedSearchRow.id).where(SavedSearchRow.standing).limit(1)) is not None
