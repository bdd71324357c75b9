"""Jobs that fail on purpose, for tests of workers."""

import contextlib
import errno
import os
import signal
import stat
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

from index.errors import CairnError
from retrieval.web.pool.workers import Answer, Refused, WorkerJobs


class OddJobs(WorkerJobs):
    """Does what the job says; also stands for `SearchJobs`, where the number of the photo decides."""

    def __init__(self, *_: Any) -> None:
        self.done = 0

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        if job == "search":
            job = ("sleep", "die", "crash", "hoard", "echo")[request["queries"][0]["photo"]]
        self.done += 1
        match job:
            case "sleep":
                time.sleep(request.get("seconds", 1000))
            case "nap":
                time.sleep(request.get("seconds", 2.5))
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "crash":
                raise ZeroDivisionError("a defect\x1b[31m")
            case "hoard":
                return {"bytes": len(bytearray(8 << 30))}, b""
            case "say":  # not an answer
                _say(request["text"], request.get("length"))
                if request.get("children"):  # one that holds the pipe open
                    subprocess.Popen(["sleep", "8"], pass_fds=_sockets())
                time.sleep(request.get("seconds", 1000))
            case "refuse":
                raise Refused("No.", "photo")
            case "regret":
                raise CairnError("This cannot be.")
            case "log":
                with Path(request["log"]).open("a") as log:
                    log.write(f"{request['name']}\n")
            case "collection":
                return {"pid": os.getpid(), "done": self.done}, b""
        if "queries" in request:
            empty = {
                "query": "",
                "box": None,
                "boxes": [],
                "engine": "",
                "expand": "",
                "augmented": False,
                "similarity": None,
            }
            rest = {"filter": None, "passing": None, "turned": False, "sure": False, "results": [], "seconds": {}}
            rest["global_descriptors"] = "none"
            return {**empty, **rest}, b""
        return {"request": request, "pid": os.getpid(), "done": self.done}, b"body"


class Reader(OddJobs):
    """Opens a file, and 64 MiB of memory; records the processes in a file next to it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.text: str | None = None  # None if it could not be opened
        self.renew()

    def is_outdated(self) -> bool:
        return self.path.read_text() != self.text

    def renew(self) -> None:
        self.text = None
        text = self.path.read_text()
        self.memory = bytes([1]) * (64 << 20)
        with self.path.with_suffix(".log").open("a") as log:
            log.write(f"{text} {os.getpid()}\n")
        if text == "slow":
            time.sleep(60)
        if text == "damaged":
            raise CairnError("It is damaged.")
        self.text = text

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        done, body = super().do(job, request)
        return done | {"text": self.text, "sum": sum(self.memory[:: 1 << 16])}, body


class Unforkable(Reader):
    """Reads a file, which may say that no process can be forked."""

    def let_go(self) -> None:
        os.fork = _no_fork if self.path.read_text() == "full" else _FORK

    def is_outdated(self) -> bool:
        return False


_FORK = os.fork


def _no_fork() -> int:
    raise OSError(errno.EAGAIN, "Resource temporarily unavailable")


def _say(text: str, length: int | None) -> None:
    """Send a message to the server, bypassing `work`; `length`: the size to announce, if not that of the text."""
    size = len(text) if length is None else length
    message = (struct.pack("!i", size) if size < 1 << 31 else struct.pack("!iQ", -1, size)) + text.encode()
    for handle in _sockets():
        with contextlib.suppress(OSError):
            os.write(handle, message)


def _sockets() -> list[int]:
    found = []
    for handle in range(3, 256):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(handle).st_mode):
                found.append(handle)
    return found


class SlowToStart(OddJobs):
    """Sleeps or dies on opening a collection."""

    def __init__(self, what: str, seconds: float = 2.5) -> None:
        super().__init__()
        self.do(what, {"seconds": 1000 if what == "sleep" else seconds})
