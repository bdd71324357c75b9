"""Options declared once: fields of a dataclass, from which command line, Python and server derive theirs.

    turns: Annotated[int, Option("Turns at which a query is tried.", SEARCH, least=1)] = 8

A field annotated with an `Option` is an option of the command line, an argument in Python and, unless it is `local`, a
parameter of a request. A field without one is a hidden constant of the method. This module imports nothing slow:
commands read declarations before they print ``--help``.
"""

import math
import operator
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from index.errors import CairnError
from index.extensions import register

T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """Declaration of an option; its name, type and default are those of its field."""

    help: str  # its meaning, in a sentence
    panel: str = ""  # heading in listings
    # bounds, both allowed
    least: float | None = None
    most: float | None = None
    name: str = ""  # its name; "": that of the field
    metavar: str | None = None  # placeholder of its value in help texts
    names: Collection[str] = ()  # values offered for completion
    flags: tuple[str, ...] = ()  # its form on the command line, if not ``--name``
    parse: Callable[[str], Any] | None = None  # converts a name or a text to the value of the field; raises CairnError
    typed: Any = None  # type of what users give, if `parse` makes another type of it
    local: bool = False  # names a file or a folder, so neither a request nor a collection may set it
    # kind of extension that it names (see `index.extensions`); also takes an object of that kind
    extends: str = ""


@dataclass(frozen=True)
class Declared:
    """A declared option."""

    name: str  # its name
    path: tuple[str, ...]  # fields that lead to it, from the outer dataclass to the inner one
    kind: Any  # type of its value, without None
    optional: bool  # whether the field may be None
    default: Any
    option: Option
    varies: bool  # whether None, which is shown, stands for the field's default or another one; see `options_of`

    @property
    def may_be_none(self) -> bool:
        """Whether users may leave it out by None."""
        return self.optional or self.varies

    @property
    def several(self) -> bool:
        """Whether the value is a sequence."""
        return typing.get_origin(self.kind) is not None

    @property
    def item(self) -> Any:
        """Type of the value, or of each where there are several."""
        return typing.get_args(self.kind)[0] if self.several else self.kind

    @property
    def spoken(self) -> str:
        """The type of the value, as shown in docstrings."""
        kind = "path-like" if self.item is Path else self.item.__name__
        if self.option.local and self.item is str:
            kind = "str or path-like"
        if self.option.extends:
            kind += f" or {self.option.extends}"
        if self.several:
            kind = f"sequence of {kind}"
        return f"{kind}, optional" if self.may_be_none else str(kind)

    def taken(self, value: Any) -> Any:
        """Convert and check a value."""
        if value is None and self.optional:
            return None
        if self.option.extends and not isinstance(value, str | bytes | os.PathLike | int | float):
            return register(self.option.extends, value)
        if self.option.parse is not None and (self.kind is str or isinstance(value, str)):
            return self.option.parse(self._text(value))
        if not self.several:
            return self._one(value)
        if isinstance(value, str | bytes | os.PathLike | Mapping) or not isinstance(value, Iterable):
            value = [] if value is None else [value]
        return tuple(self._one(each) for each in value)

    def _one(self, value: Any) -> Any:
        if self.item is bool:
            if type(value).__name__ not in ("bool", "bool_"):  # also NumPy's, without importing NumPy
                raise CairnError(f"{self.name} is True or False, and not {value!r}.")
            return bool(value)
        if self.item is int:
            return self._bounded(whole(self.name, value))
        if self.item is float:
            return self._bounded(self._number(value))
        if self.item is Path:
            return Path(self._text(value))
        return self._text(value)

    def _number(self, value: Any) -> float:
        try:
            number = math.nan if isinstance(value, str | bytes) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise CairnError(f"{self.name} is a number, and not {value!r}.")
        return number

    def _text(self, value: Any) -> str:
        if not isinstance(value, str | os.PathLike) or isinstance(text := os.fspath(value), bytes):
            what = "a path" if self.item is Path else "a name"
            raise CairnError(f"{self.name} is {what}, and not {value!r}.")
        return text

    def _bounded(self, number: Any) -> Any:
        least, most = self.option.least, self.option.most
        if least is not None and number < least:
            raise CairnError(f"{self.name} is {least:g} at least, and not {number}.")
        if most is not None and number > most:
            raise CairnError(f"{self.name} is {most:g} at most, and not {number}.")
        return number


