"""Only regular files are opened, without blocking."""

import os
import socket
from pathlib import Path

import pytest

from index.files.reading import IrregularFile, open_regular, read_regular


def test_a_regular_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"12345"
    assert read_regular(path) == b"12345"
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "missing")


def test_pipes_sockets_devices_and_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for name in ("pipe", "folder", "device", "socket"):
            with pytest.raises(IrregularFile, match=f"^{name} is not a regular file: put a copy"):
                open_regular(Path(name))
