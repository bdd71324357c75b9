"""Locks of files: held by one process, and made in their own place alone."""

import os
from pathlib import Path

import pytest

from index.errors import CairnError
from retrieval.collection.locking import CollectionLocked, lock_file, lock_folder
from retrieval.web.reasons import in_language

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


def test_who_waits_is_told_in_the_language_of_the_page(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(CollectionLocked) as refused, lock_folder(tmp_path):
        pass
    assert str(refused.value) == f"Another cairn command is changing {tmp_path}: wait until it has ended."
    said = in_language(refused.value.message, "de")
    assert said == f"Ein anderer Befehl ändert {tmp_path}: Warten Sie, bis er beendet ist."


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
