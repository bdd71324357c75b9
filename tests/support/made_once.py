"""Expensive fixtures made once in a test run, even with several processes."""

import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], T]) -> T:
    """Let the first process make something in a folder; the others wait, and read its result.

    Parameters
    ----------
    factory : pytest.TempPathFactory
        Of the process; the folders of all processes of a run have a common parent.
    name : str
        Name of the fixture and folder.
    make : callable
        Called with the empty folder; returns a picklable result.
    """
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / f"once-{name}"
    with (shared / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = shared / f"once-{name}.pickle"
        if not result.is_file():
            folder.mkdir()
            value = make(folder)
            result.write_bytes(pickle.dumps(value))
            return value
        made: T = pickle.loads(result.read_bytes())
        return made
