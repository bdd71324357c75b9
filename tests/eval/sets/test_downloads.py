"""Interrupted, refused, changed or wrong downloads, from local servers."""

import errno
import hashlib
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.sets import downloads
from eval.sets.downloads import fetch
from eval.sets.manifests import Address
from index.errors import CairnError
from tests.support.file_server import FileServer, serve_files, serve_ftp

CONTENT = random.Random(0).randbytes(300_000)
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(scope="module")
def running() -> Iterator[FileServer]:
    with serve_files() as server:
        yield server


@pytest.fixture
def server(running: FileServer) -> FileServer:
    running.files.clear()
    running.requested.clear()
    return running


def address(url: str, size: int | None = None, sha: str | None = SHA, md5: str | None = None) -> Address:
    return Address(url, size, sha, md5)


def get(folder: Path, *addresses: Address) -> bytes:
    got = fetch("set.tgz", addresses, folder, wait=0)
    assert [path.name for path in folder.iterdir()] == ["set.tgz"]  # no part, note or temporary file
    assert got.sha256 == hashlib.sha256(got.path.read_bytes()).hexdigest()
    return got.path.read_bytes()


def test_a_cut_connection_goes_on_where_it_ended(server: FileServer, tmp_path: Path) -> None:
    url = server.add("a", CONTENT, cuts=[100_000, 100_000, 200_000], refusals=[503])
    reported: list[tuple[int, int]] = []
    got = fetch("set.tgz", (address(url),), tmp_path, lambda done, of: reported.append((done, of)), wait=0)
    assert got.path.read_bytes() == CONTENT and got.address == url
    assert [wanted for _, wanted in server.requested] == [None, None, *["bytes=100000-"] * 2, "bytes=200000-"]
    assert reported[-1] == (len(CONTENT), len(CONTENT)) and reported == sorted(reported)
    assert fetch("set.tgz", (address(url),), tmp_path).address is None  # it exists: no request
    assert len(server.requested) == 5


