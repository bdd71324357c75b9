"""Fields of dataclasses as options of a command."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from retrieval.commands.option_groups import grouped


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(min=1)] = 3
    height: Annotated[int | None, typer.Option("--tall", help="How tall.")] = None


@dataclass(frozen=True)
class Place:
    folder: Annotated[Path, typer.Option()]


def made() -> tuple[typer.Typer, list[tuple[object, ...]]]:
    app, reported = typer.Typer(), []

    @app.command()
    @grouped
    def draw(name: str, size: Size, place: Place, quiet: bool = typer.Option(False, "--quiet", "-q")) -> None:
        """Draw something."""
        reported.append((name, size, place, quiet))

    return app, reported


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("cat --folder x", ("cat", Size(), Place(Path("x")), False)),
        ("cat --folder x --tall 7 -q", ("cat", Size(3, 7), Place(Path("x")), True)),
        ("--width 9 --folder y dog", ("dog", Size(9), Place(Path("y")), False)),
    ],
)
def test_the_command_gets_its_groups(arguments: str, expected: tuple[object, ...]) -> None:
    app, reported = made()
    assert CliRunner().invoke(app, arguments.split()).exit_code == 0
    assert reported == [expected]


@pytest.mark.parametrize("arguments", ["cat", "cat --folder x --width 0", "cat --folder x --height 3", "--folder x"])
def test_what_options_ask_of_their_values_holds(arguments: str) -> None:
    app, reported = made()
    assert CliRunner().invoke(app, arguments.split()).exit_code == 2
    assert reported == []


def test_options_come_in_the_place_of_their_group() -> None:
    app, _ = made()
    (command,) = app.registered_commands
    assert command.callback is not None
    assert list(inspect.signature(command.callback).parameters) == ["name", "width", "height", "folder", "quiet"]
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "Draw something." in shown and "How tall." in shown
