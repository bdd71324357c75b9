"""Docstrings that are completed by annotations and shared paragraphs."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from index.docstrings import completed, documented, spoken


@dataclass(frozen=True)
class Helped:
    help: str


@documented
@dataclass(frozen=True)
class Plot:
    """A plot of land.

    Examples
    --------
    >>> 1
    """

    name: str
    sides: Annotated[NDArray[np.float32] | None, "(N, 2)", "Metres."]
    owners: Annotated[tuple[str, ...], "Who it belongs to."] = ()
    _secret: int = 0


def test_fields_are_attributes_before_the_examples() -> None:
    assert inspect.getdoc(Plot) == (
        "A plot of land.\n\nAttributes\n----------\nname : str\nsides : ndarray, shape (N, 2), float32 or None\n"
        "    Metres.\nowners : tuple of str\n    Who it belongs to.\n\nExamples\n--------\n>>> 1"
    )


@documented
@dataclass(frozen=True)
class Garden(Plot):
    """A garden."""

    beds: Annotated[int, Helped("Number of beds.")] = 0


def test_inherited_fields_come_first_and_a_meaning_may_be_the_help_of_an_object() -> None:
    lines = str(inspect.getdoc(Garden)).splitlines()
    assert lines[4] == "name : str" and lines[-2:] == ["beds : int", "    Number of beds."]


@completed({"{far}": "far : bool\n    How far.", "{lost}": "LookupError\n    It is lost."})
class Walk:
    def go(self, far: bool) -> list[Plot]:
        """Go.

        Parameters
        ----------
        {far}

        Raises
        ------
        {lost}
        """
        raise LookupError(far)

    def come(self) -> int:
        """Come.

        Returns
        -------
        int
            When.
        """
        return 0

    def rest(self) -> None:
        """Rest."""


def test_methods_are_completed_by_shared_paragraphs_and_what_they_return() -> None:
    assert inspect.getdoc(Walk.go) == (
        "Go.\n\nParameters\n----------\nfar : bool\n    How far.\n\nReturns\n-------\nlist of Plot\n\n"
        "Raises\n------\nLookupError\n    It is lost."
    )
    assert str(inspect.getdoc(Walk.come)).count("Returns") == 1 and inspect.getdoc(Walk.rest) == "Rest."


def test_a_field_that_is_declared_again_is_described_once() -> None:
    @dataclass
    class Base:
        of: ClassVar[bool] = True
        x: Annotated[int, "X."] = 0

    @documented
    @dataclass
    class Other(Base):
        """Other."""

        x: Annotated[int, "X of the other."] = 1

    assert inspect.getdoc(Other) == "Other.\n\nAttributes\n----------\nx : int\n    X of the other."


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Annotated[str | None, "What."], "str or None"),
        (dict[str, list[int]], "dict of str to list of int"),
        (Mapping[str, Any], "mapping"),
        (Sequence[float], "sequence of float"),
        (tuple[int, str], "(int, str)"),
        ("Plot", "Plot"),
        (Annotated["Plot", "What."], "Plot"),
        (list["Plot"], "list of Plot"),
        (NDArray[Any], "ndarray"),
    ],
)
def test_types_are_written_as_numpydoc_writes_them(kind: Any, text: str) -> None:
    assert spoken(kind) == text
