"""What an experiment is: command lines that build on each other, and the tables, curves and pictures of their output.

A step is one command line of `cairn`, as anybody could type it. What it makes lies in a folder of its own, whose name
follows from the command line and from the steps it builds on: so experiments share what they have in common, and a
changed experiment does not take what another made.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from index.arrays import fingerprint
from index.errors import CairnError

VERSION = 1
"""Of what steps mean; to be raised when the same command line comes to make something else."""

Results: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The JSON object that each step printed, by the step's key."""


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


Argument: TypeAlias = str | Data | Here | Made


@dataclass(frozen=True)
class Step:
    """One command line.

    Attributes
    ----------
    title : str
        What is done, for people.
    arguments : tuple of Argument
        What follows ``cairn``; ``--json`` and ``--quiet`` are added where it is run.
    hours : float
        About how long it takes on two cores.
    prints : bool
        Whether it prints a JSON object; a picture's command prints none.
    needs : tuple of str
        Published sets that it finds below the root by itself.
    """

    title: str
    arguments: tuple[Argument, ...]
    hours: float = 0.0
    prints: bool = True
    needs: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """What the step's folder is called: a hash of all that its output follows from, but for the data."""
        return fingerprint({}, {"version": VERSION, "arguments": [_plain(one) for one in self.arguments]})[:16]

    @property
    def before(self) -> list["Step"]:
        """The steps that it builds on."""
        return [one.step for one in self.arguments if isinstance(one, Made)]

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
    return argument


class Measure:
    """A number that follows from what steps printed."""

    @property
    def steps(self) -> list[Step]:
        """The steps whose output it needs."""
        raise NotImplementedError

    def of(self, results: Results) -> float | None:
        """Give the number; None where a step printed none."""
        raise NotImplementedError


@dataclass(frozen=True)
class Value(Measure):
    """A number in the JSON object of one step, such as ``("validation", "fpr95")``, times a factor."""

    step: Step
    path: tuple[str | int, ...]
    factor: float = 1.0

    @property
    def steps(self) -> list[Step]:
        """See `Measure`."""
        return [self.step]

    def of(self, results: Results) -> float | None:
        """See `Measure`."""
        found = look_up(results[self.step.key], self.path)
        return None if found is None else self.factor * float(found)


@dataclass(frozen=True)
class _OfSeveral(Measure):
    """What follows from several numbers."""

    parts: tuple[Measure, ...]

    @property
    def steps(self) -> list[Step]:
        """See `Measure`."""
        return [step for part in self.parts for step in part.steps]

    def _known(self, results: Results) -> list[float]:
        """The numbers that are not None."""
        return [one for one in (part.of(results) for part in self.parts) if one is not None]


@dataclass(frozen=True)
class Mean(_OfSeveral):
    """The mean of numbers; None where one of them is None."""

    def of(self, results: Results) -> float | None:
        """See `Measure`."""
        known = self._known(results)
        return math.fsum(known) / len(known) if known and len(known) == len(self.parts) else None


@dataclass(frozen=True)
class Least(_OfSeveral):
    """The smallest of numbers, those left out that are None: what a paper calls the best of several methods."""

    def of(self, results: Results) -> float | None:
        """See `Measure`."""
        return min(self._known(results), default=None)


@dataclass(frozen=True)
class Spread(_OfSeveral):
    """The standard deviation of numbers over several runs, with one less than their number below the sum."""

    def of(self, results: Results) -> float | None:
        """See `Measure`."""
        known = self._known(results)
        return statistics.stdev(known) if len(known) > 1 else None


@dataclass(frozen=True)
class MeanOfListed(Measure):
    """The mean of a number over the objects of a list that one step printed, of those whose name begins so."""

    step: Step
    path: tuple[str | int, ...]
    value: str
    prefix: str = ""

    @property
    def steps(self) -> list[Step]:
        """See `Measure`."""
        return [self.step]

    def of(self, results: Results) -> float | None:
        """See `Measure`."""
        rows = look_up(results[self.step.key], self.path) or []
        found = [float(row[self.value]) for row in rows if str(row.get("name", "")).startswith(self.prefix)]
        return statistics.fmean(found) if found else None


@dataclass(frozen=True)
class Gain(Measure):
    """By how many percent one number is above another."""

    part: Measure
    base: Measure

    @property
    def steps(self) -> list[Step]:
        """See `Measure`."""
        return [*self.part.steps, *self.base.steps]

    def of(self, results: Results) -> float | None:
        """See `Measure`."""
        part, base = self.part.of(results), self.base.of(results)
        return None if part is None or not base else 100 * (part - base) / base


def look_up(printed: Any, path: Sequence[str | int]) -> Any:
    """Follow a path into a JSON object; None where it does not go on.

    Raises
    ------
    CairnError
        A key of an object is missing: the command does not print what the experiment reads.
    """
    for name in path:
        if printed is None:
            return None
        try:
            printed = printed[name]
        except (KeyError, IndexError, TypeError):
            raise CairnError(f"The command printed nothing called {'.'.join(map(str, path))!r}.") from None
    return printed


