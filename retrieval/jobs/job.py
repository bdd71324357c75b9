"""A job of the queue, as it is shown."""

from dataclasses import dataclass
from typing import Any

from index.errors import CairnError
from index.messages import said
from retrieval.jobs.kinds import KINDS, JobKind, needs_nothing


class JobNotFound(CairnError):
    """There is no such job."""

    _kind = "missing"


@dataclass(frozen=True)
class QueuedJob:
    """A job as it is now."""

    id: int
    kind: str
    collection: str  # name by which the queue knows it
    work: JobKind | None  # its arguments; None if they are invalid
    state: str  # queued, running, paused, done, failed or cancelled
    step: str = ""  # what it is at; empty if it has not said so
    title_of_step: str = ""
    done: int = 0
    of: int = 0
    unit: str = ""  # unit of progress; % is a share alone
    share: float | None = None  # of all its steps that is done, 0 to 1
    seconds_left: float | None = None  # until all is done, or this step if not all are known
    result: dict[str, Any] | None = None  # what the command printed with --json
    error: str | None = None  # why it failed
    note: str | None = None  # what it waits for
    added: str = ""  # ISO 8601, UTC
    started: str | None = None
    ended: str | None = None

    @property
    def title(self) -> str:
        """What it does, in English."""
        return KINDS[self.kind].title if self.kind in KINDS else said("Damaged work")

    @property
    def needs_nothing(self) -> bool:
        """Whether such work can be begun by its kind alone."""
        return needs_nothing(self.kind)

    @property
    def changes_photos(self) -> bool:
        """Whether photos are listed otherwise when it has ended."""
        return self.kind in KINDS and KINDS[self.kind].changes_photos

    @property
    def about(self) -> str:
        """With what: the name of a folder; may be empty."""
        return self.work.about if self.work is not None else ""
