"""Local file servers that misbehave like real ones, over HTTP and FTP."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any


@dataclass
class Served:
    """A file, and options of serving it."""

    content: bytes
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)  # byte counts after which the connection ends, once each
    refusals: list[int] = field(default_factory=list)  # status of the first answers
    state: str | None = '"one"'
    length: bool = True  # whether Content-Length is sent
    shift: int = 0  # offset of a range's start from the requested one


class FileServer:
    """Serves files by path, and records requests."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, Served] = {}
        self.requested: list[tuple[str, str | None]] = []  # path and Range

    def add(self, path: str, content: bytes, **how: Any) -> str:
        """Serve a file; its address."""
        self.files[path] = Served(content, **how)
        return f"{self.address}/{path}"


@contextmanager
def answering(server: HTTPServer) -> Iterator[None]:
    """Run a server in a thread, and end it."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serve_files() -> Iterator[FileServer]:
    """Serve files over HTTP from a thread."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            byte_range = self.headers.get("Range")
            served.requested.append((path, byte_range))
            file = served.files.get(path)
            if file is None or file.refusals:
                return self._refuse(file.refusals.pop(0) if file else 404)
            content, start = file.content, 0
            fresh = self.headers.get("If-Range") in (None, file.state)
            if byte_range and file.ranges and fresh:
                start = int(re.fullmatch(r"bytes=(\d+)-", byte_range)[1])  # type: ignore[index]
                if start >= len(content):
                    return self._refuse(416, f"bytes */{len(content)}")
                start -= file.shift
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            if file.state:
                self.send_header("ETag", file.state)
            if file.length:
                self.send_header("Content-Length", str(len(content) - start))
            self.send_header("Connection", "close")
            self.end_headers()
            until = file.cuts.pop(0) if file.cuts else len(content)
            self.wfile.write(content[start : max(start, until)])
            self.close_connection = True

        def _refuse(self, status: int, there: str | None = None) -> None:
            self.send_response(status)
            if there:
                self.send_header("Content-Range", there)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = FileServer(f"http://127.0.0.1:{server.server_port}")
    with answering(server):
        yield served


@contextmanager
def serve_ftp(content: bytes, cuts: list[int]) -> Iterator[tuple[str, list[str]]]:
    """Serve one file over FTP under any path; yields the server's address and the received commands.

    The data connections end after the byte counts of `cuts`, once each.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    commands: list[str] = []

    def converse(control: socket.socket) -> None:
        data = socket.create_server(("127.0.0.1", 0))
        rest = 0
        with control, data, control.makefile("rw", newline="\r\n") as lines:

            def say(line: str) -> None:
                lines.write(f"{line}\n")
                lines.flush()

            say("220 here")
            for line in lines:
                commands.append(line.strip())
                word, _, rest_of = line.strip().partition(" ")
                if word == "SIZE":
                    say(f"213 {len(content)}" if "missing" not in rest_of else "550 no such file")
                elif word == "PASV":
                    port = data.getsockname()[1]
                    say(f"227 (127,0,0,1,{port // 256},{port % 256})")
                elif word == "EPSV":
                    say(f"229 (|||{data.getsockname()[1]}|)")
                elif word == "REST":
                    rest = int(rest_of)
                    say("350 go on")
                elif word == "RETR":
                    say("150 coming")
                    until = cuts.pop(0) if cuts else len(content)
                    with data.accept()[0] as sending:
                        sending.sendall(content[rest:until])
                    say("226 done" if until == len(content) else "426 cut")
                else:
                    say("221 bye" if word == "QUIT" else "230 well" if word in ("USER", "PASS") else "200 well")
                    if word == "QUIT":
                        return

    def accept() -> None:
        while True:
            try:
                control, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=converse, args=(control,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"ftp://127.0.0.1:{listening.getsockname()[1]}", commands
    finally:
        listening.close()
