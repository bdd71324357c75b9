"""IIPImage, an image server that libraries run, behind nginx, with a line between the two that can be cut."""

import getpass
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PIL import Image

from tests.support.live import until

PROGRAM = Path("/usr/lib/iipimage-server/iipsrv.fcgi")

needs_iip = pytest.mark.skipif(
    not PROGRAM.exists() or shutil.which("nginx") is None, reason="there is no iipsrv, or no nginx"
)

_NGINX = """daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1; events {{}}
user {user};
http {{
    log_format asked "$request_uri $status";
    access_log {folder}/asked.log asked;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/www;
        location /iiif/ {{
            fastcgi_pass 127.0.0.1:{line};
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param HTTP_HOST $http_host;
        }}
    }}
}}
"""


@dataclass
class IipServer:
    """A folder of pictures that are served."""

    address: str
    folder: Path
    cuts: list[int] = field(default_factory=list)  # bytes after which the next connections to iipsrv end

    def add(self, name: str, picture: Image.Image) -> None:
        """Serve a picture, as JPEG 2000 without loss."""
        picture.save(self.folder / "images" / f"{name}.jp2", tile_size=(128, 128), num_resolutions=4)

    def book(self, names: Sequence[str]) -> str:
        """Serve a manifest of pictures; its address. The pictures have no address but that of the Image API."""
        items = []
        for number, name in enumerate(names):
            service = {"@id": f"{self.address}/iiif/{name}.jp2", "@type": "ImageService2", "profile": "level1"}
            body = {"id": "urn:x", "type": "Image", "service": [service]}
            note = {"type": "Annotation", "motivation": "painting", "body": body}
            page = {"id": f"urn:page:{number}", "type": "Canvas", "label": {"none": [name]}}
            items.append(page | {"items": [{"type": "AnnotationPage", "items": [note]}]})
        manifest = {"type": "Manifest", "id": f"{self.address}/book.json", "label": {"none": ["Book"]}, "items": items}
        (self.folder / "www" / "book.json").write_text(json.dumps(manifest))
        return f"{self.address}/book.json"

    def asked(self) -> list[str]:
        """What was asked for since this was called last, but for robots.txt: paths and statuses."""
        log = self.folder / "asked.log"
        lines = [line for line in log.read_text().splitlines() if not line.startswith("/robots.txt ")]
        os.truncate(log, 0)
        return lines


@contextmanager
def serve_iip(folder: Path, largest: int) -> Iterator[IipServer]:
    """Serve pictures of at most so many pixels a side."""
    for one in ("images", "www"):
        (folder / one).mkdir()
    with ExitStack() as stack:
        program, port = (_free() for _ in range(2))
        line = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server = IipServer(f"http://127.0.0.1:{port}", folder)
        threading.Thread(target=_relay, args=(line, program, server.cuts), daemon=True).start()
        config = {"folder": folder, "user": getpass.getuser(), "port": port, "line": line.getsockname()[1]}
        (folder / "nginx.conf").write_text(_NGINX.format(**config))
        reported = {"FILESYSTEM_PREFIX": f"{folder}/images/", "URI_MAP": "iiif=>IIIF", "MAX_CVT": str(largest)}
        commands = [
            [str(PROGRAM), "--bind", f"127.0.0.1:{program}"],
            ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")],
        ]
        for command in commands:
            process = subprocess.Popen(
                command, env=os.environ | reported, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
        until(lambda: _is_open(program) and _is_open(port))
        yield server


def _free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _is_open(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def _relay(line: socket.socket, port: int, cuts: list[int]) -> None:
    """Lead connections on to a port of this machine, and end some."""

    def pump(source: socket.socket, target: socket.socket, most: float) -> None:
        with suppress(OSError):
            while most > 0 and (piece := source.recv(int(min(most, 1 << 16)))):
                target.sendall(piece)
                most -= len(piece)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    with suppress(OSError):
        while True:
            near, _ = line.accept()
            far = socket.create_connection(("127.0.0.1", port))
            most = cuts.pop(0) if cuts else float("inf")
            for ends in ((near, far, float("inf")), (far, near, most)):
                threading.Thread(target=pump, args=ends, daemon=True).start()
