"""Reports of progress of long tasks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]
"""Called with the name of a step, the amount done, and the total."""
Step = Callable[[int, int], None]
"""Called within one step with the amount done and the total."""


def silent(*_: object) -> None:
    """Report no progress."""


class Timed:
    """Work with the time of each step in seconds."""

    seconds: dict[str, float]

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the time of a block to a step."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - start
