"""Ctrl-C and the processes that a command starts: it reaches all of a terminal's, and one of them answers it."""

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def without_interrupt() -> Iterator[None]:
    """Let the processes that are started within a block not feel Ctrl-C: their parent ends them.

    Python would write a trace for each that is still being started.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # Of this thread alone; a process has the mask of the thread that starts it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
