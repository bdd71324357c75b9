"""The process of one job: begun, paused, ended, and what it says."""

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

_ROOT = Path(__file__).resolve().parents[2]  # where Cairn's packages lie
_MOST_BYTES = 64 << 20  # of what a command prints that are read
_FINE = 100_000  # parts in which the share of all work is told
_BEGUN = 0.03  # of all work that is done before its pace is told: what is begun with says nothing of the rest
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
    """A command of Cairn in a process of its own, with its own workers.

    They are one process group, so that they are paused and killed together, and Ctrl-C in the server's terminal is no
    business of theirs. The group stays in the session of the server: where that dies, the system wakes what was paused,
    and ends it. What is not paused sees for itself that its parent has gone.

    Parameters
    ----------
    command : sequence of str
        Arguments of ``cairn``.
    told : callable
        Is called, in another thread, whenever the command says how far it is.
    parts : mapping of str to float
        Steps of the command in their order, and which part of its time each takes, about; empty: not known.

    Raises
    ------
    OSError
        No process can be begun.
    """

    def __init__(
        self, command: Sequence[str], told: Callable[[], None], parts: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.reached = Reached()
        self._parts, self._fractions = parts, dict[str, float]()
        self._told = told
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
        """How much of all of its work is done, 0 to 1; None if its steps are not known. It never falls."""
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
        """Let the process and its workers stand still; they keep their memory and their locks."""
        self._signal_group("SIGSTOP")

    def go_on(self) -> None:
        """Let them go on."""
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
        """Wait until the process has ended, and no worker of it is left; give its exit code, -N after the signal N."""
        if os.name == "posix" and hasattr(os, "waitid"):
            # Its number is not given to others before it is waited for, so that the group is this one.
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._signal_group("SIGKILL")
        return self._process.wait()

    def result(self) -> dict[str, Any] | None:
        """What the command has printed with ``--json``, once it has ended; None if that is no object."""
        found = read_result(_text(self._out))
        return None if found is None else shortened(found)

    def complaint(self) -> str:
        """The last line that the command printed for people, once it has ended."""
        lines = [line.strip() for line in _text(self._err).splitlines() if line.strip()]
        return lines[-1].removeprefix("cairn: ")[:_LONGEST] if lines else ""

    def close(self) -> None:
        """Let go of what the command printed."""
        self._out.close()
        self._err.close()

    def _signal_group(self, name: str) -> None:
        self._signal("killpg", name)

    def _signal(self, way: str, name: str) -> None:
        # Once it was waited for, its number may be that of another process. Nothing else here may wait for it.
        if hasattr(os, way) and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                getattr(os, way)(self.pid, getattr(signal, name))

    def _listen(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                try:
                    told = _REACHED.validate_json(line)
                except ValidationError:  # cut off, as the process was killed
                    continue
                if told.step != self.reached.step and not self._parts:
                    self._pace = Pace()
                self.reached = told
                self._fractions[told.step] = max(self._fractions.get(told.step, 0.0), told.done / max(1, told.of))
                share = self.share
                if share is None:
                    self._pace.tell(told.done)
                elif share >= _BEGUN:
                    self._pace.tell(int(_FINE * share))
                self._told()


def threads() -> int:
    """How many threads a job computes with: one core is left to the server where there are three or more."""
    return cores() - 1 if cores() > 2 else cores()


def shortened(result: dict[str, Any]) -> dict[str, Any]:
    """Cut long lists of a result and of objects in it off; ``"shortened"`` in each says how long they were.

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
