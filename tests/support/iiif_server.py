"""A local IIIF server: pictures made by Python, manifests of both versions, and failures."""

import io
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image

from tests.support.file_server import answering

SERVICE = re.compile(r"/image/([^/]+)/(?:info\.json|full/([^/]+)/0/default\.jpg)")


@dataclass
class Reply:
    """A response, and its peculiarities."""

    content: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None  # number of bytes after which the connection ends


class IiifServer:
    """Serves configured responses, and records requests."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.files: dict[str, Reply] = {}
        self.pictures: dict[str, Image.Image] = {}
        self.info: dict[str, dict[str, Any]] = {}  # further fields of a picture's info.json
        self.first: dict[str, list[Reply]] = {}  # responses that come first, by path
        self.requested: list[str] = []  # except robots.txt
        self.robots = 0  # number of requests of robots.txt
        self.agents: Counter[str | None] = Counter()
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    def add_json(self, path: str, document: Any, **headers: str) -> str:
        """Serve JSON at a path; return its address."""
        self.files[path] = Reply(json.dumps(document).encode(), headers=headers)
        return self.address + path

    def add_picture(self, name: str, picture: bytes, width: int, height: int) -> None:
        """Serve an encoded picture in one size, like a static server."""
        context = "http://iiif.io/api/image/3/context.json"
        info = {"@context": context, "profile": "level0", "width": width, "height": height}
        self.add_json(f"/image/{name}/info.json", info)
        self.files[f"/image/{name}/full/max/0/default.jpg"] = Reply(picture, headers={"Content-Type": "image/jpeg"})

    def service(self, name: str, version: int = 3) -> dict[str, Any]:
        """The Image API service of a picture, for a manifest."""
        address = f"{self.address}/image/{name}"
        if version == 3:
            return {"id": address, "type": "ImageService3", "profile": "level2"}
        profile = "http://iiif.io/api/image/2/level2.json"
        return {"@context": "http://iiif.io/api/image/2/context.json", "@id": address, "profile": profile}

    def canvas(self, name: str, label: str) -> dict[str, Any]:
        """A canvas of the Presentation API 3 with one picture."""
        service = self.service(name)
        body = {"id": f"{service['id']}/full/max/0/default.jpg", "type": "Image", "service": [service]}
        note = {"type": "Annotation", "motivation": "painting", "body": body}
        pages = [{"type": "AnnotationPage", "items": [note]}]
        return {"id": f"{self.address}/canvas/{name}", "type": "Canvas", "label": {"none": [label]}, "items": pages}

    def manifest(self, path: str, names: dict[str, str], **more: Any) -> dict[str, Any]:
        """A manifest of the Presentation API 3, with a label for each picture."""
        return {
            "@context": "http://iiif.io/api/presentation/3/context.json",
            "id": self.address + path,
            "type": "Manifest",
            "label": {"de": ["Narrenschiff"], "en": ["Ship of Fools"]},
            "items": [self.canvas(name, label) for name, label in names.items()],
            **more,
        }

    def count(self, part: str) -> int:
        """Number of requests of paths that contain a part."""
        return sum(part in path for path in self.requested)

    def reply(self, path: str, headers: Any) -> Reply:
        """Answer a request."""
        if self.first.get(path):
            return self.first[path].pop(0)
        if path in self.files:
            known = self.files[path]
            tag = known.headers.get("ETag")
            return Reply(status=304) if tag and headers.get("If-None-Match") == tag else known
        match = SERVICE.fullmatch(path)
        picture = self.pictures.get(match[1]) if match else None
        if match is None or picture is None:
            return Reply(status=404)
        if match[2] is None:
            context = "http://iiif.io/api/image/3/context.json"
            info = {"@context": context, "width": picture.width, "height": picture.height, "profile": "level2"}
            return Reply(json.dumps({**info, **self.info.get(match[1], {})}).encode())
        if match[2] != "max":
            width = int(match[2].split(",")[0])
            picture = picture.resize((width, round(picture.height * width / picture.width)))
        encoded = io.BytesIO()
        picture.save(encoded, "JPEG")
        return Reply(encoded.getvalue(), headers={"Content-Type": "image/jpeg"})


@contextmanager
def serve_iiif(port: int = 0) -> Iterator[IiifServer]:
    """Serve from threads of this process, at a free port or at `port`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/robots.txt":
                served.robots += 1
                self._send(served.files.get(self.path, Reply(status=404)))
                return
            with served.lock:
                served.requested.append(self.path)
                served.agents[self.headers.get("User-Agent")] += 1
                served.at_once += 1
                served.most_at_once = max(served.most_at_once, served.at_once)
            try:
                reply = served.reply(self.path, self.headers)
            finally:
                with served.lock:
                    served.at_once -= 1
            self._send(reply)

        def _send(self, reply: Reply) -> None:
            try:
                head = [f"HTTP/1.1 {reply.status} Status"]
                headers = {"Content-Length": str(len(reply.content)), **reply.headers}
                head += [f"{name}: {value}" for name, value in headers.items()]
                whole = reply.content if reply.cut is None else reply.content[: reply.cut]
                self.wfile.write("\r\n".join([*head, "", ""]).encode("latin-1") + whole)
                self.close_connection = reply.cut is not None
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    served = IiifServer(server.server_port)
    with answering(server):
        yield served
