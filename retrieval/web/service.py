"""Shared state of all routes: the catalogue, the workers, and writable folders."""

import asyncio
import hashlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.collection.segments import find_damage
from retrieval.jobs.job import QueuedJob
from retrieval.jobs.kinds import JobKind, allowed
from retrieval.jobs.opening import ALONE, queue_of
from retrieval.jobs.queue import Queue
from retrieval.library import browsing
from retrieval.library.photos import Photo as KnownPhoto
from retrieval.library.photos import PhotoRow, photos_of, photos_there
from retrieval.metadata.pages import is_film
from retrieval.photos.listing import count_by_root, is_away, stays_below
from retrieval.web.access.limits import CLIENT, Listeners
from retrieval.web.access.options import AccessOptions
from retrieval.web.discretion import names_of_places
from retrieval.web.guard import log_trace
from retrieval.web.jobs import PictureJobs, SearchJobs, ServedCollection, photo_row
from retrieval.web.kept import AnswerCache
from retrieval.web.late_seal import LateSeal
from retrieval.web.models import Photo, PhotoDetails
from retrieval.web.pool.job_process import DAMAGED, Refused
from retrieval.web.pool.workers import (
    Answer,
    Busy,
    Died,
    Failed,
    TookTooLong,
    WorkerJobs,
    WorkerPool,
    WorkerPoolOptions,
)
from retrieval.web.problems import ProblemError, refusing
from retrieval.web.recent import RecentRows
from retrieval.web.taking.exports import ExportOptions
from retrieval.web.uploads import Receiver, UploadOptions

LOOK = 30.0
"""Least seconds between two checks for damage while there are no searches."""
MOST_TAGS = 5000
"""That are counted."""
_LINK_DIGITS = 16  # of the SHA-256 of a file, in the address of its photo
_LOOK = 0.5  # seconds between two checks whether a client has left


@dataclass(frozen=True)
class ServeOptions:
    """How a collection is served."""

    cache: Path | None = None  # folder of thumbnails; None: cache/ in the collection
    catalogue: str | None = None  # address of the catalogue, if it is not in the collection
    similarity: Path | None = None  # file of a learnt similarity
    cluster: str | None = None  # address of the scheduler whose workers hold the collection; None: it is searched here
    shards: int = 1  # that the collection is cut into for them
    server: str | None = None  # distinguishes this server from others: see `retrieval.web.shelf.instance`
    max_pixels: int | None = None  # of a photo that is shown, or searched for; None: of uploads `MAX_PIXELS`
    title: str | None = None  # title of the collection; None: the name of its folder
    decoding: WorkerPool | None = None  # decodes photos, shared by several collections; None: one of its own
    # Access control; None: that of the application in which this one is mounted.
    access: AccessOptions | None = field(default_factory=AccessOptions)
    # The workers that search, with lower priority than the server, so that pages stay fast while all cores search.
    search: WorkerPoolOptions = field(default_factory=lambda: WorkerPoolOptions(uploads=1, nice=5))
    # Those that decode photos. Many of them may wait: a page asks for all its thumbnails at once.
    pictures: WorkerPoolOptions = field(
        default_factory=lambda: WorkerPoolOptions(uploads=1, waiting=1000, seconds=30.0, memory=2 << 30)
    )
    bin: Path | None = None  # folder that photos' files may be moved to; None: no file is moved
    uploads: UploadOptions = field(default_factory=UploadOptions)  # limits
    exports: ExportOptions = field(default_factory=ExportOptions)  # limits
    queue: Queue | None = None  # of jobs, shared by the collections of a folder; None: one of its own
    roots: tuple[Path, ...] = ()  # folders from which photos may be chosen in the browser
    iiif_hosts: tuple[str, ...] = ()  # hosts that pages may be fetched from although their addresses are not public
    # Limits of uploads that are kept.
    kept: UploadOptions = field(
        default_factory=lambda: UploadOptions(photo_bytes=2_000_000_000, photos=100, requests=4, seconds=600.0)
    )
    search_jobs: type[WorkerJobs] = SearchJobs  # made with a `ServedCollection`; tests give others
    picture_jobs: type[WorkerJobs] = PictureJobs  # made with nothing


class BrokenOff(ProblemError):
    """The process of a request died."""


