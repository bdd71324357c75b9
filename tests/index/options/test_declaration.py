"""Options declared by dataclasses: names, accepted values, and refusals."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

import numpy as np
import pytest

from index.errors import CairnError
from index.options.declaration import Option, build, check, chosen, option_of, options_of, said_elsewhere, values_of


def _halved(text: str) -> int:
    return int(text) // 2


@dataclass(frozen=True)
class Paint:
    colour: Annotated[str, Option("Colour.")] = "red"
    coats: Annotated[int, Option("Coats.", least=1, most=9)] = 2
    drying: float = 1.5  # a constant


@dataclass(frozen=True)
class Fence:
    height: Annotated[float | None, Option("Height, metres.", least=0.5)] = None
    posts: Annotated[int, Option("Posts.", name="pillars", parse=_halved, least=0)] = 4
    gate: Annotated[bool, Option("A gate.")] = True
    plan: Annotated[Path | None, Option("Plan.", local=True)] = None
    gaps: Annotated[Sequence[float], Option("Gaps.", most=2)] = ()
    paint: Paint = field(default_factory=lambda: Paint(colour="green"))
    hinges: "Hinges" = field(default_factory=lambda: Hinges())

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Hinges:
    number: Annotated[int, Option("Hinges.")] = 3


def test_options_are_those_that_are_declared_with_those_of_inner_dataclasses() -> None:
    found = options_of(Fence)
    assert [*found] == ["height", "pillars", "gate", "plan", "gaps", "colour", "coats"]
    assert {name: one.default for name, one in found.items()} == {
        **{"height": None, "pillars": 4, "gate": True, "plan": None, "gaps": ()},
        **{"colour": "red", "coats": 2},
    }
    assert found["coats"].path == ("paint", "coats") and found["height"].optional and not found["gate"].optional


def test_what_is_left_out_is_as_the_dataclass_has_it() -> None:
    assert build(Fence, {}) == Fence()
    built = build(Fence, {"pillars": "12", "coats": np.int64(3), "gaps": [1, np.float32(0.5)], "plan": "a/b.txt"})
    assert built == Fence(posts=6, gaps=(1.0, 0.5), plan=Path("a/b.txt"), paint=Paint("green", 3))
    assert values_of(built) == {
        **{"height": None, "pillars": 6, "gate": True, "plan": Path("a/b.txt"), "gaps": (1.0, 0.5)},
        **{"colour": "green", "coats": 3},
    }
    assert build(Fence, {"gaps": 1, "height": None, "gate": np.bool_(False)}) == Fence(gaps=(1.0,), gate=False)
    assert build(Fence, {"gaps": None}) == Fence()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"coats": 0}, "coats is 1 at least, and not 0."),
        ({"coats": 10}, "coats is 9 at most, and not 10."),
        ({"coats": 2.5}, "coats is a whole number, and not 2.5."),
        ({"coats": "2"}, "coats is a whole number, and not '2'."),
        ({"pillars": -1}, "pillars is 0 at least, and not -1."),
        ({"height": "tall"}, "height is a number, and not 'tall'."),
        ({"height": float("nan")}, "height is a number, and not nan."),
        ({"height": True if False else [1]}, r"height is a number, and not [1]."),
        ({"gate": 1}, "gate is True or False, and not 1."),
        ({"gate": None}, "gate is True or False, and not None."),
        ({"plan": 3}, "plan is a path, and not 3."),
        ({"plan": b"x"}, "plan is a path, and not b'x'."),
        ({"colour": 3}, "colour is a name, and not 3."),
        ({"gaps": [1, 3]}, "gaps is 2 at most, and not 3.0."),
        ({"gaps": "12"}, "gaps is a number, and not '12'."),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CairnError) as reported:
        build(Fence, given)
    assert str(reported.value) == sentence


@dataclass(frozen=True)
class Shed:
    varies: ClassVar[bool] = True
    width: Annotated[int, Option("Width.", name="wide", parse=_halved, typed=str)] = 4
    paint: Paint = field(default_factory=Paint)


def test_options_whose_defaults_vary_show_none_which_stands_for_that_of_a_base() -> None:
    found = options_of(Shed)
    assert all(one.may_be_none and one.default is None for one in found.values())
    assert found["wide"].spoken == "str, optional"
    assert [options_of(Paint)["coats"].default, options_of(Paint)["coats"].optional] == [2, False]
    base = Shed(7, Paint("green", 3))
    given = {"wide": "18", "colour": None, "coats": 1, "other": 5}
    assert chosen(Shed, given, base) == Shed(9, Paint("green", 1))
    assert chosen(Shed, given) == Shed(9, Paint("red", 1))
    assert build(Shed, {"wide": None}, base) == base
    with pytest.raises(CairnError, match="wide is a name"):
        build(Shed, {"wide": 3})
    with pytest.raises(CairnError, match="wide is a name"):
        check(Shed(cast(int, None)))


def test_a_dataclass_checks_what_it_is_made_with() -> None:
    with pytest.raises(CairnError, match=r"^height is 0\.5 at least, and not 0\.1\.$"):
        Fence(height=0.1)
    with pytest.raises(CairnError, match=r"^pillars is a whole number"):
        replace(Fence(), posts=None)


@pytest.mark.parametrize("name", ["drying", "number", "posts", "paint", "nothing"])
def test_there_is_no_option_that_is_not_declared(name: str) -> None:
    with pytest.raises(TypeError, match=f"there is no option '{name}'"):
        build(Fence, {name: 1})


def test_another_dataclass_may_have_the_same_option() -> None:
    again = option_of(Fence, "pillars", help="Posts again.")
    assert (again.help, again.name, again.parse, again.least) == ("Posts again.", "pillars", _halved, 0)


def test_a_request_or_a_collection_names_no_file_and_cannot_break_what_reads_it() -> None:
    said = {"plan": "/etc/passwd", "coats": 5, "height": None, "drying": 9, "nothing": [1]}
    assert said_elsewhere(Fence, said) == Fence(paint=Paint("green", 5))
    with pytest.raises(CairnError, match="coats is a whole number"):
        said_elsewhere(Fence, {"coats": {"a": 1}})
