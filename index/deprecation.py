"""What the public interface leaves behind: it works for one more minor version, and says what to use instead.

`docs/reference/stability.md` has the promise. A test fails once a version is reached in which something here was to go.
"""

import functools
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])


@dataclass(frozen=True)
class Deprecation:
    """Something that will go."""

    what: str  # such as ``cairn.search()`` or ``the argument 'k' of cairn.search()``
    since: str  # the version that said so first, such as 0.2
    instead: str  # what to use, such as ``Collection.search()``

    @property
    def removed_in(self) -> str:
        """The first version without it: the next minor one."""
        major, minor = minor_version(self.since)
        return f"{major}.{minor + 1}"

    def is_due(self, version: str) -> bool:
        """Whether a version is to be without it."""
        return minor_version(version) >= minor_version(self.removed_in)

    def __str__(self) -> str:
        return (
            f"{self.what} is deprecated since Cairn {self.since} and will be removed in {self.removed_in}: "
            f"use {self.instead} instead."
        )


DEPRECATIONS: list[Deprecation] = []
"""All that is deprecated in the modules imported so far."""


def minor_version(version: str) -> tuple[int, int]:
    """Give the major and the minor number of a version such as 0.2, 0.2.1 or 0.3.dev1; 0.3.dev1 is 0.3."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def deprecated(since: str, *, instead: str) -> Callable[[C], C]:
    """Let a function, a method or a class warn its callers that it will go.

    A class is changed in place, and warns when an object of it is made. The docstring says it too.

    Parameters
    ----------
    since : str
        The version that is the first to warn, such as 0.2. The next minor version is without it.
    instead : str
        What to use in its place.

    Returns
    -------
    callable
        The decorator. What it gives raises DeprecationWarning at the line of the caller.
    """

    def decorate(old: C) -> C:
        deprecation = Deprecation(f"{_public_name(old)}()", since, instead)
        DEPRECATIONS.append(deprecation)
        if isinstance(old, type):
            old.__init__ = _warning(old.__init__, deprecation)  # type: ignore[misc]
            old.__doc__ = _with_note(old.__doc__, deprecation)
            return old
        new = _warning(old, deprecation)
        new.__doc__ = _with_note(old.__doc__, deprecation)
        return new

    return decorate


def renamed_argument(old: str, new: str, since: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function take a keyword argument by its old name too, with a warning.

    Parameters
    ----------
    old : str
        Its name before.
    new : str
        Its name now, which the signature of the function has.
    since : str
        The version that is the first with the new name, such as 0.2. The next minor version is without the old one.

    Returns
    -------
    callable
        The decorator. What it gives raises DeprecationWarning at the line of the caller, and TypeError where an
        argument is given by both names.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        if new not in inspect.signature(function).parameters:
            raise TypeError(f"{function.__qualname__}() has no argument {new!r}")
        name = f"{_public_name(function)}()"
        deprecation = Deprecation(f"the argument {old!r} of {name}", since, f"{new!r}")
        DEPRECATIONS.append(deprecation)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(f"{name} got the argument {new!r} twice: as {old!r}, its old name, too")
                warnings.warn(str(deprecation), DeprecationWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def _public_name(one: Any) -> str:
    return str(one.__qualname__).removesuffix(".__init__")


def _warning(function: C, deprecation: Deprecation) -> C:
    """Give a function that warns, and does what another does."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(str(deprecation), DeprecationWarning, stacklevel=2)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _with_note(docstring: str | None, deprecation: Deprecation) -> str:
    """Give a docstring with the directive of numpydoc below its first paragraph."""
    summary, _, rest = inspect.cleandoc(docstring or "").partition("\n\n")
    note = f".. deprecated:: {deprecation.since}\n   It will be removed in {deprecation.removed_in}: "
    return "\n\n".join(filter(None, [summary, f"{note}use {deprecation.instead} instead.", rest]))
