"""Collections that cannot be opened, or locked, as they should: what is said of them."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval.collection import lock_folder
from tests.conftest import Ran

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
