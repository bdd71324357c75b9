"""Options as keyword arguments of a function."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from index.options.arguments import takes_options
from index.options.declaration import Option, build


@dataclass(frozen=True)
class Paint:
    colour: Annotated[str, Option("Which colour it has.")] = "red"
    coats: Annotated[int, Option("How often it is painted.", least=1)] = 2
    plan: Annotated[Path | None, Option("File of a plan.", local=True)] = None
    smell: Annotated[float | None, Option("Not asked.")] = None


@takes_options(Paint, leave=("smell",))
def paint(wall: str, *, quickly: bool = False, **options: Any) -> tuple[str, bool, Paint]:
    """Paint a wall.

    Parameters
    ----------
    wall : str
        Which.
    quickly : bool
        Whether there is little time.
    {options}

    Returns
    -------
    tuple
    """
    return wall, quickly, build(Paint, options)


def test_the_signature_has_the_options_in_their_place() -> None:
    assert [*inspect.signature(paint).parameters] == ["wall", "quickly", "colour", "coats", "plan"]
    coats = inspect.signature(paint).parameters["coats"]
    assert (coats.kind, coats.default, coats.annotation) == (inspect.Parameter.KEYWORD_ONLY, 2, int)
    assert paint.__annotations__.keys() == {"wall", "quickly", "colour", "coats", "plan", "return"}


def test_the_docstring_describes_them() -> None:
    assert paint.__doc__ is not None
    reported = inspect.cleandoc(paint.__doc__)
    assert "colour : str\n    Which colour it has.\ncoats : int\n    How often it is painted." in reported
    assert "plan : path-like, optional\n    File of a plan.\n\nReturns" in reported and "options" not in reported


def test_it_is_called_as_it_is() -> None:
    assert paint("north", coats=3) == ("north", False, Paint(coats=3))
    assert paint("north", quickly=True, plan="x.txt") == ("north", True, Paint(plan=Path("x.txt")))


@pytest.mark.parametrize("name", ["smell", "options", "size"])
def test_an_unknown_argument_is_what_python_calls_it(name: str) -> None:
    with pytest.raises(TypeError, match=rf"paint\(\) got an unexpected keyword argument '{name}'"):
        paint("north", **{name: 1})
