"""Parameters of building blocks: learnable values, their initial values, and their bounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

REFERENCE = 64
"""Samples along the side of the patches that defaults and limits of lengths are for (Brown11, section IV)."""

_BEYOND = 10  # values of a file may exceed the bounds of learning by this factor


@dataclass(frozen=True)
class Parameter:
    """One number that a block depends on."""

    name: str
    default: float  # a reasonable choice to begin with
    low: float  # bounds of learning
    high: float
    length: bool = True  # in samples of a patch of 64, scaled for another size
    ratio: bool = True  # positive, so that its logarithm is learnt

    def scaled(self, size: int) -> "Parameter":
        """The same parameter for patches of another size."""
        factor = size / REFERENCE if self.length else 1.0
        return Parameter(
            self.name, self.default * factor, self.low * factor, self.high * factor, self.length, self.ratio
        )


def length(name: str, default: float, low: float | None = None, high: float | None = None) -> Parameter:
    """A length in samples; by default it may become three times shorter or longer."""
    return Parameter(name, default, default / 3 if low is None else low, 3 * default if high is None else high)


def defaults(parameters: Iterable[Parameter]) -> dict[str, float]:
    """Initial values, by name."""
    return {parameter.name: parameter.default for parameter in parameters}


def check_parameters(values: Mapping[str, float], parameters: Iterable[Parameter]) -> None:
    """Raise ValueError if values from a file, which are not trusted, are not those of these parameters, all and no
    others. No value may exceed the bounds of learning more than ten times, as a file must not determine the cost of a
    descriptor.
    """
    known = {parameter.name: parameter for parameter in parameters}
    if not isinstance(values, Mapping) or set(values) != set(known):
        raise ValueError(f"its parameters should be {', '.join(known)}")
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"its {name} is {value!r}")
        low, high = known[name].low / _BEYOND, known[name].high * _BEYOND
        if not low <= value <= high:  # NaN fails too
            raise ValueError(f"its {name} is not from {low:.4g} to {high:.4g}")
