"""A live server of the small collection, as a browser meets it."""

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Indexed


@contextmanager
def serving(folder: Path, cache: Path, **options: Any) -> Iterator[str]:
    """Serve a collection on a free port from a thread; give the base address, such as http://127.0.0.1:40123."""
    import uvicorn

    from retrieval.web.app import ServeOptions, create_app

    app = create_app(folder, ServeOptions(cache=cache, **options))
    scratch = cache.parent / "scratch"  # where uploads are kept, and left by none
    scratch.mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(scratch))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server has not started"
            time.sleep(0.02)
        patch.undo()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive(), "the server has not ended"
            assert not list(scratch.iterdir())


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the live server may write: thumbnails, and nothing else."""
    return tmp_path_factory.mktemp("served") / "cache"


@pytest.fixture(scope="session")
def served(indexed: Indexed, cache: Path) -> Iterator[str]:
    """The base address of a live server of the small collection."""
    with serving(indexed.folder, cache) as address:
        yield address


@pytest.fixture(scope="session")
def client(served: str) -> Iterator[httpx.Client]:
    """A client of the live server."""
    with httpx.Client(base_url=served, timeout=120, headers={"X-Cairn": "1"}) as client:
        yield client
