"""Processes of a test, forked from a clean one: pytest has threads, and a fork of it may wait for one for ever."""

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
    """Give a context whose processes are forked from one that has no threads, as the system can do that.

    Parameters
    ----------
    module : str
        What that process loads when it begins, so that its forks need not.
    """
    context = multiprocessing.get_context("forkserver")
    # The first call decides for all: servers take longest to load.
    context.set_forkserver_preload([_SERVERS, module])
    # Its socket is not to lie where a test has its temporary files.
    with mock.patch.dict(os.environ, _ONE_THREAD), mock.patch.object(tempfile, "tempdir", None):
        forkserver.ensure_running()
    return context


def in_child(module: str, work: Callable[[], T]) -> T:
    """Call a function in a process of its own, and give what it returns.

    Parameters
    ----------
    module : str
        As of `clean_forks`.
    work : callable
        Which can be pickled: a function of a module, or a `functools.partial` of one.
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


def _tell(work: Callable[[], object], told: Connection) -> None:
    try:
        told.send((work(), ""))
    except BaseException:
        told.send((None, traceback.format_exc()))
