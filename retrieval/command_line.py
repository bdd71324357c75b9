"""What every command has in common on the command line: an option that takes one value is given once."""

from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand

from index.errors import CairnError


class Command(TyperCommand):
    """A command that refuses an option given twice where it can have one value only."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; CairnError where they contradict each other."""
        if args and not ctx.resilient_parsing:  # not while a shell completes them
            _refuse_repeated(self.make_parser(ctx).parse_args(args=list(args))[2])
        rest: list[str] = super().parse_args(ctx, args)
        return rest


def set_up(app: typer.Typer) -> None:
    """Make every command of an application, those of its groups too, a `Command`."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            set_up(group.typer_instance)


def _refuse_repeated(given: list[Any]) -> None:
    """Refuse an option that is among those given twice, unless it may be repeated or is a flag that says one thing."""
    if any(one.name == "help" for one in given):
        return
    for option, count in Counter(given).items():
        is_single = option.param_type_name == "option" and not (option.multiple or option.count)
        if not is_single or count == 1 or (option.is_flag and not option.secondary_opts):
            continue
        name = "/".join([option.opts[0], *option.secondary_opts])
        raise CairnError(f"{name} is given {count} times, and one of them would be ignored: give it once.")
