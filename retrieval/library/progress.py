"""Progress of long commands: bars on a terminal, and elsewhere a line every half minute.

If the environment variable `VARIABLE` names a file descriptor, another program reads progress from it: one JSON object
per line, ``{"step", "title", "done", "of", "unit"}``, whatever else the command shows.

A step's title may end with its unit, as in ``Features (photos)``. Counts of the unit ``(%)`` mean nothing to a reader,
and are shown as a percentage.
"""

import contextlib
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from index.errors import CairnError
from index.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console


EVERY = 30.0
"""Seconds between the lines of a command that has no terminal."""

VARIABLE = "CAIRN_PROGRESS"
"""Variable of the environment with the file descriptor to which progress is written for another program."""

OFTEN = 0.25
"""Seconds between two lines of one step for another program; its last one is written in any case."""

RECENT = 120.0
"""Seconds over which the rate of a step is measured; work of an earlier run is counted at once and is left out."""

INDEXING = {
    "fetch": "Fetching (pages)",
    "look": "Looking (files)",
    "shots": "Finding shots (films)",
    "extract": "Features (photos)",
    "vocabulary": "Vocabulary (%)",
    "index": "Indexing (photos)",
    "describe": "Global descriptors (photos)",
}
"""Titles of the steps of indexing."""

_WORKING = "Working"  # shown between steps

Telling = bool | Progress | None
"""Receiver of progress: none (None, False), bars (True), or a function."""


@contextmanager
def telling(progress: Telling, titles: Mapping[str, str]) -> Iterator[Progress]:
    """Yield the callable (step, done, total) that a long call reports its progress to.

    `progress` is True for bars on a terminal or in a notebook, a callable, or None or False for no report. `titles` has
    the title of each step.
    """
    if callable(progress):
        yield progress
        return
    if progress not in (None, True, False):
        raise CairnError(f"progress is None, True, or a function of (step, done, of), not {progress!r}.")
    with progress_bars(not progress, titles) as tell:
        yield tell


@contextmanager
def progress_bars(quiet: bool, titles: Mapping[str, str]) -> Iterator[Progress]:
    """Show the progress of a command on standard error: bars on a terminal, else a line every half minute.

    If another program reads the progress, it is written only for that program, whether `quiet` or not.
    """
    descriptor = progress_descriptor()
    if descriptor is not None:
        records = ProgressWriter(titles, descriptor)
        try:
            yield records.tell
        finally:
            records.end()
        return
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield silent
    elif console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal):
        with bars(console, titles) as tell:
            yield tell
    else:
        with lines(titles) as tell:
            yield tell


