"""Powell's method on the area under the ROC curve: learning the parameters of blocks (Brown11, section IV)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from index.arrays import load_json, save_json
from index.errors import CairnError
from index.progress import Step, silent
from retrieval.descriptors.blocks.parameters import Parameter

_DIGITS = 9  # digits of rounded values, so that values survive a round trip through a file


@dataclass(frozen=True)
class PowellOptions:
    """When it ends."""

    evaluations: int = 400  # of the area, at most, including those of an earlier run
    tolerance: float = 0.01  # least gain of a round over all directions, relative to 1 - area
    step: float = 0.02  # tolerance of a line search, in the logarithm of a parameter (in units of π/8 for a phase)


@dataclass(frozen=True)
class Trial:
    """One evaluation."""

    parameters: dict[str, float]
    area: float  # under the ROC curve, 0 to 1


class Trials:
    """The evaluations so far, in a file; a resumed run repeats the same sequence and reads them from it."""

    def __init__(self, path: Path | None = None, key: str = "") -> None:
        self._path = path
        self._key = key
        self.all: list[Trial] = []
        if path is not None and path.is_file():
            self._read(path)
        self._areas = {_identity(trial.parameters): trial.area for trial in self.all}

    def _read(self, path: Path) -> None:
        contents = load_json(path)
        try:
            if contents["key"] == self._key:
                self.all = [_trial(one) for one in contents["trials"]]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise CairnError(f"{path} is damaged: delete it to begin again.") from None

    def area(self, parameters: Mapping[str, float]) -> float | None:
        """Recorded area of these parameters, or None."""
        return self._areas.get(_identity(parameters))

    def add(self, parameters: Mapping[str, float], area: float) -> None:
        """Record an evaluation."""
        self.all.append(Trial(dict(parameters), area))
        self._areas[_identity(parameters)] = area
        if self._path is not None:
            trials = [{"parameters": trial.parameters, "area": trial.area} for trial in self.all]
            save_json(self._path, {"key": self._key, "trials": trials})


def _trial(record: Any) -> Trial:
    """Parse an evaluation from an untrusted file."""
    values = record["parameters"]
    if not isinstance(values, dict):
        raise TypeError("its parameters are no table")
    numbers = [*values.values(), record["area"]]
    # NaN and infinities fail the comparison too.
    if any(isinstance(one, bool) or not isinstance(one, int | float) or not abs(one) < 1e9 for one in numbers):
        raise TypeError("a value is no number")
    if not 0 <= record["area"] <= 1:
        raise ValueError("an area is no number")
    return Trial({name: float(value) for name, value in values.items()}, float(record["area"]))


class _Enough(Exception):
    """The number of evaluations was reached."""


def maximise_area(
    area: Callable[[dict[str, float]], float],
    parameters: Sequence[Parameter],
    start: Mapping[str, float],
    options: PowellOptions | None = None,
    trials: Trials | None = None,
    progress: Step = silent,
) -> list[Trial]:
    """Maximise the area under the ROC curve over some parameters by Powell's direction-set method, and return all
    trials.

    The best one is the result: the method may end elsewhere. `area` must be deterministic. Positive parameters are
    searched on a logarithmic scale, so that one step suits small and large values. Trials recorded earlier are reused.
    """
    options, trials = options or PowellOptions(), trials or Trials()
    evaluated: list[Trial] = []
    seen: set[tuple[tuple[str, float], ...]] = set()

    def lacking(point: NDArray[np.float64]) -> float:
        values = from_point(point, parameters)
        # Before the recorded evaluations, so that the result does not depend on how far an earlier run went.
        if _identity(values) not in seen and len(seen) >= options.evaluations:
            raise _Enough
        known_area = trials.area(values)
        if known_area is None:
            known_area = area(values)
            trials.add(values, known_area)
        if _identity(values) not in seen:
            seen.add(_identity(values))
            evaluated.append(Trial(values, known_area))
            progress(len(seen), options.evaluations)
        return 1 - known_area

    bounds = [tuple(to_coordinate(limit, one) for limit in (one.low, one.high)) for one in parameters]
    first = np.array([to_coordinate(start[one.name], one) for one in parameters])
    first = np.clip(first, *np.array(bounds).T)
    lacking(first)
    with suppress(_Enough):
        minimize(
            lacking,
            first,
            method="Powell",
            bounds=bounds,
            options={"xtol": options.step, "ftol": options.tolerance, "maxfev": np.inf},
        )
    return evaluated


def best_of(tried: Sequence[Trial]) -> Trial:
    """The trial of the largest area; the first of equal ones."""
    return max(tried, key=lambda trial: trial.area)


def to_coordinate(value: float, parameter: Parameter) -> float:
    """Coordinate that a parameter's value has in the search."""
    return float(np.log(value)) if parameter.ratio else value / (np.pi / 8)


def from_point(point: NDArray[np.float64], parameters: Sequence[Parameter]) -> dict[str, float]:
    """Values of parameters at a point (P,) of the search."""
    values = {}
    for coordinate, one in zip(point, parameters, strict=True):
        value = np.exp(coordinate) if one.ratio else coordinate * (np.pi / 8)
        values[one.name] = round(float(np.clip(value, one.low, one.high)), _DIGITS)
    return values


def _identity(parameters: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(parameters.items()))
