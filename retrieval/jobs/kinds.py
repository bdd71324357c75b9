"""What kinds of jobs there are, and the command line of each: arguments, never a line for a shell."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from retrieval.jobs.job import Job
from retrieval.jobs.queue import Queue
from retrieval.jobs.store import DONE

TITLES = {
    "index": "Add photos",
    "group": "Find groups",
    "retrain": "Make a new vocabulary",
    "compact": "Give back room",
    "remove": "Remove photos",
    "metadata": "Read what the files say of photos",
    "check": "Check all files",
    "improve": "Improve search for these photos",
    "searches": "Ask the saved searches",
}
"""What each kind does."""


def index(collection: Path, places: Sequence[Path]) -> list[str]:
    """Add photos: files, and folders of them."""
    return ["index", *_given(collection), *(str(place.absolute()) for place in places)]


def places_of(job: Job) -> list[Path]:
    """Files and folders that a job adds photos of; none where it does something else."""
    if job.kind != "index":
        return []
    return [Path(place) for place in job.command[1 + len(_given(job.collection)) :]]


def group(collection: Path, *, augment: bool | None = None) -> list[str]:
    """Look for groups; `augment` says whether photos borrow features of linked ones: None leaves that as it is."""
    option = {None: [], True: ["--augment"], False: ["--no-augment"]}[augment]
    return ["group", *_given(collection), *option]


def retrain(collection: Path, *, drop_missing: bool = False) -> list[str]:
    """Make a new vocabulary from all photos."""
    return ["retrain", *_given(collection), *(["--drop-missing"] if drop_missing else [])]


def compact(collection: Path) -> list[str]:
    """Give back the room of what was removed."""
    return ["compact", *_given(collection)]


def remove_missing(collection: Path) -> list[str]:
    """Take photos out whose files have gone."""
    return ["remove", *_given(collection), "--missing"]


def remove(collection: Path, names: Sequence[str], *, for_good: bool) -> list[str]:
    """Take photos out by their names; their files stay."""
    # Names come last: they may begin with a hyphen.
    return ["remove", *_given(collection), *(["--for-good"] if for_good else []), "--", *names]


def metadata(collection: Path) -> list[str]:
    """Read again what the photos' files say of them."""
    return ["metadata", *_given(collection), "--refresh"]


def check(collection: Path) -> list[str]:
    """Read every file of the collection."""
    return ["check", *_given(collection)]


def improve(collection: Path) -> list[str]:
    """Learn from the collection's own photos how to find more in them."""
    return ["improve", *_given(collection)]


def searches(collection: Path) -> list[str]:
    """Ask the standing searches for photos that are new."""
    return ["searches", "ask", *_given(collection)]


def queue_in(file: Path) -> Queue:
    """Make a queue that asks the standing searches of a collection after photos were added to it."""
    queue = Queue(file)
    queue.after.append(partial(_ask_searches, queue))
    return queue


def _ask_searches(queue: Queue, job: Job) -> None:
    added = job.kind == "index" and job.state == DONE and (job.result or {}).get("added")
    if added and _has_standing_searches(job.collection, queue.catalogue_of(job.collection)):
        queue.add("searches", job.collection, searches(job.collection), TITLES["searches"])


def _has_standing_searches(collection: Path, catalogue: str | None) -> bool:
    import sqlalchemy as sa

    from retrieval.catalogue.schema import SavedSearchRow
    from retrieval.collection.collection import Collection

    with Collection.open(collection, catalogue=catalogue) as opened, opened.catalogue.reading() as session:
        return session.scalar(sa.select(SavedSearchRow.id).where(SavedSearchRow.standing).limit(1)) is not None


def _given(collection: Path) -> list[str]:
    return [str(collection.absolute()), "--json"]