class Pace:
    """Rate of a step."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reports: deque[tuple[float, int]] = deque()  # when, and how far: of the recent past

    def tell(self, done: int) -> None:
        """Record the progress of the step."""
        now = self._clock()
        if self._reports and done < self._reports[-1][1]:  # it has begun again
            self._reports.clear()
        if len(self._reports) > 1 and now - self._reports[-2][0] < RECENT / 100:
            self._reports.pop()
        self._reports.append((now, done))
        while len(self._reports) > 1 and now - self._reports[1][0] > RECENT:
            self._reports.popleft()

    def rate(self) -> float:
        """Amount done per second; 0.0 if not known yet."""
        if not self._reports:
            return 0.0
        began, first = self._reports[0]
        passed = self._clock() - began
        return (self._reports[-1][1] - first) / passed if passed > 0 else 0.0

    def describe(self, left: int, unit: str) -> str:
        """Describe the rate and the remaining time; empty if not known yet."""
        rate = self.rate()
        if rate <= 0:
            return ""
        speed = "" if unit == "%" else f"{rate:,.{1 if rate < 100 else 0}f}{f' {unit}' if unit else ''}/s, "
        return f"{speed}{_duration(left / rate)} left"


@contextmanager
def bars(console: "Console", titles: Mapping[str, str]) -> Iterator[Progress]:
    """Show a bar for each step on a terminal, and the running step; they vanish at the end."""
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[count]}", markup=False),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Bars(*columns, console=console, transient=True) as progress:
        tasks: dict[str, Any] = {}
        paces: dict[str, Pace] = {}
        under_way: set[str] = set()
        # Shown below the steps whenever all of them are done, as work goes on.
        working: list[Any] = [progress.add_task(_WORKING, total=None, count="")]

        def tell(step: str, done: int, of: int) -> None:
            title, unit = _title(titles.get(step, step))
            (under_way.discard if done >= of else under_way.add)(step)
            if working and (under_way or step not in tasks):
                progress.remove_task(working.pop())
            pace = paces.setdefault(step, Pace())
            pace.tell(done)
            amount: dict[str, Any] = {"total": of, "completed": done, "count": _count(done, of, unit, pace.rate())}
            if step in tasks:
                progress.update(tasks[step], **amount)
            else:
                tasks[step] = progress.add_task(title, **amount)
            if not working and not under_way:
                working.append(progress.add_task(_WORKING, total=None, count=""))

        yield tell


@contextmanager
def lines(titles: Mapping[str, str], write: Callable[[str], None] | None = None) -> Iterator[Progress]:
    """Print every `EVERY` seconds how far the running step is; nothing for a shorter command."""
    reports = LastReports(titles)
    stop = threading.Event()
    speaker = threading.Thread(target=reports.speak, args=(stop.wait, write or _write), daemon=True)
    speaker.start()
    try:
        yield reports.tell
    finally:
        stop.set()
        speaker.join()


class LastReports:
    """The last report of each step of a command."""

    def __init__(self, titles: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._titles = titles
        self._clock = clock
        self._began = clock()
        self._last: tuple[str, int, int] | None = None
        self._paces: dict[str, Pace] = {}

    def tell(self, step: str, done: int, of: int) -> None:
        """Record the progress of a step."""
        self._last = (step, done, of)
        self._paces.setdefault(step, Pace(self._clock)).tell(done)

    def line(self) -> str:
        """Describe in a line the running step, its progress, and the time since the start."""
        since = _duration(self._clock() - self._began)
        if self._last is None:
            return f"cairn: {_WORKING}, {since} so far."
        step, done, of = self._last
        title, unit = _title(self._titles.get(step, step))
        if done >= of:
            return f"cairn: {title} done; still working, {since} so far."
        share = f"{100 * done // of}%"
        amount = share if unit == "%" else f"{done:,} of {of:,}{f' {unit}' if unit else ''} ({share})"
        pace = self._paces[step].describe(of - done, unit)
        return f"cairn: {title}: {amount}, {f'{pace}, ' if pace else ''}{since} so far."

    def speak(self, wait: Callable[[float], bool], write: Callable[[str], None]) -> None:
        """Write a line every `EVERY` seconds, until `wait` returns True."""
        while not wait(EVERY):
            write(self.line())


class ProgressWriter:
    """Writes progress for another program to a descriptor, perhaps closed: one JSON object per line."""

    def __init__(self, titles: Mapping[str, str], descriptor: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._titles, self._descriptor, self._clock = titles, descriptor, clock
        self._written: dict[str, float] = {}  # when, by step
        self._waiting: dict[str, tuple[int, int]] = {}  # steps whose last report is not yet written

    def tell(self, step: str, done: int, of: int) -> None:
        """Write the progress of a step, unless that was done a moment ago."""
        if done < of and self._clock() - self._written.get(step, -OFTEN) < OFTEN:
            self._waiting[step] = done, of
            return
        self._write(step, done, of)

    def end(self) -> None:
        """Write the last report of each step."""
        for step, (done, of) in list(self._waiting.items()):
            self._write(step, done, of)

    def _write(self, step: str, done: int, of: int) -> None:
        title, unit = _title(self._titles.get(step, step))
        self._written[step] = self._clock()
        self._waiting.pop(step, None)
        line = json.dumps({"step": step, "title": title, "done": int(done), "of": int(of), "unit": unit})
        with contextlib.suppress(OSError):
            os.write(self._descriptor, line.encode() + b"\n")


@cache
def progress_descriptor() -> int | None:
    """The file descriptor that another program reads progress from, or None.

    The variable is taken out of the environment: processes that this one starts have other files under that number.
    """
    text = os.environ.pop(VARIABLE, "")
    if not (text.isascii() and text.isdecimal()):
        return None
    with contextlib.suppress(OSError):
        os.set_inheritable(int(text), False)
    return int(text)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _write(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _title(title: str) -> tuple[str, str]:
    """Split a title into the name of a step and its unit, which may be empty."""
    name, separator, unit = title.partition(" (")
    return (name, unit.removesuffix(")")) if separator and title.endswith(")") else (title, "")


def _count(done: int, of: int, unit: str, rate: float) -> str:
    if unit == "%":
        return f"{100 * done // max(1, of)}%"
    speed = f", {rate:,.1f}/s" if done < of and rate > 0 else ""
    return f"{done:,}/{of:,}{f' {unit}' if unit else ''}{speed}"
