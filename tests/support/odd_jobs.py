"""Jobs that go wrong on purpose, for the tests of the workers that do them."""

import os
import signal
import time
from typing import Any

from index.errors import CairnError
from retrieval.web.workers import Answer, Refused


class OddJobs:
    """Does what it is told; stands for `SearchJobs` too, where the number of the photo tells."""

    def __init__(self, *_: Any) -> None:
        self.done = 0

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        if job == "search":
            job = ("sleep", "die", "crash", "hoard", "echo")[request["queries"][0]["photo"]]
        self.done += 1
        match job:
            case "sleep":
                time.sleep(request.get("seconds", 1000))
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
            return {**empty, "filter": None, "passing": None, "results": [], "seconds": {}}, b""
        return {"request": request, "pid": os.getpid(), "done": self.done}, b"body"


class SlowToStart(OddJobs):
    """Sleeps or dies where others open a collection."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.do(what, {})
