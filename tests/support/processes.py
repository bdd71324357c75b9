"""Test processes, forked from a clean one: pytest has threads, so a fork of it may deadlock."""

import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import TypeVar
from unittest import mock

T = TypeVar("T")

_SERVERS = "tests.support.server_processes"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def clean_forks(module: str) -> ForkServerContext:
    """Return a context whose processes are forked from a process without threads, where supported.

    Parameters
    ----------
    module : str
        Module loaded by that process at the start, so that its forks need not.
    """
    context = multiprocessing.get_context("forkserver")
    # The first call decides for all: servers take the longest to load.
    context.set_forkserver_preload([_SERVERS, module])
    # Its socket must not be in a test's temporary folder.
    with mock.patch.dict(os.environ, _ONE_THREAD), mock.patch.object(tempfile, "tempdir", None):
        forkserver.ensure_running()
    return context


def in_child(module: str, work: Callable[[], T]) -> T:
    """Call a function in a subprocess, and return its result.

    Parameters
    ----------
    module : str
        As of `clean_forks`.
    work : callable
        A picklable function of a module, or a `functools.partial` of one.
    """
    context = clean_forks(module)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(work, theirs))
    process.start()
    theirs.close()
    try:
        result, error = ours.recv()
    finally:
        ours.close()
        process.join()
    if error:
        raise RuntimeError(error)
    done: T = result
    return done


def _tell(work: Callable[[], object], reported: Connection) -> None:
    try:
        reported.send((work(), ""))
    except BaseException:
        reported.send((None, traceback.format_exc()))
