"""Kinds of signatures by name. It does not import NumPy, so that `cairn --help` is quick."""

from dataclasses import dataclass

from index.errors import CairnError
from index.text import one_of

NONE = "none"
DEFAULT = "hamming-64"
_SOURCE = "hamming"
_SOURCES = (_SOURCE, "frame")
_BITS = (32, 64, 128)

NAMES = (NONE, *(f"{source}-{bits}" for source in _SOURCES for bits in _BITS))
"""Names of signatures: `none`, or the source and the number of bits."""


@dataclass(frozen=True)
class SignatureKind:
    """A kind of signature: its source and number of bits."""

    source: str
    bits: int

    def __str__(self) -> str:
        return f"{self.source}-{self.bits}"


def parse_signature(name: str) -> SignatureKind | None:
    """Parse the name of a kind of signature; None for `none`. A number of bits alone means Hamming embedding."""
    full = f"{_SOURCE}-{name}" if name.isdecimal() else name
    if full not in NAMES:
        raise CairnError(f"There is no signature {name!r}; choose one of {one_of(NAMES)}.")
    if full == NONE:
        return None
    source, _, bits = full.partition("-")
    return SignatureKind(source, int(bits))


def full_name(kind: SignatureKind | None) -> str:
    """The name of a kind of signature, one of `NAMES`."""
    return str(kind or NONE)
