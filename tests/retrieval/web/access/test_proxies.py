"""The configurations of nginx and Caddy in the documentation, run as they stand there before a real server."""

import getpass
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from retrieval.web.access.options import AccessOptions
from tests.conftest import Indexed
from tests.retrieval.web.access.conftest import ANNA, hidden, make_app
from tests.retrieval.web.test_serve import serving
from tests.support.live import listening
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


def _nginx(folder: Path, port: int, server: str, heading: str = "nginx") -> list[str]:
    """Write its files; give its command line."""
    site = _replaced(
        _block(heading),
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


def _folder_with_certificate(tmp_path: Path) -> Path:
    folder = tmp_path / "proxy"
    folder.mkdir()
    files = ["-keyout", "key.pem", "-out", "certificate.pem"]
    named = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, *named]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    return folder


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
    folder = _folder_with_certificate(tmp_path)
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


class _Provider(BaseHTTPRequestHandler):
    """Stands for oauth2-proxy: who has the cookie `who` has signed in by that name."""

    def do_GET(self) -> None:
        who = re.fullmatch(r"who=(\w+)", self.headers.get("Cookie", ""))
        if self.path != "/oauth2/auth":
            self.send_response(403)
            self.end_headers()
            self.wfile.write(b"Sign in with your provider")
            return
        self.send_response(202 if who else 401)
        if who:
            self.send_header("X-Auth-Request-User", who[1])
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_an_identity_provider_signs_people_in_through_nginx_and_a_visitor_cannot(
    password_file: Path, tmp_path: Path
) -> None:
    """The configuration of the documentation with a provider that is a stand-in, before a live server."""
    if shutil.which("nginx") is None or shutil.which("openssl") is None:
        pytest.skip("there is no nginx, or no openssl")
    folder = _folder_with_certificate(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    access = AccessOptions(password_file=password_file, forwarded_from=("127.0.0.1",), user_header="X-Remote-User")
    heading = "Sign-in by an identity provider"
    with HTTPServer(("127.0.0.1", 0), _Provider) as provider, listening(make_app(access)) as address:
        threading.Thread(target=provider.serve_forever, daemon=True).start()
        command = _nginx(folder, port, address.removeprefix("http://"), heading)
        file = folder / "nginx.conf"
        file.write_text(file.read_text().replace("127.0.0.1:4180", f"127.0.0.1:{provider.server_port}"))
        context = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
        with (
            _proxy(command, port),
            httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=context, headers={"Host": NAME}) as client,
        ):
            client.event_hooks["request"] = [lambda request: request.extensions.update(sni_hostname=NAME)]
            stranger = client.get("/api/things/1")
            assert stranger.status_code == 403 and "your provider" in stranger.text
            ben, carl = {"Cookie": "who=ben"}, {"Cookie": "who=carl"}
            assert client.get("/api/things/1", headers=ben).json() == {"user": "ben", "role": "read"}
            assert client.get("/", headers=ben).json()["scheme"] == "https"
            refused = client.get("/api/things/1", headers=carl)
            assert refused.status_code == 403 and "not known here" in refused.json()["detail"]
            # What a visitor says of who they are is replaced, whatever way it is written.
            for name in ("X-Remote-User", "x-remote-user", "X_Remote_User"):
                forged = ben | {name: "anna"}
                assert client.get("/api/things/1", headers=forged).json()["user"] == "ben", name
                assert "your provider" in client.get("/api/things/1", headers={name: "anna"}).text
            sent = client.get("/api/things/1", headers={"X-Auth-Request-User": "anna", "Connection": "X-Remote-User"})
            assert "your provider" in sent.text
            assert client.get("/oauth2/auth", headers=ben).status_code == 404  # it is for nginx alone
        provider.shutdown()
    # Past the proxy, from another address of this machine, the header is nothing.
    with listening(make_app(access)) as address:
        transport = httpx.HTTPTransport(local_address="127.0.0.2")
        with httpx.Client(base_url=address, transport=transport) as past:
            assert past.get("/api/things/1", headers={"X-Remote-User": "anna"}).status_code == 401
