"""Collections that cannot be opened, or locked, as they should: what is said of them."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval.collection import lock_folder
from tests.conftest import Indexed, Ran

Cairn = Callable[..., Ran]


def test_a_drive_without_locks_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for _ in range(2):
        with lock_folder(tmp_path):
            pass
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "cannot be locked" in told and "no other cairn command" in told


@pytest.fixture
def copy(indexed: Indexed, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed.folder, tmp_path / "demo.cairn"))


def test_options_that_do_not_count_are_told(copy: Path, indexed: Indexed, cairn: Cairn) -> None:
    command = ("index", copy, indexed.photos, "--workers", 1)
    told = cairn(*command, "--words", 9999, "--max-side", 1024, "--rotated", "--descriptor", "sift")
    assert told.code == 0
    assert told.err.count("\n") == 1
    assert told.err.endswith("do not count: --words, --upright/--rotated, --descriptor.\n")
    assert cairn(*command, "--max-side", 1024).err == ""
    assert "no descriptor 'foo'" in cairn(*command, "--descriptor", "foo").refused()
    assert "foo.npz" in cairn(*command, "--descriptor", "foo.npz").refused()
