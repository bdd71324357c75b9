"""Jobs that go wrong on purpose, for the tests of the workers that do them."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from index.errors import CairnError
from retrieval.web.workers import Answer, Refused


class OddJobs:
    """Does what it is told; stands for `SearchJobs` too, where the number of the photo tells."""

    def __init__(self, *_: Any) -> None:
        self.done = 0

    def is_outdated(self) -> bool:
        return False

    def renew(self) -> None:
        pass

    def let_go(self) -> None:
        pass

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        if job == "search":
            job = ("sleep", "die", "crash", "hoard", "echo")[request["queries"][0]["photo"]]
        self.done += 1
        match job:
            case "sleep":
                time.sleep(request.get("seconds", 1000))
            case "nap":
                time.sleep(2.5)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "crash":
                raise ZeroDivisionError("a defect\x1b[31m")
            case "hoard":
                return {"bytes": len(bytearray(8 << 30))}, b""
            case "refuse":
                raise Refused("No.", "photo")
            case "regret":
                raise CairnError("This cannot be.")
            case "collection":
                return {"pid": os.getpid(), "done": self.done}, b""
        if "queries" in request:
            empty = {"query": "", "box": None, "boxes": [], "engine": "", "expand": "", "similarity": None}
            rest = {"filter": None, "passing": None, "turned": False, "sure": False, "results": [], "seconds": {}}
            return {**empty, **rest}, b""
        return {"request": request, "pid": os.getpid(), "done": self.done}, b"body"


class Reader(OddJobs):
    """Opens a file, and 64 MiB of memory; says beside it which processes did."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.renew()

    def is_outdated(self) -> bool:
        return self.path.read_text() != self.text

    def renew(self) -> None:
        self.text = self.path.read_text()
        self.memory = bytes([1]) * (64 << 20)
        with self.path.with_suffix(".log").open("a") as log:
            log.write(f"{self.text} {os.getpid()}\n")
        if self.text == "damaged":
            raise CairnError("It is damaged.")

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        done, body = super().do(job, request)
        return done | {"text": self.text, "sum": sum(self.memory[:: 1 << 16])}, body


class SlowToStart(OddJobs):
    """Sleeps or dies where others open a collection."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.do(what, {})