def whole(name: str, value: Any, least: int | None = None) -> int:
    """Convert a whole number of any type, such as NumPy's."""
    try:
        number = operator.index(value)
    except TypeError:
        raise CairnError(f"{name} is a whole number, and not {value!r}.") from None
    if least is not None and number < least:
        raise CairnError(f"{name} is {least} at least, and not {number}.")
    return number


def options_of(*kinds: type) -> Mapping[str, Declared]:
    """Options declared by dataclasses and by their fields that are dataclasses, by name and in order.

    A class whose defaults depend on other options, such as ``as_published``, has an attribute ``varies = True``: they
    are shown as None, which stands for them.
    """
    return _options_of(kinds)


@cache
def _options_of(kinds: tuple[type, ...]) -> Mapping[str, Declared]:
    return types.MappingProxyType({one.name: one for kind in kinds for one in _declared(kind, (), False)})


def _declared(kind: type, above: tuple[str, ...], varies: bool) -> Iterable[Declared]:
    varies = varies or getattr(kind, "varies", False)
    for one in fields(kind):
        if isinstance(one.type, str):  # a dataclass of constants that is imported lazily
            continue
        path = (*above, one.name)
        if is_dataclass(one.type):
            yield from _declared(typing.cast(type, one.type), path, varies)
        if typing.get_origin(one.type) is not Annotated:
            continue
        plain, *metadata = typing.get_args(one.type)
        for option in metadata:
            if isinstance(option, Option):
                default = one.default_factory() if one.default_factory is not MISSING else one.default
                value, optional = _without_none(option.typed or plain)
                default = None if varies else default
                yield Declared(option.name or one.name, path, value, optional, default, option, varies)


def _without_none(kind: Any) -> tuple[Any, bool]:
    if isinstance(kind, types.UnionType):
        (kept_type,) = (one for one in typing.get_args(kind) if one is not type(None))
        return kept_type, True
    return kind, False


def option_of(kind: type, name: str, **changes: Any) -> Option:
    """Return the declaration of an option for reuse in another dataclass, with some attributes changed."""
    declared = options_of(kind)[name]
    return replace(declared.option, name=name, **changes)


def build(kind: type[T], values: Mapping[str, Any], base: T | None = None) -> T:
    """Build a dataclass from options by name, those of nested dataclasses included; raises TypeError for others. `base`
    has the values of all other fields; None: their defaults.
    """
    declared = options_of(kind)
    tree: dict[str, Any] = {}
    for name, value in values.items():
        if name not in declared:
            raise TypeError(f"there is no option {name!r}")
        if value is None and declared[name].varies:
            continue
        *above, last = declared[name].path
        branch = tree
        for field in above:
            branch = branch.setdefault(field, {})
        branch[last] = declared[name].taken(value)
    return _replaced(kind() if base is None else base, tree)


def chosen(kind: type[T], values: Mapping[str, Any], base: T | None = None) -> T:
    """Build a dataclass from those values that are its options; raises CairnError as `build` does."""
    return build(kind, {name: value for name, value in values.items() if name in options_of(kind)}, base)


def said_elsewhere(kind: type[T], values: Mapping[str, Any]) -> T:
    """Build a dataclass from the values of a request or stored search, without local options; None is the default."""
    trusted = {name for name, one in options_of(kind).items() if not one.option.local}
    return build(kind, {name: values[name] for name in trusted if values.get(name) is not None})


def _replaced(options: T, tree: Mapping[str, Any]) -> T:
    """Replace fields of a dataclass, and of nested ones by nested dictionaries."""
    changes = {
        name: _replaced(getattr(options, name), one) if isinstance(one, dict) else one for name, one in tree.items()
    }
    return replace(options, **changes)  # type: ignore[type-var]


def check(options: Any) -> None:
    """Raise CairnError if an option of a dataclass has a wrong type or is out of bounds; not in nested ones."""
    for declared in options_of(type(options)).values():
        if len(declared.path) == 1:
            declared.taken(getattr(options, declared.path[0]))


def values_of(options: Any) -> dict[str, Any]:
    """Values of the options that a dataclass declares, by their names."""
    values = {}
    for name, declared in options_of(type(options)).items():
        value = options
        for field in declared.path:
            value = getattr(value, field)
        values[name] = value
    return values
