"""Names of photos in a catalogue: the desired ones if free, else similar ones."""

import hashlib
import itertools
from collections.abc import Container, Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.text import readable
from retrieval.catalogue.database import chunks
from retrieval.catalogue.schema import ImageRow

LONGEST_NAME = 1000
"""Bytes of a name: no more fit into the column, and into an index of PostgreSQL."""


def short_name(name: str) -> str:
    """Shorten a name if it does not fit into every database: beginning and end, with a hash between them.

    >>> len(short_name("folder/" * 400 + "1.jpg"))
    1000
    """
    encoded = name.encode("utf-8", "surrogatepass")
    if len(encoded) <= LONGEST_NAME:
        return name
    end = Path(name).name.encode("utf-8", "surrogatepass")[-300:].decode("utf-8", "ignore")
    middle = f"~{hashlib.sha256(encoded).hexdigest()[:16]}/{end}"
    start = encoded[: LONGEST_NAME - len(middle.encode())].decode("utf-8", "ignore")
    return f"{start}{middle}"


def free_names(session: Session, photos: Sequence[tuple[str, str | None]]) -> list[str]:
    """Choose a unique name for each (path, desired name): the desired or file name, shortened, or a `unique_name`."""
    names: list[str] = []
    wishes = [short_name(wish or readable(Path(path).name)) for path, wish in photos]
    taken = _TakenNames(session, wishes)
    for (path, _), wish in zip(photos, wishes, strict=True):
        name = unique_name(path, taken) if wish in taken else wish
        taken.add(name)
        names.append(name)
    return names


class _TakenNames:
    """Names in use; those passed to the constructor are looked up at once, others on demand."""

    def __init__(self, session: Session, names: Sequence[str]) -> None:
        self._session = session
        self._looked_up: set[str] = set()
        self._taken: set[str] = set()
        for chunk in chunks(list(dict.fromkeys(names))):
            self._look_up(chunk)

    def add(self, name: str) -> None:
        self._taken.add(name)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and name not in self._taken and name not in self._looked_up:
            self._look_up([name])
        return name in self._taken

    def _look_up(self, names: list[str]) -> None:
        self._looked_up.update(names)
        self._taken.update(self._session.scalars(sa.select(ImageRow.name).where(ImageRow.name.in_(names))))


def unique_name(path: Path | str, taken: Container[str]) -> str:
    """A unique name for a photo: that of its file, else with its folder's before it, else with (2), (3), ….

    >>> unique_name("/holiday/rome/1.jpg", {"1.jpg", "rome/1.jpg"})
    'rome/1 (2).jpg'
    """
    path = Path(readable(str(path)))
    long = f"{path.parent.name}/{path.name}" if path.parent.name else path.name
    numbered = (f"{long.removesuffix(path.suffix)} ({i}){path.suffix}" for i in itertools.count(2))
    return next(name for name in itertools.chain([path.name, long], numbered) if name not in taken)
