"""A job of the queue, for display."""

from dataclasses import dataclass
from typing import Any

from index.errors import CairnError
from index.messages import Message, said
from retrieval.jobs.kinds import KINDS, JobKind, needs_nothing


class JobNotFound(CairnError):
    """There is no such job."""

    _kind = "missing"


@dataclass(frozen=True)
class QueuedJob:
    """Current state of a job."""

    id: int
    kind: str
    collection: str  # its name in the queue
    work: JobKind | None  # its arguments; None if they are invalid
    state: str  # queued, running, paused, done, failed or cancelled
    step: str = ""  # current step; empty if not reported
    title_of_step: str = ""
    done: int = 0
    of: int = 0
    unit: str = ""  # unit of progress; %: only a percentage
    share: float | None = None  # of all its steps that is done, 0 to 1
    seconds_left: float | None = None  # until all is done, or this step if not all are known
    result: dict[str, Any] | None = None  # output of the command with --json
    error: Message | None = None  # why it failed
    note: str | None = None  # reason for waiting
    added: str = ""  # ISO 8601, UTC
    started: str | None = None
    ended: str | None = None

    @property
    def title(self) -> str:
        """Its title, in English."""
        return KINDS[self.kind].title if self.kind in KINDS else said("Damaged work")

    @property
    def needs_nothing(self) -> bool:
        """Whether such jobs need no arguments."""
        return needs_nothing(self.kind)

    @property
    def changes_photos(self) -> bool:
        """Whether photos are listed otherwise when it has ended."""
        return self.kind in KINDS and KINDS[self.kind].changes_photos

    @property
    def about(self) -> str:
        """Its object, such as the name of a folder; may be empty."""
        return self.work.about if self.work is not None else ""
