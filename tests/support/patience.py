"""Time limits of tests, longer on a busy machine."""

import contextlib
import os
from pathlib import Path

from index.parallel import cores


def busyness() -> float:
    """Processes per core, now or during the last minute; at least 1."""
    waiting = 0.0
    with contextlib.suppress(OSError, AttributeError):  # not available elsewhere
        waiting = os.getloadavg()[0]
    with contextlib.suppress(OSError, ValueError, IndexError):  # the mean lags
        running = Path("/proc/loadavg").read_text().split()[3]
        waiting = max(waiting, float(running.partition("/")[0]))
    return max(1.0, waiting / cores())


def patience(seconds: float, nice: int = 0) -> float:
    """Scale a time limit for an idle machine to the current load.

    For limits whose excess is a failure: call it at the time of the comparison, and prefer waiting for a condition. A
    `nice` process gets a fifth less of a busy machine for each step.
    """
    busy = busyness()
    return seconds * busy * (1.25**nice if busy > 1 else 1.0)
