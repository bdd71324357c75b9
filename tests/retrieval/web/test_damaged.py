"""A collection that is damaged under a server: one sentence that names the file, and not memory."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.schema import ImageRow
from retrieval.photos.thumbnails import thumbnail
from retrieval.web import service
from tests.conftest import Indexed
from tests.support.live import client_of, serving_copy, until
from tests.support.strangers import reshape


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server look for damage whenever it is asked whether it is ready."""
    monkeypatch.setattr(service, "LOOK", -1.0)


def _search(client: httpx.Client, photo: int) -> httpx.Response:
    request = {"queries": [{"photo": photo}], "turns": 1}
    return client.post("/api/search", files=[("request", (None, json.dumps(request)))])  # type: ignore[list-item]


def _numbers(folder: Path) -> list[int]:
    with Catalogue.open(folder) as catalogue:
        return [row.number for row in catalogue.read(all_indexed)]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="files that are mapped cannot be cut short")
@pytest.mark.usefixtures("looks")
def test_a_file_that_is_cut_short_under_the_server_is_named(indexed: Indexed, tmp_path: Path) -> None:
    with serving_copy(indexed.folder, tmp_path) as (address, folder), client_of(address) as client:
        first, *_ = _numbers(folder)
        assert _search(client, first).status_code == 200 and client.get("/api/ready").status_code == 200
        whole = (folder / "segments" / "000001" / "column_geometry.npy").read_bytes()
        os.truncate(folder / "segments" / "000001" / "column_geometry.npy", 4096)
        answer = _search(client, first)
        assert answer.status_code == 503, answer.text
        assert "column_geometry.npy is damaged" in answer.json()["detail"] and "cairn repair" in answer.json()["detail"]
        assert str(folder) not in answer.text and "memory" not in answer.text
        assert client.get("/api/ready").status_code == 503
        assert client.get("/api/ready").json()["ready"] is False
        (folder / "segments" / "000001" / "column_geometry.npy").write_bytes(whole)
        assert until(lambda: client.get("/api/ready").status_code == 200)
        assert until(lambda: _search(client, first).status_code == 200)


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("column_geometry", lambda array: array[:, :1]),
        ("posting_signatures", lambda array: array[:, 0]),
        ("column_descriptor", lambda array: array.reshape(len(array), 2, -1)),
    ],
)
def test_odd_shapes_are_told_by_a_server_that_is_started(
    indexed: Indexed, tmp_path: Path, name: str, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    def tamper(folder: Path) -> None:
        reshape(folder, name, change)

    with (
        serving_copy(indexed.folder, tmp_path, lambda collection: tamper(collection.folder)) as (address, folder),
        client_of(address) as client,
    ):
        answer = _search(client, _numbers(folder)[0])
        assert answer.status_code == 503, answer.text
        assert f"{name}.npy is damaged: run cairn check, then cairn repair." in answer.json()["detail"]
        assert client.get("/api/ready").status_code == 503


def test_thumbnails_are_for_their_owner_alone(indexed: Indexed, tmp_path: Path) -> None:
    with Catalogue.open(indexed.folder) as catalogue:
        row: ImageRow = catalogue.read(all_indexed)[0]
    before = os.umask(0)
    try:
        thumbnail(Path(row.path), row.sha256, 128, tmp_path / "cache")
    finally:
        os.umask(before)
    for path in (tmp_path / "cache").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    thumbnail(Path(row.path), row.sha256, 128, tmp_path / "shared")
    (kept,) = (tmp_path / "shared").rglob("*.jpg")
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o755
    assert stat.S_IMODE(kept.stat().st_mode) & 0o600 == 0o600
