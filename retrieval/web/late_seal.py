"""Renews the seal of a served collection when writing has paused, so that no request waits for it."""

import threading
import time

from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.collection.sealing import refuse_damaged, seal
from retrieval.web.guard import log

QUIET = 3.0
"""Seconds without a write after which a collection is sealed."""
LONGEST = 60.0
"""Seconds after the first write after which it is sealed in any case."""


class LateSeal:
    """Seals a collection in its own thread, `quiet` seconds after the last write.

    Only the catalogue is read. One that was damaged when the thread began is not sealed, so that `cairn check` finds
    it.
    """

    def __init__(self, collection: Collection, quiet: float = QUIET) -> None:
        self.sealed = 0  # times
        self._collection, self._quiet = collection, quiet
        self._changed = threading.Condition()
        self._first: float | None = None  # time of the first write that is not sealed
        self._last = 0.0
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wrote(self) -> None:
        """Report a write to the catalogue."""
        with self._changed:
            self._last = time.monotonic()
            self._first = self._last if self._first is None else self._first
            self._changed.notify_all()

    def close(self) -> None:
        """Seal what is not sealed yet, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        is_sound = True
        try:
            refuse_damaged(self._collection)
        except (CairnError, OSError) as error:
            is_sound = False
            log.error("%s", " ".join(str(error).split()))
        while self._await_quiet():
            if is_sound:
                self._seal()

    def _await_quiet(self) -> bool:
        """Wait until there is something to seal; False if the thread should end."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._closing or self._first is not None)
                if self._first is None:
                    return False
                left = min(self._last + self._quiet, self._first + LONGEST) - time.monotonic()
                if left <= 0 or self._closing:
                    self._first = None
                    return True
                self._changed.wait(left)

    def _seal(self) -> None:
        try:
            # What searches need of all postings is kept by the commands that change these.
            seal(self._collection, statistics=False)
            self.sealed += 1
        except (CairnError, OSError) as error:  # the next write tries again
            log.error("The collection cannot be sealed: %s", " ".join(str(error).split()))
