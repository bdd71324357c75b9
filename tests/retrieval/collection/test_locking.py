"""Locks of files: held by one process, and made in their own place alone."""

import os
from pathlib import Path

import pytest

from index.errors import CairnError
from retrieval.collection.locking import CollectionLocked, lock_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files are not locked here")


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    for _ in range(2):  # the second time the file is there
        with (
            lock_file(tmp_path / "lock", "It is held."),
            pytest.raises(CollectionLocked, match="held"),
            lock_file(tmp_path / "lock", "It is held."),
        ):
            pass
    with pytest.raises(CairnError, match="no longer exists"), lock_file(tmp_path / "gone" / "lock", "It is held."):
        pass


def test_what_a_link_leads_to_is_neither_emptied_nor_made(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("mine")
    for target in ("own", "none"):
        link = tmp_path / f"to {target}"
        link.symlink_to(tmp_path / target)
        with pytest.raises(CairnError, match="remove it"), lock_file(link, "It is held."):
            pass
    assert (tmp_path / "own").read_text() == "mine" and not (tmp_path / "none").exists()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(CairnError, match="remove it"), lock_file(tmp_path / "lock", "It is held."):
        pass
