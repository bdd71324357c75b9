"""Untrusted text in databases and messages; and lists of names."""

import csv
import io
import os
import re
import unicodedata
from collections.abc import Iterable

from index.errors import CairnError


def check_storable(text: str) -> None:
    """Refuse text that a database cannot store."""
    if printable(text) != text:
        raise CairnError("The name '{name}' is not valid text: rename the file.", name=printable(text))


# Bytes of a path that are not UTF-8, lone surrogates in Python (PEP 383), are mapped to the last code points of the
# last private-use plane, which no file name contains.
_BYTES = {0xDC00 + byte: 0x10FF00 + byte for byte in range(0x80, 0x100)}
_OF_BYTES = {stored: shown for shown, stored in _BYTES.items()}
_BYTE, _STORED = re.compile("[\udc80-\udcff]"), re.compile("[\U0010ff80-\U0010ffff]")


def check_path(path: str) -> None:
    """Refuse a path that `path_of_stored` could not restore."""
    check_storable(_BYTE.sub("", path))
    if _STORED.search(path):
        raise CairnError(
            "The name '{name}' has characters that no name of a file has: rename the file.", name=printable_name(path)
        )


def stored_path(path: str) -> str:
    """Return a path as a database stores it: bytes that are not UTF-8 become private-use characters."""
    return path.translate(_BYTES) if _BYTE.search(path) else path


def path_of_stored(stored: str) -> str:
    """Inverse of `stored_path`."""
    return stored.translate(_OF_BYTES) if _STORED.search(stored) else stored


def readable(path: str) -> str:
    """Return a path with names that are not UTF-8 decoded as Latin-1, as on old CDs and in archives."""
    if not _BYTE.search(path):
        return path
    names = (os.fsencode(name) for name in path.split("/"))
    return "/".join(_decoded(name) for name in names)


def _decoded(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("latin-1")


def printable(text: str) -> str:
    r"""The text with the characters that `check_storable` refuses written as ``\xff`` (a byte) or ``\ud800``."""

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        if 0xDC80 <= code <= 0xDCFF:  # a byte, by PEP 383
            code -= 0xDC00
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return re.sub("[\0\ud800-\udfff]", escape, text)


def csv_text(rows: Iterable[Iterable[object]], *, end: str = "\n") -> str:
    """Return the rows of a table as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue()


def shown(text: str, longest: int = 80) -> str:
    """Text of a file for a message: in quotes, without control characters, and cut to `longest`."""
    return repr(text if len(text) <= longest else f"{text[:longest]}…")


def one_line(error: BaseException) -> str:
    """Type and message of an error of foreign code, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def printable_name(name: str) -> str:
    """Return a name with control characters escaped, so that it cannot break lines or change colours."""
    return "".join(
        character if character.isprintable() or character == " " else repr(character)[1:-1] for character in name
    )


def loose_name(name: str) -> str:
    r"""Normalise the name of a photo: case, composition of letters, and slashes.

    >>> loose_name("Fotos\\Cafe\u0301.JPG")
    'fotos/café.jpg'
    """
    return unicodedata.normalize("NFC", name).casefold().replace("\\", "/")


def bare_name(name: str) -> str:
    """Return a name without its extension, keeping a page number.

    >>> bare_name("a.b/1.jpg"), bare_name("a.b/1"), bare_name("a/book.tif#12")
    ('a.b/1', 'a.b/1', 'a/book#12')
    """
    bare, dot, extension = name.rpartition(".")
    _, mark, page = extension.partition("#")
    return f"{bare}{mark}{page}" if dot and "/" not in extension else name


def one_of(names: Iterable[str]) -> str:
    """Join names: a, b or c."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def likely(probability: float) -> str:
    """Format a probability in percent, never rounded to 0 or 100."""
    whole = round(100 * probability)
    return ">99%" if whole > 99 else "<1%" if whole < 1 else f"{whole}%"
