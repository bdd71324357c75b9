"""One thread for many small products of matrices: faster than several, and the same to the last bit everywhere."""

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
