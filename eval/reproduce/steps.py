"""Steps: command lines of `cairn` that build on each other. The folder of a step's output is named by a hash of its
command line and dependencies: so experiments share common steps, and a changed step starts from scratch.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeAlias

from index.arrays import fingerprint
from index.errors import CairnError

VERSION = 1
"""Version of steps; raise it when the same command line gives another result."""


@dataclass(frozen=True)
class Data:
    """A place in a published set: its folder, its photos (``images``), or its ground truth (``gt``)."""

    name: str
    part: str = "folder"


@dataclass(frozen=True)
class Here:
    """A file or folder in a step's own folder."""

    name: str


@dataclass(frozen=True)
class Made:
    """A file or folder of another step."""

    step: "Step"
    name: str


@dataclass(frozen=True)
class Printed:
    """A number printed by another step, with a prefix such as ``sift=``."""

    step: "Step"
    path: tuple[str, ...]
    prefix: str = ""


Argument: TypeAlias = str | Data | Here | Made | Printed


@dataclass(frozen=True)
class Step:
    """One command line."""

    title: str  # title for people
    arguments: tuple[Argument, ...]  # arguments after ``cairn``; ``--json`` and ``--workers`` are added later
    hours: float = 0.0  # approximate time on two cores
    prints: bool = True  # whether it prints a JSON object; commands of pictures do not
    needs: tuple[str, ...] = ()  # published sets that the command itself finds below the root

    @cached_property
    def key(self) -> str:
        """Name of the step's folder: a hash of everything that its output depends on, except the data."""
        return fingerprint({}, {"version": VERSION, "arguments": [_plain(one) for one in self.arguments]})[:16]

    @property
    def before(self) -> list["Step"]:
        """Its dependencies."""
        return [one.step for one in self.arguments if isinstance(one, Made | Printed)]

    @property
    def data(self) -> list[str]:
        """The published sets that it reads directly."""
        return [*(one.name for one in self.arguments if isinstance(one, Data)), *self.needs]

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and other.key == self.key


def _plain(argument: Argument) -> str | list[str]:
    if isinstance(argument, Data):
        return ["data", argument.name, argument.part]
    if isinstance(argument, Here):
        return ["here", argument.name]
    if isinstance(argument, Made):
        return ["made", argument.step.key, argument.name]
    if isinstance(argument, Printed):
        return ["told", argument.step.key, argument.prefix, *argument.path]
    return argument


_RANDOM = {"learn", "mine", "compress"}
"""Commands whose result depends on a seed; so do evaluations that train a vocabulary."""


@cache
def with_seed(step: Step, seed: int) -> Step:
    """The step and its dependencies with another seed (0: unchanged); the same step if nothing in it is random."""
    arguments = [
        replace(one, step=with_seed(one.step, seed)) if isinstance(one, Made | Printed) else one
        for one in step.arguments
    ]
    if seed and "--seed" in arguments:
        place = arguments.index("--seed") + 1
        arguments[place] = str(int(str(arguments[place])) + _APART * seed)
    elif seed and (arguments[0] in _RANDOM or "--words" in arguments):
        arguments += ["--seed", str(_APART * seed)]
    return replace(step, arguments=tuple(arguments))


_APART = 1_000  # distance of the seeds of two runs


def in_order(ends: Iterable[Step]) -> list[Step]:
    """Return some steps and their dependencies in topological order."""
    ordered: dict[str, Step] = {}
    for step in ends:
        _add(step, ordered)
    return list(ordered.values())


def _add(step: Step, ordered: dict[str, Step]) -> None:
    """Append a step after its dependencies, unless present."""
    if step.key in ordered:
        return
    for before in step.before:
        _add(before, ordered)
    ordered[step.key] = step


@dataclass(frozen=True)
class Scale:
    """Scale of an experiment: 1 is the published size."""

    share: float = 1.0  # above 0, not above 1

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise CairnError(f"The scale must lie above 0 and not above 1, and is {self.share:g}.")

    @property
    def whole(self) -> bool:
        """Whether the scale is as published."""
        return self.share == 1

    def count(self, number: int, least: int) -> str:
        """Scale a number for an argument, but not below `least`."""
        return str(min(number, max(least, round(number * self.share))))

    def hours(self, hours: float) -> float:
        """Scale an approximate time."""
        return hours * self.share
