"""Server processes, forked from one with all modules loaded, which would take each of them seconds."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from types import SimpleNamespace
from typing import Any

import pytest

import retrieval.web.jobs  # noqa: F401 (what most of them load)
from retrieval.library.compiled import compile_all
from retrieval.web.pool import worker_source
from tests.support.processes import clean_forks

compile_all()


class _Context:
    """Replacement for `multiprocessing.get_context("spawn")`."""

    Pipe = staticmethod(multiprocessing.Pipe)

    def __init__(self) -> None:
        # Not when a process is started: that happens in a thread, and this changes state of all threads for a moment.
        self._forks = clean_forks(__name__)

    def Process(self, target: Callable[..., None], args: tuple[Any, ...], daemon: bool) -> BaseProcess:
        """A fork with the environment of a new process."""
        return self._forks.Process(target=_run, args=(dict(os.environ), target, args), daemon=daemon)


def _run(environment: dict[str, str], target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    target(*arguments)


@contextmanager
def started_at_once() -> Iterator[None]:
    """Make servers of this process fork their processes within a block, instead of spawning them."""
    with pytest.MonkeyPatch.context() as patch:
        context = _Context()
        forking = SimpleNamespace(get_context=lambda method: context, Pipe=multiprocessing.Pipe)
        patch.setattr(worker_source, "multiprocessing", forking)
        yield
