"""Plans of experiments: tables, curves and pictures made from steps."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from eval.reproduce.measures import Listed, Mean, Measure, Spread
from eval.reproduce.steps import Step, in_order, with_seed


@dataclass(frozen=True)
class Cell:
    """One number of a table, ours and the published one."""

    # place in the paper
    row: str
    column: str
    ours: Measure | None = None  # None for published methods that are not implemented here
    published: float | None = None  # None if nothing was published
    detail: Measure | None = None  # a number shown with ours, such as the dimensions of the descriptor
    published_detail: float | None = None  # the same for the published one
    spread: Measure | None = None  # standard deviation of ours over several runs
    published_spread: float | None = None  # the published one


@dataclass(frozen=True)
class Table:
    """A table: cells of one unit; rows and columns follow from their order."""

    title: str
    unit: str
    cells: tuple[Cell, ...]
    digits: int = 2
    better: str = "lower"  # or "higher"; "" if neither is better

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
    """A line of a plot, of points measured one by one, or of a printed list."""

    label: str  # label in the legend
    points: tuple[tuple[float | Measure, Measure], ...] = ()  # x and y
    listed: Listed | None = None  # a list of points instead
    published: tuple[tuple[float, float], ...] = ()  # published points, as far as they can be read off
    # height of a dashed horizontal line instead of points, in the colour of the previous line
    level: Measure | None = None

    @property
    def steps(self) -> list[Step]:
        """The steps whose output it needs."""
        steps = [step for x, y in self.points for one in (x, y) if isinstance(one, Measure) for step in one.steps]
        steps += [self.listed.step] if self.listed is not None else []
        return steps + (self.level.steps if self.level is not None else [])


@dataclass(frozen=True)
class Plot:
    """Curves over one x axis."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False


@dataclass(frozen=True)
class Drawing:
    """A picture drawn by a step."""

    title: str
    step: Step
    name: str  # of the file in the step's folder


Part: TypeAlias = Table | Plot | Drawing


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper."""

    name: str  # ``paper/table1``
    title: str  # its title
    source: str  # publication
    parts: tuple[Part, ...]  # parts of the page
    # differences from the paper, and choices that the paper leaves open
    differs: tuple[str, ...]
    notes: tuple[str, ...] = ()  # further notes for comparing

    @cached_property
    def steps(self) -> list[Step]:
        """All steps, each after its dependencies."""
        return in_order(self._ends())

    @property
    def data(self) -> list[str]:
        """The published sets that it needs."""
        return list(dict.fromkeys(name for step in self.steps for name in step.data))

    @property
    def hours(self) -> float:
        """Approximate time alone on two cores."""
        return math.fsum(step.hours for step in self.steps)

    def _ends(self) -> Iterator[Step]:
        for part in self.parts:
            if isinstance(part, Drawing):
                yield part.step
            elif isinstance(part, Plot):
                for series in part.series:
                    yield from series.steps
            else:
                for cell in part.cells:
                    for measure in (cell.ours, cell.detail, cell.spread):
                        yield from measure.steps if measure is not None else []


def repeated(experiment: Experiment, runs: int) -> Experiment:
    """The experiment with mean and spread over several seeds in its tables; plots are of the first run."""
    if runs == 1:
        return experiment
    parts = [
        replace(part, cells=tuple(_repeated(cell, runs) for cell in part.cells)) if isinstance(part, Table) else part
        for part in experiment.parts
    ]
    return replace(experiment, parts=tuple(parts))


def _repeated(cell: Cell, runs: int) -> Cell:
    if cell.ours is None:
        return cell
    of_runs = tuple(_seeded(cell.ours, seed) for seed in range(runs))
    if len({tuple(step.key for step in one.steps) for one in of_runs}) == 1:
        return cell  # nothing in it is random
    spread = Spread(of_runs)
    if isinstance(cell.spread, Spread):  # an experiment with its own runs: over all of them
        spread = Spread(tuple(part for seed in range(runs) for part in _seeded(cell.spread, seed).parts))
    return replace(cell, ours=Mean(of_runs), spread=spread)


_Part = TypeVar("_Part")


def _seeded(of: _Part, seed: int) -> _Part:
    """Return a measure, or a part of one, with the steps of another seed."""
    changed: Any = of
    if isinstance(of, Step):
        changed = with_seed(of, seed)
    elif isinstance(of, tuple):
        changed = tuple(_seeded(one, seed) for one in of)
    elif is_dataclass(of) and not isinstance(of, type):
        changed = replace(of, **{one.name: _seeded(getattr(of, one.name), seed) for one in fields(of)})
    return changed  # type: ignore[no-any-return]
