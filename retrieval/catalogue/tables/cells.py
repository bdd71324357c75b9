"""Cells of a table of metadata: guess their types, column by column, and read degrees."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from retrieval.metadata.dates import date_orders, read_date
from retrieval.metadata.fields import FIELDS
from retrieval.metadata.kinds import DATE, LATITUDE, LONGITUDE
from retrieval.photos.listing import PHOTO_SUFFIXES

_LOOKED_AT = 1000  # cells examined in a column
_MOST = 0.8  # share of cells of one type from which a column has that type
_YEAR = re.compile(r"(1[89]|20)\d\d")
_DIGITS = re.compile(r"\d{1,7}|\d{9,}")  # a date without marks has eight
# Only if unambiguous: a sign or a letter, not both. Python writes small numbers as 1e-05.
_DEGREES = re.compile(r"([+-]?)(\d{1,3}(?:[.,]\d*)?(?:e-\d\d)?|[.,]\d+)\s*°?\s*([NSEW]?)", re.ASCII | re.IGNORECASE)
_LETTERS = {"latitude": "NS", "longitude": "EW", None: "NSEW"}
_FINE = re.compile(r"[+-]?\d{1,3}[.,]\d{3,}")  # coordinates have such decimals, sizes seldom
_PAIR = re.compile(r"\(?\s*[+-]?\d{1,3}\.\d{3,}\s*[,;\s]\s*[+-]?\d{1,3}\.\d{3,}\s*\)?")
_SUFFIXES = tuple(PHOTO_SUFFIXES)
_DOUBTFUL = {key: row for key, row in FIELDS.items() if row.doubtful and row.kind not in (DATE, LATITUDE, LONGITUDE)}


@dataclass
class Survey:
    """Counts of the types of cells of one column, without empty cells."""

    filled: int = 0
    dates: int = 0  # dates, except bare years
    years: int = 0
    degrees: int = 0  # numbers from -180 to 180
    latitudes: int = 0  # numbers from -90 to 90
    fine: int = 0  # numbers with three decimals or more
    pairs: int = 0  # two such numbers in one cell
    days_first: int = 0  # dates such as 31/12/1923, whose first number must be the day; of all cells
    months_first: int = 0  # dates such as 12/31/1923; of all cells
    files: int = 0  # names that end like those of photos' files
    photos: int = 0  # photos of the collection, if these are known
    fits: Counter[str] = field(default_factory=Counter)  # values of fields whose headers are ambiguous, by key
    is_photo: Callable[[str], bool] | None = None  # whether a name is that of a photo of the collection

    def add(self, cell: str) -> None:
        """Count one more cell."""
        cell = cell.strip()
        orders = date_orders(cell)
        if orders is not None and orders.count(None) == 1:
            self.days_first += orders[1] is None
            self.months_first += orders[0] is None
        if not cell or self.filled == _LOOKED_AT:
            return
        self.filled += 1
        self.files += cell.casefold().endswith(_SUFFIXES)
        self.photos += self.is_photo is not None and self.is_photo(cell)
        self.years += _YEAR.fullmatch(cell) is not None
        is_date = read_date(cell) is not None or (orders is not None and orders != (None, None))
        self.dates += is_date and _DIGITS.fullmatch(cell) is None
        number = read_degrees(cell)
        if number is not None:
            self.degrees += abs(number) <= 180
            self.latitudes += abs(number) <= 90 and read_degrees(cell, "latitude") is not None
            self.fine += _FINE.match(cell) is not None
        self.fits.update(key for key, row in _DOUBTFUL.items() if row.kind.read(cell) is not None)
        self.pairs += _PAIR.fullmatch(cell) is not None

    @property
    def day_first(self) -> bool | None:
        """Whether dates such as 03/04/1923 begin with the day; None if the other cells do not decide it."""
        return None if bool(self.days_first) == bool(self.months_first) else bool(self.days_first)

    def mostly(self, count: int) -> bool:
        """Whether a count includes nearly all cells."""
        return self.filled > 0 and count >= _MOST * self.filled


def read_degrees(text: str, key: str | None = None) -> float | None:
    """Read degrees north or east, with a point or a comma; None if it is something else.

    A letter N, S, E or W may replace the sign; both together are rejected as ambiguous, and letters of the other axis
    for a `key` latitude or longitude. O is rejected too: it is east in German, and west in French.

    >>> read_degrees("52,5163"), read_degrees("13.4° W"), read_degrees("Berlin"), read_degrees("13.4 W", "latitude")
    (52.5163, -13.4, None, None)
    """
    match = _DEGREES.fullmatch(text.strip())
    if match is None:
        return None
    sign, number, letter = match[1], match[2], match[3].upper()
    if letter and (sign or letter not in _LETTERS[key]):
        return None
    return float(number.replace(",", ".")) * (-1 if sign == "-" or letter in ("S", "W") else 1)
