"""Clusters for tests: one that runs its tasks here, and schedulers and workers as processes that can be killed."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

DASK = Path(sys.executable).with_name("dask")


class PickledTasks:
    """A cluster that runs each task here, after pickling it."""

    threads = 3
    address = "here"

    def run(
        self,
        tasks: Iterable[Callable[[], Any]],
        *,
        ordered: bool = True,
        batch: int = 1,
        instead: Callable[[Callable[[], Any]], Any] | None = None,
    ) -> Iterator[Any]:
        for task in tasks:
            yield pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(task))()))

    def everywhere(self, function: Callable[..., object], *arguments: object) -> None:
        function(*arguments)


class Machines:
    """A scheduler and workers, each a process; survivors are killed at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def scheduler(self) -> subprocess.Popen[bytes]:
        host, port = self.address.removeprefix("tcp://").split(":")
        return self._start("scheduler", "--host", host, "--port", port, "--no-dashboard")

    def worker(self, **environment: str) -> subprocess.Popen[bytes]:
        return self._start(
            *("worker", self.address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "20"),
            **environment,
        )

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{arguments[0]}-{time.monotonic_ns()}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(DASK), *arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            )
        self.processes.append(process)
        return process
