"""Rows of the catalogue that were listed a moment ago: the thumbnails of a page are asked for right after it."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from retrieval.library.photos import PhotoRow

SECONDS = 10.0
"""Seconds for which a row is cached: a removed photo is not shown for longer."""

MOST = 2_000


class RecentRows:
    """A few rows by their numbers, each for a few seconds. Several threads may use it at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rows: OrderedDict[int, tuple[float, PhotoRow]] = OrderedDict()

    def remember(self, rows: Iterable[PhotoRow]) -> None:
        """Cache rows; the oldest ones are dropped if there are too many."""
        until = self._clock() + SECONDS
        for row in rows:
            self._rows.pop(row.number, None)
            self._rows[row.number] = until, row
        while len(self._rows) > MOST:
            try:
                self._rows.popitem(last=False)
            except KeyError:  # another thread has taken the last one
                break

    def recall(self, number: int) -> PhotoRow | None:
        """Return a row that is not too old."""
        until, row = self._rows.get(number, (0.0, None))
        return row if row is not None and self._clock() < until else None
