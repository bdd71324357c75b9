"""The state folder: this user's alone, and where it was asked for."""

import os
import sys
from pathlib import Path

import pytest

from index.errors import CairnError
from retrieval.state.folder import STATE, state_folder


def test_it_is_where_the_variable_says_and_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE, str(tmp_path / "own"))
    made = state_folder("queues", "one")
    assert made == tmp_path / "own" / "queues" / "one"
    assert made.is_dir()
    if os.name == "posix":
        assert {folder.stat().st_mode & 0o777 for folder in (made, made.parent, made.parent.parent)} == {0o700}


def test_a_service_has_the_folder_that_systemd_gives_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STATE, raising=False)
    monkeypatch.setenv("STATE_DIRECTORY", f"{tmp_path / 'a'}:{tmp_path / 'b'}")
    assert state_folder() == tmp_path / "a"


@pytest.mark.skipif(sys.platform != "linux", reason="XDG names folders on Linux")
def test_else_it_is_in_the_state_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STATE, raising=False)
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "cairn"


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE, str(tmp_path))
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues").chmod(0o777)
    with pytest.raises(CairnError, match="chmod 700"):
        state_folder("queues")


def test_where_it_cannot_be_made_a_sentence_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(STATE, str(tmp_path / "file"))
    with pytest.raises(CairnError, match=STATE):
        state_folder("queues")
