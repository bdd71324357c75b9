"""Groups of options: a command takes a dataclass, or the values of declared options, instead of many parameters."""

import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from index.options.declaration import Declared, Option, option_of, options_of

T = TypeVar("T")


def among(*names: str) -> Callable[[str], list[str]]:
    """Return a function for shell completion, which gives the names that begin with the typed text."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


@dataclass(frozen=True, init=False)
class OptionsOf:
    """Marks a parameter of a command that takes values of declared options, by their names.

    ``how: Annotated[dict[str, Any], OptionsOf(SearchOptions)]`` becomes one option of the command line for each that
    `SearchOptions` declares, limited by `only` and `leave`.
    """

    declared: dict[str, Declared]

    def __init__(self, *kinds: type, only: Collection[str] | None = None, leave: Collection[str] = ()) -> None:
        known = options_of(*kinds)
        options = {name: known[name] for name in only or known if name not in leave}
        object.__setattr__(self, "declared", options)


def grouped(command: Callable[..., T]) -> Callable[..., T]:
    """Replace parameters that stand for groups of options by single options, for Typer.

    A parameter annotated with a dataclass becomes one option for each field, with the annotation of the field; one
    annotated with `OptionsOf` becomes the declared options.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    declared = {name: mark.declared for name, hint in hints.items() for mark in get_args(hint) if _is_mark(mark)}

    @wraps(command)
    def mounted(**values: Any) -> T:
        for name, group in groups.items():
            values[name] = group(**{one.name: values.pop(one.name) for one in fields(group)})
        for name, options in declared.items():
            values[name] = {option: values.pop(option) for option in options}
        return command(**values)

    parameters = list(_parameters(command, hints, groups, declared))
    mounted.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    mounted.__annotations__ = {one.name: one.annotation for one in parameters}
    return mounted


def _is_mark(hint: Any) -> bool:
    return isinstance(hint, OptionsOf)


def _parameters(
    command: Callable[..., Any],
    hints: dict[str, Any],
    groups: dict[str, type],
    declared: dict[str, dict[str, Declared]],
) -> Iterator[Parameter]:
    for name, parameter in inspect.signature(command).parameters.items():
        if name in declared:
            yield from (option_parameter(one) for one in declared[name].values())
        elif name in groups:
            annotations = get_type_hints(groups[name], include_extras=True)
            for one in fields(groups[name]):
                default = Parameter.empty if one.default is MISSING else one.default
                yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotations[one.name])
        else:
            yield parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)


def shown(option: Option, kind: Any) -> Any:
    """Return a declared option as a Typer option, given the type of its value."""
    numbers = kind in (int, float) and option.parse is None
    return typer.Option(
        *option.flags,
        rich_help_panel=option.panel,
        help=option.help,
        metavar=option.metavar,
        min=option.least if numbers else None,
        max=option.most if numbers else None,
        autocompletion=among(*option.names) if option.names else None,
    )


def shown_option(kind: type, name: str, **changes: Any) -> Any:
    """Return an option of a dataclass as a Typer option, with some attributes changed."""
    return shown(option_of(kind, name, **changes), options_of(kind)[name].item)


def option_parameter(declared: Declared) -> Parameter:
    """Return a declared option as a parameter for Typer."""
    option = declared.option
    kind: Any = declared.item if option.parse is None else str
    default = declared.default
    if declared.several:
        kind, default = list[kind], default or None
    elif option.parse is not None and default is not None:
        default = str(default)
    if default is None:
        kind = kind | None
    return Parameter(
        declared.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, shown(option, declared.item)]
    )


def given(context: typer.Context, *names: str) -> list[str]:
    """Return which of some parameters, or of all, were given on the command line."""
    candidates = names or tuple(context.params)
    return [one for one in candidates if str(getattr(context.get_parameter_source(one), "name", "")) != "DEFAULT"]


def explicit(context: typer.Context, values: dict[str, Any]) -> dict[str, Any]:
    """Return those of some values of options that were given on the command line."""
    return {name: values[name] for name in given(context, *values)}


def option_flag(context: typer.Context, name: str) -> str:
    """Return the option of a parameter as typed, such as ``--max-side`` or ``--upright/--rotated``."""
    (one,) = (one for one in context.command.params if one.name == name)
    return "/".join([*one.opts[:1], *one.secondary_opts[:1]])