def test_what_was_stopped_goes_on_in_the_next_run(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.add("a", CONTENT)
    monkeypatch.setattr(downloads, "_CHUNK", 10_000)

    def stop(done: int, of: int) -> None:
        if done >= 50_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch("set.tgz", (address(url),), tmp_path, stop, wait=0)
    came = (tmp_path / "set.tgz.part").read_bytes()
    assert 50_000 <= len(came) <= 60_000 and CONTENT.startswith(came)
    assert not (tmp_path / "set.tgz").exists()
    assert get(tmp_path, address(url)) == CONTENT
    assert server.requested[-1] == ("a", f"bytes={len(came)}-")


@pytest.mark.parametrize(
    "how", [{"ranges": False}, {"length": False, "ranges": False}, {"state": None}, {"state": 'W/"weak"'}]
)
def test_servers_that_ignore_ranges_or_say_little_are_followed(
    server: FileServer, tmp_path: Path, how: dict[str, object]
) -> None:
    cuts = [] if "length" in how else [100_000]
    assert get(tmp_path, address(server.add("a", CONTENT, cuts=cuts, **how))) == CONTENT


def test_a_file_that_has_changed_meanwhile_is_taken_from_the_start(server: FileServer, tmp_path: Path) -> None:
    url = server.add("a", bytes(200_000), cuts=[100_000] * 9, refusals=[])
    with pytest.raises(CairnError, match="5 times in a row; run the same command again to go on"):
        fetch("set.tgz", (address(url),), tmp_path, wait=0)
    server.add("a", CONTENT, state='"two"')
    assert get(tmp_path, address(url)) == CONTENT
    # Without a state, a wrong hash shows the change: restart.
    (tmp_path / "set.tgz").unlink()
    server.add("a", CONTENT, state=None)
    (tmp_path / "set.tgz.part").write_bytes(bytes(100_000))
    (tmp_path / "set.tgz.part.json").write_text(json.dumps({"url": url, "state": "", "total": len(CONTENT)}))
    assert get(tmp_path, address(url)) == CONTENT
    # A partial file longer than the file is deleted, and so is one without a note.
    for note in (json.dumps({"url": url}), "damaged"):
        (tmp_path / "set.tgz").unlink()
        (tmp_path / "set.tgz.part").write_bytes(bytes(400_000))
        (tmp_path / "set.tgz.part.json").write_text(note)
        assert get(tmp_path, address(url)) == CONTENT


def test_a_range_that_was_not_asked_for_is_not_taken(server: FileServer, tmp_path: Path) -> None:
    url = server.add("a", CONTENT, cuts=[100_000], shift=10)
    assert get(tmp_path, address(url)) == CONTENT


def test_mirrors_are_tried_in_turn(server: FileServer, tmp_path: Path) -> None:
    other = server.add("other", CONTENT[:-1])
    missing, good = f"{server.address}/missing", server.add("good", CONTENT)
    size = len(CONTENT)
    assert get(tmp_path, address(missing), address(other, size), address(other), address(good, size)) == CONTENT
    (tmp_path / "set.tgz").unlink()
    with pytest.raises(CairnError) as refused:
        fetch("set.tgz", (address(missing), address(other, size), address(other)), tmp_path, wait=0)
    assert str(refused.value) == (
        f"set.tgz cannot be downloaded: {missing} answers 404 Not Found, and {other} has a file of 299,999 bytes, "
        f"where 300,000 were published, and {other} gives a file that has not the published SHA-256, which was removed."
    )
    assert list(tmp_path.iterdir()) == []  # the next run is not disturbed by it


def test_a_mirror_goes_on_with_what_another_gave_only_if_it_has_the_same_file(
    server: FileServer, tmp_path: Path
) -> None:
    first = server.add("first", CONTENT, cuts=[100_000] * 9)
    second = server.add("second", CONTENT)
    assert get(tmp_path, address(first, len(CONTENT)), address(second, len(CONTENT))) == CONTENT
    assert server.requested[-1] == ("second", "bytes=100000-")
    (tmp_path / "set.tgz").unlink()
    server.add("first", bytes(200_000), cuts=[100_000] * 9)  # repacked, without a known hash
    assert get(tmp_path, address(first, sha=None), address(second, sha=None)) == CONTENT
    assert server.requested[-1] == ("second", None)


def test_a_hash_may_be_an_md5_or_unknown(server: FileServer, tmp_path: Path) -> None:
    url = server.add("a", CONTENT)
    assert get(tmp_path, address(url, sha=None, md5=hashlib.md5(CONTENT).hexdigest())) == CONTENT
    (tmp_path / "set.tgz").write_bytes(b"not that file")
    with pytest.raises(CairnError, match="has not the published MD5, which was removed"):
        fetch("set.tgz", (address(url, sha=None, md5="0" * 32),), tmp_path, wait=0)
    assert get(tmp_path, address(url, sha=None)) == CONTENT


def test_nobody_at_an_address_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match=r"127.0.0.1:9/a cannot be reached, .*, and http://.* cannot be used"):
        fetch("set.tgz", (address("http://127.0.0.1:9/a"), address("http://127.0.0.1:99999/")), tmp_path, wait=0)


def test_ftp_goes_on_too(tmp_path: Path) -> None:
    before = threading.active_count()  # some are of tests before this one
    with serve_ftp(CONTENT, cuts=[100_000]) as (root, commands):
        assert get(tmp_path, address(f"{root}/missing"), address(f"{root}/pub/jpg1.tar.gz")) == CONTENT
    assert "REST 100000" in commands
    assert "RETR /pub/jpg1.tar.gz" in commands
    assert threading.active_count() < before + 10


def test_a_full_disk_is_no_fault_of_the_server(tmp_path: Path) -> None:
    def full(done: int, of: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with serve_ftp(CONTENT, cuts=[]) as (root, commands), pytest.raises(OSError, match="No space left"):
        fetch("set.tgz", (address(f"{root}/a"),), tmp_path, full, wait=0)
    assert commands.count("RETR /a") == 1
    assert not (tmp_path / "set.tgz").exists()
