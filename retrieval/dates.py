"""Dates of photos: texts that sort as the dates do, and may end early, such as 1923 or 1923-05.

A date is written `YYYY`, `YYYY-MM`, `YYYY-MM-DD` or `YYYY-MM-DDTHH:MM:SS` (ISO 8601; the local time of the camera, for
few files tell of time zones). One that ends early stands for all the time that begins so.
"""

import datetime
import re

_TIME = r"(?:[T ]\s*(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d*)?)?\s*(?:Z|[+-]\d\d:?\d\d)?)?"
_FORMS = tuple(
    re.compile(form + _TIME + r"\s*", re.ASCII | re.IGNORECASE)
    for form in (
        # EXIF writes colons, and blanks or zeros for what is not known.
        r"(?P<year>\d{4})(?:[-:/.](?P<month>\d\d?)(?:[-:/.](?P<day>\d\d?))?)?[-:/.\s]*",
        r"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{4})",
        r"(?P<month>\d\d?)\.(?P<year>\d{4})",
        r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)",
    )
)
LONGEST = 64
"""Characters; no date that is understood has more."""


def read_date(text: str) -> str | None:
    """Read a date as people and programs write it.

    Understood are 1923, 1923-05, 1923-05-17, 1923/5/17, 17.05.1923, 05.1923, 19230517, the form of EXIF
    (1923:05:17 14:30:00), and each day with a time, whose fractions and zone are left out. A month or day of 00, or
    blank, is not known.

    Returns
    -------
    str or None
        None where it is not understood, or is no date: month 13, 30 February, a year before 1000.

    >>> read_date("1923:05:17 14:30:00"), read_date("17.5.1923"), read_date("1923:00:00 00:00:00"), read_date("1923-13")
    ('1923-05-17T14:30:00', '1923-05-17', '1923', None)
    """
    if len(text) > LONGEST:
        return None
    for form in _FORMS:
        match = form.fullmatch(text.strip())
        if match is not None:
            parts = match.groupdict()
            year, month, day = (int(parts.get(name) or 0) for name in ("year", "month", "day"))
            date = write_date(year, month, day)
            if date is None or len(date) < 10 or parts["hour"] is None:
                return date
            return f"{date}{write_time(int(parts['hour']), int(parts['minute']), int(parts['second'] or 0))}"
    return None


def write_date(year: int, month: int = 0, day: int = 0) -> str | None:
    """Write a date, whose month and day may be 0: not known; None where there is no such date."""
    try:
        datetime.date(year, month or 1, day or 1)
    except ValueError:
        return None
    if year < 1000 or (day and not month):
        return None
    return f"{year:04}" + (f"-{month:02}" if month else "") + (f"-{day:02}" if day else "")


def write_time(hour: int, minute: int, second: int) -> str:
    """Write the time of a day as it follows the date; nothing where there is no such time."""
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return ""
    return f"T{hour:02}:{minute:02}:{second:02}"


def beginnings(date: str) -> list[str]:
    """The dates that end before this one and hold it: 1923 and 1923-05 of 1923-05-17."""
    return [date[:length] for length in (4, 7, 10) if length < len(date)]


def after(date: str) -> str:
    """A text that sorts behind all that begins with the date, and before all later dates."""
    return f"{date}~"
