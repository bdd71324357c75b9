"""The command `cairn open`: one server a home, said and found again, and never the wrong one."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from index.errors import CairnError
from retrieval.web.access.peers import kernel_tells
from retrieval.web.running import listen
from retrieval.web.shelf.instance import FILE, announce, await_server, only_server, running_server
from retrieval.web.shelf.open_command import find_home
from tests.conftest import Indexed, Ran
from tests.support.paths import ROOT
from tests.support.patience import patience


@pytest.mark.slow
def test_a_second_one_leads_to_the_first(tmp_path: Path, cairn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    monkeypatch.setenv("BROWSER", "none")
    monkeypatch.setenv("CAIRN_STATE", str(tmp_path / "state"))
    home = tmp_path / "home"
    home.mkdir()
    master, terminal = pty.openpty()
    # Alone on a terminal, `cairn` opens the usual home.
    environment = os.environ | {"HOME": str(tmp_path), "BROWSER": "true", "OMP_NUM_THREADS": "1"}
    (tmp_path / "Cairn").symlink_to(home)
    first = subprocess.Popen(
        [sys.executable, "-m", "cairn"], cwd=ROOT, env=environment, stdin=terminal, stdout=terminal, stderr=terminal
    )
    try:
        said = b""
        while b"Ctrl-C" not in said:
            said += os.read(master, 1000)
        found = re.search(rb"(http://127\.0\.0\.1:\d+/)\?token=([\w-]{32})", said)
        assert found, said
        address, token = found[1].decode(), found[2].decode()
        monkeypatch.setattr("retrieval.web.access.peers.kernel_tells", lambda: True)
        ran: Ran = cairn("open", home)
        assert ran.code == 0 and f"open already, at {address}?token={token}\n" in ran.out
        # Other users see how a browser was called: the token is in no command line.
        assert shown == [address]
        assert cairn("open", home, "--no-browser").code == 0 and len(shown) == 1
        monkeypatch.setattr("retrieval.web.access.peers.kernel_tells", lambda: False)
        assert cairn("open", home).code == 0
        lead = Path(shown[1].removeprefix("file://"))
        assert f"url={address}?token={token}" in lead.read_text() and token not in shown[1]
        kept = [path for path in (tmp_path / "state" / "open").iterdir() if token in path.read_text()]
        assert len(kept) == 2 and not [path for path in kept if path.stat().st_mode & 0o077]
        bearer = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{address}api/health", headers=bearer).json()["collections"] == 0
        sent = httpx.get(f"{address}?token={token}")
        assert sent.status_code == 303 and sent.headers["Location"] == "/"
        assert httpx.get(f"{address}api/health", cookies=dict(sent.cookies)).json()["folders"] is True
        if kernel_tells():
            assert httpx.get(f"{address}api/health").status_code == 200  # the same user needs nothing
        first.send_signal(signal.SIGINT)
        assert first.wait(patience(20)) == 0
        assert not (home / FILE).exists() and running_server(home) is None
    finally:
        first.kill()
        first.wait()
        os.close(master)
        os.close(terminal)


class _Liar(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b'{"status": "ok", "server": "another"}')

    def log_message(self, *_: object) -> None:
        pass


def test_a_file_that_is_stale_or_forged_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"  # as any number that this machine has
    with HTTPServer((host, 0), _Liar) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://{host}:{server.server_port}/"
        announce(tmp_path, address, "another")
        assert running_server(tmp_path) == address
        announce(tmp_path, address, "mine")  # its port is somebody else's by now
        assert running_server(tmp_path) is None
        monkeypatch.setattr(_Liar, "status", 401)  # one with a password tells nothing, but it holds the lock
        assert running_server(tmp_path) is None
        with only_server(tmp_path):
            assert running_server(tmp_path) == address
        monkeypatch.setattr(_Liar, "send_response", lambda self, _: self.wfile.write(b"SSH-2.0-nothing\r\n"))
        assert running_server(tmp_path) is None
        server.shutdown()
    forged = [
        b"",
        b"\xff",
        b"[1]",
        json.dumps({"address": "http://evil.example/", "server": "x"}).encode(),
        json.dumps({"address": "http://203.0.113.1/", "server": "x"}).encode(),
        json.dumps({"address": "file:///etc/passwd", "server": "x"}).encode(),
        json.dumps({"address": "http://127.0.0.1:1/", "server": "x"}).encode(),
    ]
    for contents in forged:
        (tmp_path / FILE).write_bytes(contents)
        assert running_server(tmp_path) is None
    with only_server(tmp_path), pytest.raises(CairnError, match="does not answer"):
        await_server(tmp_path, 0.1)
    with pytest.raises(CairnError, match="just ended"):
        await_server(tmp_path, 0.1)


def test_what_is_opened(tmp_path: Path, indexed: Indexed, monkeypatch: pytest.MonkeyPatch, cairn: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_home(None) == (tmp_path / "Cairn", "")
    assert find_home(tmp_path) == (tmp_path, "")
    assert find_home(indexed.folder) == (indexed.folder, None)  # alone: its folder is no home
    (tmp_path / "Cairn").mkdir()
    (tmp_path / "Cairn" / "my photos").symlink_to(indexed.folder)
    assert find_home(tmp_path / "Cairn" / "my photos") == (tmp_path / "Cairn", "c/my%20photos/")
    assert "no folder" in cairn("open", tmp_path / "nothing").refused()
    with listen("127.0.0.1", 0) as taken, listen("127.0.0.1", taken.getsockname()[1], fallback=True) as other:
        assert other.getsockname()[1] != taken.getsockname()[1]


@pytest.mark.slow
def test_a_collection_outside_a_home_is_served_once(
    tmp_path: Path, indexed: Indexed, cairn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CAIRN_STATE", str(tmp_path / "state"))
    alone = Path(shutil.copytree(indexed.folder, tmp_path / "elsewhere" / "demo.cairn"))
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "cairn", "open", str(alone), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout is not None
            said = first.stdout.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+/", said)
            token = re.search(r"token=([\w-]+)", said)
            assert address and token
            (tmp_path / "link").symlink_to(alone)
            for named in (alone, tmp_path / "link"):
                assert f"open already, at {address[0]}" in cairn("open", named, "--no-browser").out
            bearer = {"Authorization": f"Bearer {token[1]}"}
            assert httpx.get(f"{address[0]}api/health", headers=bearer).json()["collection"] == "demo.cairn"
            first.send_signal(signal.SIGINT)
            assert first.wait(patience(20)) == 0
            assert not (alone / "cache" / FILE).exists()
        finally:
            first.kill()


def test_nothing_is_written_or_deleted_where_a_collection_has_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cairn: Any
) -> None:
    from retrieval.web.shelf import open_command

    served: list[Path] = []
    monkeypatch.setattr(open_command, "_serve_alone", lambda collection, *_, **__: served.append(collection))
    sent, secret = tmp_path / "sent.cairn", tmp_path / "secret"
    sent.mkdir()
    secret.mkdir()
    (sent / "collection.toml").touch()
    (secret / FILE).write_text("mine")
    (sent / "cache").symlink_to(secret)
    assert cairn("open", sent, "--no-browser").code == 0
    assert served == [sent]
    assert [(path.name, path.read_text()) for path in secret.iterdir()] == [(FILE, "mine")]
