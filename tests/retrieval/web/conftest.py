"""A live server of the small collection, as a browser meets it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import Indexed
from tests.support.live import client_of, serving


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
    with client_of(served) as client:
        yield client
