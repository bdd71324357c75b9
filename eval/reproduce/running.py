"""Running the steps of experiments: one command after another, each once, resumable."""

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.reproduce.measures import look_up
from eval.reproduce.steps import Argument, Data, Here, Made, Printed, Step
from eval.sets.layouts import locate
from index.arrays import load_json, save_bytes, save_json
from index.errors import CairnError
from retrieval.collection.locking import lock_file

RESULT = "result.json"
"""Output of a step, in its folder: its existence marks the step as done."""

COMMAND = "command.txt"
"""The command line of a step, in its folder."""

LOCK = "lock"
"""Lock in a step's folder while its command runs, also held by the command, which may outlive a killed run."""

Runner = Callable[[Sequence[str]], str]
"""Runs `cairn` with arguments and returns its standard output; raises CairnError if it fails."""


@dataclass(frozen=True)
class Standing:
    """Progress of a run, as reported before each step."""

    done: int
    of: int
    title: str
    hours: float  # approximate time of this step
    hours_left: float  # approximate remaining time, including this step


@dataclass
class Bench:
    """Folders of a run."""

    root: Path  # folder of the published sets
    folder: Path  # folder of the steps' folders
    workers: int = 0  # most processes of a command; 0: one a core
    run: Runner = field(default_factory=lambda: run_command)  # see `Runner`
    # show missing sets as if they were below the root, for a dry run
    planning: bool = False
    _data: dict[str, str] = field(default_factory=dict, init=False)

    def check_data(self, names: Iterable[str]) -> None:
        """Raise a CairnError if one of some sets is not below the root."""
        for name in names:
            self._place(Data(name))

    def home(self, step: Step) -> Path:
        """The folder of a step."""
        return self.folder / step.key

    def arguments(self, step: Step) -> list[str]:
        """The arguments of a step's command, with all placeholders resolved."""
        filled = [self._fill(one, step) for one in step.arguments]
        return [*filled, "--json"] if step.prints else filled

    def command(self, step: Step) -> str:
        """The command line of a step, for typing."""
        return shlex.join(["cairn", *self.arguments(step)])

    def result(self, step: Step) -> dict[str, Any] | None:
        """Output of a step; None if it was not run, or was run on data elsewhere."""
        path = self.home(step) / RESULT
        if not path.is_file():
            return None
        stored = load_json(path)
        whole = isinstance(stored, dict) and isinstance(stored.get("printed"), dict)
        return stored if whole and stored.get("command") == self.command(step) else None

    def _fill(self, argument: Argument, step: Step) -> str:
        if isinstance(argument, Here):
            return str(self.home(step) / argument.name)
        if isinstance(argument, Made):
            return str(self.home(argument.step) / argument.name)
        if isinstance(argument, Printed):
            before = self.result(argument.step)
            # Until that step has run, the command line has a placeholder.
            number = f"<{argument.step.title}>" if before is None else look_up(before["printed"], argument.path)
            return f"{argument.prefix}{number}"
        return self._place(argument) if isinstance(argument, Data) else argument

    def _place(self, data: Data) -> str:
        key = f"{data.name}/{data.part}"
        if key not in self._data:
            try:
                located = locate(data.name, self.root)
            except CairnError:
                if not self.planning:
                    raise
                return str(
                    self.root if data.part == "root" else self.root / data.name / data.part.replace("folder", "")
                )
            if data.part == "root":
                self._data[key] = str(self.root)
            elif data.part == "gt":
                if located.ground_truth is None:
                    raise CairnError(f"{data.name} has no ground truth.")
                self._data[key] = str(located.ground_truth)
            else:
                photos = os.path.commonpath([one.parent for one in located.images]) if data.part == "images" else ""
                self._data[key] = photos or str(located.folder)
        return self._data[key]


