"""Common behaviour of all commands: names of values, help, and options that may be given only once."""

import inspect
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ParameterInfo

from index.errors import CairnError

_METAVARS = {Path: "PATH", int: "N", float: "X", str: "TEXT"}


class Command(TyperCommand):
    """A command that refuses an option given twice where it can have one value only."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; raises CairnError if they contradict each other."""
        if args and not ctx.resilient_parsing:  # not while a shell completes them
            _refuse_repeated(self.make_parser(ctx).parse_args(args=list(args))[2])
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        from retrieval.commands.help_pages import print_help

        print_help(self, ctx)


class CommandGroup(TyperGroup):
    """A group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        from retrieval.commands.help_pages import print_help

        print_help(self, ctx)


def set_up(app: typer.Typer) -> None:
    """Make every command of an application a `Command`, every group a `CommandGroup`, and name the values they take."""
    app.info.cls = CommandGroup
    for command in app.registered_commands:
        command.cls = Command
        if command.callback is not None:
            _name_values(command.callback)
    for group in app.registered_groups:
        group.cls = CommandGroup
        if group.typer_instance is not None:
            set_up(group.typer_instance)


def _name_values(function: Any) -> None:
    """Name the value of each option of a command by its type, unless it has a name."""
    for parameter in inspect.signature(function).parameters.values():
        annotation, *more = get_args(parameter.annotation) or [parameter.annotation]
        for found in more:
            if isinstance(found, ParameterInfo) and found.metavar is None and not _is_argument(found):
                kinds = [one for one in _parts(annotation) if one in _METAVARS]
                found.metavar = " ".join(_METAVARS[one] for one in kinds) or None


def _is_argument(found: ParameterInfo) -> bool:
    return isinstance(found, typer.models.ArgumentInfo)


def _parts(annotation: Any) -> list[Any]:
    """Give the plain types of an annotation: of ``list[Path] | None`` the Path."""
    inside = get_args(annotation)
    return [part for one in inside for part in _parts(one)] if inside else [annotation]


def _refuse_repeated(values: list[Any]) -> None:
    """Refuse an option that was given twice, unless it may be repeated or is a flag with one meaning."""
    if any(one.name == "help" for one in values):
        return
    for option, count in Counter(values).items():
        is_single = option.param_type_name == "option" and not (option.multiple or option.count)
        if not is_single or count == 1 or (option.is_flag and not option.secondary_opts):
            continue
        name = "/".join([option.opts[0], *option.secondary_opts])
        raise CairnError(f"{name} is given {count} times, but only one would be used: give it once.")
