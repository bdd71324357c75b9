"""Which of several photos that show the same picture is the original, and which are its copies."""

import re
import unicodedata
from pathlib import PurePosixPath

from retrieval.catalogue.schema import ImageRow
from retrieval.metadata.pages import stem_of

# Names that programs and people give to copies: "Bridge - Copy (2)", "Kopie von Bridge", "Bridge copie 3". Only whole
# words: "copyright" and "Copiapó" do not count.
_COPY = re.compile(
    r"(?<![^\W\d_])(copy|copies|copie|copia|copias|kopie|kopien|kopia|duplicates?|duplikate?|duplicados?|duplicat[oi]"
    r"|doublons?)(?![^\W\d_])"
)
# Names of a second download, or a second file of one name; people also number series like this.
_NUMBERED = re.compile(r"\(\d{1,3}\)$|~\d*$")


def original_first(row: ImageRow) -> tuple[bool, int, str, bool, bool, int, int]:
    """Key by which photos of one picture sort so that the original comes first.

    Photos named as copies come last. The others are ordered by most pixels, then by earliest date (unknown dates last),
    then names that do not end in (1) or ~, then photos outside folders of copies, then the shortest name, as derived
    photos often have longer names, then the one added first.
    """
    name = stem_of(row.name or row.path).strip()
    pixels = (row.width or 0) * (row.height or 0)
    in_copies = is_among_copies(row)
    return says_copy(name), -pixels, row.taken or "~", is_numbered(name), in_copies, len(name), row.number


def says_copy(name: str) -> bool:
    """Whether a file's name, without its extension, is that of a copy.

    >>> [says_copy(name) for name in ("Bridge - Kopie (2)", "IMG_12copy", "Copyright", "Copiapó")]
    [True, True, False, False]
    """
    return _COPY.search(_folded(name)) is not None


def is_numbered(name: str) -> bool:
    """Whether a file's name, without its extension, ends as that of a second file of one name does: in (1), or ~."""
    return _NUMBERED.search(name) is not None


def is_among_copies(row: ImageRow) -> bool:
    """Whether a folder above a photo has the name of a folder of copies, which is only weak evidence."""
    return says_copy(PurePosixPath(row.name or row.path).parent.as_posix())


def _folded(name: str) -> str:
    """Lower case, without accents: Portuguese says cópia."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(one for one in letters if not unicodedata.combining(one))
