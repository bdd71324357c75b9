"""Dates of photos: texts that sort by date, and may be incomplete, such as 1923 or 1923-05.

A date is written `YYYY`, `YYYY-MM`, `YYYY-MM-DD` or `YYYY-MM-DDTHH:MM:SS` (ISO 8601; the local time of the camera, for
few files have time zones). One that ends early stands for all the time that begins so.
"""

import datetime
import re
import unicodedata

_HALVES = {  # of the day, as they stand before or after the time
    "am": ("am", "a.m.", "上午", "午前", "오전", "ص"),
    "pm": ("pm", "p.m.", "下午", "午後", "오후", "م"),
}
_HALF = "|".join(re.escape(one) for some in _HALVES.values() for one in sorted(some, key=len, reverse=True))
_TIME = (
    rf"(?:[T ]\s*(?:(?P<before>{_HALF})\s*)?(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d*)?)?"
    rf"\s*(?P<after>{_HALF})?\s*(?:Z|[+-]\d\d:?\d\d|DST|UTC|GMT)?)?"
)
_FORMS = tuple(
    re.compile(form + _TIME + r"\s*", re.ASCII | re.IGNORECASE)
    for form in (
        # EXIF writes colons, and blanks or zeros for unknown parts.
        r"(?P<year>\d{4})(?:[-:/.](?P<month>\d\d?)(?:[-:/.](?P<day>\d\d?))?)?[-:/.\s]*",
        r"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{4})",
        r"(?P<month>\d\d?)\.(?P<year>\d{4})",
        r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)",
    )
)
# With slashes or hyphens, half the world writes the day first and others the month.
_ORDERED = re.compile(
    r"(?P<one>\d\d?)(?P<mark>[/-])(?P<other>\d\d?)(?P=mark)(?P<year>\d{4})" + _TIME, re.ASCII | re.IGNORECASE
)
_DAY = re.compile(r"\d{4}[-:/.]\d\d[-:/.]\d\d(?=[T\s])", re.ASCII)
# Names that cameras, phones and messengers give files: never before 1990. Such names have a date after a known prefix,
# or only a date and a time: any other eight digits may be a shelf mark.
_NAMED_DAY = r"(?P<year>199[0-9]|20[0-9]{2})(?P<mark>[-_.]?)(?P<month>[0-9]{2})(?P=mark)(?P<day>[0-9]{2})"
_NAMED_TIME = (
    r"(?:[-_ T]| at | um )(?P<hour>[01]?[0-9]|2[0-3])(?P<colon>[-_.]?)(?P<minute>[0-5][0-9])(?P=colon)"
    r"(?P<second>[0-5][0-9])(?:[-_.]?[0-9]{3})?(?![0-9])(?:\s?(?P<half>[AP]M)(?![A-Z]))?"
)
_NAMED = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"PXL_{_NAMED_DAY}(?![0-9]).*",  # its time is UTC
        rf"(?:IMG|MVIMG|PANO|BURST|WIN|WP|Screenshot|Screen Shot|Bildschirmfoto|signal|WhatsApp Image)[-_ ]?"
        rf"{_NAMED_DAY}(?:{_NAMED_TIME}|(?![0-9])).*",
        rf"(?:photo_)?{_NAMED_DAY}{_NAMED_TIME}(?:[-_~ ]?\([0-9]{{1,3}}\)|[-_~ .](?:[0-9]{{1,2}}|[A-Z]+))*",
    )
)
LONGEST = 64
"""Characters; no date that is understood has more."""


def read_date(text: str, day_first: bool | None = None) -> str | None:
    """Read a date as people and programs write it; None if it is no date, or of a year before 1000.

    Accepts 1923, 1923-05, 1923-05-17, 1923/5/17, 17.05.1923, 05.1923, 19230517, the form of EXIF (1923:05:17 14:30:00),
    and each day with a time, whose fractions and zone are ignored. The time may be in 12 hours (02:30 PM, 02:30下午),
    and digits may be of any script. A month or day of 00, or blank, is unknown. 31/12/1923 and 12/31/1923 are
    accepted, as only one order of day and month is a date; 03/04/1923 only if `day_first` is known.

    >>> read_date("1923:05:17 14:30:00"), read_date("17.5.1923"), read_date("1923:00:00 00:00:00"), read_date("1923-13")
    ('1923-05-17T14:30:00', '1923-05-17', '1923', None)
    """
    if len(text) > LONGEST:
        return None
    text = _in_ascii(text)
    orders = date_orders(text)
    if orders is not None:
        if day_first is not None:
            return orders[0] if day_first else orders[1]
        return orders[0] or orders[1] if None in orders or orders[0] == orders[1] else None
    for form in _FORMS:
        match = form.fullmatch(text.strip())
        if match is not None:
            parts = match.groupdict()
            return _written(parts, *(int(parts.get(name) or 0) for name in ("year", "month", "day")))
    return None