def run_steps(
    bench: Bench,
    steps: Sequence[Step],
    tell: Callable[[Standing], None] = lambda standing: None,
    done: Callable[[Step, Mapping[str, Any]], None] = lambda step, result: None,
) -> dict[str, dict[str, Any]]:
    """Run missing steps, each after its dependencies; return ``printed``, ``seconds`` and ``command`` by key. If a
    command fails, finished steps are kept. `steps`: in topological order, as from `Experiment.steps`.
    """
    results = {step.key: bench.result(step) for step in steps}
    waiting = [step for step in steps if results[step.key] is None]
    slowness = _Slowness()
    for number, step in enumerate(waiting):
        left = slowness.hours(step.hours for step in waiting[number:])
        tell(Standing(len(steps) - len(waiting) + number, len(steps), step.title, slowness.hours([step.hours]), left))
        results[step.key] = _run(bench, step)
        slowness.take(step.hours, results[step.key]["seconds"])  # type: ignore[index]
        done(step, results[step.key])  # type: ignore[arg-type]
    return {key: result for key, result in results.items() if result is not None}


def printed(results: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the output of the steps, by key."""
    return {key: result["printed"] for key, result in results.items()}


class _Slowness:
    """Ratio of measured to expected times of steps on this machine."""

    def __init__(self) -> None:
        self._expected = self._taken = 0.0

    def take(self, hours: float, seconds: float) -> None:
        self._expected += hours
        self._taken += seconds / 3600

    def hours(self, expected: Iterable[float]) -> float:
        """Expected time of steps; that of the plan until a tenth of an hour has been measured."""
        known = self._expected > 0 and self._taken > 0.1
        return sum(expected) * (self._taken / self._expected if known else 1.0)


def _run(bench: Bench, step: Step) -> dict[str, Any]:
    home = bench.home(step)
    home.mkdir(parents=True, exist_ok=True)
    refusal = f"{step.title}: another process is running this in {home}. Wait until it has ended, or stop it."
    with lock_file(home / LOCK, refusal, inherited=True):
        return bench.result(step) or _run_locked(bench, step)


def _run_locked(bench: Bench, step: Step) -> dict[str, Any]:
    home, command = bench.home(step), bench.command(step)
    save_bytes(home / COMMAND, f"{command}\n".encode())
    began = time.perf_counter()
    try:
        text = bench.run(_with_workers(bench.arguments(step), bench.workers))
    except CairnError as error:
        raise CairnError(f"{step.title}: {error} The command was: {command}") from error
    result = {
        "command": command,
        "seconds": round(time.perf_counter() - began, 3),
        "printed": _read(text, step) if step.prints else {},
    }
    save_json(home / RESULT, result)
    return result


def _with_workers(arguments: list[str], workers: int) -> list[str]:
    """Add the number of processes if a command takes it; results do not depend on it."""
    takes = (arguments[0] in {"learn", "mine"} and arguments[1] != "embedding") or (
        arguments[0] == "evaluate" and arguments[1] in _SEARCHES
    )
    return [*arguments, "--workers", str(workers)] if workers and takes else arguments


_SEARCHES = {"oxford5k", "paris6k", "oxford105k", "paris106k", "roxford5k", "rparis6k", "roxford1m", "rparis1m"}


def _read(text: str, step: Step) -> dict[str, Any]:
    try:
        contents = json.loads(text)
    except ValueError:
        contents = None
    if not isinstance(contents, dict):
        raise CairnError(f"{step.title}: the command printed no JSON object, but {text[:80]!r}.")
    return contents


def run_command(arguments: Sequence[str]) -> str:
    """Run `cairn` as a subprocess, with progress on standard error; see `Runner`."""
    where = importlib.util.find_spec("cairn")
    assert where is not None
    assert where.origin is not None
    with subprocess.Popen(
        [sys.executable, where.origin, *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        close_fds=False,  # the command inherits the lock of its step
    ) as process:
        try:
            text, _ = process.communicate()
        except BaseException:
            process.terminate()  # Ctrl-C has reached it already: it saves its work
            process.wait()
            raise
    if process.returncode == 0 or (process.returncode == 1 and text.strip()):
        return text
    raise CairnError(_sentence(text) or f"the command ended with exit code {process.returncode}.")


def _sentence(text: str) -> str | None:
    """The error message of a command with --json."""
    try:
        contents = json.loads(text.strip().splitlines()[-1])
        return str(contents["error"])
    except (ValueError, LookupError, TypeError):
        return None
