"""Options in groups: a command takes a dataclass, and each of its fields is an option of the command line."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let Typer see an option for each field of the parameters that are dataclasses.

    Parameters
    ----------
    command : callable
        A command. A parameter annotated with a dataclass becomes options in its place, one for each field: the field's
        annotation is what it would be as a parameter.

    Returns
    -------
    callable
        What is to be mounted. It makes the dataclasses of the options, and calls the command.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}

    @wraps(command)
    def mounted(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{one.name: values.pop(one.name) for one in fields(group)})
        command(**values)

    parameters = list(_parameters(command, hints, groups))
    mounted.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    mounted.__annotations__ = {one.name: one.annotation for one in parameters}
    return mounted


def _parameters(
    command: Callable[..., None], hints: dict[str, Any], groups: dict[str, type]
) -> Iterator[inspect.Parameter]:
    """Give the parameters of a command, the fields of each group in its place."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            yield parameter.replace(annotation=hints[name], kind=keyword)
            continue
        annotations = get_type_hints(groups[name], include_extras=True)
        for one in fields(groups[name]):
            default = inspect.Parameter.empty if one.default is MISSING else one.default
            yield inspect.Parameter(one.name, keyword, default=default, annotation=annotations[one.name])
