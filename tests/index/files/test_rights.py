"""Folders are private to their owner, unless the owner has opened the top folder."""

import os
import stat
from pathlib import Path

import pytest

from index.files.rights import make_folders


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_folders_are_for_their_owner_alone_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        folder, mode = make_folders(tmp_path / "cache", "thumbnails", "ab")
    finally:
        os.umask(before)
    assert folder == tmp_path / "cache" / "thumbnails" / "ab" and mode == 0o600
    assert rights(folder) == rights(folder.parent) == rights(tmp_path / "cache") == 0o700


@pytest.mark.parametrize(("given", "files"), [(0o755, 0o644), (0o2770, 0o660), (0o700, 0o600)])
def test_what_the_owner_has_chosen_stays(tmp_path: Path, given: int, files: int) -> None:
    top = tmp_path / "cache"
    top.mkdir()
    top.chmod(given)
    folder, mode = make_folders(top, "thumbnails")
    assert (rights(top), rights(folder), mode) == (given, given, files)
    assert make_folders(top, "thumbnails") == (folder, files)


def test_a_link_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache" / "thumbnails").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        make_folders(tmp_path / "cache", "thumbnails", "ab")
    assert not list((tmp_path / "elsewhere").iterdir())
