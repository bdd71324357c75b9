"""XML that others have written: read in one pass, without entities, and never a file that a link leads to."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Protocol
from xml.parsers import expat

from index.errors import CairnError
from index.files.reading import open_regular

LARGEST = 64 << 20
"""Bytes of a file."""

_DEEPEST = 100  # elements within each other
_LONGEST = 2_000  # most characters of the text of an element


class XmlHandler(Protocol):
    """Handles elements in order, by their names without namespaces."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element; names of attributes are without namespaces, too."""

    def end(self, name: str, text: str) -> None:
        """Handle the end of an element, with its direct text."""


class WrongXmlError(Exception):
    """The document has another form than the handler expects, or is too large for it."""


def read_own(path: Path, largest: int = LARGEST) -> bytes | None:
    """Read a regular file; None if it is missing, a link or too large."""
    with contextlib.suppress(OSError, ValueError, CairnError):
        if stat.S_ISREG(os.lstat(path).st_mode):
            with open_regular(path) as file:
                content = file.read(largest + 1)
            return content if len(content) <= largest else None
    return None


def parse_xml(data: bytes, handler: XmlHandler) -> bool:
    """Pass the elements of XML to a handler; False if it is damaged, has a document type, or the handler refuses it."""
    texts: list[list[str]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(texts) >= _DEEPEST:
            raise WrongXmlError
        texts.append([])
        handler.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        handler.end(_local(name), "".join(texts.pop()).strip()[:_LONGEST])

    def characters(text: str) -> None:
        if len(texts[-1]) < _LONGEST:
            texts[-1].append(text[:_LONGEST])

    def refuse(*_: object) -> None:
        raise WrongXmlError

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse  # so that there are no entities
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = characters
    try:
        parser.Parse(data, True)
    except (WrongXmlError, expat.ExpatError, LookupError, ValueError):
        return False
    return True


def _local(name: str) -> str:
    return name.rpartition(" ")[2]
