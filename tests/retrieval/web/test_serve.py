"""The command `cairn serve`: it says where it serves, ends cleanly, and says in one sentence why it cannot start."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from retrieval.photos.apart import is_confined, rights
from retrieval.web.access.options import NetworkOptions, is_loopback
from retrieval.web.guard import Guard, host_name, log_trace
from retrieval.web.running import FileOptions, RunOptions
from tests.conftest import Indexed, Ran
from tests.support.paths import ROOT
from tests.support.patience import patience

Cairn = Callable[..., Ran]


@contextmanager
def serving(*arguments: object, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command until it has said its address; give both."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cairn", "serve", *map(str, arguments), "--port", "0"],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+/", line)
        assert found, (line, process.poll(), process.stderr.read() if process.stderr and process.poll() else "")
        yield process, found[0]
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("ends", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_it_serves_until_it_is_stopped_and_leaves_nothing_behind(
    indexed: Indexed, tmp_path: Path, ends: signal.Signals
) -> None:
    scratch, opened = tmp_path / "tmp", tmp_path / "opened"
    scratch.mkdir()
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >"{opened}"\n')
    browser.chmod(0o755)
    arguments = (indexed.folder, "--cache", tmp_path / "cache", "--workers", 1, "--open")
    with serving(*arguments, TMPDIR=str(scratch), BROWSER=f"{browser} %s") as (process, address):
        assert httpx.get(f"{address}api/health").json()["images"] == len(list(indexed.photos.iterdir()))
        assert httpx.get(f"{address}api/search?q=0&turns=1", timeout=patience(60)).json()["results"][0]["number"] == 0
        assert httpx.get(f"{address}api/photos/0/thumbnail").status_code == 200
        assert httpx.get(f"{address}api/health", headers={"Host": "evil.example"}).status_code == 400
        for _ in range(200):
            if opened.exists() and opened.read_text():
                break
            time.sleep(0.02)
        assert opened.read_text() == f"{address}\n"
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 2
        process.send_signal(ends)
        out, err = process.communicate(timeout=patience(60))
        # Whoever sends SIGTERM expects to see that it was what ended the process.
        told = "" if is_confined() else f"cairn: {rights()}\n"
        assert (process.returncode, out, err) == (0 if ends == signal.SIGINT else -signal.SIGTERM, "", told)
    assert psutil.wait_procs(children, timeout=patience(10))[1] == []
    assert list(scratch.iterdir()) == []
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["thumbnails"]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a worker ends with its pipe")
@pytest.mark.slow
def test_no_worker_outlives_a_server_that_is_killed(indexed: Indexed, tmp_path: Path) -> None:
    with serving(indexed.folder, "--cache", tmp_path / "cache", "--workers", 1) as (process, _):
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 2
        process.kill()
        assert psutil.wait_procs(children, timeout=patience(10))[1] == []


@pytest.mark.slow
def test_without_a_password_the_network_is_told_that_it_is_not_answered(indexed: Indexed, tmp_path: Path) -> None:
    with serving(indexed.folder, "--cache", tmp_path, "--host", "0.0.0.0", "--workers", 1) as (process, address):
        assert httpx.get(f"{address}api/health").status_code == 200
        assert httpx.get(f"{address}api/health", headers={"Host": "my.server"}).status_code == 400
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=patience(60))
        assert err.count("\n") == (1 if is_confined() else 2) and "no password" in err


@pytest.mark.slow
def test_what_cannot_be_served_is_one_sentence(indexed: Indexed, cairn: Cairn, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port} is taken" in cairn("serve", indexed.folder, "--port", port).refused()
    assert "no collection" in cairn("serve", tmp_path / "nothing").refused()
    assert "--host" in cairn("serve", indexed.folder, "--host", "no such host", "--port", 0).refused()
    assert "198.51.100.1" in cairn("serve", indexed.folder, "--host", "198.51.100.1", "--port", 0).refused()
    missing = tmp_path / "similarity.npz"
    refused = cairn("serve", indexed.folder, "--port", 0, "--workers", 1, "--similarity", missing).refused()
    assert str(missing) in refused


def test_which_addresses_are_this_machine_alone() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.2", "example.org", "")))
    names = {"127.0.0.1:8000": "127.0.0.1", "[::1]:8000": "::1", "[::1]": "::1", "A.b": "a.b", "": "", "[": ""}
    assert {host: host_name(host) for host in names} == names


def test_a_trace_is_logged_with_what_visitors_typed_escaped(caplog: pytest.LogCaptureFixture) -> None:
    log_trace("Traceback\n  \x1b]0;title\x07 \u202e name\r\n")
    assert [record.getMessage() for record in caplog.records if record.getMessage()] == [
        "Traceback",
        "  \\x1b]0;title\\x07 \\u202e name",
    ]


def test_a_defect_is_a_sentence_with_all_headers() -> None:
    import asyncio

    async def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(Guard(broken, None))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/")

    answer = asyncio.run(ask())
    assert (answer.status_code, "secret" in answer.text, list(answer.json())) == (500, False, ["detail"])
    assert "content-security-policy" in answer.headers


def test_a_collection_that_does_not_open_is_one_sentence(tmp_path: Path) -> None:
    from index.errors import CairnError
    from retrieval.web.pool.workers import WorkerPool, WorkerPoolOptions
    from retrieval.web.serve_command import open_collection
    from tests.support.odd_jobs import SlowToStart

    for what, seconds, sentence in (("sleep", 0.2, "could not be opened within"), ("die", 60, "died, most likely")):
        pool = WorkerPool(SlowToStart, (what,), WorkerPoolOptions(workers=1, seconds=0.1, memory=0))
        try:
            with pytest.raises(CairnError, match=sentence):
                open_collection(pool, tmp_path, seconds)
        finally:
            pool.close()


@pytest.mark.parametrize(
    ("options", "local"),
    [
        ({}, True),
        ({"allowed_host": ["127.0.0.1", "LOCALHOST"]}, True),
        ({"allowed_host": ["photos.example.org"]}, False),
        ({"password_file": Path("people")}, False),
        ({"forwarded_from": ["127.0.0.1"]}, False),
        ({"root_path": "/photos"}, False),
        ({"every_user": True}, False),
        ({"cors": ["https://www.example.org"]}, False),
    ],
)
def test_a_server_that_others_are_let_into_gives_out_no_files_and_no_folders(
    options: dict[str, Any], local: bool, tmp_path: Path
) -> None:
    """Behind a proxy on this machine everybody comes from this machine: the address that it listens at says nothing."""
    network = NetworkOptions(**options)
    usual = RunOptions.of_command("127.0.0.1", 0, 1, FileOptions(), network).serve_options()
    assert (usual.exports.files, usual.roots) == ((True, (Path.home(),)) if local else (False, ()))
    named = FileOptions(originals=True, photos=[tmp_path])
    chosen = RunOptions.of_command("127.0.0.1", 0, 1, named, network).serve_options()
    assert (chosen.exports.files, chosen.roots) == (True, (tmp_path,))
    assert not RunOptions.of_command("0.0.0.0", 0, 1, FileOptions(), network).is_local
