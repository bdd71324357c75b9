"""Numbers computed from the output of steps."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from eval.reproduce.steps import Step
from index.errors import CairnError

Results: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The JSON object printed by each step, by the step's key."""


class Measure:
    """A number computed from the output of steps."""

    @property
    def steps(self) -> list[Step]:
        """The steps whose output it needs, including those of nested measures."""
        held = [getattr(self, one.name) for one in fields(self)]  # type: ignore[arg-type]
        parts = [part for one in held for part in (one if isinstance(one, tuple) else (one,))]
        return [step for part in parts for step in _steps_of(part)]

    def of(self, results: Results) -> float | None:
        """Return the number; None if a step did not print it."""
        raise NotImplementedError


def _steps_of(part: Any) -> list[Step]:
    return [part] if isinstance(part, Step) else part.steps if isinstance(part, Measure) else []


@dataclass(frozen=True)
class Value(Measure):
    """A number in the JSON object of one step, such as ``("validation", "fpr95")``, times a factor."""

    step: Step
    path: tuple[str | int, ...]
    factor: float = 1.0

    def of(self, results: Results) -> float | None:
        """See `Measure`."""
        number = look_up(results[self.step.key], self.path)
        return None if number is None else self.factor * float(number)


@dataclass(frozen=True)
class _OfSeveral(Measure):
    """A function of those of several numbers that are not None."""

    parts: tuple[Measure, ...]

    def of(self, results: Results) -> float | None:
        return self._from([one for one in (part.of(results) for part in self.parts) if one is not None])

    def _from(self, known: list[float]) -> float | None:
        raise NotImplementedError


@dataclass(frozen=True)
class Mean(_OfSeveral):
    """The mean of numbers; None if one is None."""

    def _from(self, known: list[float]) -> float | None:
        return math.fsum(known) / len(known) if known and len(known) == len(self.parts) else None


@dataclass(frozen=True)
class Least(_OfSeveral):
    """The smallest of numbers, ignoring None: the best of several methods in a paper."""

    def _from(self, known: list[float]) -> float | None:
        return min(known, default=None)


@dataclass(frozen=True)
class Spread(_OfSeveral):
    """The sample standard deviation of numbers over several runs."""

    def _from(self, known: list[float]) -> float | None:
        return statistics.stdev(known) if len(known) > 1 else None


@dataclass(frozen=True)
class OfLeast(Measure):
    """The companion of the smallest number, such as the dimensions of the best of several methods."""

    parts: tuple[Measure, ...]
    companions: tuple[Measure, ...]  # one companion for each number

    def of(self, results: Results) -> float | None:
        """See `Measure`."""
        both = zip((part.of(results) for part in self.parts), self.companions, strict=True)
        known = [(value, one) for value, one in both if value is not None]
        return min(known, key=lambda one: one[0])[1].of(results) if known else None


@dataclass(frozen=True)
class MeanOfListed(Measure):
    """The mean of a number over the objects of a printed list whose name has a prefix."""

    step: Step
    path: tuple[str | int, ...]
    value: str
    prefix: str = ""

    def of(self, results: Results) -> float | None:
        """See `Measure`."""
        rows = look_up(results[self.step.key], self.path) or []
        numbers = [float(row[self.value]) for row in rows if str(row.get("name", "")).startswith(self.prefix)]
        return statistics.fmean(numbers) if numbers else None


@dataclass(frozen=True)
class _OfTwo(Measure):
    """A function of two numbers, if both are known."""

    part: Measure
    base: Measure

    def of(self, results: Results) -> float | None:
        part, base = self.part.of(results), self.base.of(results)
        return None if part is None or base is None else self._from(part, base)

    def _from(self, part: float, base: float) -> float | None:
        raise NotImplementedError


@dataclass(frozen=True)
class PercentAbove(_OfTwo):
    """Difference of two numbers in percent of the second."""

    def _from(self, part: float, base: float) -> float | None:
        return 100 * (part - base) / base if base else None


@dataclass(frozen=True)
class DifferenceOfTwo(_OfTwo):
    """Difference of two numbers, times a factor."""

    factor: float = 1.0

    def _from(self, part: float, base: float) -> float | None:
        return self.factor * (part - base)


@dataclass(frozen=True)
class PerOne(_OfTwo):
    """Ratio of two numbers, such as features per photo."""

    def _from(self, part: float, base: float) -> float | None:
        return part / base if base else None


@dataclass(frozen=True)
class Listed:
    """Points printed by one step as objects, by keys of x and y, such as ``test.notredame``; filtered by ``where``."""

    step: Step
    path: tuple[str | int, ...]
    x: str  # "" for their indices in the list, from 0
    y: str
    factor: float = 1.0  # of y
    where: tuple[tuple[str, Any], ...] = ()

    def of(self, results: Results) -> list[tuple[float, float]]:
        """Return the points, ordered by x."""
        rows = look_up(results[self.step.key], self.path) or []
        selected = [row for row in rows if all(row.get(name) == value for name, value in self.where)]
        numbered = enumerate(selected)
        points = [
            (look_up(row, self.x.split(".")) if self.x else at, look_up(row, self.y.split("."))) for at, row in numbered
        ]
        return sorted((float(x), self.factor * float(y)) for x, y in points if x is not None and y is not None)


def look_up(printed: Any, path: Sequence[str | int]) -> Any:
    """Follow a path into a JSON object; None if it ends early, CairnError if a key is missing."""
    for name in path:
        if printed is None:
            return None
        try:
            printed = printed[name]
        except (KeyError, IndexError, TypeError):
            raise CairnError(f"The command printed nothing called {'.'.join(map(str, path))!r}.") from None
    return printed
