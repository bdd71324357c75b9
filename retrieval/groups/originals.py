"""Which of several photos that show the same picture is the original, and which are its copies."""

import re
import unicodedata
from pathlib import PurePosixPath

from retrieval.catalogue.schema import ImageRow
from retrieval.metadata.pages import stem_of

# What programs and people call a copy: "Bridge - Copy (2)", "Kopie von Bridge", "Bridge copie 3". Whole words alone:
# "copyright" and "Copiapó" say nothing of the kind.
_COPY = re.compile(
    r"(?<![^\W\d_])(copy|copies|copie|copia|copias|kopie|kopien|kopia|duplicates?|duplikate?|duplicados?|duplicat[oi]"
    r"|doublons?)(?![^\W\d_])"
)
# What a second download, or a second file of one name, is called; people number series so as well.
_NUMBERED = re.compile(r"\(\d{1,3}\)$|~\d*$")


def original_first(row: ImageRow) -> tuple[bool, int, str, bool, bool, int, int]:
    """Key by which photos of one picture sort so that the original comes first.

    A photo whose name says that it is a copy comes after all whose names do not. Among the others the one of most
    pixels comes first, then the one that was taken earliest (a date that is not known is last), then one whose name
    does not end in (1) or ~, then one that does not lie in a folder of copies, then the shortest name, as what is made
    of a photo is often called by more, then the one that was added first.
    """
    name = stem_of(row.name or row.path).strip()
    pixels = (row.width or 0) * (row.height or 0)
    in_copies = is_among_copies(row)
    return says_copy(name), -pixels, row.taken or "~", is_numbered(name), in_copies, len(name), row.number


def says_copy(name: str) -> bool:
    """Whether a file's name, without its extension, says that it is a copy.

    >>> [says_copy(name) for name in ("Bridge - Kopie (2)", "IMG_12copy", "Copyright", "Copiapó")]
    [True, True, False, False]
    """
    return _COPY.search(_folded(name)) is not None


def is_numbered(name: str) -> bool:
    """Whether a file's name, without its extension, ends as that of a second file of one name does: in (1), or ~."""
    return _NUMBERED.search(name) is not None


def is_among_copies(row: ImageRow) -> bool:
    """Whether a folder that a photo lies in says that copies are in it: by itself that says little of the photo."""
    return says_copy(PurePosixPath(row.name or row.path).parent.as_posix())


def _folded(name: str) -> str:
    """Lower case, without accents: Portuguese says cópia."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(one for one in letters if not unicodedata.combining(one))
