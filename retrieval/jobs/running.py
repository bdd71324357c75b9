"""The process of one job: start, pause, end, and its output."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError

from index.parallel import cores
from retrieval.jobs.store import read_result
from retrieval.library.progress import VARIABLE, Pace

CAN_PAUSE = hasattr(signal, "SIGSTOP")
"""Whether this system lets processes be paused."""

MOST_LISTED = 1000
"""Entries of a list in a result that are kept."""

_ROOT = Path(__file__).resolve().parents[2]  # folder of Cairn's packages
_MOST_BYTES = 64 << 20  # of a command's output that are read
_FINE = 100_000  # resolution of reported progress
_BEGUN = 0.03  # least share of all work before a pace is reported: the first steps are not typical
_LONGEST = 2000  # characters of a complaint
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Reached:
    """How far a job is."""

    step: str = ""
    title: str = ""  # of the step, in English
    done: int = 0
    of: int = 0
    unit: str = ""


_REACHED = TypeAdapter(Reached)


class Child:
    """A command of Cairn in a separate process, with its own workers.

    They are one process group, so that they are paused and killed together, and are not affected by Ctrl-C in the
    server's terminal. The group stays in the session of the server: if that dies, the system wakes paused processes,
    and ends them. Others notice that their parent is gone.

    `reported` is called, in another thread, when the command reports progress. `parts` are its steps in order,
    and their approximate parts of its time.
    """

    def __init__(
        self, command: Sequence[str], reported: Callable[[], None], parts: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.reached = Reached()
        self._parts, self._fractions = parts, dict[str, float]()
        self._reported = reported
        self._pace = Pace()
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        environment = dict(os.environ)
        for name in _THREADS:
            environment.setdefault(name, str(threads()))
        environment["PYTHONPATH"] = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        arguments = [sys.executable, "-P", "-m", "retrieval.jobs.child", str(os.getpid()), *command]
        files: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": self._out, "stderr": self._err}
        if os.name != "posix":
            self._process = subprocess.Popen(arguments, env=environment, **files)
            return
        reading, writing = os.pipe()
        environment[VARIABLE] = str(writing)
        try:
            self._process = subprocess.Popen(arguments, env=environment, pass_fds=(writing,), process_group=0, **files)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        threading.Thread(target=self._listen, args=(os.fdopen(reading, "rb"),), daemon=True).start()

    @property
    def pid(self) -> int:
        """The number of the process, and of its group."""
        return self._process.pid

    @property
    def share(self) -> float | None:
        """Part of its total work done, 0 to 1; None if its steps are unknown. It never decreases."""
        if not self._parts:
            return None
        steps = list(self._parts)
        begun = max((steps.index(step) for step in self._fractions if step in self._parts), default=0)
        # A step that was passed over had nothing to do.
        done = (self._parts[step] * self._fractions.get(step, float(place < begun)) for place, step in enumerate(steps))
        return sum(done) / sum(self._parts.values())

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all is done, or the step if not all steps are known, by how fast it got on lately."""
        rate = self._pace.rate()
        share = self.share
        left = self.reached.of - self.reached.done if share is None else _FINE * (1 - share)
        return left / rate if rate > 0 and left > 0 else None

    def pause(self) -> None:
        """Suspend the process and its workers; they keep their memory and their locks."""
        self._signal_group("SIGSTOP")

    def go_on(self) -> None:
        """Continue them."""
        self._pace = Pace()  # the time that it was paused is no part of its pace
        self._signal_group("SIGCONT")

    def interrupt(self) -> None:
        """Have the command end in good order, as Ctrl-C does: it ends its workers itself."""
        if os.name == "posix":
            self._signal("kill", "SIGINT")
        else:
            self._process.terminate()
        self._signal_group("SIGCONT")  # one that is paused would not hear of it

    def kill(self) -> None:
        """End the process and its workers at once."""
        if os.name == "posix":
            self._signal_group("SIGKILL")
        else:
            self._process.kill()

    def wait(self) -> int:
        """Wait until the process and all its workers have ended; return its exit code, -N after the signal N."""
        if os.name == "posix" and hasattr(os, "waitid"):
            # Its number is not reused before it is waited for, so the group is still this one.
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._signal_group("SIGKILL")
        return self._process.wait()

    def result(self) -> dict[str, Any] | None:
        """Output of the command with ``--json``, once it has ended; None if that is no object."""
        parsed = read_result(_text(self._out))
        return None if parsed is None else shortened(parsed)

    def complaint(self) -> str:
        """The last line that the command printed for people, once it has ended."""
        lines = [line.strip() for line in _text(self._err).splitlines() if line.strip()]
        return lines[-1].removeprefix("cairn: ")[:_LONGEST] if lines else ""

    def close(self) -> None:
        """Release the output of the command."""
        self._out.close()
        self._err.close()

    def _signal_group(self, name: str) -> None:
        self._signal("killpg", name)

    def _signal(self, way: str, name: str) -> None:
        # After waiting, its number may be reused by another process. So no other code here may wait for it.
        if hasattr(os, way) and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                getattr(os, way)(self.pid, getattr(signal, name))

    def _listen(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                try:
                    report = _REACHED.validate_json(line)
                except ValidationError:  # cut off, as the process was killed
                    continue
                if report.step != self.reached.step and not self._parts:
                    self._pace = Pace()
                self.reached = report
                self._fractions[report.step] = max(
                    self._fractions.get(report.step, 0.0), report.done / max(1, report.of)
                )
                share = self.share
                if share is None:
                    self._pace.tell(report.done)
                elif share >= _BEGUN:
                    self._pace.tell(int(_FINE * share))
                self._reported()


def threads() -> int:
    """Number of threads of a job: with three or more cores, one is left to the server."""
    return cores() - 1 if cores() > 2 else cores()


def shortened(result: dict[str, Any]) -> dict[str, Any]:
    """Truncate long lists of a result and of objects in it; ``"shortened"`` in each has their original lengths.

    >>> shortened({"names": ["a"] * 5000})["shortened"]
    {'names': 5000}
    """
    result = {name: shortened(value) if isinstance(value, dict) else value for name, value in result.items()}
    long = {name: len(value) for name, value in result.items() if isinstance(value, list) and len(value) > MOST_LISTED}
    if not long:
        return result
    return {**result, **{name: result[name][:MOST_LISTED] for name in long}, "shortened": long}


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_BYTES).decode("utf-8", "replace")
