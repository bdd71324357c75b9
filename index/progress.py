"""How far a long task is, as every package tells it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]
"""To be called with the name of a step, how much of it is done, and how much there is."""
Step = Callable[[int, int], None]
"""The same within one step: how much is done, and how much there is."""


class Timed:
    """A report with the seconds that each step took."""

    seconds: dict[str, float]

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the time of a block to a step."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - start
