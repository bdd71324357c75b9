"""Words of texts for full-text search: in lower case, without accents, composed and decomposed forms alike.

The parts of a date are words too. The name of a month, or a prefix of it, matches the month in six languages.
"""

import re
import unicodedata
from functools import lru_cache

LONGEST_WORD = 64
"""Characters of a word that count."""

_ASCII_WORD = re.compile("[a-z0-9]+")
# Letters with strokes, which Unicode does not decompose.
_STROKES = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"})
# Scripts that write no spaces between words: each character counts as one.
_ALONE = re.compile("[\u2e80-\u2fdf\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_LEAST_OF_MONTH = 3  # letters of its name that stand for a month
_MONTH = 0xE000  # a character of private use, which no text has as a word, and each of the following eleven
_MONTHS = (
    "january januar janvier enero gennaio januari",
    "february februar février febrero febbraio februari",
    "march märz mars marzo maart",
    "april avril abril aprile",
    "may mai mayo maggio mei",
    "june juni juin junio giugno",
    "july juli juillet julio luglio",
    "august août agosto augustus",
    "september septembre septiembre settembre",
    "october oktober octobre octubre ottobre",
    "november novembre noviembre",
    "december dezember décembre diciembre dicembre",
)


def words_of(text: str) -> list[str]:
    """The words of a text, in its order.

    >>> words_of("Zoë’s Straße, 2nd floor_A"), words_of("Łódź 東京🌈")
    (['zoe', 's', 'strasse', '2nd', 'floor', 'a'], ['lodz', '東', '京', '🌈'])
    """
    if text.isascii():
        words = _ASCII_WORD.findall(text.lower())
    else:
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
        words = "".join(map(_as_word, folded)).translate(_STROKES).split()
    return [word[:LONGEST_WORD] for word in words]


def words_of_date(date: str) -> list[str]:
    """The words of a date, such as 1923-05-17: year, month and day as people write them, and a word for the month.

    >>> words_of_date("1923-05-17T14:30:00")[:-1]
    ['1923', '05', '5', '17', '17']
    """
    year, *others = date[:10].split("-")
    words = [year, *(form for part in others for form in (part, part.lstrip("0")))]
    return [*words, _word_of_month(int(others[0]))] if others else words


def months_meant(word: str) -> list[str]:
    """Words of the months that a word from `words_of` is the name of, or a prefix of it."""
    if len(word) < _LEAST_OF_MONTH:
        return []
    return [_word_of_month(month) for month, names in _folded_months() if any(one.startswith(word) for one in names)]


def _word_of_month(month: int) -> str:
    return chr(_MONTH + month)


@lru_cache(maxsize=1)
def _folded_months() -> list[tuple[int, list[str]]]:
    return [(month, words_of(names)) for month, names in enumerate(_MONTHS, 1)]


@lru_cache(maxsize=4096)
def _as_word(letter: str) -> str:
    """Replacement of a character in words: itself, nothing, a separate word, or a separator."""
    kind = unicodedata.category(letter)
    if kind[0] == "M" or kind == "Cf":  # accents, and invisible characters
        return ""
    if kind == "So" or _ALONE.match(letter):
        return f" {letter} "
    return letter if letter.isalnum() else " "
