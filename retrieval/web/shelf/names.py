"""Names of collections: a title as people write it, and a name that is safe as a folder and in an address."""

import re
import unicodedata
from collections.abc import Collection

from index.errors import CairnError
from index.text import printable
from retrieval.metadata.text import JOINERS, clean

LONGEST_TITLE = 100
"""Characters."""
LONGEST_NAME = 60
"""Characters; each is one byte."""
FALLBACK = "collection"
"""Folder name of a collection whose title has no Latin letter and no digit."""

# Windows takes these for devices, whatever follows a dot.
_DEVICES = frozenset(("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))))
# Latin letters that Unicode does not decompose.
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i"})


def clean_title(text: str) -> str:
    """Return a title as it is stored: composed (NFC), on one line, with single spaces."""
    if printable(text) != text:
        raise CairnError("This name is not valid text: type another.")
    # Control characters and direction marks could make a title look like another one, or like the text around it.
    title = clean(text, 2 * len(text))
    if not any(unicodedata.category(one)[0] in "LNPS" for one in title):
        raise CairnError("Give the collection a name.")
    if len(title) > LONGEST_TITLE:
        raise CairnError("This name is too long: {LONGEST_TITLE} characters are the most.", LONGEST_TITLE=LONGEST_TITLE)
    return title


def title_key(title: str) -> str:
    """Key that is equal for titles that look alike: case, spellings of a letter and joiners are ignored."""
    visible = "".join(one for one in title if one not in JOINERS)
    return unicodedata.normalize("NFKC", visible).casefold()


def folder_name(title: str, taken: Collection[str] = ()) -> str:
    """Name the folder of a collection after its title: small Latin letters, digits and single hyphens; none of `taken`.

    >>> folder_name("Zürich, summer 1998")
    'zurich-summer-1998'
    >>> folder_name("東京", ["Collection"])
    'collection-2'
    """
    parts = unicodedata.normalize("NFKD", title.casefold().translate(_LETTERS))
    letters = "".join(one for one in parts if not unicodedata.combining(one))
    base = re.sub("[^a-z0-9]+", "-", letters).strip("-")[:LONGEST_NAME].strip("-") or FALLBACK
    used = {one.casefold() for one in taken} | _DEVICES
    if base not in used:
        return base
    number = 2
    while f"{base}-{number}" in used:
        number += 1
    return f"{base}-{number}"