def read_day(text: str) -> str | None:
    """Read a date as cameras and programs write it; of one whose time is not understood, the day.

    >>> read_day("2009:05:17 14:15:38 noonish"), read_day("2009:05:17 14:15:38"), read_day("around 2009")
    ('2009-05-17', '2009-05-17T14:15:38', None)
    """
    date = read_date(text)
    if date is None and (day := _DAY.match(_in_ascii(text[:LONGEST]).strip())):
        date = read_date(day[0])
    return date


def date_of_name(name: str) -> str | None:
    """Read the date that a camera, a phone or a messenger gave a file as its name; None for all other names.

    For names of Google's Pixel phones, whose time is UTC, only the day.

    >>> date_of_name("IMG-20161224-WA0014.jpg"), date_of_name("20190101_123456.jpg"), date_of_name("scan-20161224.tif")
    ('2016-12-24', '2019-01-01T12:34:56', None)
    """
    stem = name.rpartition(".")[0]
    match = next((match for form in _NAMED if (match := form.fullmatch(stem))), None)
    if match is None:
        return None
    found = match.groupdict(default="")
    day = f"{found['year']}-{found['month']}-{found['day']}"
    time = f" {found['hour']}:{found['minute']}:{found['second']} {found['half']}" if found.get("hour") else ""
    return read_date(day + time)


def _in_ascii(text: str) -> str:
    """Replace digits and spaces of other scripts by those of ASCII, except single number characters."""
    if text.isascii() or text.isdecimal():
        return text
    seen = (one for one in text if unicodedata.category(one) != "Cf")  # without marks of direction
    return "".join(" " if one.isspace() else str(unicodedata.decimal(one, one)) for one in seen)


def date_orders(text: str) -> tuple[str | None, str | None] | None:
    """Read a date with slashes as one with the day first, and one with the month first; each None if that is no date.

    >>> date_orders("03/04/1923"), date_orders("31/12/1923"), date_orders("1923-04-03")
    (('1923-04-03', '1923-03-04'), ('1923-12-31', None), None)
    """
    match = _ORDERED.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if match is None:
        return None
    parts = match.groupdict()
    year, one, other = (int(parts[name]) for name in ("year", "one", "other"))
    if not one or not other:
        return None, None
    return _written(parts, year, other, one), _written(parts, year, one, other)


def _written(parts: dict[str, str], year: int, month: int, day: int) -> str | None:
    """Write a date with its time, if the day is known and there is a time."""
    date = write_date(year, month, day)
    if date is None or len(date) < 10 or parts["hour"] is None:
        return date
    hour, half = int(parts["hour"]), (parts["before"] or parts["after"] or "").casefold()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half in _HALVES["pm"] else 0)
    return f"{date}{write_time(hour, int(parts['minute']), int(parts['second'] or 0))}"


def write_date(year: int, month: int = 0, day: int = 0) -> str | None:
    """Write a date, whose month and day may be 0 (unknown); None if there is no such date."""
    try:
        datetime.date(year, month or 1, day or 1)
    except ValueError:
        return None
    if year < 1000 or (day and not month):
        return None
    return f"{year:04}" + (f"-{month:02}" if month else "") + (f"-{day:02}" if day else "")


def write_time(hour: int, minute: int, second: int) -> str:
    """Write the time of a day, to append to the date; empty if there is no such time."""
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return ""
    return f"T{hour:02}:{minute:02}:{second:02}"


def beginnings(date: str) -> list[str]:
    """The dates that end before this one and hold it: 1923 and 1923-05 of 1923-05-17."""
    return [date[:length] for length in (4, 7, 10) if length < len(date)]


def after(date: str) -> str:
    """A text that sorts after all texts that begin with the date, and before all later dates."""
    return f"{date}~"
