"""Process of a job: runs `cairn COMMAND…` with the lowest priority, and ends with its server.

``python -m retrieval.jobs.child SERVER COMMAND…``, where SERVER is the process number of the server.
"""

import contextlib
import ctypes
import os
import runpy
import signal
import sys

from index.parallel import end_with_parent
from retrieval.library.progress import progress_descriptor

NICE = 15
"""Priority of jobs below other processes, so that pages and searches stay fast."""

_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG: which signal a process gets when its parent dies."""


def main() -> None:
    """Run the command that the arguments name."""
    end_with_parent(int(sys.argv[1]))
    _wake_with_parent()
    progress_descriptor()
    # A server that a script has begun in the background ignores Ctrl-C, and its children would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(NICE)
    sys.argv = ["cairn", *sys.argv[2:]]
    runpy.run_module("cairn", run_name="__main__", alter_sys=True)


def _wake_with_parent() -> None:
    """Be woken if the server dies while this process is suspended; the system only wakes those already suspended."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGCONT)


if __name__ == "__main__":
    main()
