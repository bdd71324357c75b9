"""Threads and processes: how many linear algebra takes, and who answers Ctrl-C."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import scipy.linalg  # noqa: F401  it brings a linear algebra of its own, which must be there when threads are counted
from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra on the calling thread within a block.

    Threads that wait for each other cost more than they bring where products take microseconds, and a sum's last bit
    depends on their number; so does a word that hangs on that bit.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield


@contextmanager
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