class Service:
    """One served collection."""

    def __init__(self, folder: Path, options: ServeOptions) -> None:
        self.options = options
        self.collection = Collection.open(folder, catalogue=options.catalogue)
        self.name = options.title or folder.resolve().name
        self.cache = options.cache or folder / "cache"
        files = [(options.similarity, "the learnt similarity")] if options.similarity else []
        self.places = names_of_places((folder, self.name), (self.cache, "the folder of thumbnails"), *files)
        self._place = ServedCollection(folder, options.catalogue, options.similarity, options.cluster, options.shards)
        if options.max_pixels is not None:
            self._place = replace(self._place, max_pixels=options.max_pixels)
        self._started = False
        self.recent = RecentRows()
        self.kept = AnswerCache()
        self._cutting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by content
        self.folder = folder.absolute()
        self.queue = options.queue or queue_of(self.folder, options.roots)
        self.queue.hosts = options.iiif_hosts
        self.in_queue = ALONE if options.queue is None else folder.name  # name of the collection in the queue
        if options.catalogue is not None:
            self.queue.name_catalogue(self.in_queue, options.catalogue)
        self.keeping: tuple[Path, Receiver] | None = None  # receives uploads that are stored, and their folder
        self.keeping_lock = threading.Lock()  # only one of two simultaneous first uploads creates it
        self.listeners = Listeners()  # connections that receive events of jobs
        self.exporting = 0  # requests whose files are looked at
        self.damage: CairnError | None = None  # of the collection, as far as it is known
        self._looked = -LOOK  # time of the last check
        self._counts: dict[str, tuple[int, list[tuple[str, int]]]] = {}  # by what: see `_counted`

    def start(self) -> None:
        """Start the workers, and make the folder for uploads."""
        if self._started:
            return
        self._started = True
        self.scratch = Path(tempfile.mkdtemp(prefix="cairn-"))
        self.places += names_of_places((self.scratch, "the folder of uploads"))
        self.forms = Receiver(self.scratch, self.options.uploads)
        self.searching = WorkerPool(self.options.search_jobs, (self._place,), self.options.search)
        self.decoding = self.options.decoding or WorkerPool(self.options.picture_jobs, (), self.options.pictures)
        self.sealing = LateSeal(self.collection)
        if self.options.queue is None:
            self.queue.start()

    def stop(self) -> None:
        """End the workers, and remove their temporary files."""
        if not self._started:
            return
        self._started = False
        if self.options.queue is None:
            self.queue.stop()
        self.searching.close()
        if self.options.decoding is None:
            self.decoding.close()
        self.sealing.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
        if self.keeping is not None:
            shutil.rmtree(self.keeping[0], ignore_errors=True)
            self.keeping = None
        self.collection.catalogue.close()

    def is_ready(self) -> bool:
        """Whether the server is ready to search and no damage was found, which is checked from time to time."""
        if not self.searching.is_open:
            return False
        if time.monotonic() - self._looked > LOOK:
            self._look_for_damage()
        return self.damage is None

    def _look_for_damage(self) -> None:
        self._looked = time.monotonic()
        collection = self.collection
        try:
            self.damage = find_damage(collection.folder, collection.catalogue, collection.vocabulary_folder)
        except CairnError as error:
            self.damage = error

    def wrote(self) -> None:
        """Have the collection sealed soon; called by every request that wrote to the catalogue."""
        self.sealing.wrote()

    def begin(self, work: JobKind) -> QueuedJob:
        """Queue a job for the collection; raises ProblemError if that is not possible."""
        with refusing(507):
            return self.queue.add(self.in_queue, work)

    def takes_from(self, path: Path) -> bool:
        """Whether the browser may add photos from a place: it is below the roots, or was uploaded."""
        return stays_below(path, allowed(self.folder, self.options.roots))

    def count(self) -> int:
        """How many photos the collection has."""
        return browsing.count(self.collection.catalogue)

    def indexed_folders(self) -> list[Path]:
        """Folders whose photos are in the collection."""
        return browsing.sources(self.collection.catalogue)

    def names(self, numbers: Sequence[int]) -> list[str]:
        """Names of those of some photos that are in the collection."""
        return [one.name for one in photos_there(self.collection.catalogue, numbers, self.cache)]

    def away(self) -> list[tuple[str, int]]:
        """Indexed folders that are missing or empty, with the number of photos of each."""
        counted = self._counted("folders", lambda: count_by_root(self.collection.catalogue.places()))
        return [(folder, photos) for folder, photos in counted if is_away(folder)]

    def tags(self) -> list[tuple[str, int]]:
        """Tags and how many photos have each."""
        return self._counted("tags", lambda: browsing.tags(self.collection.catalogue, MOST_TAGS))

    def _counted(self, what: str, count: Callable[[], list[tuple[str, int]]]) -> list[tuple[str, int]]:
        """Return a cached count, counted again if the catalogue has changed: each page needs it."""
        revision = self.collection.catalogue.revision()
        known = self._counts.get(what)
        if known is None or known[0] != revision:
            self._counts[what] = known = revision, count()
        return known[1]

    async def row(self, number: int) -> PhotoRow:
        """Look a photo up; raises Refused if there is no such photo."""
        return await run_in_threadpool(photo_row, self.collection, number)

    async def search(
        self, request: Request, job: str, wanted: dict[str, Any], *, upload: bool = False, seconds: float | None = None
    ) -> Answer:
        """Have a worker search, and wait."""
        try:
            answer = await run_job(self.searching, request, job, wanted, upload, seconds)
        except BrokenOff:  # the system kills a process that reads beyond the end of a truncated mapped file
            await run_in_threadpool(self._look_for_damage)
            if self.damage is not None:
                raise ProblemError(503, self.damage.message) from None
            raise
        except Refused as error:
            if error.kind == DAMAGED:
                self.damage = error
            raise
        self.damage = None
        return answer

    async def decode(
        self,
        request: Request,
        job: str,
        wanted: dict[str, Any],
        *,
        upload: bool = False,
        least_pixels: int = 0,
        seconds: float | None = None,
    ) -> Answer:
        """Have a worker decode a photo, and wait. A photo of the collection may have `least_pixels`, unless the server
        has its own limit.
        """
        limit = self.options.max_pixels or max(self.collection.options.image.max_pixels, least_pixels)
        if upload:
            limit = self._place.max_pixels
        return await run_job(self.decoding, request, job, {**wanted, "max_pixels": limit}, upload, seconds)

    def cutting(self, sha256: str) -> asyncio.Lock:
        """Return the lock of a photo that is cut into tiles."""
        return self._cutting.setdefault(sha256, asyncio.Lock())


