"""The whole command line as Typer builds it, for tests that look at every command."""

from functools import cache
from typing import Any

import typer

from cairn import make_app


@cache
def command_tree() -> Any:
    """All commands, made once in a process."""
    return typer.main.get_command(make_app())
