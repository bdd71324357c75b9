"""Live servers in threads of the test process, clients with write access, and waiting for jobs."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from retrieval.catalogue.metadata_store import import_values
from retrieval.collection.collection import Collection
from retrieval.jobs.child import NICE
from tests.support.paths import ROOT
from tests.support.patience import patience

QUIET = {"log_level": "warning", "access_log": False, "timeout_graceful_shutdown": 5}
"""Settings of servers; at their end they wait so many seconds for connections that a browser keeps open."""


def until(condition: Callable[[], Any], seconds: float = 30.0, nice: int = 0) -> Any:
    """Wait until a condition holds; return its value. Polls less often over time, to leave the processor to the awaited
    work."""
    began = time.monotonic()
    while not (found := condition()):
        waited = time.monotonic() - began
        assert waited < patience(seconds, nice), "it has not come to that"
        time.sleep(min(0.2, 0.01 + waited / 10))
    return found


@contextmanager
def listening(app: Any, backlog: int = 128, **config: Any) -> Iterator[str]:
    """Serve an application on a free port from a thread; yield the base address, such as http://127.0.0.1:40123."""
    import uvicorn

    from tests.support.server_processes import started_at_once

    with started_at_once(), socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        server = uvicorn.Server(uvicorn.Config(app, **{**QUIET, **config}))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started or not thread.is_alive(), 60)
        assert thread.is_alive(), "the server has not started"
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(patience(30))
            assert not thread.is_alive(), "the server has not ended"


@contextmanager
def running(arguments: Sequence[object], scratch: Path, said: Path) -> Iterator[str]:
    """Run a serving command until the end of the block; yield its base address.

    Parameters
    ----------
    arguments : sequence
        Of ``cairn``.
    scratch : Path
        Its working folder, home and temporary folder.
    said : Path
        File for its standard error.
    """
    own = {"TMPDIR": str(scratch), "HOME": str(scratch), "PYTHONPATH": str(ROOT)}
    with said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "cairn", *map(str, arguments)],
            cwd=scratch,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert process.stdout is not None
            found = re.search(r"http://[^/]+", process.stdout.readline())
            assert found, said.read_text()
            yield found[0]
            assert process.poll() is None, f"the server has ended: {said.read_text()[-1000:]}"
        finally:
            process.terminate()
            process.wait(patience(60))


@contextmanager
def serving(folder: Path, cache: Path, **options: Any) -> Iterator[str]:
    """Serve a collection; yield the base address."""
    from retrieval.web.app import ServeOptions, create_app

    app = create_app(folder, ServeOptions(cache=cache, **options))
    scratch = cache.parent / "scratch"  # folder of uploads, which must be empty in the end
    scratch.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(scratch))
        with listening(app) as address:
            patch.undo()
            yield address
    assert not list(scratch.iterdir())


@contextmanager
def serving_copy(
    original: Path, root: Path, prepare: Callable[[Collection], Any] | None = None, **options: Any
) -> Iterator[tuple[str, Path]]:
    """Serve a modifiable copy of a collection, by one worker of each kind.

    Parameters
    ----------
    original : Path
        The collection.
    root : Path
        An empty folder.
    prepare : callable, optional
        Prepares the copy before it is served.
    **options
        Options of `ServeOptions`.

    Yields
    ------
    str
        The base address.
    Path
        The copy.
    """
    from retrieval.web.pool.workers import WorkerPoolOptions

    folder = Path(shutil.copytree(original, root / "demo.cairn"))
    if prepare is not None:
        with Collection.open(folder) as collection:
            prepare(collection)
    one = WorkerPoolOptions(workers=1)
    with serving(folder, root / "cache", **{"search": one, "pictures": one, **options}) as address:
        yield address, folder


def import_by_name(collection: Collection, values: Mapping[str, Mapping[str, list[str]]]) -> None:
    """Import metadata of photos: by their names, then by key."""
    numbers = {name: number for number, name, _ in collection.catalogue.places()}
    collection.catalogue.write(import_values, {numbers[name]: dict(found) for name, found in values.items()})


def client_of(address: str, **options: Any) -> httpx.Client:
    """A client with write access, like a page of the server."""
    return httpx.Client(base_url=address, headers={"X-Cairn": "1"}, **{"timeout": patience(120), **options})


def ask(app: Any, path: str, **headers: str) -> httpx.Response:
    """Send a request directly to an application, as a local visitor, without a server."""

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 50000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(get())


def ended(client: httpx.Client, number: int, seconds: float = 60.0) -> dict[str, Any]:
    """Wait until a job has ended; return it."""

    def look() -> dict[str, Any] | None:
        job: dict[str, Any] = client.get(f"/api/jobs/{number}").json()
        return job if job["ended"] is not None else None

    found: dict[str, Any] = until(look, seconds, NICE)
    return found
