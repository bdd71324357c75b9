"""The configurations of nginx and Caddy in the documentation, run as they stand there before a real server."""

import getpass
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.conftest import Indexed
from tests.retrieval.web.access.conftest import ANNA, hidden
from tests.retrieval.web.test_serve import serving
from tests.support.paths import ROOT
from tests.support.patience import patience

pytestmark = pytest.mark.slow

NAME = "photos.example.org"
PAGE = ROOT / "docs" / "how-to" / "reverse-proxy.md"


PATTERNS = {
    "listen": r"listen 443 ssl",
    "certificate": r"/etc/letsencrypt/\S+/fullchain\.pem",
    "key": r"/etc/letsencrypt/\S+/privkey\.pem",
    "server": r"127\.0\.0\.1:8000",
    "site": r"photos\.example\.org \{",
}


def _block(heading: str) -> str:
    """The first block of code below a heading of the page."""
    found = re.search(rf"^## {heading}\n.*?^```\w+\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def _replaced(text: str, **values: str) -> str:
    """Put other values in place of those of the page; each must be there."""
    for name, value in values.items():
        assert re.search(PATTERNS[name], text), name
        text = re.sub(PATTERNS[name], value, text)
    return text


def _nginx(folder: Path, port: int, server: str) -> list[str]:
    """Write its files; give its command line."""
    site = _replaced(
        _block("nginx"),
        listen=f"listen 127.0.0.1:{port} ssl",
        certificate=f"{folder}/certificate.pem",
        key=f"{folder}/key.pem",
        server=server,
    )
    scratch = "".join(
        f"{one}_temp_path {folder}/{one};\n" for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Its workers have to write what is uploaded where this test may.
    main = f"user {getpass.getuser()}; daemon off; pid {folder}/pid; error_log {folder}/log; events {{}}\n"
    main += "http { access_log off;\n"
    (folder / "nginx.conf").write_text(f"{main}{scratch}{site}}}\n")
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "log")]


def _caddy(folder: Path, port: int, server: str) -> list[str]:
    """Write its file; give its command line."""
    opened = f"https://{NAME}:{port} {{\n    tls {folder}/certificate.pem {folder}/key.pem"
    site = _replaced(_block("Caddy"), site=opened, server=server)
    usual = f"{{\n    admin off\n    auto_https disable_redirects\n    storage file_system {folder}/caddy\n}}\n"
    (folder / "Caddyfile").write_text(usual + site)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


@contextmanager
def _proxy(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as trying:
                if trying.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, command
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(patience(5))
        except subprocess.TimeoutExpired:  # Caddy waits for all connections to end
            process.kill()
            process.wait()


@pytest.mark.parametrize(("program", "configure"), [("nginx", _nginx), ("caddy", _caddy)])
def test_people_work_through_the_proxy_of_the_documentation(
    program: str,
    configure: Callable[[Path, int, str], list[str]],
    indexed: Indexed,
    password_file: Path,
    tokens: dict[str, str],
    tmp_path: Path,
) -> None:
    if shutil.which(program) is None or shutil.which("openssl") is None:
        pytest.skip(f"there is no {program}, or no openssl")
    folder = tmp_path / "proxy"
    folder.mkdir()
    files = ["-keyout", "key.pem", "-out", "certificate.pem"]
    named = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, *named]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    collection = shutil.copytree(indexed.folder, tmp_path / "photos.cairn")
    options = ("--password-file", password_file, "--allowed-host", NAME, "--forwarded-from", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(collection, "--workers", 1, *options) as (_, address):
        server = address.removeprefix("http://").rstrip("/")
        with _proxy(configure(folder, port, server), port):
            _work_through(port, folder / "certificate.pem", tokens)


def _work_through(port: int, certificate: Path, tokens: dict[str, str]) -> None:
    """Sign in, look, search, upload, be told of work: all by TLS."""
    context = ssl.create_default_context(cafile=str(certificate))
    base = f"https://127.0.0.1:{port}"
    sent = {"Host": NAME}
    with httpx.Client(base_url=base, verify=context, headers=sent, timeout=60) as stranger:
        stranger.event_hooks["request"] = [lambda request: request.extensions.update(sni_hostname=NAME)]
        assert stranger.get("/").status_code == 401
        page = stranger.get("/login")
        # Who claims to be this machine is not believed: the proxy says who asks.
        forged = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
        assert stranger.get("/api/photos", headers=forged).status_code == 401
        assert stranger.get("/metrics", headers=forged).status_code == 401
        signed = stranger.post("/login", data={"name": ANNA[0], "password": ANNA[1], **hidden(page)})
        assert signed.status_code == 303, signed.text
        cookies = [one.lower() for one in signed.headers.get_list("set-cookie")]
        assert any("secure" in one and "httponly" in one for one in cookies), cookies
        assert stranger.get("/").status_code == 200
        assert stranger.get("/api/search?q=0&turns=1").json()["results"][0]["number"] == 0
        noise = np.random.default_rng(0).integers(0, 255, (1200, 1600, 3), np.uint8)
        picture = certificate.with_name("large.png")
        Image.fromarray(noise).save(picture)
        assert picture.stat().st_size > 4_000_000  # more than nginx takes where nothing is said
        begun = time.monotonic()
        with stranger.stream("GET", "/api/jobs/events") as events:
            assert events.status_code == 200
            assert next(events.iter_lines()).startswith(("event:", "retry:", ":", "data:"))
            assert time.monotonic() - begun < patience(10)  # it is not kept back
        answer = stranger.post(
            "/api/photos",
            files={"photos": ("large.png", picture.read_bytes())},
            data={"index": "no"},
            headers={"X-Cairn": "1"},
        )
        assert answer.status_code == 201, answer.text
        _reach_no_files(stranger)
    bearer = {"Authorization": f"Bearer {tokens['read']}", **sent}
    with httpx.Client(base_url=base, verify=context, headers=bearer, timeout=60) as monitoring:
        monitoring.event_hooks["request"] = [lambda request: request.extensions.update(sni_hostname=NAME)]
        assert "cairn_requests" in monitoring.get("/metrics").text
        assert monitoring.post("/api/jobs", json={"kind": "compact"}).status_code == 403
        _reach_no_files(monitoring)


def _reach_no_files(client: httpx.Client) -> None:
    """No file is given out, and no folder of the machine is shown or indexed, whatever the role."""
    known = client.get("/api/health").json()
    assert (known["originals"], known["folders"]) == (False, False)
    refused = client.post("/api/export", json={"photos": [0], "form": "zip"}, headers={"X-Cairn": "1"})
    assert refused.status_code == 403 and "--originals" in refused.json()["detail"]
    assert client.get("/api/roots").json().get("roots", []) == []
    job = {"kind": "index", "source": "folder", "root": 0, "path": ""}
    for answer in (
        client.get("/api/roots/0/folders"),
        client.get("/api/roots/0/folders", params={"path": "Pictures"}),
        client.post("/api/jobs", json=job, headers={"X-Cairn": "1"}),
    ):
        assert answer.status_code == (404 if known["role"] == "write" else 403), answer.text
