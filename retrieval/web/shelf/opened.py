"""The open collections of a shelf: each from its first visit until it has not been used for long.

A served collection has worker processes that hold its index in memory, so only a few are open at a time.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

MOST = 4
"""Most collections that are open at once, without those that are answering requests."""
IDLE = 900.0
"""Seconds without a visit after which a collection is closed."""
LOOK = 30.0
"""Seconds between two checks for unused collections."""
PATIENCE = 10.0
"""Seconds that requests have to end before a collection is closed to be moved."""


@dataclass
class _Opened:
    app: FastAPI
    used: float  # when it was visited last
    visitors: int = 0  # requests that are being answered


class OpenCollections:
    """Starts and ends the services of collections; used by the coroutines of one event loop.

    `make` makes the application of a collection by its name; `Service.start` and `Service.stop` are called here, as the
    lifespan of a mounted application is never run. `most` collections may be open; one is closed after `idle` seconds
    without requests.
    """

    def __init__(
        self,
        make: Callable[[str], FastAPI],
        most: int = MOST,
        idle: float = IDLE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._most = most
        self._idle = idle
        self._clock = clock
        self._opened: dict[str, _Opened] = {}
        self._locks: dict[str, asyncio.Lock] = {}  # of starting and ending each

    @property
    def names(self) -> list[str]:
        """Names of those that are open, the longest unused first."""
        return sorted(self._opened, key=lambda name: self._opened[name].used)

    def app(self, name: str) -> FastAPI | None:
        """The application of a collection that is open; None if it is not."""
        opened = self._opened.get(name)
        return opened.app if opened else None

    @contextlib.asynccontextmanager
    async def visit(self, name: str, *, counts: bool = True) -> AsyncIterator[FastAPI]:
        """Return the application of a collection, which stays open until the end of the block.

        A visit that does not count, as it only listens to events, does not keep it open.
        """
        async with self._lock(name):
            opened = self._opened.get(name)
            if opened is None:
                await self._make_room()
                app = await run_in_threadpool(self._start, name)
                opened = self._opened[name] = _Opened(app, self._clock())
            opened.visitors += counts
            opened.used = self._clock()
        try:
            yield opened.app
        finally:
            opened.visitors -= counts
            if counts:
                opened.used = self._clock()

    @contextlib.asynccontextmanager
    async def closed(self, name: str) -> AsyncIterator[None]:
        """Keep a collection closed within the block; requests have `PATIENCE` seconds to end."""
        async with self._lock(name):
            opened = self._opened.get(name)
            until = self._clock() + PATIENCE
            while opened is not None and opened.visitors and self._clock() < until:
                await asyncio.sleep(0.05)
            await self._end(name)
            yield

    async def tend(self) -> None:
        """Close unused collections from time to time, without end."""
        while True:
            await asyncio.sleep(LOOK)
            await self.close_idle()

    async def close_idle(self) -> None:
        """Close unused collections."""
        for name in self.names:
            await self._close_unused(name, self._idle)

    async def close_all(self) -> None:
        """Close everything."""
        for name in self.names:
            async with self._lock(name):
                await self._end(name)

    async def _make_room(self) -> None:
        """Close idle ones, the longest unused first, until one more may be opened."""
        for name in self.names:
            if len(self._opened) < self._most:
                break
            await self._close_unused(name, 0.0)

    async def _close_unused(self, name: str, seconds: float) -> None:
        # This waits only for open collections, not for those being opened: so there is no circular wait.
        async with self._lock(name):
            opened = self._opened.get(name)
            if opened is not None and not opened.visitors and self._clock() - opened.used >= seconds:
                await self._end(name)

    async def _end(self, name: str) -> None:
        opened = self._opened.pop(name, None)
        if opened is not None:
            await run_in_threadpool(opened.app.state.service.stop)

    def _start(self, name: str) -> FastAPI:
        app = self._make(name)
        app.state.service.start()
        return app

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())
