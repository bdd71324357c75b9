"""Options as keyword arguments of a function, in its signature and docstring."""

import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from index.docstrings import with_paragraphs
from index.options.declaration import Declared, options_of

F = TypeVar("F", bound=Callable[..., Any])

MARK = "{options}"
"""Line of a docstring that is replaced by the descriptions of the options."""

NOTHING_SAID: Mapping[str, str] = MappingProxyType({})


def takes_options(
    *kinds: type, leave: Collection[str] = (), said: Mapping[str, str] = NOTHING_SAID
) -> Callable[[F], F]:
    """Decorate a function of ``**values`` so that its signature and docstring show the options of dataclasses, except
    those in `leave`, and lines that name shared paragraphs (`said`) are replaced by them. An unknown keyword raises
    TypeError.
    """
    declared = {name: one for name, one in options_of(*kinds).items() if name not in leave}
    described = "\n".join(f"{one.name} : {one.spoken}\n    {one.option.help}" for one in declared.values())

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        (rest,) = (one for one in parameters if one.kind is inspect.Parameter.VAR_KEYWORD)
        place = parameters.index(rest)
        parameters[place : place + 1] = [_parameter(one) for one in declared.values()]

        @functools.wraps(function)
        def taken(*args: Any, **values: Any) -> Any:
            unknown = [name for name in values if name not in known]
            if unknown:
                raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {unknown[0]!r}")
            return function(*args, **values)

        known = {one.name for one in parameters}
        taken.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        taken.__annotations__ = {one.name: one.annotation for one in parameters} | {
            "return": signature.return_annotation
        }
        if function.__doc__ is not None:
            taken.__doc__ = with_paragraphs(function.__doc__, {**said, MARK: described})
        return taken  # type: ignore[return-value]

    return decorate


def _parameter(one: Declared) -> inspect.Parameter:
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=_annotation(one))


def _annotation(one: Declared) -> Any:
    """Accepted types of an argument: also a path for a path as text, and a list for a tuple."""
    path = str | os.PathLike[str]
    kind: Any = path if one.item is Path or one.option.local else one.item
    if one.option.extends:
        kind = kind | object
    if one.several:
        kind = kind | Sequence[kind]
    if one.option.parse is not None and one.item is int:
        kind = kind | str
    return kind | None if one.may_be_none else kind