@dataclass(frozen=True)
class Cell:
    """One number of a table, ours and the published one.

    Attributes
    ----------
    row, column : str
        Where it stands.
    ours : Measure or None
        None for what others published of methods that are not built here.
    published : float or None
        None where nothing was published.
    detail : Measure or None
        A number to be told with ours, such as the dimensions of the descriptor.
    published_detail : float or None
        The same of the published one.
    """

    row: str
    column: str
    ours: Measure | None = None
    published: float | None = None
    detail: Measure | None = None
    published_detail: float | None = None


@dataclass(frozen=True)
class Table:
    """A table: its cells, of which rows and columns follow in their order."""

    title: str
    unit: str
    cells: tuple[Cell, ...]
    digits: int = 2
    better: str = "lower"  # or "higher"

    @property
    def rows(self) -> list[str]:
        """Names of the rows."""
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(dict.fromkeys(cell.column for cell in self.cells))


@dataclass(frozen=True)
class Series:
    """A line of a plot, of points that are measured one by one; or of a list that one step printed.

    Attributes
    ----------
    label : str
        What the legend calls it.
    points : tuple of (float or Measure, Measure)
        x and y.
    listed : Listed or None
        A list of points instead.
    published : tuple of (float, float)
        The points that were published, as far as they can be read.
    level : Measure or None
        A dashed level line of this height, instead of points, in the colour of the line before it.
    """

    label: str
    points: tuple[tuple[float | Measure, Measure], ...] = ()
    listed: "Listed | None" = None
    published: tuple[tuple[float, float], ...] = ()
    level: Measure | None = None

    @property
    def steps(self) -> list[Step]:
        """The steps whose output it needs."""
        found = [step for x, y in self.points for one in (x, y) if isinstance(one, Measure) for step in one.steps]
        found += [self.listed.step] if self.listed is not None else []
        return found + (self.level.steps if self.level is not None else [])


@dataclass(frozen=True)
class Listed:
    """Points that one step printed as a list of objects, by the keys of x and y, such as ``test.notredame``.

    Those for which ``where`` holds.
    """

    step: Step
    path: tuple[str | int, ...]
    x: str  # "" for their numbers in the list, from 0
    y: str
    factor: float = 1.0  # of y
    where: tuple[tuple[str, Any], ...] = ()

    def of(self, results: Results) -> list[tuple[float, float]]:
        """Give the points, in the order of x."""
        rows = look_up(results[self.step.key], self.path) or []
        taken = [row for row in rows if all(row.get(name) == value for name, value in self.where)]
        numbered = enumerate(taken)
        points = [
            (look_up(row, self.x.split(".")) if self.x else at, look_up(row, self.y.split("."))) for at, row in numbered
        ]
        return sorted((float(x), self.factor * float(y)) for x, y in points if x is not None and y is not None)


@dataclass(frozen=True)
class Plot:
    """Curves over one x axis."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture that a step draws."""

    title: str
    step: Step
    name: str  # of the file in the step's folder


Part: TypeAlias = Table | Plot | Picture


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper.

    Attributes
    ----------
    name : str
        ``paper/table1``.
    title : str
        What it shows.
    source : str
        Where it was published.
    parts : tuple of Part
        What the page shows.
    notes : tuple of str
        What a reader must know to compare: choices that the paper leaves open, what differs.
    """

    name: str
    title: str
    source: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def steps(self) -> list[Step]:
        """All steps, each after those it builds on."""
        ordered: dict[str, Step] = {}
        for step in self._ends():
            _add(step, ordered)
        return list(ordered.values())

    @property
    def data(self) -> list[str]:
        """The published sets that it needs."""
        return list(dict.fromkeys(name for step in self.steps for name in step.data))

    @property
    def hours(self) -> float:
        """About how long it takes on two cores, by itself."""
        return math.fsum(step.hours for step in self.steps)

    def _ends(self) -> Iterator[Step]:
        for part in self.parts:
            if isinstance(part, Picture):
                yield part.step
            elif isinstance(part, Plot):
                for series in part.series:
                    yield from series.steps
            else:
                for cell in part.cells:
                    for measure in (cell.ours, cell.detail):
                        yield from measure.steps if measure is not None else []


def _add(step: Step, ordered: dict[str, Step]) -> None:
    """Put a step behind all it builds on, unless it is there."""
    if step.key in ordered:
        return
    for before in step.before:
        _add(before, ordered)
    ordered[step.key] = step


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run: 1 is all of it, as published.

    Attributes
    ----------
    share : float
        Above 0, not above 1.
    """

    share: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise CairnError(f"The scale must lie above 0 and not above 1, and is {self.share:g}.")

    @property
    def whole(self) -> bool:
        """Whether all is run as published."""
        return self.share == 1

    def count(self, number: int, least: int) -> str:
        """Give a number of things as an argument, smaller at a smaller scale, but not below the least."""
        return str(min(number, max(least, round(number * self.share))))

    def hours(self, hours: float) -> float:
        """Give about how long it takes what takes so long at full scale."""
        return hours * self.share
