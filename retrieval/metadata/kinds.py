"""Kinds of fields: how a value of one is read from a text, and written as one."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from retrieval.metadata.dates import read_date
from retrieval.metadata.text import LONGEST_TAG, clean

MOST_STARS = 5

_YES = frozenset(
    ("yes", "y", "true", "1", "x", "✓", "ja", "wahr", "oui", "vrai", "sí", "si", "verdadero", "sì", "vero", "waar")
)
_NO = frozenset(("no", "n", "false", "0", "nein", "falsch", "non", "faux", "falso", "nee", "onwaar"))
_STARS = re.compile(r"([1-5])(?:[.,]0+)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,3}(?:\.\d*)?(?:e-\d\d)?", re.ASCII)


@dataclass(frozen=True)
class Kind:
    """How a value is read and written."""

    name: str  # name for pages: date, text, degrees, number, mark or tags
    spoken: str  # its type in docstrings
    read: Callable[[str], Any]  # converts a text to a value, or None if it is invalid
    longest: int = 0  # most characters of a text; 0: not every text is a value
    wanted: str = ""  # description of valid texts, if not every text is a value

    def write(self, value: Any) -> tuple[str, ...]:
        """Return a value as texts for `read`."""
        if isinstance(value, bool):
            return ("yes" if value else "no",)
        return value if isinstance(value, tuple) else (str(value),)


def text(longest: int) -> Kind:
    """Return the kind of texts of at most `longest` characters."""
    return Kind("text", "str or None", lambda written: clean(written, longest) or None, longest)


def _degrees(most: int) -> Kind:
    def read(written: str) -> float | None:
        degrees = float(written) if _NUMBER.fullmatch(written) else most + 1.0
        return degrees if abs(degrees) <= most else None

    return Kind("degrees", "float or None", read, wanted="degrees")


def _stars(written: str) -> int | None:
    match = _STARS.fullmatch(written.strip())
    return int(match[1]) if match else None


def _mark(written: str) -> bool | None:
    word = written.strip().casefold()
    return word in _YES if word in _YES or word in _NO else None


DATE = Kind("date", "str or None", read_date, wanted="a date")
LATITUDE, LONGITUDE = _degrees(90), _degrees(180)
RATING = Kind("number", "int or None", _stars, wanted=f"a number of stars, 1 to {MOST_STARS}")
FLAG = Kind("mark", "bool", _mark, wanted="yes or no")
TAGS = Kind("tags", "tuple of str", lambda written: clean(written, LONGEST_TAG) or None, LONGEST_TAG)
