"""Texts of a photo's metadata, cleaned and bounded."""

import math
import re
import unicodedata
from collections.abc import Iterable

from index.text import printable

LONGEST_TITLE, LONGEST_CAPTION, LONGEST_CAMERA, LONGEST_TAG, MOST_TAGS = 1000, 10_000, 256, 200, 200
LONGEST_KEY, LONGEST_VALUE = 64, 10_000  # of columns stored under their own names


# Controls, and characters that turn the direction of the text that follows: neither belongs on a page.
_UNWANTED = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]+")
JOINERS = "\u200c\u200d"
"""Characters that are not seen, and belong to the spelling of Persian, of Indian languages, and of pictographs."""


def clean(text: str, longest: int) -> str:
    r"""Text in one line and in Unicode's composed form (NFC), without control characters and other invisible commands.

    >>> clean("  Grand\tCanal\0 ", 20)
    'Grand Canal'
    >>> clean("Kathe\xaddrale", 20)
    'Kathedrale'
    """
    text = text[: 4 * longest]
    if text.isascii() and text.isprintable():  # nearly all texts of most tables: ten times as fast
        return " ".join(text.split())[:longest].strip()
    text = _UNWANTED.sub(" ", unicodedata.normalize("NFC", text))
    # Soft hyphens and the like would make equal words differ; joiners are part of the spelling in some languages.
    text = "".join(one for one in text if one in JOINERS or unicodedata.category(one) != "Cf")
    return " ".join(printable(text).split())[:longest].strip()


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Clean tags, not empty, and distinct when case is ignored."""
    cleaned = (clean(tag, LONGEST_TAG) for tag in tags)
    unique: dict[str, str] = {}
    for tag in cleaned:
        if tag and len(unique) < MOST_TAGS:
            unique.setdefault(tag.casefold(), tag)
    return tuple(unique.values())


def clean_position(latitude: float | None, longitude: float | None) -> tuple[float, float] | tuple[None, None]:
    """Degrees of a valid place on Earth, or None, also for 0 and 0, which devices write if they know no place."""
    if latitude is None or longitude is None or not (math.isfinite(latitude) and math.isfinite(longitude)):
        return None, None
    if abs(latitude) > 90 or abs(longitude) > 180 or (latitude, longitude) == (0, 0):
        return None, None
    return round(latitude, 7), round(longitude, 7)  # a centimetre
