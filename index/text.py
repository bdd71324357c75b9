"""Names of photos: what a database can store, and how they are made unique."""

import itertools
import re
from collections.abc import Container
from pathlib import Path

from index.errors import CairnError

COLLECTION_FILE = "collection.toml"
"""A folder with this file in it is a collection, and what lies in it no photo of anybody's."""
SEGMENTS, SEAL = "segments", "collection.sums"
"""Its folder of segments, and the file of its checksums."""


def unique_name(path: Path | str, taken: Container[str]) -> str:
    """A name for a photo that no other has: its file's, else with its folder's before it, else with (2), (3), ….

    >>> unique_name("/holiday/rome/1.jpg", {"1.jpg", "rome/1.jpg"})
    'rome/1 (2).jpg'
    """
    path = Path(path)
    long = f"{path.parent.name}/{path.name}" if path.parent.name else path.name
    numbered = (f"{long.removesuffix(path.suffix)} ({i}){path.suffix}" for i in itertools.count(2))
    return next(name for name in itertools.chain([path.name, long], numbered) if name not in taken)


def check_storable(text: str) -> None:
    """Refuse what no database stores as text.

    Raises
    ------
    CairnError
        It has bytes that are not UTF-8 (which Python shows as lone surrogates), or the character NUL.
    """
    if printable(text) != text:
        raise CairnError(f"The name '{printable(text)}' is not valid text: rename the file.")


def printable(text: str) -> str:
    r"""The text with what `check_storable` refuses written as ``\xff`` (a byte) or ``\ud800``."""

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        if 0xDC80 <= code <= 0xDCFF:  # a byte, by PEP 383
            code -= 0xDC00
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return re.sub("[\0\ud800-\udfff]", escape, text)
