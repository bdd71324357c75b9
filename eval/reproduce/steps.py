"""Steps: command lines of `cairn` that build on each other. What one makes lies in a folder whose name follows from the
command line and the steps before it: so experiments share what they have in common, and a changed one starts afresh.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeAlias

from index.arrays import fingerprint
from index.errors import CairnError

VERSION = 1
"""Of what steps mean; to be raised when the same command line comes to make something else."""


@dataclass(frozen=True)
class Data:
    """A place in a published set: its folder, its photos (``images``), or its ground truth (``gt``)."""

    name: str
    part: str = "folder"


@dataclass(frozen=True)
class Here:
    """A file or folder that a step makes, in its own folder."""

    name: str


@dataclass(frozen=True)
class Made:
    """A file or folder that another step made."""

    step: "Step"
    name: str


@dataclass(frozen=True)
class Told:
    """A number that another step printed, behind a prefix such as ``sift=``."""

    step: "Step"
    path: tuple[str, ...]
    prefix: str = ""


Argument: TypeAlias = str | Data | Here | Made | Told


@dataclass(frozen=True)
class Step:
    """One command line."""

    title: str  # what is done, for people
    arguments: tuple[Argument, ...]  # what follows ``cairn``; ``--json`` and ``--workers`` are added where it is run
    hours: float = 0.0  # about how long it takes on two cores
    prints: bool = True  # whether it prints a JSON object; a picture's command prints none
    needs: tuple[str, ...] = ()  # published sets that it finds below the root by itself

    @cached_property
    def key(self) -> str:
        """What the step's folder is called: a hash of all that its output follows from, but for the data."""
        return fingerprint({}, {"version": VERSION, "arguments": [_plain(one) for one in self.arguments]})[:16]

    @property
    def before(self) -> list["Step"]:
        """The steps that it builds on."""
        return [one.step for one in self.arguments if isinstance(one, Made | Told)]

    @property
    def data(self) -> list[str]:
        """The published sets that it reads itself."""
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
    if isinstance(argument, Told):
        return ["told", argument.step.key, argument.prefix, *argument.path]
    return argument


_RANDOM = {"learn", "mine", "compress"}
"""Commands whose outcome a seed decides; beside them, evaluations that make a vocabulary."""


@cache
def with_seed(step: Step, seed: int) -> Step:
    """The step, and all that it builds on, with another seed (0: as it is); the same step where nothing in it is
    random.
    """
    arguments = [
        replace(one, step=with_seed(one.step, seed)) if isinstance(one, Made | Told) else one for one in step.arguments
    ]
    if seed and "--seed" in arguments:
        place = arguments.index("--seed") + 1
        arguments[place] = str(int(str(arguments[place])) + _APART * seed)
    elif seed and (arguments[0] in _RANDOM or "--words" in arguments):
        arguments += ["--seed", str(_APART * seed)]
    return replace(step, arguments=tuple(arguments))


_APART = 1_000  # seeds of two runs of an experiment are that far apart


def in_order(ends: Iterable[Step]) -> list[Step]:
    """Return some steps and all that they build on, each once and after those it builds on."""
    ordered: dict[str, Step] = {}
    for step in ends:
        _add(step, ordered)
    return list(ordered.values())


def _add(step: Step, ordered: dict[str, Step]) -> None:
    """Put a step behind all it builds on, unless it is there."""
    if step.key in ordered:
        return
    for before in step.before:
        _add(before, ordered)
    ordered[step.key] = step


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run: 1 is all of it, as published."""

    share: float = 1.0  # above 0, not above 1

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise CairnError(f"The scale must lie above 0 and not above 1, and is {self.share:g}.")

    @property
    def whole(self) -> bool:
        """Whether all is run as published."""
        return self.share == 1

    def count(self, number: int, least: int) -> str:
        """Return a number of things as an argument, smaller at a smaller scale, but not below the least."""
        return str(min(number, max(least, round(number * self.share))))

    def hours(self, hours: float) -> float:
        """Return about how long it takes what takes so long at full scale."""
        return hours * self.share