async def run_job(
    pool: WorkerPool,
    request: Request,
    job: str,
    wanted: dict[str, Any],
    upload: bool = False,
    seconds: float | None = None,
) -> Answer:
    """Have a pool do a job for a request, and wait as long as its client does; raises ProblemError if it fails. A job
    with an `upload` does not delay jobs with photos of the collection.
    """
    try:
        future = pool.submit(job, wanted, seconds, client=request.scope.get(CLIENT, ""), upload=upload)
        answer = asyncio.wrap_future(future)
        try:
            while not (await asyncio.wait([answer], timeout=_LOOK))[0]:
                if await request.is_disconnected():
                    raise ProblemError(499, "The client has left.")
            return await answer
        finally:
            pool.give_up(future)
            answer.cancel()
    except Busy:
        raise ProblemError(503, "The server is busy: try again in a moment.") from None
    except TookTooLong:
        seconds = pool.options.seconds if seconds is None else seconds
        raise ProblemError(
            504, "This took more than {seconds} seconds and was stopped: ask for less.", seconds=f"{seconds:g}"
        ) from None
    except Died:
        raise BrokenOff(
            503,
            "The work on this request was broken off, most likely because there was not enough memory: try again, "
            "or with another photo.",
        ) from None
    except Failed as error:
        log_trace(str(error))
        raise ProblemError(500, "Something went wrong in the server: its log says more.") from None


def folder_id(folder: str) -> str:
    """Return a public name of a folder, without its path."""
    return hashlib.sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def service_of(request: Request) -> Service:
    """The service of a request."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


@contextmanager
def changing(request: Request, status: int = 409) -> Iterator[Session]:
    """A transaction in which a request changes the catalogue, which is sealed soon after. Errors are handled by
    `refusing`.
    """
    service = service_of(request)
    with refusing(status), service.collection.catalogue.writing() as session:
        yield session
    service.wrote()


def describe_photos(service: Service, rows: Sequence[PhotoRow]) -> list[Photo]:
    """Photos as the API shows them in lists."""
    return [Photo(**_facts(one)) for one in photos_of(service.collection.catalogue, rows, service.cache)]


def describe_those_there(service: Service, numbers: Sequence[int]) -> list[Photo]:
    """Those of some photos that are in the collection, in this order, as the API shows them in lists."""
    return [Photo(**_facts(one)) for one in photos_there(service.collection.catalogue, numbers, service.cache)]


def describe_photo(service: Service, row: PhotoRow) -> PhotoDetails:
    """One photo as the API shows it."""
    (one,) = photos_of(service.collection.catalogue, [row], service.cache)
    film = (one.page or 0) / 1000 if is_film(one.path) and service.options.exports.files else None
    return PhotoDetails(**_facts(one), link=row.sha256 and f"/photo/{row.sha256[:_LINK_DIGITS]}", film=film)


def _facts(photo: KnownPhoto) -> dict[str, Any]:
    """What is known of a photo, without the path of its file."""
    facts = photo.to_dict()
    del facts["path"]
    return {**facts, "folder": photo.folder}
