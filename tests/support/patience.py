"""How long tests wait: longer where other programs keep the machine busy."""

import contextlib
import os
from pathlib import Path

from index.parallel import cores


def busyness() -> float:
    """How many processes share a core now, or have during the last minute; at least 1."""
    waiting = 0.0
    with contextlib.suppress(OSError, AttributeError):  # there is no such figure elsewhere
        waiting = os.getloadavg()[0]
    with contextlib.suppress(OSError, ValueError, IndexError):  # the mean lags behind
        running = Path("/proc/loadavg").read_text().split()[3]
        waiting = max(waiting, float(running.partition("/")[0]))
    return max(1.0, waiting / cores())


def patience(seconds: float, nice: int = 0) -> float:
    """Seconds to allow for what takes so many at most where nothing else runs.

    For limits whose passing is a failure: ask at the time of the comparison, and wait for a condition wherever there is
    one. A process that is `nice` gets a fifth less of a busy machine for each step, which is next to nothing at last.
    """
    busy = busyness()
    return seconds * busy * (1.25**nice if busy > 1 else 1.0)
