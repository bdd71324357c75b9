"""Shared state of the routes of a shelf: the home, its open collections, one queue of jobs, and the decoders."""

import asyncio
import contextlib
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import Scope

from retrieval.jobs.job import QueuedJob
from retrieval.jobs.kinds import index_of
from retrieval.jobs.opening import queue_below
from retrieval.photos.options import ImageOptions
from retrieval.web.access.passwords import may_see
from retrieval.web.access.rights import caller_of
from retrieval.web.app import create_app
from retrieval.web.discretion import names_of_places
from retrieval.web.pool.workers import Answer, WorkerPool
from retrieval.web.service import ServeOptions, Service, run_job
from retrieval.web.shelf.opened import OpenCollections
from retrieval.web.shelf.shelf import Card, Shelf, no_collection


class ShelfService:
    """The service of a home folder of collections; `options` are those of each."""

    def __init__(self, home: Path, options: ServeOptions) -> None:
        self.home = home.absolute()
        self.shelf = Shelf(self.home)
        self.options = options
        self.id = secrets.token_hex(16)  # tells this server from others
        self.places = names_of_places((self.home, self.home.name))
        self.queue = queue_below(self.home, self.shelf.find, options.roots)
        self.queue.hosts = options.iiif_hosts
        self.opened = OpenCollections(self._make)
        self._decoding: WorkerPool | None = None
        self._tending: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the decoders and the queue of jobs."""
        self._decoding = WorkerPool(self.options.picture_jobs, (), self.options.pictures)
        self.queue.start()
        self._tending = asyncio.create_task(self.opened.tend())

    async def stop(self) -> None:
        """Close all collections, and stop everything else that was started."""
        if self._tending is not None:
            self._tending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._tending
        await self.opened.close_all()
        await asyncio.to_thread(self.queue.stop)
        if self._decoding is not None:
            await asyncio.to_thread(self._decoding.close)

    def open_services(self) -> list[Service]:
        """The collections that are served now."""
        apps = [self.opened.app(name) for name in self.opened.names]
        return [app.state.service for app in apps if app is not None]

    def names(self, scope: Scope) -> list[str]:
        """Names of the collections that the current user may see."""
        caller = caller_of(scope)
        return [name for name in self.shelf.names() if may_see(caller.collections, name)]

    def cards(self, scope: Scope) -> list[Card]:
        """Collections as shown, of those that the current user may see."""
        visible = caller_of(scope).collections
        return [card for card in self.shelf.cards() if may_see(visible, card.name)]

    def find(self, scope: Scope, name: str) -> Path:
        """Return the folder of a collection; raises Refused if the current user may see none of this name."""
        if not may_see(caller_of(scope).collections, name):
            raise no_collection()
        return self.shelf.find(name)

    def jobs(self, name: str) -> list[QueuedJob]:
        """Jobs of a collection that have not ended."""
        return self.queue.jobs(name, ended=0)

    def index(self, name: str, folder: Path, films: bool | None = None) -> QueuedJob:
        """Queue the indexing of a folder of photos, and of its films."""
        return self.queue.add(name, index_of([folder], films))

    def forget(self, name: str) -> None:
        """Delete the jobs of a removed collection: another one may get its name later."""
        for job in self.queue.jobs(name):
            self.queue.forget(job.id)

    async def decode(self, request: Request, job: str, wanted: dict[str, Any]) -> Answer:
        """Have a photo decoded, and wait."""
        assert self._decoding is not None
        return await run_job(self._decoding, request, job, {**wanted, "max_pixels": ImageOptions.max_pixels})

    def _make(self, name: str) -> FastAPI:
        folder = self.shelf.find(name)
        title = self.shelf.title(name)
        options = replace(self.options, title=title, access=None, decoding=self._decoding, queue=self.queue)
        return create_app(folder, options)


def shelf_of(request: Request) -> ShelfService:
    """The shelf of a request."""
    service = request.app.state.service
    assert isinstance(service, ShelfService)
    return service
